import type { CommandPart } from "../command/parts.ts";
import type { Word } from "../command/parse.ts";
import { INSTALLED } from "../follow/drafts.ts";
import { isInterpreter } from "../follow/written.ts";

/** Variables by which programs find settings or code elsewhere; these values say that there are none. */
const FINDS =
  /^(?:BASH_FUNC_.*|GIT_CONFIG(?:_COUNT|_KEY_\d+|_VALUE_\d+|_PARAMETERS|_GLOBAL|_SYSTEM)?|GIT_EXEC_PATH|MAKEFILES|PYTHONSTARTUP|PERL5OPT|RUBYOPT|LD_PRELOAD|npm_config_(?:script_shell|node_options|userconfig|globalconfig))$/;
const NOTHING = /^(?:\/dev\/null|0|)$/;
/** The same for git alone. */
const GIT_FINDS = /^(?:HOME|XDG_CONFIG_HOME)$/;
/** Options of Node and of make that bring code. */
const BRINGS = /(?:^|\s)(?:-r|--require|--import|--loader|--experimental-loader|--eval)\b/;
/** Settings of git that name a command or a file with more of them. */
const GIT_SETTINGS =
  /^(?:include\.path|includeif\..*|core\.hookspath|core\.worktree)=(?!\/dev\/null$)/i;
const GIT_COMMANDS =
  /^(?:core\.(?:fsmonitor|pager|editor|sshcommand|hookspath|askpass|gitproxy)|pager\..*|alias\..*|filter\..*|.*\.(?:textconv|command|cmd|program|external|helper|driver|diffFilter))$/i;

const SHELLS = /^(?:bash|sh|dash|zsh|ksh|ash|rbash)$/;

/**
 * Why it cannot be said what a command runs: settings, options or words by which programs find commands
 * that do not stand in the line. Undefined where there is nothing of that kind.
 */
export function findHidden(
  { words, assignments, redirects }: Pick<CommandPart, "words" | "assignments" | "redirects">,
  root: string,
): string | undefined {
  const [first, ...args] = words;
  const program = first?.literal ? first.text.slice(first.text.lastIndexOf("/") + 1) : "";
  const sets = /^(?:env|export|declare|typeset|local|readonly)$/.test(program) ? args : [];
  for (const { text } of [...assignments, ...sets]) {
    const setting = findSetting(text, program, args, root);
    if (setting !== undefined) return `"${setting}" says where commands are found.`;
  }
  const targets = redirects.flatMap(({ kind, target }) => (kind === "input" ? [] : [target]));
  const indirect = [...(/^(?:echo|printf)$/.test(program) ? [] : args), ...targets].find(
    ({ text, literal }) => !literal && /\$\{(?:!\w+\}|PWD:)/.test(text),
  );
  if (indirect) return `It is unclear what ${indirect.text} is.`;
  const texts = args.map(({ text }) => text);
  switch (program) {
    case "env": {
      const option = texts.find((text) =>
        /^-[a-zA-Z]*C|^--chdir|^-[a-zA-RT-Z]+S|^--split-string$/.test(text),
      );
      return option && `"env ${option}" changes what the rest of the line means.`;
    }
    case "declare":
    case "typeset":
    case "local":
      return texts.some((text) => /^-\w*n/.test(text))
        ? "A variable of the line is another name of one."
        : undefined;
    case "npm":
    case "pnpm":
    case "yarn": {
      const option = texts.find((text) =>
        /^--(?:script-shell|node-options)\b|^explore$/.test(text),
      );
      return option && `"${program} ${option}" says how commands are run.`;
    }
    case "parallel":
      return texts.some((text) => /\s/.test(text))
        ? '"parallel" puts a command together.'
        : undefined;
    case "enable":
      return texts.some((text) => /^-\w*f/.test(text))
        ? '"enable -f" loads a command of another kind.'
        : undefined;
    case "run-parts":
      return '"run-parts" runs all that is in a folder.';
    case "git":
      return findGitSetting(texts);
    case "xargs":
    case "find":
      return findFilledScript(program, texts);
    default:
      return SHELLS.test(program) || isInterpreter(program)
        ? findGivenScript(program, args)
        : undefined;
  }
}

