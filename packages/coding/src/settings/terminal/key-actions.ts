/** What keys do to a prompt, by name, and which do it where nothing else is set. */
export const PROMPT_KEYS = {
  submit: "enter",
  followUp: "alt+enter",
  newLine: "shift+enter ctrl+j",
  up: "up",
  down: "down",
  searchHistory: "ctrl+r",
  complete: "tab",
  stash: "ctrl+s",
  undo: "ctrl+_ ctrl+/ ctrl+shift+-",
  redo: "alt+z ctrl+shift+z",
  cutToLineStart: "ctrl+u",
  cutToLineEnd: "ctrl+k",
  cutToSpace: "ctrl+w",
  cutWordLeft: "alt+backspace ctrl+backspace",
  cutWordRight: "alt+d alt+delete ctrl+delete",
  putBack: "ctrl+y",
  eraseLeft: "backspace shift+backspace",
  eraseRight: "delete ctrl+d",
  left: "left ctrl+b",
  right: "right ctrl+f",
  wordLeft: "ctrl+left alt+left alt+b",
  wordRight: "ctrl+right alt+right alt+f",
  lineStart: "home ctrl+a",
  lineEnd: "end ctrl+e",
  textStart: "ctrl+home alt+<",
  textEnd: "ctrl+end alt+>",
} as const;

/** What other keys do. */
export const PROGRAM_KEYS = {
  interrupt: "escape",
  tree: "",
  takeBack: "alt+up",
  externalEditor: "ctrl+g",
  paste: "ctrl+v",
  nextMode: "shift+tab",
  nextThinking: "ctrl+t",
  expand: "ctrl+o",
  background: "ctrl+b",
  exit: "ctrl+d",
  suspend: "ctrl+z",
} as const;

export type PromptAction = keyof typeof PROMPT_KEYS;
export type ProgramAction = keyof typeof PROGRAM_KEYS;
export type KeyAction = PromptAction | ProgramAction;

/** Keys by action, as they are set: one, or a list, which may be empty. */
export type KeySettings = Readonly<Record<string, string | readonly string[]>>;

export const DEFAULT_KEYS: Readonly<Record<KeyAction, string>> = {
  ...PROMPT_KEYS,
  ...PROGRAM_KEYS,
};

/** These do nothing where the prompt has a use for their key, and so may share it. */
export const SHARING: ReadonlySet<string> = new Set<KeyAction>(["background", "exit"]);

/** Keys without a character. */
const NAMED = [
  ..."enter tab escape backspace delete insert up down left right home end pageUp pageDown".split(
    " ",
  ),
  ...Array.from({ length: 12 }, (_, index) => `f${index + 1}`),
];
/** By other names that people know. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["esc", "escape"],
  ["return", "enter"],
  ["del", "delete"],
  ["control", "ctrl"],
  ["option", "alt"],
  ["meta", "alt"],
  ["space", " "],
]);
const BY_SMALL_NAME = new Map(NAMED.map((name) => [name.toLowerCase(), name]));
const MODIFIERS = ["ctrl", "alt", "shift"];

export function isKeyAction(name: string): name is KeyAction {
  return Object.hasOwn(DEFAULT_KEYS, name);
}

/** A key as the terminal names it: `Ctrl+X` is `ctrl+x`. Undefined for what is no key, or a letter that is typed. */
export function parseKey(text: string): string | undefined {
  const small = text.trim().toLowerCase();
  // The last sign may be a plus.
  const cut = small.lastIndexOf("+", small.length - 2);
  const last = readAlias(small.slice(cut + 1));
  const held = cut < 0 ? [] : small.slice(0, cut).split("+");
  const modifiers = held.map(readAlias);
  if (modifiers.some((name) => !MODIFIERS.includes(name))) return undefined;
  const name = BY_SMALL_NAME.get(last);
  const isTyped = !modifiers.includes("ctrl") && !modifiers.includes("alt");
  if (name === undefined && (isTyped || [...last].length !== 1)) return undefined;
  return [...MODIFIERS.filter((each) => modifiers.includes(each)), name ?? last].join("+");
}

function readAlias(name: string): string {
  return ALIASES.get(name) ?? name;
}

/** The keys that are set for an action. */
export function listKeys(value: string | readonly string[]): readonly string[] {
  return typeof value === "string" ? [value] : value;
}
