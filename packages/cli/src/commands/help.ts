import { EXIT } from "../core/exit-codes.ts";
import {
  COMMANDS,
  type CommandName,
  type CommandSpec,
  isTypedCommand,
  type OptionName,
  OPTIONS,
  type OptionSpec,
} from "../core/options.ts";
import { DEFAULT_TOOLS, OTHER_TOOLS } from "@gyre/coding/internal/core/tool-lists";
import { MODE_NAMES, THINKING_NAMES } from "@gyre/coding/internal/text/choices";
import { wrap } from "../core/terminal.ts";

const COLUMNS = 80;
/** Where the words on an option begin. */
const ABOUT_COLUMN = 25;
/** Where the words on a command begin. */
const COMMAND_COLUMN = 15;
/** Where the words on what a command can do begin. */
const VERB_COLUMN = 18;

/** The options of a run, as they belong together. */
export const RUN_GROUPS: readonly { title: string; options: readonly OptionName[] }[] = [
  {
    title: "Prompt and answer",
    options: ["print", "output", "schema", "quiet", "draft", "screen-reader"],
  },
  {
    title: "Model",
    options: ["model", "thinking", "api-key", "system-prompt", "append-system-prompt"],
  },
  {
    title: "What it may do",
    options: ["tools", "mode", "allow", "deny", "add-dir", "sandbox", "network"],
  },
  { title: "Limits", options: ["max-turns", "max-cost", "timeout"] },
  {
    title: "Session",
    options: ["continue", "resume", "worktree", "fork", "history", "database", "no-session"],
  },
  { title: "Settings and logs", options: ["cwd", "config", "trust", "verbose", "log"] },
];

/** For every command. */
export const COMMON_OPTIONS: readonly OptionName[] = ["help", "version"];

/** What each way to end means. */
export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: "done, also where the last answer went past --max-cost",
  failed: "failed",
  usage: "wrong usage",
  auth: "no key, or one that was refused",
  limit: "a limit of turns, cost or tokens ended the run",
  denied: "it could not be finished, as a call was denied",
  timeout: "out of time",
  interrupted: "interrupted",
};

/** The commands to type. A run has none: it is what is meant where none is named. */
export function typedCommands(): [CommandName, CommandSpec][] {
  return Object.keys(COMMANDS)
    .filter(isTypedCommand)
    .map((name) => [name, COMMANDS[name]]);
}

/** An option as the table has it, whichever it is. */
export function optionSpec(name: OptionName): OptionSpec {
  return OPTIONS[name];
}

/** The values that an option takes, where they are known. */
export function optionChoices(name: OptionName): readonly string[] {
  const { complete } = optionSpec(name);
  if (complete === "mode") return MODE_NAMES;
  if (complete === "thinking") return THINKING_NAMES;
  return typeof complete === "object" ? complete : [];
}

/** What an option does for a command, with the values that it takes. */
export function aboutOption(name: OptionName, command: CommandName = "run"): string {
  const { about: usual } = optionSpec(name);
  const { abouts = {} }: CommandSpec = COMMANDS[command];
  const about = abouts[name] ?? usual;
  const values = optionChoices(name);
  return values.every((each) => about.includes(each)) ? about : `${about}: ${values.join(", ")}`;
}

/** Which tools there are, for people. */
export const TOOLS_NOTE: string =
  `Without --tools it has ${DEFAULT_TOOLS.join(", ")}, and skill where there are skills. ` +
  `There are also ${OTHER_TOOLS.join(", ")}: --tools +${OTHER_TOOLS[0]} adds one, --tools -git takes one away.`;

/** A user must not wait for a question that never comes. */
export const ASKING_NOTE: string =
  "In a terminal: where a sandbox holds, mode auto works in the folder unasked and asks about the network, other places and what cannot be undone; elsewhere it asks before it changes or runs anything. With -p, --output or --schema, and in a pipe, there are no questions: a call that needs an approval is denied, and the model gets the reason; --mode and --allow say what it may do. Editors (acp) and programs (rpc) can approve calls.";

/** The help of the program, or of one command. Ends with a line break. */
export function helpText(command: CommandName = "run"): string {
  return command === "run" ? programHelp() : commandHelp(command);
}

function programHelp(): string {
  const commands = typedCommands().map(([name, { about }]) =>
    row(`  ${name}`, about, COMMAND_COLUMN),
  );
  const groups = RUN_GROUPS.map(({ title, options }) => section(title, optionRows(options)));
  const codes = exitNames().map((name) => `${EXIT[name]} ${EXIT_MEANINGS[name]}`);
  return `${[
    `Usage: gyre ["PROMPT"] [options]      a conversation in the terminal
       gyre -p "PROMPT" [options]     one answer
       gyre COMMAND [options]`,
    paragraph(
      "A prompt of several words needs no -p; one word that is no command does. Piped input becomes part of the prompt, and so does a file that is named as @FILE.",
    ),
    section("Commands", commands),
    ...groups,
    paragraph(TOOLS_NOTE),
    paragraph(ASKING_NOTE),
    section("Options of every command", optionRows(COMMON_OPTIONS)),
    paragraph(`Exit codes: ${codes.join("; ")}.`),
    paragraph(
      "More: gyre help COMMAND, man gyre. What works here: gyre doctor. Settings: gyre config.",
    ),
  ].join("\n\n")}\n`;
}

function commandHelp(command: CommandName): string {
  const { about, options, takes, verbs = {} }: CommandSpec = COMMANDS[command];
  const rows = Object.entries(verbs).map(([verb, { takes: what, about: does }]) =>
    row(`  ${verb}${what === undefined ? "" : ` ${what}`}`, does, VERB_COLUMN),
  );
  return `${[
    wrap(`Usage: gyre ${command}${takes === undefined ? "" : ` ${takes}`} [options]`, COLUMNS, ""),
    paragraph(`${about.charAt(0).toUpperCase()}${about.slice(1)}.`),
    ...(rows.length > 0 ? [section("What it can do", rows)] : []),
    section("Options", optionRows([...options, ...COMMON_OPTIONS], command)),
  ].join("\n\n")}\n`;
}

function section(title: string, rows: readonly string[]): string {
  return [title, ...rows].join("\n");
}

function paragraph(text: string): string {
  return wrap(text, COLUMNS, "");
}

function optionRows(names: readonly OptionName[], command?: CommandName): string[] {
  return names.map((name) => {
    const { multiple, short, value } = optionSpec(name);
    const about = aboutOption(name, command);
    const letter = short === undefined ? "    " : `-${short}, `;
    const label = `  ${letter}--${name}${value === undefined ? "" : ` ${value}`}`;
    return row(label, multiple ? `${about}; may be repeated` : about, ABOUT_COLUMN);
  });
}

/** A label and what there is to say of it, wrapped beside it; below it where it is too long. */
function row(label: string, about: string, column: number): string {
  const text = wrap(about, COLUMNS, " ".repeat(column));
  return label.length < column ? label + text.slice(label.length) : `${label}\n${text}`;
}

export function isCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}

export function exitNames(): (keyof typeof EXIT)[] {
  return Object.keys(EXIT).filter((name): name is keyof typeof EXIT => Object.hasOwn(EXIT, name));
}
