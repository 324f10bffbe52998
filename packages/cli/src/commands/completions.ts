import { SERVICES } from "@gyre/ai/providers";
import { aboutOption, COMMON_OPTIONS, optionChoices, optionSpec, typedCommands } from "./help.ts";
import {
  COMMANDS,
  type CommandName,
  type CommandSpec,
  type OptionName,
  OPTIONS,
} from "../core/options.ts";
import { DEFAULT_TOOLS, OTHER_TOOLS } from "../core/tool-lists.ts";

export type Shell = "bash" | "zsh" | "fish";

export const SHELLS: readonly Shell[] = ["bash", "zsh", "fish"];

export function isShell(name: string): name is Shell {
  return SHELLS.some((shell) => shell === name);
}

/** What stands at one place of a command line: one of these words, or what a shell looks up. */
type Completion = readonly string[] | Lookup;
type Lookup = "file" | "folder" | "model" | "session" | "tools" | "text";

/** A script that a shell reads to complete the command lines of the program. */
export function completionScript(shell: Shell): string {
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell]();
}

const SERVICE_IDS = SERVICES.map(({ id }) => id);
const TOOLS = [...DEFAULT_TOOLS, ...OTHER_TOOLS].join(" ");

function findCompletion(name: OptionName): Completion {
  const { complete = "text" } = optionSpec(name);
  if (complete === "service") return SERVICE_IDS;
  return complete === "mode" || complete === "thinking" ? optionChoices(name) : complete;
}

/** Options that are followed by a value. */
function valueOptions(): OptionName[] {
  return optionNames().filter((name) => optionSpec(name).type === "string");
}

function optionNames(): OptionName[] {
  return Object.keys(OPTIONS).filter((name): name is OptionName => Object.hasOwn(OPTIONS, name));
}

function listOptions(command: CommandName): readonly OptionName[] {
  return [...COMMANDS[command].options, ...COMMON_OPTIONS];
}

/** `--model`, and `-m` where there is such a letter. */
function listFlags(name: OptionName): string[] {
  const { short } = optionSpec(name);
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}

/** What follows the name of a command: words are written small in the table, the rest is meant. */
function findArgument(command: CommandName): Completion {
  const { takes = "" }: CommandSpec = COMMANDS[command];
  const words = takes.match(/\b[a-z]+\b/g);
  if (words) return words;
  if (takes.includes("SERVICE")) return SERVICE_IDS;
  if (takes.includes("COMMAND")) return typedCommands().map(([name]) => name);
  return takes.includes("FOLDER") ? "folder" : "text";
}

/**
 * Prints what can be found at run time, a name a line. Names come from servers and files:
 * only those are shown that mean nothing to a shell.
 */
const NAMES = {
  model: buildNamesCommand("models", "model"),
  session: buildNamesCommand("sessions", "id"),
};

function buildNamesCommand(command: CommandName, field: string): string {
  const asked = `command gyre ${command} --json 2>/dev/null </dev/null`;
  return `${asked} | grep -o '"${field}": *"[A-Za-z0-9._:/@+-]*"' | cut -d'"' -f4`;
}

