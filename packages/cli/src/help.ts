import { EXIT } from "./exit-codes.ts";
import {
  COMMANDS,
  type CommandName,
  type CommandSpec,
  type OptionName,
  OPTIONS,
  type OptionSpec,
} from "./options.ts";
import { wrap } from "./terminal.ts";

const COLUMNS = 80;
/** Where the words on an option begin. */
const ABOUT_COLUMN = 25;
/** Where the words on a command begin. */
const COMMAND_COLUMN = 15;

/** The options of a run, as they belong together. */
export const RUN_GROUPS: readonly { title: string; options: readonly OptionName[] }[] = [
  { title: "Prompt and answer", options: ["print", "output", "schema", "quiet"] },
  { title: "Model", options: ["model", "thinking"] },
  {
    title: "What it may do",
    options: ["tools", "mode", "allow", "deny", "sandbox", "network"],
  },
  { title: "Limits", options: ["max-turns", "max-cost", "timeout"] },
  { title: "Session", options: ["continue", "resume", "fork", "history", "no-session"] },
  { title: "Settings and logs", options: ["cwd", "config", "trust", "verbose", "log"] },
];

/** For every command. */
export const COMMON_OPTIONS: readonly OptionName[] = ["help", "version"];

/** What each way to end means. */
export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: "done",
  failed: "failed",
  usage: "wrong usage",
  auth: "no key, or one that was refused",
  limit: "a limit of turns, cost or tokens was reached",
  denied: "it could not be finished, as a call was denied",
  timeout: "out of time",
  interrupted: "interrupted",
};

/** The commands to type. A run has none: it is what is meant where none is named. */
export function typedCommands(): [CommandName, CommandSpec][] {
  return commandNames()
    .filter((name) => name !== "run")
    .map((name) => [name, COMMANDS[name]]);
}

/** An option as the table has it, whichever it is. */
export function optionSpec(name: OptionName): OptionSpec {
  return OPTIONS[name];
}

/** What an option does, with the values that it takes. */
export function aboutOption(name: OptionName): string {
  const { about, complete } = optionSpec(name);
  const values = typeof complete === "object" ? complete : [];
  return values.every((each) => about.includes(each)) ? about : `${about}: ${values.join(", ")}`;
}

/** The help of the program, or of one command. Ends with a line break. */
export function helpText(command: CommandName = "run"): string {
  return command === "run" ? programHelp() : commandHelp(command);
}

function programHelp(): string {
  const commands = typedCommands().map(([name, { about }]) =>
    row(`  ${name}`, about, COMMAND_COLUMN),
  );
  const groups = RUN_GROUPS.map(({ title, options }) => section(title, options.map(optionRow)));
  const codes = exitNames().map((name) => `${EXIT[name]} ${EXIT_MEANINGS[name]}`);
  return `${[
    `Usage: gyre -p "PROMPT" [options]
       gyre COMMAND [options]`,
    paragraph(
      "A prompt of several words needs no -p; one word that is no command does. Piped input becomes part of the prompt.",
    ),
    section("Commands", commands),
    ...groups,
    section("Options of every command", COMMON_OPTIONS.map(optionRow)),
    paragraph(`Exit codes: ${codes.join("; ")}.`),
    paragraph(
      "More: gyre COMMAND --help, man gyre. What works here: gyre doctor. Settings: gyre config.",
    ),
  ].join("\n\n")}\n`;
}

function commandHelp(command: CommandName): string {
  const { about, options, takes }: CommandSpec = COMMANDS[command];
  return `${[
    wrap(`Usage: gyre ${command}${takes === undefined ? "" : ` ${takes}`} [options]`, COLUMNS, ""),
    paragraph(`${about.charAt(0).toUpperCase()}${about.slice(1)}.`),
    section("Options", [...options, ...COMMON_OPTIONS].map(optionRow)),
  ].join("\n\n")}\n`;
}

function section(title: string, rows: readonly string[]): string {
  return [title, ...rows].join("\n");
}

function paragraph(text: string): string {
  return wrap(text, COLUMNS, "");
}

function optionRow(name: OptionName): string {
  const { multiple, short, value } = optionSpec(name);
  const about = aboutOption(name);
  const letter = short === undefined ? "    " : `-${short}, `;
  const label = `  ${letter}--${name}${value === undefined ? "" : ` ${value}`}`;
  return row(label, multiple ? `${about}; may be repeated` : about, ABOUT_COLUMN);
}

/** A label and what there is to say of it, wrapped beside it; below it where it is too long. */
function row(label: string, about: string, column: number): string {
  const text = wrap(about, COLUMNS, " ".repeat(column));
  return label.length < column ? label + text.slice(label.length) : `${label}\n${text}`;
}

function commandNames(): CommandName[] {
  return Object.keys(COMMANDS).filter(isCommand);
}

function isCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}

function exitNames(): (keyof typeof EXIT)[] {
  return Object.keys(EXIT).filter((name): name is keyof typeof EXIT => Object.hasOwn(EXIT, name));
}
