import type { CommandPart } from "@gyre/coding/internal/conversation/command";
import type { SlashCommand } from "./command-context.ts";

/** What a key does. */
export interface KeyHelp {
  keys: string;
  about: string;
}

/** Every key, as they belong together: for `/help` and the manual. */
export const KEY_GROUPS: readonly { title: string; keys: readonly KeyHelp[] }[] = [
  {
    title: "Prompt",
    keys: [
      { keys: "Enter", about: "send it; while it works: steer" },
      { keys: "Alt+Enter", about: "while it works: queue it for when it is done" },
      { keys: "Shift+Enter, Ctrl+J, \\ Enter", about: "a new line" },
      { keys: "Alt+Up", about: "take the queue back to edit" },
      { keys: "Up, Down", about: "earlier prompts" },
      { keys: "Ctrl+R", about: "search earlier prompts" },
      { keys: "Tab", about: "complete a file or a command" },
      { keys: "Ctrl+G", about: "write in your own editor" },
      { keys: "Ctrl+_, Alt+Z", about: "undo, redo" },
      { keys: "Ctrl+U, Ctrl+K, Ctrl+W", about: "cut to the left, to the right, a word" },
      { keys: "Ctrl+Y", about: "put back what was cut" },
    ],
  },
  {
    title: "Begin with",
    keys: [
      { keys: "@", about: "a file; the path of a picture sends the picture" },
      { keys: "/", about: "a command" },
      { keys: "!", about: "a shell command of yours, which the model sees" },
      { keys: "!!", about: "one that it does not see" },
    ],
  },
  {
    title: "Any time",
    keys: [
      { keys: "Esc", about: "interrupt; the queue returns to the editor" },
      { keys: "Esc Esc", about: "the tree of this session" },
      { keys: "Shift+Tab", about: "the next mode: what it may do without asking" },
      { keys: "Ctrl+B", about: "have a running command go on in the background" },
      { keys: "Ctrl+T", about: "the next level of thinking" },
      { keys: "Ctrl+O", about: "show what is cut in full, or in short again" },
      {
        keys: "Ctrl+C",
        about: "clear the prompt, which Up brings back; else interrupt; else twice: leave",
      },
      { keys: "Ctrl+D", about: "leave, where the prompt is empty" },
      { keys: "Ctrl+Z", about: "stop it, and go to the shell; fg comes back" },
    ],
  },
  {
    title: "When it asks",
    keys: [
      { keys: "y", about: "yes, this once" },
      { keys: "a", about: "yes, and from now on by this rule" },
      { keys: "n", about: "no" },
      { keys: "t", about: "no, and say what to do instead" },
      { keys: "Esc", about: "no, and interrupt" },
      { keys: "Ctrl+O, PageUp, PageDown", about: "all of a long command or change" },
    ],
  },
];

/** `/help`: how things are typed, and all commands. */
export const helpCommand: SlashCommand = {
  name: "help",
  about: "show the keys and the commands",
  views: ["terminal", "screen reader"],
  allowWhileRunning: true,
  run: (_rest, { commands, help }) => ({ show: [...help, commandTable(commands())] }),
};

/** The keys as one table, what belongs together below its title. */
export function keyTable(): CommandPart {
  const rows = KEY_GROUPS.flatMap(({ title, keys }) => [
    [{ strong: title }, ""],
    ...keys.map((key) => [key.keys, key.about]),
  ]);
  return { type: "table", columns: ["key", "does"], rows };
}

/** The commands as a table. */
export function commandTable(
  commands: readonly Pick<SlashCommand, "name" | "aliases" | "about" | "hint">[],
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