function bashScript(): string {
  const perValue = valueOptions().map(
    (name) => `    ${listFlags(name).join("|")}) ${bashReply(findCompletion(name))} ;;`,
  );
  const perCommand = [...typedCommands().map(([name]) => name), "run" as const].map((name) => {
    const flags = listOptions(name).flatMap(listFlags).join(" ");
    return `    ${name === "run" ? "*" : name}) options='${flags}' ;;`;
  });
  const perArgument = typedCommands().map(
    ([name]) => `    ${name}) ${bashArgument(findArgument(name))} ;;`,
  );
  return `# Completions of gyre for bash. To use them: source <(gyre completions bash)

_gyre_reply() {
  local name before=''
  # What stands before the last of these characters is a word of its own to bash.
  case $value in *[:=]*) before=\${value%"\${value##*[:=]}"} ;; esac
  COMPREPLY=()
  while IFS= read -r name; do
    case $name in "$value"*) COMPREPLY+=("\${name#"$before"}") ;; esac
  done <<<"$1"
}

# A part of a name will do, if none begins with it.
_gyre_models() {
  local name names same=''
  names=$(${NAMES.model})
  _gyre_reply "$names"
  [ "\${#COMPREPLY[@]}" -eq 0 ] || return 0
  case $value in ''|*[:=]*) return 0 ;; esac
  while IFS= read -r name; do
    case $name in *"$value"*) COMPREPLY+=("$name") ;; esac
  done <<<"$names"
  # bash puts in place of the word what all of them begin with. If that is less than the
  # word, an empty one keeps it as it is.
  [ "\${#COMPREPLY[@]}" -gt 1 ] || return 0
  same=\${COMPREPLY[0]}
  for name in "\${COMPREPLY[@]}"; do
    while case $name in "$same"*) false ;; esac; do same=\${same%?}; done
  done
  case $same in *"$value"*) ;; *) COMPREPLY+=('') ;; esac
}

# Names with commas between them.
_gyre_tools() {
  local name before=''
  case $value in *,*) before=\${value%,*}, ;; esac
  COMPREPLY=()
  for name in ${TOOLS}; do
    case $before$name in "$value"*) COMPREPLY+=("$before$name") ;; esac
  done
  compopt -o nospace 2>/dev/null || true
}

_gyre_nothing() {
  COMPREPLY=()
  compopt +o default 2>/dev/null || true
}

_gyre_files() { COMPREPLY=(); }

_gyre_folders() {
  COMPREPLY=()
  compopt -o dirnames +o default 2>/dev/null
}

_gyre() {
  local IFS=$' \\t\\n' line=\${COMP_LINE:0:COMP_POINT} value='' before='' command='' options='' word
  local -a words
  read -ra words <<<"$line"
  case $line in *[[:space:]]) words+=('') ;; esac
  local last=$(( \${#words[@]} - 1 ))
  value=\${words[last]}
  [ "$last" -gt 0 ] && before=\${words[last - 1]}
  case $value in --*=*) before=\${value%%=*} value=\${value#*=} ;; esac
  case $before in
${perValue.join("\n")}
    *) before='' ;;
  esac
  [ -n "$before" ] && return

  local at=1
  while [ "$at" -lt "$last" ]; do
    word=\${words[at]}
    case $word in
      ${valueOptions().flatMap(listFlags).join("|")}) at=$(( at + 1 )) ;;
      -*) ;;
      *) command=$word; break ;;
    esac
    at=$(( at + 1 ))
  done
  case $command in
${perCommand.join("\n")}
  esac
  case $value in
    -*) _gyre_reply "\${options// /$'\\n'}"; return ;;
  esac
  local first=''
  while at=$(( at + 1 )); [ "$at" -lt "$last" ]; do
    case \${words[at]} in
      ${valueOptions().flatMap(listFlags).join("|")}) at=$(( at + 1 )) ;;
      -*) ;;
      *) first=\${words[at]}; break ;;
    esac
  done
  case $command:$first in
    sessions:import) _gyre_files; return ;;
    sessions:?*) ${bashReply("session")}; return ;;
  esac
  case $command in
    '') ${bashReply(typedCommands().map(([name]) => name))} ;;
${perArgument.join("\n")}
  esac
}

complete -o default -F _gyre gyre
`;
}

const BASH_REPLIES: Readonly<Record<Lookup, string>> = {
  file: "_gyre_files",
  folder: "_gyre_folders",
  model: "_gyre_models",
  tools: "_gyre_tools",
  session: `_gyre_reply "$(${NAMES.session})"`,
  text: "COMPREPLY=()",
};

