import { SERVICES } from "@gyre/ai/providers";
import { EXIT } from "../core/exit-codes.ts";
import {
  aboutOption,
  ASKING_NOTE,
  COMMON_OPTIONS,
  EXIT_MEANINGS,
  exitNames,
  optionChoices,
  optionSpec,
  RUN_GROUPS,
  TOOLS_NOTE,
  typedCommands,
} from "./help.ts";
import type { CommandName, CommandSpec, OptionName } from "../core/options.ts";
import { SETTING_NAMES, findSetting } from "@gyre/coding/internal/settings/table";

/** The day of the last change to the words of this page. */
const DATE = "November 15, 2026";

/** What the program does with variables that are not settings. */
const VARIABLES: readonly (readonly [names: readonly string[], about: string])[] = [
  [
    ["GYRE_DATABASE"],
    "Where gyre runs finds runs, as --database: an address with a password is not for a command line, which others can see.",
  ],
  [
    ["GYRE_TOKEN"],
    "The token of the server that gyre attach connects to, which a command line would show to others.",
  ],
  [["GYRE_CONFIG"], "Your settings, in place of the usual file, as --config."],
  [
    ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"],
    "The proxy to reach services through, and the hosts that are reached without it.",
  ],
  [["XDG_CONFIG_HOME", "XDG_STATE_HOME"], "Where settings and sessions are; see FILES."],
  [["NO_COLOR", "FORCE_COLOR"], "Without colors; with colors, also where there is no terminal."],
];

const FILES: readonly (readonly [path: string, about: string])[] = [
  ["~/.config/gyre/config.json", "Your settings."],
  [
    "~/.config/gyre/keys.json",
    "Keys of services, or commands that print them. Written by gyre login; only its owner may be able to read it.",
  ],
  ["~/.config/gyre/trust.json", "The folders whose settings are trusted."],
  [
    ".gyre/config.json",
    "The settings of a project, in its folder. They are used once you trust the folder: gyre trust.",
  ],
  ["~/.local/state/gyre/sessions/", "What was said and done, a file for each session."],
];

const EXAMPLES: readonly (readonly [about: string, line: string])[] = [
  ["Ask about the code in this folder:", 'gyre -p "Where are the settings read?"'],
  [
    "Let it fix a test, for at most a dollar:",
    `gyre -p "Fix the failing test." --mode auto-edit --allow 'shell(npm test)' --max-cost 1`,
  ],
  ["Give it something to read:", 'git diff | gyre -p "Review this change."'],
  ["Go on where it ended:", 'gyre -c -p "Now write the test for it."'],
  [
    "An answer that a program can read:",
    'gyre -p "Which files are dead code?" --output json --schema files.schema.json',
  ],
  [
    "Store a key, from a password manager:",
    'gyre login anthropic --command "op read op://keys/anthropic"',
  ],
  ["Complete its command lines in bash:", "source <(gyre completions bash)"],
];

/** The manual page, in mdoc, from the tables that the program itself reads. */
export function manualPage(): string {
  const lines = [
    `.Dd ${DATE}`,
    ".Dt GYRE 1",
    ".Os gyre",
    ".Sh NAME",
    ".Nm gyre",
    ".Nd a coding agent",
    ".Sh SYNOPSIS",
    ".Nm",
    ".Fl p",
    ".Ar prompt",
    ".Op Ar options",
    ".Nm",
    ".Ar command",
    ".Op Ar options",
    ".Sh DESCRIPTION",
    ".Nm",
    ...sentences(
      "has a language model work in a folder: it reads, searches and edits files, and runs commands, as far as it is allowed to.",
    ),
    ...sentences(ASKING_NOTE),
    ".Pp",
    ...sentences(
      "A prompt of several words needs no -p; one word that is no command does. Piped input becomes part of the prompt. Values of options replace those of the environment, these replace the settings of the project, and these your own.",
    ),
    ...RUN_GROUPS.flatMap(({ title, options }) => [`.Ss ${title}`, ...optionList(options)]),
    ".Ss Tools",
    ...sentences(TOOLS_NOTE),
    ".Ss Every command",
    ...optionList(COMMON_OPTIONS),
    ".Sh COMMANDS",
    ...typedCommands().flatMap(([name, spec]) => commandPart(name, spec)),
    ".Sh ENVIRONMENT",
    ...environmentPart(),
    ".Sh FILES",
    ".Bl -tag -width Ds",
    ...FILES.flatMap(([path, about]) => [`.It Pa ${escaped(path)}`, ...sentences(about)]),
    ".El",
    ".Pp",
    ...sentences(
      "Sessions and settings are elsewhere if XDG_STATE_HOME and XDG_CONFIG_HOME say so.",
    ),
    ".Sh EXIT STATUS",
    ".Bl -tag -width Ds",
    ...exitNames().flatMap((name) => [
      `.It ${EXIT[name]}`,
      ...sentences(capital(EXIT_MEANINGS[name])),
    ]),
    ".El",
    ".Sh EXAMPLES",
    ...EXAMPLES.flatMap(([about, line], index) => [
      ...(index === 0 ? [] : [".Pp"]),
      ...sentences(about),
      ".Dl " + escaped(line),
    ]),
    ".Sh SEE ALSO",
    ".Xr git 1",
  ];
  return `${lines.join("\n")}\n`;
}

