import { isRecord } from "@gyre/ai";
import { SERVICES } from "@gyre/ai/providers";
import { aboutOption, COMMON_OPTIONS, optionChoices, optionSpec, typedCommands } from "./help.ts";
import {
  COMMANDS,
  type CommandName,
  type CommandSpec,
  isTypedCommand,
  type OptionName,
  OPTIONS,
} from "../core/options.ts";
import { DEFAULT_TOOLS, OTHER_TOOLS } from "@gyre/coding/internal/core/tool-lists";

export type Shell = "bash" | "zsh" | "fish";

export const SHELLS: readonly Shell[] = ["bash", "zsh", "fish"];

export function isShell(name: string): name is Shell {
  return SHELLS.some((shell) => shell === name);
}

/** Reads names that are known only at run time. */
export interface NameLists {
  models(): Promise<readonly string[]>;
  sessions(): Promise<readonly string[]>;
}

/** What may stand at the end of a command line. */
export interface Completions {
  /** `file` and `folder` are for the shell to look up; `part` is not followed by a space. */
  kind: "word" | "part" | "file" | "folder" | "none";
  /** Whole words, in place of the one that is typed. */
  words: readonly Candidate[];
}

interface Candidate {
  word: string;
  about?: string;
}

type Lookup = "file" | "folder" | "model" | "session" | "tools" | "text";

const NONE: Completions = { kind: "none", words: [] };
/** Names come from servers and files: only those are offered that mean nothing to a shell. */
const HARMLESS = /^[A-Za-z0-9._:/@+-]*$/;

/** Completes the last of `typed`, the words of a command line after the name of the program. */
export async function completeLine(
  typed: readonly string[],
  names: NameLists,
): Promise<Completions> {
  const last = typed.at(-1) ?? "";
  const earlier = typed.slice(0, -1);
  const [, flag = earlier.at(-1) ?? "", value = last] = /^(--[^=]+)=(.*)$/s.exec(last) ?? [];
  const option = findOption(flag);
  if (option) {
    return completeValue(
      valueCompletion(option),
      last.slice(0, -value.length || Infinity),
      value,
      names,
    );
  }
  const [command, ...given] = listPositionals(earlier);
  if (last.startsWith("-")) return offer(listFlags(command), last);
  if (command === undefined) {
    const commands = typedCommands().map(([word, { about }]) => ({ word, about }));
    return offer(commands, last);
  }
  if (!isTypedCommand(command)) return { kind: "file", words: [] };
  if (command === "sessions" && given.length > 0) {
    return completeValue(given[0] === "import" ? "file" : "session", "", last, names);
  }
  const argument = findArgument(command);
  return typeof argument !== "string" && given.length > 0
    ? NONE
    : completeValue(argument, "", last, names);
}

function offer(candidates: readonly Candidate[], typed: string): Completions {
  return { kind: "word", words: candidates.filter(({ word }) => word.startsWith(typed)) };
}

async function completeValue(
  values: readonly string[] | Lookup,
  before: string,
  typed: string,
  names: NameLists,
): Promise<Completions> {
  const offerWords = (words: readonly string[]): Completions =>
    offer(
      words.map((word) => ({ word: before + word })),
      before + typed,
    );
  if (typeof values !== "string") return offerWords(values);
  switch (values) {
    case "model": {
      const models = (await names.models()).filter((name) => HARMLESS.test(name));
      const found = offerWords(models);
      if (found.words.length > 0 || typed === "" || before !== "") return found;
      // A part of a name will do, if none begins with it.
      const words = models.filter((name) => name.includes(typed) && !typed.includes(":"));
      return { kind: "word", words: words.map((word) => ({ word })) };
    }
    case "session":
      return offerWords((await names.sessions()).filter((name) => HARMLESS.test(name)));
    case "tools": {
      const chosen = /^(?:.*,)?[+-]?/.exec(typed)?.[0] ?? "";
      const tools = [...DEFAULT_TOOLS, ...OTHER_TOOLS].map((name) => chosen + name);
      return { ...offerWords(tools), kind: "part" };
    }
    case "file":
    case "folder":
      return { kind: values, words: [] };
    case "text":
      return NONE;
  }
}

function valueCompletion(name: OptionName): readonly string[] | Lookup {
  const { complete = "text" } = optionSpec(name);
  if (complete === "service") return SERVICES.map(({ id }) => id);
  return complete === "mode" || complete === "thinking" ? optionChoices(name) : complete;
}

/** The option of a flag such as `--model` or `-m` that is followed by a value. */
function findOption(flag: string): OptionName | undefined {
  return Object.keys(OPTIONS)
    .filter((name): name is OptionName => Object.hasOwn(OPTIONS, name))
    .find((name) => optionSpec(name).type === "string" && spellFlags(name).includes(flag));
}