function bashReply(completion: Completion): string {
  if (typeof completion === "string") return BASH_REPLIES[completion];
  return `_gyre_reply $'${completion.join("\\n")}'`;
}

/** One word of those; nothing after it. */
function bashArgument(completion: Completion): string {
  const reply = bashReply(completion);
  return typeof completion === "string"
    ? reply
    : `if [ -z "$first" ]; then ${reply}; else _gyre_nothing; fi`;
}

function zshScript(): string {
  const perCommand = typedCommands().map(
    ([name]) => `    ${name})
      _arguments -s \\
${[...listOptions(name).map(zshOption), "'1: :'", zshArgument(name)].map((spec) => `        ${spec}`).join(" \\\n")} ;;`,
  );
  const run = [...listOptions("run").map(zshOption), "'1: :_gyre_commands'", "'*: :_files'"];
  const commands = typedCommands().map(
    ([name, { about }]) => `    ${zshQuoted(`${name}:${about}`)}`,
  );
  return `#compdef gyre
# Completions of gyre for zsh. To use them: source <(gyre completions zsh)

_gyre_commands() {
  local -a commands
  commands=(
${commands.join("\n")}
  )
  _describe -t commands command commands
}

_gyre_models() {
  local -a names
  names=(\${(f)"$(${NAMES.model})"})
  # A part of a name will do.
  compadd -M 'l:|=* r:|=*' -a names
}

_gyre_tools() {
  compset -P '*,'
  compadd -S '' ${TOOLS}
}

_gyre_sessions() {
  local -a names
  names=(\${(f)"$(${NAMES.session})"})
  compadd -a names
}

_gyre_session_arguments() {
  local word
  for word in \${words[2,CURRENT-1]}; do
    case $word in
      import) _files; return ;;
      ${words(findArgument("sessions")).join("|")}) _gyre_sessions; return ;;
    esac
  done
  compadd ${words(findArgument("sessions")).join(" ")}
}

_gyre() {
  local command='' word
  local -i at=2
  while (( at < CURRENT )); do
    word=\${words[at]}
    case $word in
      ${valueOptions().flatMap(listFlags).join("|")}) at+=1 ;;
      -*) ;;
      *) command=$word; break ;;
    esac
    at+=1
  done
  case $command in
${perCommand.join("\n")}
    *)
      _arguments -s \\
${run.map((spec) => `        ${spec}`).join(" \\\n")} ;;
  esac
}

if [[ \${funcstack[1]} == _gyre ]]; then
  _gyre "$@"
else
  compdef _gyre gyre
fi
`;
}

function words(completion: Completion): readonly string[] {
  return typeof completion === "string" ? [] : completion;
}

function zshOption(name: OptionName): string {
  const { multiple, short, type, value = "" } = optionSpec(name);
  const about = `[${aboutOption(name).replaceAll(/[[\]\\]/g, String.raw`\$&`)}]`;
  const takes = type === "string" ? `:${value}:${zshAction(findCompletion(name))}` : "";
  const long = type === "string" ? `--${name}=` : `--${name}`;
  if (multiple) return zshQuoted(`*${long}${about}${takes}`);
  if (short === undefined) return zshQuoted(`${long}${about}${takes}`);
  const letter = type === "string" ? `-${short}+` : `-${short}`;
  return `'(-${short} --${name})'{${letter},${long}}${zshQuoted(`${about}${takes}`)}`;
}

function zshArgument(name: CommandName): string {
  if (name === "sessions") return "'*: :_gyre_session_arguments'";
  const completion = findArgument(name);
  const place = typeof completion === "string" ? "*" : "2";
  return zshQuoted(`${place}: :${zshAction(completion)}`);
}

const ZSH_ACTIONS: Readonly<Record<Lookup, string>> = {
  file: "_files",
  folder: "_files -/",
  model: "_gyre_models",
  tools: "_gyre_tools",
  session: "_gyre_sessions",
  text: " ",
};