function optionList(names: readonly OptionName[]): string[] {
  return [
    ".Bl -tag -width Ds",
    ...names.flatMap((name) => {
      const { multiple, short, value } = optionSpec(name);
      const ar = value === undefined ? "" : ` Ar ${escaped(value)}`;
      const letter = short === undefined ? "" : `Fl ${short} , `;
      const about = aboutOption(name);
      // A value that it begins with is written as it is typed.
      const isTyped = optionChoices(name).some((one) => about.startsWith(one));
      const first = isTyped ? about : capital(about);
      return [
        `.It ${letter}Fl Fl ${name}${ar}`,
        ...sentences(multiple ? `${first}; may be repeated` : first),
      ];
    }),
    ".El",
  ];
}

function commandPart(
  name: CommandName,
  { about, options, takes, verbs = {} }: CommandSpec,
): string[] {
  const own = options.map((option) => `--${option}`).join(", ");
  return [
    `.Ss ${name}${takes === undefined ? "" : ` ${escaped(takes)}`}`,
    ...sentences(capital(about)),
    ...Object.entries(verbs).flatMap(([verb, spec]) => [
      ".Pp",
      ...sentences(
        `${[name, verb, ...(spec.takes ?? "").split(" ")].join(" ").trim()}: ${spec.about}`,
      ),
    ]),
    ...(Object.keys(verbs).length > 0 ? [".Pp"] : []),
    ...(own === "" ? [] : sentences(`Takes ${own}.`)),
    ...options.flatMap((option) => {
      const isOfRun = RUN_GROUPS.some((group) => group.options.includes(option));
      return isOfRun ? [] : [".Pp", ...sentences(`--${option}: ${aboutOption(option, name)}`)];
    }),
  ];
}

function environmentPart(): string[] {
  const settings = SETTING_NAMES.flatMap((name) => {
    const { about, env } = findSetting(name);
    return env === undefined ? [] : [{ names: [env], about }];
  });
  const others = VARIABLES.map(([names, about]) => ({ names, about }));
  const keys = SERVICES.map(({ keyEnv, name, urlEnv }) => ({
    names: [...keyEnv, ...urlEnv],
    about: `${keyEnv.length > 1 ? "Keys" : "Key"} and address of ${name}.`,
  }));
  // Two services of one company may share them.
  const items = new Map(
    [...settings, ...others, ...keys].map(({ about, names }) => [
      `.It ${names.map((name) => `Ev ${name}`).join(" , ")}`,
      sentences(about),
    ]),
  );
  return [".Bl -tag -width Ds", ...[...items].flat(2), ".El"];
}

/** A line for each sentence, as the format wants it, with a full stop at its end. */
function sentences(text: string): string[] {
  const whole = /[.:!?]$/.test(text) ? text : `${text}.`;
  return whole.split(/(?<=[.!?]) (?=[A-Z])/).map(escaped);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Text that stands for itself, also at the start of a line. Hyphens stay such that are typed. */
function escaped(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll('"', "\\(dq")
    .replaceAll("'", "\\(aq")
    .replaceAll("`", "\\(ga")
    .replaceAll("~", "\\(ti")
    .replaceAll("^", "\\(ha")
    .replace(/^\./, "\\&.");
}
