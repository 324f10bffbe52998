import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { locateRepository } from "../../git/locate.ts";
import type { Values } from "./expand.ts";
import { type FoundPath, isWideSearch } from "./search.ts";

/** Where a program would run, and what it would read. */
export interface PrintPlace {
  root: string;
  /** From there: one of them. */
  folders: readonly string[];
  input: Values | undefined;
  find(args: readonly string[], cwd: string): readonly FoundPath[] | undefined;
  list(args: readonly string[], cwd: string): readonly FoundPath[] | undefined;
  /** What a variable holds. */
  readonly lookup: (name: string) => Values;
  /** What the line itself writes to a file. */
  readonly read: (path: string) => string | undefined;
}

/** Print some of the lines that they read, as long as they have no other options than these. */
const FILTERS: ReadonlyMap<string, RegExp> = new Map([
  ["cat", /^-$/],
  ["tee", /^-a$/],
  ["head", /^-(?:n\d*|\d+)$/],
  ["tail", /^-(?:n\+?\d*|\d+)$/],
  ["sort", /^-[unrVfz]+$/],
  ["uniq", /^-[ui]$/],
  ["tac", /^$/],
  ["shuf", /^$/],
  ...["grep", "egrep", "fgrep"].map((name): [string, RegExp] => [name, /^-[viEFPwxaz]+$/]),
]);

/** What a program prints, as far as it is known: a text, or lines of which it may print any. */
export function predictOutput(
  program: string,
  args: readonly string[],
  place: PrintPlace,
): Values | undefined {
  const operands = args.filter((arg) => !arg.startsWith("-"));
  const known = (...values: string[]): Values => ({ values, isOpen: false });
  switch (program) {
    case "echo": {
      const text = args.filter((arg) => !/^-[neE]+$/.test(arg)).join(" ");
      return known(args.some((arg) => /^-n?e/.test(arg)) ? decodeEscapes(text) : text);
    }
    case "printf":
      return args[0] === "-v" ? undefined : formatText(args);
    case "pwd":
      return known(...place.folders.map((folder) => join(place.root, folder)));
    case "printenv":
      return operands.length === 1 ? place.lookup(operands[0] ?? "") : listVariables(place);
    case "env":
      return operands.length === 0 ? listVariables(place) : undefined;
    case "dirname":
      return known(...operands.map((path) => dirname(path)));
    case "basename":
      return known(...operands.slice(0, 1).map((path) => basename(path, operands[1])));
    case "realpath":
    case "readlink":
      return known(...operands);
    case "which":
      return known(...operands.map((name) => `/usr/bin/${name}`));
    case "command":
      return args[0] === "-v" ? known(...operands.map((name) => `/usr/bin/${name}`)) : undefined;
    case "mktemp": {
      const elsewhere = operands.find((path) => !path.startsWith("/tmp/"));
      return known(elsewhere ?? "/tmp/tmp.made");
    }
    case "find": {
      const prints = !args.some((arg) => /^-(?:exec|ok|fls|ls|delete)/.test(arg));
      const found = prints ? listFound(place, (cwd) => place.find(args, cwd)) : undefined;
      return found && { ...found, isOpen: place.folders.some((cwd) => isWideSearch(args, cwd)) };
    }
    case "ls":
      return listFound(place, (cwd) => place.list(args, cwd));
    case "git":
      return predictGit(args, place);
    default:
      return predictFilter(program, args, operands, place);
  }
}

function listFound(
  { folders }: PrintPlace,
  find: (cwd: string) => readonly FoundPath[] | undefined,
): Values | undefined {
  const values: string[] = [];
  for (const folder of folders) {
    const found = find(folder);
    if (!found) return undefined;
    values.push(...found.map(({ path }) => path));
  }
  return { values, isOpen: false };
}

function predictFilter(
  program: string,
  args: readonly string[],
  operands: readonly string[],
  { input, read, root }: PrintPlace,
): Values | undefined {
  const options = FILTERS.get(program);
  if (!options) {
    // Of a path to the workspace it may leave one to what is around.
    const isCut = CUTTERS.has(program) && input?.values.some((value) => mentions(value, root));
    return isCut ? { values: [dirname(root)], isOpen: true } : undefined;
  }
  if (!args.every((arg) => !arg.startsWith("-") || options.test(arg))) return undefined;
  if (program === "tee") return input;
  // Of files that are named only what the line writes is known.
  const files = program.endsWith("grep")
    ? operands.slice(1)
    : operands.filter((arg) => !/^\+?\d+$/.test(arg));
  if (files.length === 0) return input;
  const texts = files.map((file) => read(file));
  const isKnown = texts.every((text) => text !== undefined);
  if (!isKnown) return undefined;
  // Whether a text ends with its line is not known.
  const joined = texts.length < 2 ? texts : [texts.join("\n"), texts.join("")];
  return { values: [joined.join("\n")], isOpen: false };
}

/** Print parts of the lines that they read. */
const CUTTERS = new Set("cut sed awk gawk mawk tr rev perl".split(" "));

/** Whether a text names the workspace, or the home folder. */
function mentions(text: string, root: string): boolean {
  return text.includes(root) || text.includes(homedir());
}

/** The variables that lead somewhere, as `env` prints them. */
function listVariables({ lookup }: PrintPlace): Values {
  const lines = ["HOME", "PWD"].flatMap((name) =>
    lookup(name).values.map((value) => `${name}=${value}`),
  );
  return { values: [lines.join("\n")], isOpen: true };
}

function predictGit([command, ...rest]: readonly string[], place: PrintPlace): Values | undefined {
  if (command === "rev-parse" && rest.includes("--show-toplevel")) {
    const tree = locateRepository(place.root)?.tree;
    return tree === undefined ? undefined : { values: [tree], isOpen: false };
  }
  if (command !== "ls-files") return undefined;
  // More than it prints, but no link is missing.
  const found = place.folders.flatMap((cwd) => place.find(["."], cwd) ?? []);
  return { values: found.flatMap(({ path, isLink }) => (isLink ? [path] : [])), isOpen: true };
}

/** What `printf` makes of its arguments. */
export function formatText([format = "", ...args]: readonly string[]): Values {
  const plain = decodeEscapes(format);
  const left = [...args];
  let text = "";
  do {
    text += plain.replaceAll(/%(%|[-0-9.]*[a-zA-Z])/g, (sign) =>
      sign === "%%"
        ? "%"
        : sign.endsWith("b")
          ? decodeEscapes(left.shift() ?? "")
          : (left.shift() ?? ""),
    );
    // The rest of the arguments is put into the same format again.
  } while (left.length > 0 && /%[-0-9.]*[a-zA-Z]/.test(plain));
  return { values: [text], isOpen: false };
}

/** Text with the escapes that `printf` and `echo -e` know. */
function decodeEscapes(text: string): string {
  return text.replaceAll(
    /\\(?:([nt\\])|x([\da-fA-F]{1,2})|0?([0-7]{1,3}))/g,
    (_, letter: string | undefined, hex: string | undefined, octal: string | undefined) => {
      if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
      if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
      return letter === "n" ? "\n" : letter === "t" ? "\t" : "\\";
    },
  );
}