function spellFlags(name: OptionName): string[] {
  const { short } = optionSpec(name);
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}

/** The words that are neither an option nor its value. */
function listPositionals(words: readonly string[]): string[] {
  return words.filter(
    (word, at) => !word.startsWith("-") && findOption(words[at - 1] ?? "") === undefined,
  );
}

function listFlags(command: string | undefined): Candidate[] {
  const name = command !== undefined && isTypedCommand(command) ? command : "run";
  return [...COMMANDS[name].options, ...COMMON_OPTIONS].flatMap((option: OptionName) =>
    spellFlags(option).map((word) => ({ word, about: aboutOption(option, name) })),
  );
}

/** What follows the name of a command: a verb where it has some, else words, which are written small in the table, the rest is meant. */
function findArgument(command: CommandName): readonly string[] | Lookup {
  const { takes = "", verbs }: CommandSpec = COMMANDS[command];
  if (verbs) return Object.keys(verbs);
  const words = takes.match(/\b[a-z]+\b/g);
  if (words) return words;
  if (takes.includes("SERVICE")) return SERVICES.map(({ id }) => id);
  if (takes.includes("COMMAND")) return typedCommands().map(([name]) => name);
  return takes.includes("FOLDER") ? "folder" : "text";
}

/** Reads a field of each entry of a list in JSON. */
export function readNames(json: string, field: string): string[] {
  const list: unknown = JSON.parse(json);
  if (!Array.isArray(list)) return [];
  return list.flatMap((entry: unknown) => {
    const name = isRecord(entry) ? entry[field] : undefined;
    return typeof name === "string" ? [name] : [];
  });
}

/** Completions as the script of a shell reads them: the kind, then a line a word. */
export function formatCompletions(
  shell: Shell,
  { kind, words }: Completions,
  typed: string,
): string {
  const lines = words.map(({ word, about }) => {
    switch (shell) {
      case "bash":
        return word.slice(findBashStart(typed));
      case "zsh":
        return word.replaceAll(":", String.raw`\:`) + (about === undefined ? "" : `:${about}`);
      case "fish":
        return about === undefined ? word : `${word}\t${about}`;
    }
  });
  // bash puts in place of the word what all of them begin with, unless one is empty.
  if (shell === "bash" && words.length > 1 && !sharedStart(words).includes(typed)) lines.push("");
  return [kind, ...lines, ""].join("\n");
}

/** To bash, what stands before the last of these characters is a word of its own. */
function findBashStart(typed: string): number {
  return Math.max(typed.lastIndexOf(":"), typed.lastIndexOf("=")) + 1;
}

function sharedStart([first = { word: "" }, ...rest]: readonly Candidate[]): string {
  let shared = first.word;
  for (const { word } of rest) while (!word.startsWith(shared)) shared = shared.slice(0, -1);
  return shared;
}

/** A script that has a shell ask this program what may follow. */
export function completionScript(shell: Shell): string {
  return SCRIPTS[shell];
}

const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `# Completions of gyre for bash. To use them: source <(gyre completions bash)

_gyre() {
  local IFS=$' \\t\\n' line=\${COMP_LINE:0:COMP_POINT} kind='' word
  local -a words
  read -ra words <<<"$line"
  case $line in *[[:space:]]) words+=('') ;; esac
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS= read -r word; do COMPREPLY+=("$word"); done
  } < <(command gyre completions bash -- "\${words[@]:1}" 2>/dev/null </dev/null)
  case $kind in
    folder) compopt -o dirnames +o default ;;
    part) compopt -o nospace ;;
    none) compopt +o default ;;
  esac 2>/dev/null || true
}

complete -o default -F _gyre gyre
`,
  zsh: `#compdef gyre
# Completions of gyre for zsh. To use them: source <(gyre completions zsh)

_gyre() {
  local -a lines more
  lines=("\${(@f)$(command gyre completions zsh -- "\${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null </dev/null)}")
  local kind=$lines[1]
  shift lines
  case $kind in
    file) _files ;;
    folder) _files -/ ;;
    none) ;;
    part) more=(-S '') ;&
    *) _describe -t words word lines -U $more ;;
  esac
}

if [[ \${funcstack[1]} == _gyre ]]; then
  _gyre "$@"
else
  compdef _gyre gyre
fi
`,
  fish: `# Completions of gyre for fish. To use them: gyre completions fish | source

function __gyre_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l lines (command gyre completions fish -- $words[2..-1] "$last" 2>/dev/null </dev/null)
    switch "$lines[1]"
        case file
            __fish_complete_path "$last"
        case folder
            __fish_complete_directories "$last"
        case '*'
            printf '%s\\n' $lines[2..-1]
    end
end

complete -c gyre -f -a '(__gyre_complete)'
`,
};
