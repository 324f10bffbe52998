import {
  DEFAULT_KEYS,
  isKeyAction,
  type KeyAction,
  type KeySettings,
  listKeys,
  parseKey,
  PROGRAM_KEYS,
  type ProgramAction,
  PROMPT_KEYS,
  type PromptAction,
  SHARING,
} from "@gyre/coding/internal/settings/terminal/key-actions";

/** Names that people know keys by. */
const LABELS: Readonly<Record<string, string>> = { escape: "Esc", " ": "Space" };

/** Which key does what: as it is by default, but for what is set. */
export class KeyBindings {
  readonly #prompt = new Map<string, PromptAction>();
  readonly #program = new Map<string, ProgramAction>();
  readonly #keys = new Map<KeyAction, readonly string[]>();
  /** The actions whose keys are set. */
  readonly changed: readonly KeyAction[];

  constructor(settings: KeySettings = {}) {
    this.changed = Object.keys(settings).filter(isKeyAction);
    const own = new Set<string>();
    for (const action of this.changed) {
      const keys = listKeys(settings[action] ?? []).flatMap((text) => parseKey(text) ?? []);
      this.#keys.set(action, keys);
      // An action that only has what the prompt leaves takes its key from none.
      if (!SHARING.has(action)) for (const key of keys) own.add(key);
    }
    for (const action of Object.keys(DEFAULT_KEYS).filter(isKeyAction)) {
      const usual = DEFAULT_KEYS[action].split(" ").filter((key) => key !== "" && !own.has(key));
      if (!this.#keys.has(action)) this.#keys.set(action, usual);
    }
    for (const [action, keys] of this.#keys) {
      for (const key of keys) {
        if (isPromptAction(action)) this.#prompt.set(key, action);
        else if (isProgramAction(action)) this.#program.set(key, action);
      }
    }
  }

  /** What a key does to the prompt. */
  findForPrompt(key: string): PromptAction | undefined {
    return this.#prompt.get(key);
  }

  /** What a key does that the prompt has no use for. */
  findForProgram(key: string): ProgramAction | undefined {
    return this.#program.get(key);
  }

  list(action: KeyAction): readonly string[] {
    return this.#keys.get(action) ?? [];
  }

  /** The first key of an action for people: `Ctrl+O`. Undefined where it has none. */
  label(action: KeyAction): string | undefined {
    const [first] = this.list(action);
    return first === undefined ? undefined : formatKeyLabel(first);
  }
}

/** `ctrl+o` is `Ctrl+O`. */
export function formatKeyLabel(key: string): string {
  const cut = key.lastIndexOf("+", key.length - 2);
  const parts = cut < 0 ? [key] : [...key.slice(0, cut).split("+"), key.slice(cut + 1)];
  return parts
    .map((part) => LABELS[part] ?? part.slice(0, 1).toUpperCase() + part.slice(1))
    .join("+");
}

function isPromptAction(action: KeyAction): action is PromptAction {
  return Object.hasOwn(PROMPT_KEYS, action);
}

function isProgramAction(action: KeyAction): action is ProgramAction {
  return Object.hasOwn(PROGRAM_KEYS, action);
}
