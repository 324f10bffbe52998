import { statSync } from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import { findWritten, isInterpreter } from "./written.ts";
import { ifThere } from "./if-there.ts";

/** What is known of a file that a command line makes or changes. */
interface Draft {
  /** What is written to it, all of it together. */
  texts: string[];
  /** Commands by which it is changed. */
  edits: string[];
  /** Files that it is made of: copied, moved or linked. */
  from: { path: string; how: Made }[];
  /** Something is written to it that is not known. */
  isUnknown: boolean;
}

/** How a file comes to be out of another one. */
export type Made = "copied" | "moved" | "linked";

/** Folders of the workspace that programs are found in, as package managers make them. */
export const INSTALLED: RegExp = /(?:node_modules\/\.bin|(?:\.?venv|vendor|env)\/bin)\/?$/;
/** What programs that compress a file put behind its name. */
const COMPRESSED: ReadonlyMap<string, string> = new Map([
  ["gzip", ".gz"],
  ["bzip2", ".bz2"],
  ["xz", ".xz"],
  ["lzma", ".lzma"],
]);

/** A file that a script of sed writes, or a word that looks like one. */
const SED_WRITES = /w[ \t]*([^\s;}'"]+)/gi;
/** Files in files. */
const MAX_STEPS = 8;

/** The files that a command line writes, by absolute path, so that what runs or removes them later is known. */
export class Drafts {
  readonly #files = new Map<string, Draft>();

  write(path: string, text: string | undefined): void {
    const draft = this.#at(path);
    if (text === undefined) draft.isUnknown = true;
    else if (!draft.texts.includes(text)) draft.texts.push(text);
  }

  edit(path: string, how: string): void {
    const { edits } = this.#at(path);
    if (!edits.includes(how)) edits.push(how);
  }

  make(path: string, from: string, how: Made): void {
    if (path === from) return;
    const target = isFolder(path) ? join(path, basename(from)) : path;
    const draft = this.#at(target);
    if (!draft.from.some((each) => each.path === from)) draft.from.push({ path: from, how });
  }

  /** What is written to a file in the line, or to one that it is made of. */
  read(path: string): string | undefined {
    const texts = this.#listAll(path).flatMap((each) => this.#files.get(each)?.texts ?? []);
    if (texts.length < 2) return texts[0];
    // Whether a text ends with its line is not known.
    return [texts.join("\n"), texts.join("")].join("\n");
  }

  /** Whether the line writes to a file, or to one that it is made of, what is not known. */
  isUnknown(path: string): boolean {
    const all = this.#listAll(path).flatMap((each) => this.#files.get(each) ?? []);
    const isNew = ifThere(() => statSync(path)) === undefined;
    return all.some(({ isUnknown, edits }) => isUnknown || (isNew && edits.length > 0));
  }

  /** What is written to files of code, which other code may load. */
  listCode(): string[] {
    return [...this.#files].flatMap(([path, { texts }]) =>
      /\.(?:py|[cm]?[jt]s|p[lm]|rb|php|lua|awk)$/.test(path) ? texts : [],
    );
  }

  /** Files in a folder that the line makes and a pattern finds. */
  findNames(folder: string, pattern: RegExp): string[] {
    return [...this.#files.keys()]
      .filter((path) => dirname(path) === folder)
      .map((path) => basename(path))
      .filter((name) => pattern.test(name));
  }

  /** The file of that name that the line writes to a folder of installed programs. */
  findProgram(name: string): string | undefined {
    return [...this.#files.keys()].find(
      (path) => INSTALLED.test(dirname(path)) && basename(path) === name,
    );
  }

  /** The commands by which a file is changed in the line. */
  listEdits(path: string): string[] {
    return this.#listAll(path).flatMap((each) => this.#files.get(each)?.edits ?? []);
  }

  /** A file, and the files that it is made of in these ways. */
  listSources(path: string, how: readonly Made[]): string[] {
    return this.#listAll(path, how);
  }

  #listAll(path: string, how: readonly Made[] = ["copied", "moved", "linked"]): string[] {
    const found = [path];
    for (let at = 0; at < found.length && at < MAX_STEPS; at++) {
      const name = found[at] ?? "";
      // What is in a folder that was moved was in the old one.
      for (let folder = name; folder !== dirname(folder); folder = dirname(folder)) {
        for (const { path: from, how: made } of this.#files.get(folder)?.from ?? []) {
          const source = from + name.slice(folder.length);
          if (how.includes(made) && !found.includes(source)) found.push(source);
        }
      }
    }
    return found;
  }

  #at(path: string): Draft {
    const known = this.#files.get(path) ?? { texts: [], edits: [], from: [], isUnknown: false };
    this.#files.set(path, known);
    return known;
  }
}

function isFolder(path: string): boolean {
  return ifThere(() => statSync(path))?.isDirectory() ?? false;
}

/** What a program does to files beside what it prints, noted in `drafts`. */
export function noteFiles(
  drafts: Drafts,
  program: string,
  args: readonly string[],
  folder: string,
): void {
  const at = (path: string): string => (isAbsolute(path) ? join(path) : join(folder, path));
  const operands = args.filter((arg) => !arg.startsWith("-"));
  const last = operands.at(-1);
  switch (program) {
    case "cp":
    case "install":
    case "mv":
      if (last === undefined || operands.length < 2) return;
      for (const from of operands.slice(0, -1)) {
        if (/^\/dev\/(?:stdin|fd\/)/.test(from)) drafts.write(at(last), undefined);
        drafts.make(at(last), at(from), program === "mv" ? "moved" : "copied");
      }
      return;
    case "ln": {
      const [from = "", to = basename(from)] = operands;
      if (from === "") return;
      const isSoft = args.some((arg) => /^-\w*s|^--symbolic$/.test(arg));
      const link = isFolder(at(to)) ? join(at(to), basename(from)) : at(to);
      drafts.make(
        link,
        isSoft && !isAbsolute(from) ? join(dirname(link), from) : at(from),
        "linked",
      );
      return;
    }
    case "tar":
    case "zip": {
      // What it puts into the archive is there alone from then on.
      const isMove =
        program === "tar"
          ? args.includes("--remove-files")
          : args.some((arg) => /^-\w*m|^--move$/.test(arg));
      const isBundled = program === "tar" && !args[0]?.startsWith("-");
      const [archive, ...files] = isBundled ? operands.slice(1) : operands;
      if (isMove && archive !== undefined)
        for (const from of files) drafts.make(at(archive), at(from), "moved");
      return;
    }
    case "gzip":
    case "bzip2":
    case "xz":
    case "lzma":
      if (args.some((arg) => /^-\w*[kdclt]|^--(?:keep|decompress|stdout|list|test)$/.test(arg)))
        return;
      for (const from of operands)
        drafts.make(`${at(from)}${COMPRESSED.get(program) ?? ""}`, at(from), "moved");
      return;
    default:
      if (/^(?:sed|perl)$/.test(program) && args.some((arg) => /^-\w*i|^--in-place/.test(arg))) {
        for (const path of operands) drafts.edit(at(path), args.join(" "));
      }
      if (program === "sed") {
        for (const [, path = ""] of args.join("\n").matchAll(SED_WRITES))
          drafts.write(at(path), undefined);
      }
      if (!isInterpreter(program)) return;
      for (const path of findWritten(args.join("\n"))) drafts.edit(at(path), args.join(" "));
  }
}
