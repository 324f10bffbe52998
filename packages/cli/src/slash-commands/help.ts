import type { CommandPart } from "@gyre/coding/internal/conversation/command";
import type { KeyAction } from "@gyre/coding/internal/settings/terminal/key-actions";
import { formatKeyLabel, type KeyBindings } from "../core/key-bindings.ts";
import type { ShownCommand } from "./command-context.ts";

/** What keys do: those of actions, which settings may change, or others. */
interface KeyRow {
  /** The first key of each is shown, or all where the row is about one action that has several. */
  actions?: readonly KeyAction[];
  /** Keys that stay as they are. */
  fixed?: string;
  about: string;
}

/** What a key does. */
export interface KeyHelp {
  keys: string;
  about: string;
}

/** Every key, as they belong together. */
const ROWS: readonly { title: string; rows: readonly KeyRow[] }[] = [
  {
    title: "Prompt",
    rows: [
      { actions: ["submit"], about: "send it; while it works: steer" },
      { actions: ["followUp"], about: "while it works: queue it for when it is done" },
      { actions: ["newLine"], fixed: "\\ Enter", about: "a new line" },
      { actions: ["takeBack"], about: "take the queue back to edit" },
      { actions: ["up", "down"], about: "earlier prompts" },
      { actions: ["searchHistory"], about: "search earlier prompts" },
      { actions: ["complete"], about: "complete a file or a command" },
      { actions: ["paste"], about: "paste a picture or text from the clipboard" },
      {
        actions: ["stash"],
        about: "put it aside until the next message is sent, or bring it back",
      },
      { actions: ["externalEditor"], about: "write in your own editor" },
      { actions: ["undo", "redo"], about: "undo, redo" },
      {
        actions: ["cutToLineStart", "cutToLineEnd", "cutToSpace"],
        about: "cut to the left, to the right, a word",
      },
      { actions: ["putBack"], about: "put back what was cut" },
    ],
  },
  {
    title: "Begin with",
    rows: [
      { fixed: "@", about: "a file; the path of a picture sends the picture" },
      { fixed: "/", about: "a command" },
      { fixed: "#", about: "a blank and a line to remember, in AGENTS.md or CLAUDE.md" },
      { fixed: "!", about: "a shell command of yours, which the model sees" },
      { fixed: "!!", about: "one that it does not see" },
    ],
  },
  {
    title: "Any time",
    rows: [
      { actions: ["interrupt"], about: "interrupt; the queue returns to the editor" },
      { actions: ["tree"], about: "the tree of this session" },
      { actions: ["nextMode"], about: "the next mode: what it may do without asking" },
      { actions: ["background"], about: "have a running command go on in the background" },
      { actions: ["nextThinking"], about: "the next level of thinking" },
      { actions: ["expand"], about: "show what is cut in full, or in short again" },
      {
        fixed: "Ctrl+C",
        about: "clear the prompt, which Up brings back; else interrupt; else twice: leave",
      },
      { actions: ["exit"], about: "leave, where the prompt is empty" },
      { actions: ["suspend"], about: "stop it, and go to the shell; fg comes back" },
    ],
  },
  {
    title: "When it asks",
    rows: [
      { fixed: "y", about: "yes, this once" },
      { fixed: "d", about: "yes, and do not ask again in this project" },
      { fixed: "a", about: "yes, and from now on; how long is asked next" },
      { fixed: "n", about: "no" },
      { fixed: "t", about: "no, and say what to do instead" },
      { fixed: "1 to 6", about: "the answer of this number" },
      { fixed: "Esc", about: "no, and interrupt" },
      { fixed: "Ctrl+O, PageUp, PageDown", about: "all of a long command or change" },
    ],
  },
];

const NO_KEY = "no key";

/** Every key as it is set, for `/help` and the manual: the usual ones first, then those that only settings name. */
export function listKeyGroups(
  bindings: KeyBindings,
): readonly { title: string; keys: readonly KeyHelp[] }[] {
  const groups = ROWS.map(({ title, rows }) => ({
    title,
    keys: rows.map((row) => ({ keys: formatKeys(row, bindings), about: row.about })),
  }));
  const listed = new Set(ROWS.flatMap(({ rows }) => rows.flatMap(({ actions = [] }) => actions)));
  const others = bindings.changed.filter((action) => !listed.has(action));
  if (others.length === 0) return groups;
  const keys = others.map((action) => ({ keys: formatAll(action, bindings), about: action }));
  return [...groups, { title: "Other keys that you have set", keys }];
}

function formatKeys({ actions = [], fixed }: KeyRow, bindings: KeyBindings): string {
  const isAll = actions.length === 1 && fixed !== undefined;
  const keys = actions.map((action) => {
    if (isAll || bindings.changed.includes(action)) return formatAll(action, bindings);
    return bindings.label(action) ?? findTwice(action, bindings) ?? NO_KEY;
  });
  return [...keys, ...(fixed === undefined ? [] : [fixed])].join(", ");
}

/** The tree has no key of its own: what interrupts, pressed twice, opens it. */
function findTwice(action: KeyAction, bindings: KeyBindings): string | undefined {
  const key = action === "tree" ? bindings.label("interrupt") : undefined;
  return key && `${key} ${key}`;
}

function formatAll(action: KeyAction, bindings: KeyBindings): string {
  return bindings.list(action).map(formatKeyLabel).join(", ") || NO_KEY;
}

/** `/help`: how things are typed, and all commands. */
export const helpCommand: ShownCommand = {
  name: "help",
  about: "show the keys and the commands",
  views: ["terminal", "screen reader"],
  allowWhileRunning: true,
  run: (_rest, { commands, help }) => ({ show: [...help, commandTable(commands())] }),
};

/** The keys as one table, what belongs together below its title. */
export function keyTable(bindings: KeyBindings): CommandPart {
  const rows = listKeyGroups(bindings).flatMap(({ title, keys }) => [
    [{ strong: title }, ""],
    ...keys.map((key) => [key.keys, key.about]),
  ]);
  return { type: "table", columns: ["key", "does"], rows };
}

/** The commands as a table. */
export function commandTable(
  commands: readonly Pick<ShownCommand, "name" | "aliases" | "about" | "hint">[],
): Extract<CommandPart, { type: "table" }> {
  const rows = commands.map(({ name, aliases = [], about, hint }) => [
    { code: `/${name}` },
    [
      hint === undefined ? about : `${about} (${hint.replace(/^\[(.*)\]$/, "$1")})`,
      ...(aliases.length > 0 ? [`also ${aliases.map((alias) => `/${alias}`).join(", ")}`] : []),
    ].join("; "),
  ]);
  return { type: "table", columns: ["command", "does"], rows };
}
