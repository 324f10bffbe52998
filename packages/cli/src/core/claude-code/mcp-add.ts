import { UsageError } from "../exit-codes.ts";
import { OPTIONS } from "../options.ts";

const TRANSPORTS: ReadonlySet<string> = new Set(["http", "sse", "stdio", "streamable-http"]);
/** Where a server is written; `local` of Claude Code is for one user as well. */
const SCOPES: Readonly<Record<string, readonly string[]>> = {
  project: ["--project"],
  user: [],
  local: [],
};
const SHORT: Readonly<Record<string, string>> = { "-e": "--env", "-H": "--header" };

/**
 * `mcp add NAME COMMAND ARGS` as it is written elsewhere: what follows the command is the command's, with `--` or
 * without. `-s`, `-t`, `-e` and `-H` stand for options of ours. Other command lines are left as they are.
 */
export function translateMcpAdd(args: readonly string[]): readonly string[] {
  if (args[0] !== "mcp" || args[1] !== "add") return args;
  const translated = ["mcp", "add"];
  let words = 0;
  for (let at = 2; at < args.length; at++) {
    const word = args[at] ?? "";
    if (word === "--") return [...translated, ...args.slice(at)];
    const [name, joined] = splitOnce(word);
    const value = (): string => joined ?? args[++at] ?? "";
    if (name === "-s" || name === "--scope") translated.push(...readScope(value()));
    else if (name === "-t" || name === "--transport") checkTransport(value());
    else if (word.startsWith("-")) {
      const option = SHORT[name] ?? name;
      translated.push(joined === undefined ? option : `${option}=${joined}`);
      if (joined === undefined && takesValue(option) && at + 1 < args.length)
        translated.push(value());
    } else if (++words < 2 || /^https?:\/\//i.test(word)) translated.push(word);
    else return [...translated, "--", ...args.slice(at)];
  }
  return translated;
}

function splitOnce(word: string): readonly [string, string?] {
  const at = word.startsWith("-") ? word.indexOf("=") : -1;
  return at < 0 ? [word] : [word.slice(0, at), word.slice(at + 1)];
}

function takesValue(option: string): boolean {
  const spec = Object.entries(OPTIONS).find(([name]) => `--${name}` === option)?.[1];
  return spec?.type === "string";
}

function readScope(scope: string): readonly string[] {
  const found = Object.hasOwn(SCOPES, scope) ? SCOPES[scope] : undefined;
  if (found) return found;
  throw new UsageError(`--scope "${scope}" is none of: ${Object.keys(SCOPES).join(", ")}.`);
}

/** Which one it is follows from what is reached. */
function checkTransport(transport: string): void {
  if (TRANSPORTS.has(transport)) return;
  throw new UsageError(`--transport "${transport}" is none of: ${[...TRANSPORTS].join(", ")}.`);
}
