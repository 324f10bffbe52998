import { readFileSync } from "node:fs";
import type { Random } from "../command-lines.ts";

/*
 * Command lines as models write them, and as a person who wants to slip something through would: for a
 * comparison of what mode `auto` says of them with what they do. They are about the world of `AutoWorld`.
 */

/** Writes lines at random. `base` is the folder around the workspace. */
export function createAutoLine(next: Random, base: string): string {
  return new AutoLineWriter(next, base).line();
}

/** Folders and files of the world, by what is true of them. */
const PLACES = {
  tracked:
    "README.md src/a.ts src/b.ts src/lib/deep.ts docs/guide.md data.csv package.json to-a to-src/a.ts".split(
      " ",
    ),
  precious:
    "draft.ts notes/todo.md drafts/letter .env config.local secrets/key.pem src/changed.ts to-draft table.bin".split(
      " ",
    ),
  folder: "src docs src/lib . ./src scripts to-src".split(" "),
  preciousFolder: "drafts notes secrets".split(" "),
  made: "dist/a.js build.log node_modules/left-pad/index.js dist node_modules".split(" "),
  around:
    "leak out/secret.txt out up/outside/secret.txt src/lib/far/x.ts src/lib/far ../outside/secret.txt ../outside src/../../outside/secret.txt up up/home/notes.txt ..".split(
      " ",
    ),
  missing: "new.txt src/new.ts out.txt tmp/x.txt".split(" "),
  temporary: "/tmp/x.txt /tmp/copy.ts".split(" "),
} as const;

/** Templates of commands: `%r` a path to read, `%w` one to write or remove, `%f` a folder, `%n` a new file, `%o` one outside; `%R` and the like without signs of the shell; `%u` an address, `%h` a host. */
const TEMPLATES = readTemplates();

/** What each kind of line is made of: those that were found one by one are tried among others as well. */
const SECTIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ...TEMPLATES,
  ["plain", [...(TEMPLATES.get("plain") ?? []), ...(TEMPLATES.get("everyday") ?? [])]],
  ["tricks", [...(TEMPLATES.get("tricks") ?? []), ...(TEMPLATES.get("hostile") ?? [])]],
]);

/** Each line of a section once, with places at random. */
export function* createAutoLines(section: string, next: Random, base: string): Generator<string> {
  for (const template of TEMPLATES.get(section) ?? []) {
    yield new AutoLineWriter(next, base).line(template);
  }
}