function zshAction(completion: Completion): string {
  return typeof completion === "string" ? ZSH_ACTIONS[completion] : `(${completion.join(" ")})`;
}

function zshQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function fishScript(): string {
  const names = typedCommands().map(([name]) => name);
  const commands = typedCommands().map(
    ([name, { about }]) =>
      `complete -c gyre -n __gyre_no_command -a ${name} -d ${fishQuoted(about)}`,
  );
  const options = [
    ...listOptions("run").map((name) => fishOption(name, "__gyre_no_command")),
    ...names.flatMap((command) =>
      listOptions(command).map((name) => fishOption(name, `__gyre_command ${command}`)),
    ),
  ];
  const verbs = words(findArgument("sessions"));
  const sessions = [
    `complete -c gyre -n '__gyre_command sessions; and not __fish_seen_subcommand_from ${verbs.join(" ")}' -f -a ${fishQuoted(verbs.join(" "))}`,
    `complete -c gyre -n '__gyre_command sessions; and __fish_seen_subcommand_from ${verbs.filter((verb) => verb !== "import").join(" ")}' -f -a '(__gyre_sessions)'`,
    `complete -c gyre -n '__gyre_command sessions; and __fish_seen_subcommand_from import' -F`,
  ];
  const others = names
    .filter((name) => name !== "sessions")
    .flatMap((name) => {
      const completion = findArgument(name);
      const value = fishValue(completion);
      // One word of those, and nothing after it.
      const seen = words(completion).filter((word) => word !== name);
      const once = seen.length > 0 ? `; and not __fish_seen_subcommand_from ${seen.join(" ")}` : "";
      return [
        `complete -c gyre -n '__gyre_command ${name}' -f`,
        ...(value ? [`complete -c gyre -n '__gyre_command ${name}${once}' -f -a ${value}`] : []),
      ];
    });
  return `# Completions of gyre for fish. To use them: gyre completions fish | source

# The first word that is no option.
function __gyre_word
    set -l words (commandline -opc)
    set -e words[1]
    set -l skip no
    for word in $words
        if test $skip = yes
            set skip no
            continue
        end
        switch $word
            case ${valueOptions().flatMap(listFlags).join(" ")}
                set skip yes
            case '-*'
            case '*'
                echo $word
                return
        end
    end
end

function __gyre_no_command
    set -l word (__gyre_word)
    test -z "$word"
end

function __gyre_command
    set -l word (__gyre_word)
    test "$word" = $argv[1]
end

function __gyre_tools
    set -l before (commandline -ct | string replace -r '^--tools=' '' | string replace -r '[^,]*$' '')
    for name in ${TOOLS}
        echo "$before$name"
    end
end

function __gyre_models
    ${NAMES.model}
end

function __gyre_sessions
    ${NAMES.session}
end

${[...commands, ...options, ...sessions, ...others].join("\n")}
`;
}

function fishOption(name: OptionName, condition: string): string {
  const { short, type } = optionSpec(name);
  const letter = short === undefined ? "" : ` -s ${short}`;
  const completion = findCompletion(name);
  const value =
    type === "boolean"
      ? ""
      : completion === "file"
        ? " -r -F"
        : ` -x${completion === "text" ? "" : ` -a ${fishValue(completion)}`}`;
  return `complete -c gyre -n ${fishQuoted(condition)}${letter} -l ${name}${value} -d ${fishQuoted(aboutOption(name))}`;
}

const FISH_VALUES: Readonly<Record<Lookup, string>> = {
  folder: "'(__fish_complete_directories)'",
  model: "'(__gyre_models)'",
  tools: "'(__gyre_tools)'",
  session: "'(__gyre_sessions)'",
  file: "",
  text: "",
};

function fishValue(completion: Completion): string {
  return typeof completion === "string"
    ? FISH_VALUES[completion]
    : fishQuoted(completion.join(" "));
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}
