import { execFile } from "node:child_process";
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, parse, relative, sep } from "node:path";
import { cleanEnvironment } from "@gyre/tools";
import type { Environment } from "../../../core/io.ts";

/** The longest time that a program may take. */
const FORMAT_TIMEOUT_MS = 2_000;
/** The most bytes of its input and of its output. */
export const MAX_FORMATTED_BYTES: number = 256 * 1024;
const JSON_INDENT = 2;

/** Formats code with the tool of its language; undefined: it stays as it is. Never rejects. */
export type Format = (
  language: string,
  code: string,
  signal: AbortSignal,
) => Promise<string | undefined>;

/** A program with its arguments and input. */
export interface FormatProgram {
  path: string;
  args: readonly string[];
  input: string;
  /** Without keys, and without folders of the workspace. */
  env: Environment;
  signal: AbortSignal;
}

/** Resolves with the output; rejects where the program failed, was too slow or wrote too much. */
export type RunFormatter = (program: FormatProgram) => Promise<string>;

export interface FormatterOptions {
  env: Environment;
  /** The workspace. A program from there is never run: it is not trusted. */
  cwd: string;
  /** Default: the program itself, with no shell. */
  run?: RunFormatter;
}

type Command = readonly [program: string, ...args: string[]];

const webFile = (ending: string): Command[] => [
  ["prettier", "--no-config", "--no-editorconfig", "--stdin-filepath", `x.${ending}`],
  ["biome", "format", `--stdin-file-path=x.${ending}`],
];
const cFile = (ending: string): Command[] => [["clang-format", `--assume-filename=x.${ending}`]];

/** The programs of each language; the first that is installed is used. */
const COMMANDS: ReadonlyMap<string, readonly Command[]> = new Map(
  Object.entries<Command[]>({
    "go golang": [["gofmt"]],
    "rust rs": [["rustfmt", "--emit", "stdout"]],
    zig: [["zig", "fmt", "--stdin"]],
    "ts typescript": webFile("ts"),
    "js javascript": webFile("js"),
    "yaml yml": webFile("yaml"),
    "md markdown": webFile("md"),
    ...Object.fromEntries(
      ["tsx", "mjs", "jsx", "jsonc", "css", "scss", "html"].map((name) => [name, webFile(name)]),
    ),
    "py python": [
      ["black", "-q", "-"],
      ["ruff", "format", "-"],
    ],
    c: cFile("c"),
    h: cFile("h"),
    "cpp c++ cc": cFile("cpp"),
    "sh bash shell": [["shfmt"]],
    "terraform tf hcl": [["terraform", "fmt", "-"]],
    "elixir ex exs": [["mix", "format", "-"]],
  }).flatMap(([names, commands]) => names.split(" ").map((name) => [name, commands] as const)),
);

/** Finds programs when they are first needed, and caches their paths. */
export function openFormatters({ cwd, env, run = runFormatter }: FormatterOptions): Format {
  const folders = trustedFolders(env["PATH"] ?? "", cwd);
  const programEnv = cleanEnvironment(env, { workspace: cwd });
  const known = new Map<string, string | undefined>();
  const find = (program: string): string | undefined => {
    if (!known.has(program)) known.set(program, findProgram(program, folders, cwd));
    return known.get(program);
  };
  return async (language, code, signal) => {
    if (Buffer.byteLength(code) > MAX_FORMATTED_BYTES) return undefined;
    const name = language.toLowerCase();
    if (name === "json") return formatJson(code);
    for (const [program, ...args] of COMMANDS.get(name) ?? []) {
      const path = find(program);
      if (path === undefined) continue;
      try {
        const formatted = await run({ path, args, input: code, env: programEnv, signal });
        return formatted === "" ? undefined : formatted;
      } catch {
        // Incomplete code or a broken program: the code stays as it was written.
        return undefined;
      }
    }
    return undefined;
  };
}

function formatJson(code: string): string | undefined {
  try {
    return `${JSON.stringify(JSON.parse(code), undefined, JSON_INDENT)}\n`;
  } catch {
    return undefined;
  }
}

function trustedFolders(path: string, cwd: string): string[] {
  return path.split(delimiter).filter((folder) => isAbsolute(folder) && !isBelow(folder, cwd));
}

function findProgram(program: string, folders: readonly string[], cwd: string): string | undefined {
  for (const folder of folders) {
    const path = join(folder, program);
    // A link may lead into the workspace.
    if (isProgram(path) && !isBelow(realpathSync(path), cwd)) return path;
  }
  return undefined;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function isBelow(path: string, folder: string): boolean {
  return [folder, realFolder(folder)].some((each) => {
    const way = relative(each, path);
    return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
  });
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}

/** Runs in the root folder, because settings in the workspace can name programs to run. */
function runFormatter({ args, env, input, path, signal }: FormatProgram): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      path,
      args,
      {
        cwd: parse(path).root,
        encoding: "utf8",
        env,
        killSignal: "SIGKILL",
        maxBuffer: MAX_FORMATTED_BYTES,
        signal,
        timeout: FORMAT_TIMEOUT_MS,
        windowsHide: true,
      },
      (error, stdout) => (error ? reject(error) : resolve(stdout)),
    );
    // A program may end without reading its input.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}
