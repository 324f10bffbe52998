import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve, sep } from "node:path";
import { toRecord } from "@gyre/ai";

/** What is run because of a project: for a shell, or a program and its arguments. */
export interface ProjectCommand {
  command: string | readonly string[];
  /** Where it is run, absolute. Default: the folder of the project. */
  cwd?: string;
}

/** The files of a project that its commands name, absolute. */
export interface CommandFiles {
  files: readonly string[];
  /** Those that are not there yet: a program that makes one decides what runs. */
  missing: readonly string[];
}

const OF_NODE = [
  "package.json",
  ".npmrc",
  ".yarnrc",
  ".yarnrc.yml",
  ".pnpmfile.cjs",
  "pnpm-workspace.yaml",
];
const OF_MAKE = ["GNUmakefile", "makefile", "Makefile"];
const OF_JUST = ["justfile", "Justfile", ".justfile"];
const OF_DENO = ["deno.json", "deno.jsonc"];
const OF_ESLINT = [
  ...["js", "mjs", "cjs", "ts", "mts", "cts"].map((ending) => `eslint.config.${ending}`),
  ...["", ".js", ".cjs", ".json", ".yaml", ".yml"].map((ending) => `.eslintrc${ending}`),
];
const OF_PRETTIER = [
  ...["js", "mjs", "cjs", "ts", "mts", "cts"].map((ending) => `prettier.config.${ending}`),
  ...["", ".js", ".mjs", ".cjs", ".ts", ".json", ".json5", ".yaml", ".yml", ".toml"].map(
    (ending) => `.prettierrc${ending}`,
  ),
];
/** Files that a program finds by itself and runs commands of. */
const READ_BY: ReadonlyMap<string, readonly string[]> = new Map([
  ["npm", OF_NODE],
  ["npx", OF_NODE],
  ["yarn", OF_NODE],
  ["pnpm", OF_NODE],
  ["pnpx", OF_NODE],
  ["bun", [...OF_NODE, "bunfig.toml"]],
  ["bunx", [...OF_NODE, "bunfig.toml"]],
  ["make", OF_MAKE],
  ["gmake", OF_MAKE],
  ["just", OF_JUST],
  ["deno", OF_DENO],
  ["rake", ["Rakefile", "rakefile"]],
  ["eslint", OF_ESLINT],
  ["prettier", OF_PRETTIER],
]);
/** Programs that run a folder by its manifest. */
const RUN_FOLDERS = new Set(["node", "nodejs", "bun", "tsx"]);
/** Short names that npm has for scripts. */
const SCRIPT_ALIASES: ReadonlyMap<string, string> = new Map([
  ["t", "test"],
  ["tst", "test"],
]);
/** What servers and hooks write to: its content runs nothing, and changes all the time. */
const DATA = new Set([".db", ".sqlite", ".sqlite3", ".duckdb", ".log", ".csv", ".parquet"]);
/** What a module or script may be called without. */
const ENDINGS = [".js", ".cjs", ".mjs", ".ts", ".py", "/index.js", "/__main__.py"];
const SCRIPTS = new Set([
  ".sh",
  ".bash",
  ".js",
  ".cjs",
  ".mjs",
  ".ts",
  ".mts",
  ".cts",
  ".py",
  ".rb",
  ".pl",
]);