function findSetting(
  text: string,
  program: string,
  args: readonly Word[],
  root: string,
): string | undefined {
  const [, name = "", value = ""] = /^([A-Za-z_][\w%]*)\+?=(.*)$/s.exec(text) ?? [];
  if (FINDS.test(name.replace(/%%$/, "")) && !NOTHING.test(value)) return name;
  const isGit = program === "git" || args.some((arg) => arg.text === "git");
  if (isGit && GIT_FINDS.test(name)) return name;
  // From the top of the repository, wherever it runs.
  if (/^GIT_\w+$/.test(name) && /(?:^|\/)\.\.(?:\/|$)/.test(value)) return name;
  if (/^(?:NODE_OPTIONS|MAKEFLAGS)$/.test(name) && BRINGS.test(value)) return name;
  if (name !== "PATH") return undefined;
  const own = value
    .replaceAll(/["']/g, "")
    .split(":")
    .find(
      (folder) =>
        (/^(?:[^/$~]|\$\{?PWD|\$\(pwd\)|$)/.test(folder) || folder.startsWith(`${root}/`)) &&
        !INSTALLED.test(folder),
    );
  return own === undefined ? undefined : name;
}

function findGitSetting(args: readonly string[]): string | undefined {
  const option = args.find((arg) =>
    /^--(?:config-env|exec-path=|stdin-paths|unsafe-paths)/.test(arg),
  );
  if (option !== undefined) return `"git ${option}" names what it uses elsewhere.`;
  const setting = args.find((arg, index) => args[index - 1] === "-c" && GIT_SETTINGS.test(arg));
  if (setting !== undefined) return `"${setting}" says where git finds commands.`;
  const removes = args.find(
    (arg, index) =>
      args[index - 1] === "-c" &&
      GIT_COMMANDS.test(arg.split("=", 1)[0] ?? "") &&
      /=!?\s*(?:(?:rm|unlink|mv|cp|tee|truncate|shred)\b|[\w.-]+\/)/.test(arg),
  );
  if (removes !== undefined) return `"${removes}" is a command that git runs.`;
  const at = args.indexOf("config");
  const key = at < 0 ? -1 : args.findIndex((arg, index) => index > at && GIT_COMMANDS.test(arg));
  const value = key < 0 ? undefined : args[key + 1];
  return value === undefined || /^(?:true|false|)$/.test(value)
    ? undefined
    : `"${args[key] ?? ""}" is a command that git runs.`;
}

/** Replace a file, whatever else they are given. */
const REPLACERS = /^(?:cp|mv|ln|install|dd|tee)$/;

/** A shell that gets a script into which names of files are put. */
function findFilledScript(program: string, args: readonly string[]): string | undefined {
  const fixed = args.findIndex(
    (arg, index) => REPLACERS.test(arg) && /^-(?:exec|ok)(?:dir)?$/.test(args[index - 1] ?? ""),
  );
  if (fixed >= 0 && !args.slice(fixed).includes("{}"))
    return `"${program}" runs "${args[fixed] ?? ""}" with the same files again and again.`;
  const shell = args.findIndex((arg) => SHELLS.test(arg.slice(arg.lastIndexOf("/") + 1)));
  const isScript = args.some((arg, index) => index > shell && /^-\w*c$/.test(arg));
  const last = args.at(-1) ?? "";
  if (program === "xargs" && (shell === args.length - 1 || isInterpreter(last)) && last !== "")
    return `"${last}" runs what "xargs" gives it.`;
  if (shell < 0 || !isScript) return undefined;
  const option = args.findIndex((arg) => /^(?:-I|-i|--replace)/.test(arg));
  if (program === "xargs" && option < 0) return undefined;
  const inside = /^(?:-I|-i|--replace=)(.+)$/.exec(args[option] ?? "")?.[1];
  const sign =
    program === "find"
      ? "{}"
      : (inside ?? (args[option] === "-I" ? (args[option + 1] ?? "{}") : "{}"));
  const script = args.findIndex((arg, index) => index > shell && /^-\w*c$/.test(arg)) + 1;
  return args[script]?.includes(sign) ? `"${program}" puts a command together.` : undefined;
}

/** Whether a pattern of a script finds the folder above, for shells that do not leave it out as bash does. */
export function isWideForPosix(script: string): boolean {
  return /(?:^|[\s/])\.[*?[][^\s/]*\//.test(script);
}

/** A script that comes from elsewhere, or that runs its arguments. */
function findGivenScript(program: string, args: readonly Word[]): string | undefined {
  const operand = args.find(({ text }) => !/^[-+]/.test(text));
  const settings = args.find(({ text }) => /^--(?:rcfile|init-file)/.test(text));
  if (settings) return `"${program} ${settings.text}" runs a file before.`;
  const checksAlone = SHELLS.test(program) && args.some(({ text }) => text === "-n");
  if (operand && !operand.literal && /^<\(|^\{\}$/.test(operand.text) && !checksAlone)
    return `"${program}" runs what it reads or finds.`;
  const at = SHELLS.test(program) ? args.findIndex(({ text }) => /^-\w*c$/.test(text)) : -1;
  const script = args[at + 1];
  if (at < 0 || !script) return undefined;
  if (!script.literal && /^["']?(?:\$|`)/.test(script.text))
    return `What "${program}" runs is put together elsewhere.`;
  if (/^(?:sh|dash|ash)$/.test(program) && isWideForPosix(script.text))
    return `"${program}" may find the folder above by a pattern.`;
  const runsArguments = /(?:^|[;&|(]\s*|\b(?:eval|exec|command)\s+)["']?\$\{?[@*\d]/.test(
    script.text,
  );
  return runsArguments && args.length > at + 2 ? `"${program}" runs what it is given.` : undefined;
}