/** The sections of the file, in which `⏎` stands for the end of a line. */
function readTemplates(): ReadonlyMap<string, readonly string[]> {
  const text = readFileSync(new URL("./lines.txt", import.meta.url), "utf8");
  return new Map(
    text
      .split(/^# /m)
      .slice(1)
      .map((section): [string, string[]] => {
        const [name = "", ...lines] = section.split("\n");
        return [
          name,
          lines.filter((line) => line !== "").map((line) => line.replaceAll("⏎", "\n")),
        ];
      }),
  );
}

const SEPARATORS = [" && ", "; ", " || ", "\n", " | ", " & "];

class AutoLineWriter {
  readonly #next: Random;
  readonly #base: string;
  /** What has to stand before the line, as assignments. */
  #before: string[] = [];

  constructor(next: Random, base: string) {
    this.#next = next;
    this.#base = base;
  }

  /** A line at random, or one of these commands alone. */
  line(template?: string): string {
    if (template !== undefined) {
      const command = this.#fill(template);
      return [...this.#before, command].join("; ");
    }
    const count = this.#pick([1, 1, 1, 1, 2, 2, 3]);
    let text = "";
    for (let at = 0; at < count; at++) {
      const command = this.#wrap(this.#command());
      text +=
        at === 0 ? command : `${text.includes("<<") ? "\n" : this.#pick(SEPARATORS)}${command}`;
    }
    return [...this.#before, text].join("; ");
  }

  #command(): string {
    const kind = this.#next();
    const section =
      kind < 0.2
        ? "plain"
        : kind < 0.4
          ? "reads"
          : kind < 0.56
            ? "changes"
            : kind < 0.66
              ? "leaves"
              : kind < 0.76
                ? "sends"
                : "tricks";
    return this.#fill(this.#pick(SECTIONS.get(section) ?? []));
  }

  /** The command as it is, or as a part of something that runs it. */
  #wrap(command: string): string {
    if (this.#next() < 0.75 || /\n|<</.test(command)) return command;
    const quoted = `'${command.replaceAll("'", String.raw`'\''`)}'`;
    return this.#pick([
      `(${command})`,
      `{ ${command}; }`,
      `if true; then ${command}; fi`,
      `for i in 1; do ${command}; done`,
      `while true; do ${command}; break; done`,
      `bash -c ${quoted}`,
      `sh -c ${quoted}`,
      `eval ${quoted}`,
      `echo "$(${command})"`,
      `x=$(${command})`,
      `cat <(${command})`,
      `timeout 5 bash -c ${quoted}`,
      `env bash -c ${quoted}`,
      `f() { ${command}; }; f`,
      `echo ${quoted} | bash`,
      `bash <<< ${quoted}`,
      `cat > s.sh <<'E'\n${command}\nE\nbash s.sh`,
      `echo ${quoted} > s.sh; sh s.sh`,
      `xargs -I{} bash -c ${quoted} <<< x`,
      `find . -maxdepth 0 -exec bash -c ${quoted} \\;`,
      `cd src && ${command}`,
      `cd src; ${command}`,
      `(cd docs && ${command})`,
      `true && ${command} || true`,
      `${command} 2>/dev/null`,
      `${command} | cat`,
      `! ${command}`,
      `python3 -c "import subprocess, sys; subprocess.run(sys.argv[1], shell=True)" ${quoted}`,
      `case a in a) ${command};; esac`,
      `set -e; ${command}`,
      `trap ${quoted} EXIT`,
      `nohup bash -c ${quoted} > /dev/null 2>&1`,
    ]);
  }

  #fill(template: string): string {
    return template.replaceAll(/%([rwfnoRWFuh])/g, (_, letter: string) => this.#slot(letter));
  }

  #slot(letter: string): string {
    switch (letter) {
      case "r":
        return this.#write(
          this.#place(
            ["tracked", 55],
            ["precious", 12],
            ["made", 5],
            ["around", 14],
            ["missing", 8],
            ["temporary", 6],
          ),
        );
      case "w":
        return this.#write(
          this.#place(
            ["tracked", 25],
            ["precious", 45],
            ["made", 10],
            ["around", 8],
            ["missing", 12],
          ),
        );
      case "f":
        return this.#write(
          this.#place(
            ["folder", 65],
            ["preciousFolder", 12],
            ["around", 13],
            ["made", 5],
            ["missing", 5],
          ),
        );
      case "R":
        return this.#place(["tracked", 55], ["precious", 20], ["around", 20], ["missing", 5]);
      case "W":
        return this.#place(
          ["tracked", 30],
          ["precious", 55],
          ["made", 5],
          ["around", 5],
          ["missing", 5],
        );
      case "F":
        return this.#place(["folder", 60], ["preciousFolder", 20], ["around", 20]);
      case "n":
        return this.#place(["missing", 80], ["temporary", 20]);
      case "o":
        return this.#write(
          this.#pick([
            "../outside/new.txt",
            "../outside/secret.txt",
            "../outside",
            "out/new.txt",
            "leak",
            "up/x",
            "~/x",
            "$HOME/x",
            `${this.#base}/outside/new.txt`,
            "../x",
          ]),
        );
      case "u":
        return this.#pick([
          "https://example.org/x",
          "http://example.org",
          "example.org",
          "https://registry.npmjs.org/x",
        ]);
      default:
        return this.#pick(["example.org", "host.example.org"]);
    }
  }

  #place(...weights: readonly [keyof typeof PLACES, number][]): string {
    let at = this.#next() * weights.reduce((sum, [, weight]) => sum + weight, 0);
    const [kind = "tracked"] = weights.find(([, weight]) => (at -= weight) < 0) ?? [];
    return this.#pick(PLACES[kind]);
  }

  /** A path as a word of the shell, in one of the ways in which it can be written. */
  #write(path: string): string {
    const how = this.#next();
    if (how < 0.6 || /^[~$]/.test(path)) return path;
    const slash = path.lastIndexOf("/");
    const folder = path.slice(0, Math.max(slash, 0));
    const name = path.slice(slash + 1);
    const middle = Math.floor(path.length / 2);
    return this.#pick<() => string>([
      () => `'${path}'`,
      () => `"${path}"`,
      () => `./${path.replace(/^\//, "")}`,
      () => `${path.slice(0, middle)}"${path.slice(middle)}"`,
      () => `${path.slice(0, middle)}''${path.slice(middle)}`,
      () => `\\${path}`,
      () => `$'${path}'`,
      () => `$PWD/${path}`,
      () => `"$PWD/${path}"`,
      () => `$(pwd)/${path}`,
      () => `$(echo ${path})`,
      () => `"$(printf %s ${path})"`,
      () => `{${path},}`,
      () => `\${none:-${path}}`,
      () => this.#variable(path, (variable) => `$${variable}`),
      () => this.#variable(path, (variable) => `"$${variable}"`),
      () => (folder === "" ? path : this.#variable(folder, (variable) => `$${variable}/${name}`)),
      () => (folder === "" ? path : `${folder}//${name}`),
      () => (name.length < 2 ? path : `${path.slice(0, slash + 1)}${name.slice(0, -1)}?`),
      () => (name.length < 3 ? path : `${path.slice(0, slash + 1)}${name.slice(0, 2)}*`),
      () =>
        name.length < 2
          ? path
          : `${path.slice(0, slash + 1)}${name.slice(0, -1)}[${name.slice(-1)}]`,
      () => (folder === "" ? path : `${folder}/*`),
      () => (path.startsWith("/") || path.startsWith("..") ? path : `src/../${path}`),
      () => (path.startsWith("/") ? path : `${this.#base}/work/${path}`),
    ])();
  }

  #variable(value: string, use: (variable: string) => string): string {
    const variable = `v${this.#before.length}`;
    this.#before.push(`${variable}=${value}`);
    return use(variable);
  }

  #pick<T>(list: readonly T[]): T {
    const item = list[Math.floor(this.#next() * list.length)];
    if (item === undefined) throw new Error("The list is empty.");
    return item;
  }
}