/** In the language of a shell, or of one that is as easily followed: what they run is written in them. */
const FOLLOWED = new Set([".sh", ".bash", ".zsh", ".py", ".rb", ".pl", ".mk"]);
const FOLLOWED_NAMES: ReadonlySet<string> = new Set([
  ...OF_MAKE,
  ...OF_JUST,
  "Rakefile",
  "rakefile",
]);
/** Of a script that is looked into. */
const MAX_SCRIPT_BYTES = 262_144;
const SHEBANG = "#!";
const EXECUTABLE = 0o111;
/** Runs what is named behind it: `node tools/x.mjs`. */
const INTERPRETER =
  /(?:^|[\s;|&("'`/])(?:node|nodejs|tsx|ts-node|bun|deno|php|include|-include|sinclude)\s([^\n;|&]*)/g;
/** Between the commands of a script, more or less. */
const BETWEEN_COMMANDS = /[\n;|&()@]+|\b(?:then|do|else|exec)\b/;
/** A folder that a script finds out for itself, as `$(dirname "$0")/` or `"$HERE"/`. */
const OWN_FOLDER = /^(?:\$\{?\w+\}?|\.)?\//;
const PYTHON_IMPORT =
  /^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+\(?([\w, \t]*)|import[ \t]+([\w., \t]+))/gm;

/**
 * The files inside of `folder` that commands name, each word of them taken for a path, with
 * those that package managers and the like read, and what the scripts of a manifest, of a shell and
 * the like name in turn.
 */
export function findCommandFiles(
  commands: readonly ProjectCommand[],
  folder: string,
): CommandFiles {
  const finder = new Finder(folder);
  for (const { command, cwd = folder } of commands) finder.add(command, resolve(folder, cwd));
  return { files: [...finder.files], missing: [...finder.missing] };
}

class Finder {
  readonly files = new Set<string>();
  readonly missing = new Set<string>();
  readonly #folder: string;
  readonly #done = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  add(command: ProjectCommand["command"], cwd: string): void {
    const key = JSON.stringify([command, cwd]);
    if (this.#done.has(key)) return;
    this.#done.add(key);
    const words = splitWords(command);
    const folders = words
      .map((word) => resolve(cwd, word))
      .filter((path) => (path === this.#folder || this.#isInside(path)) && isFolder(path));
    // A command may change to a folder that it names.
    const bases = new Set([cwd, ...folders]);
    for (const word of words) {
      for (const base of bases) this.#addWord(word, base, base === cwd);
      for (const name of READ_BY.get(basename(word)) ?? []) {
        for (const base of bases) this.#addPath(join(base, name), base === cwd);
      }
    }
    if (words.some((word) => RUN_FOLDERS.has(basename(word)))) {
      for (const path of folders) this.#addMain(path);
    }
    if (words.some((word) => READ_BY.get(basename(word))?.includes("package.json"))) {
      for (const base of bases) this.#addScripts(words, base);
    }
  }

  #addWord(word: string, base: string, isNamedHere: boolean): void {
    const path = resolve(base, word);
    const isScript = SCRIPTS.has(extname(word));
    this.#addPath(path, isNamedHere && isScript);
    for (const ending of ENDINGS) this.#addPath(path + ending, false);
    // A module of Python.
    if (/^\w+(?:\.\w+)*$/.test(word)) {
      const module = resolve(base, word.replaceAll(".", sep));
      for (const ending of [".py", "/__main__.py", "/__init__.py"]) {
        this.#addPath(module + ending, false);
      }
    }
  }

  #addMain(folder: string): void {
    const manifest = join(folder, "package.json");
    this.#addPath(manifest, false);
    const main = readManifest(manifest)["main"];
    if (typeof main === "string") this.#addWord(main, folder, false);
    this.#addPath(join(folder, "index.js"), false);
  }

  /** The scripts of a manifest that are named, and programs that its packages installed. */
  #addScripts(words: readonly string[], base: string): void {
    const scripts = readScripts(join(base, "package.json"));
    for (const word of words) {
      const name = SCRIPT_ALIASES.get(word) ?? word;
      this.#addPath(join(base, "node_modules", ".bin", name), false);
      // What is installed here takes precedence over what would be downloaded.
      this.#addPrograms(join(base, "node_modules", name.replace(/(?!^)@.*$/, "")));
      for (const script of [`pre${name}`, name, `post${name}`]) {
        const command = scripts.get(script);
        if (command === undefined) continue;
        this.add(command, base);
        for (const program of splitWords(command)) {
          this.#addPath(join(base, "node_modules", ".bin", program), false);
        }
      }
    }
  }

  /** The programs of an installed package. */
  #addPrograms(folder: string): void {
    const manifest = join(folder, "package.json");
    if (!this.#isInside(manifest) || !isFile(manifest)) return;
    this.#addPath(manifest, false);
    const { bin } = readManifest(manifest);
    const programs = typeof bin === "string" ? [bin] : Object.values(toRecord(bin));
    for (const program of programs) {
      if (typeof program === "string") this.#addPath(resolve(folder, program), false);
    }
  }

  #addPath(path: string, isWantedMissing: boolean): void {
    if (!this.#isInside(path) || DATA.has(extname(path))) return;
    if (isFile(path)) {
      if (this.files.has(path)) return;
      this.files.add(path);
      this.#follow(path);
    } else if (isWantedMissing && !existsSync(path)) this.missing.add(path);
  }

  /** What a script runs, sources or imports in turn. Packages are not looked into. */
  #follow(path: string): void {
    if (path.includes(`${sep}node_modules${sep}`)) return;
    const text = readScript(path);
    if (text === undefined) return;
    const bases = [dirname(path), this.#folder];
    const run = [...text.matchAll(INTERPRETER)].flatMap(([, args = ""]) => splitWords(args));
    for (const word of splitWords(text)) {
      const isRun = run.includes(word);
      for (const name of new Set([word, word.replace(OWN_FOLDER, "")])) {
        for (const base of bases) this.#addRun(resolve(base, name), isRun);
      }
    }
    if (extname(path) === ".py") this.#addImports(text, path);
    if (extname(path) === ".rb") {
      for (const word of splitWords(text))
        this.#addPath(resolve(dirname(path), `${word}.rb`), false);
    }
    for (const command of text.split(BETWEEN_COMMANDS)) {
      const [program = ""] = splitWords(command);
      if (READ_BY.has(basename(program))) this.add(command, this.#folder);
    }
  }

  /** A file that a script names, if it is one that runs. */
  #addRun(path: string, isRun: boolean): void {
    if (!isFile(path)) {
      if (FOLLOWED.has(extname(path))) this.#addPath(path, true);
      return;
    }
    const runs = isRun || FOLLOWED.has(extname(path)) || (statSync(path).mode & EXECUTABLE) !== 0;
    if (runs) this.#addPath(path, false);
  }

  /** Modules of the project that a module of Python imports. */
  #addImports(text: string, path: string): void {
    for (const [, dots = "", from = "", names = "", plain = ""] of text.matchAll(PYTHON_IMPORT)) {
      const above = dots.length > 1 ? "../".repeat(dots.length - 1) : "";
      const bases = dots === "" ? [dirname(path), this.#folder] : [resolve(dirname(path), above)];
      const listed = (list: string): string[] => list.split(/[\s,]+/).filter((name) => name !== "");
      const modules = [
        ...listed(plain),
        from,
        ...listed(names).map((name) => (from === "" ? name : `${from}.${name}`)),
      ];
      for (const module of modules.filter((name) => name !== "")) {
        const parts = module.split(".");
        for (const base of bases) {
          parts.forEach((_, index) => {
            const at = join(base, ...parts.slice(0, index + 1));
            for (const ending of [".py", "/__init__.py"]) this.#addPath(at + ending, false);
          });
        }
      }
    }
  }

  #isInside(path: string): boolean {
    return path.startsWith(this.#folder.endsWith(sep) ? this.#folder : this.#folder + sep);
  }
}

/** All that may be a path in a command: words, what is in quotes, and what is behind a `=`. */
function splitWords(command: ProjectCommand["command"]): string[] {
  const texts = typeof command === "string" ? [command] : command;
  const words = texts.flatMap((text) => {
    const quoted = [...text.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, a, b]) => a ?? b ?? "");
    return [
      ...(typeof command === "string" ? [] : [text]),
      ...quoted,
      ...text.replaceAll(/["'`]/g, "").split(/[\s;|&<>()=,]+/),
    ];
  });
  const plain = words
    .map((word) => word.replace(/^\$\{?(?:GYRE_PROJECT_DIR|CLAUDE_PROJECT_DIR|PWD)\b[^/]*\//, ""))
    .filter((word) => word !== "" && !word.includes("\0"));
  return [...new Set(plain)];
}

/** The text of a script that is followed; nothing for other files. */
function readScript(path: string): string | undefined {
  if (statSync(path).size > MAX_SCRIPT_BYTES) return undefined;
  const text = readFileSync(path, "utf8");
  const [first = ""] = text.split("\n", 1);
  const isShell = first.startsWith(SHEBANG) && /\b(?:ba|da|z|k)?sh\b|python|ruby|perl/.test(first);
  const isKnown = FOLLOWED.has(extname(path)) || FOLLOWED_NAMES.has(basename(path));
  return isKnown || isShell ? text : undefined;
}

function readScripts(manifest: string): ReadonlyMap<string, string> {
  const entries = Object.entries(toRecord(readManifest(manifest)["scripts"]));
  return new Map(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function readManifest(path: string): Readonly<Record<string, unknown>> {
  if (!isFile(path)) return {};
  try {
    return toRecord(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    // No package manager runs it then; its content is trusted as it is.
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function isFile(path: string): boolean {
  // Below what is a file itself, there is nothing.
  return existsSync(path) && statSync(path).isFile();
}

function isFolder(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}
