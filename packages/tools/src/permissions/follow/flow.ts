import { statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import {
  type Group,
  type ListedWord,
  parseCommandLine,
  type Redirect,
  type SimpleCommand,
  type Word,
} from "../command/parse.ts";
import type { Expander, PlacedCommand } from "../command/parts.ts";
import {
  compilePattern,
  expandValue,
  expandWord,
  listNames,
  type Scope,
  UNKNOWN,
  type Values,
} from "./expand.ts";
import { type Drafts, noteFiles } from "./drafts.ts";
import { formatText, predictOutput } from "./print.ts";
import {
  createBudget,
  findByList,
  findByPattern,
  findBySearch,
  type FoundPath,
  isWideSearch,
  type SearchPlace,
} from "./search.ts";
import { ifThere } from "./if-there.ts";

/** A command with variables of several values is looked at with each of them, so many times. */
const MAX_VARIANTS = 64;
/** Values of one variable, and words that a search puts into a command; with more they are not known. */
const MAX_VALUES = 300;
/** Commands that are made of those of one line; with more it is not known what it does. */
const MAX_COMMANDS = 500;
/** Folders that a command may run in. */
const MAX_FOLDERS = 8;
/** Substitutions in substitutions. */
const MAX_NESTING = 4;

/** Stands for a folder of the workspace that is not known. */
export const ANYWHERE = "**";

/** As good as sure to succeed. */
const SURE = new Set("cd mkdir echo printf true : set export pwd".split(" "));

/** What the search or the list in a command gives. */
interface Items {
  paths: readonly FoundPath[];
  isOpen: boolean;
}

/** A shell in which commands run one after the other. */
interface Shell {
  group: Group | undefined;
  /** Where it may be, from the workspace. */
  folders: readonly string[];
  /** Where it is if a command before "&&" fails. */
  otherwise: readonly string[];
  /** Where it was before the last `cd` of the commands that "&&" and "||" join. */
  before: readonly string[];
  /** Where it was before the commands that "&&", "||" and "|" join to the last one. */
  start: readonly string[];
  /** What the last command prints, if that goes on. */
  output: Values | undefined;
  /** What comes in by a pipe. */
  input: Values | undefined;
  /** The program that ran last; empty behind a group. */
  program: string;
  /** It is as good as sure that it succeeded. */
  succeeds: boolean;
}

/**
 * Follows a command line without running it: which values its variables may have, in which folders its
 * commands may run, and what they are then. What is not known stays as it was written.
 */
export class Flow implements Expander {
  readonly #root: string;
  readonly #cwd: string;
  readonly #drafts: Drafts;
  readonly #variables = new Map<string, { values: Set<string>; isOpen: boolean }>();
  readonly #functions = new Set<string>();
  /** Variables that other processes have as well. */
  readonly #exported = new Set<string>();
  /** Signs beside blanks at which values are divided. */
  #separators = "";
  #shells: Shell[] = [];
  /** Of the last command, for the one that it runs. */
  #items: Items | undefined;
  /** All that is fed to commands. */
  readonly #fed = new Set<string>();
  #visited: readonly string[];
  #nesting = 0;
  #listed: { words: Word[]; cwd: string }[] = [];
  /** What commands of the line remove or move away; undefined where that is not known. */
  #gone: (string | undefined)[] = [];
  #commands = 0;
  readonly #searched = new Map<string, FoundPath[] | undefined>();
  readonly #budget = createBudget();

  constructor({ root, cwd }: { root: string; cwd: string }, drafts: Drafts) {
    this.#root = root;
    this.#cwd = cwd || ".";
    this.#drafts = drafts;
    this.#visited = [this.#cwd];
  }

  /** How much is known: the same number before and after a look at a line says that it needs no further one. */
  get knowledge(): number {
    let count = this.#functions.size + this.#fed.size + this.#visited.length;
    for (const { values, isOpen } of this.#variables.values())
      count += values.size + (isOpen ? 1 : 0) + 1;
    return count;
  }

  /** There was more than is looked at. */
  get isExhausted(): boolean {
    return this.#commands > MAX_COMMANDS;
  }

  /** To be called before a command line is gone through. */
  begin(): void {
    this.#commands = 0;
    this.#listed = [];
    this.#gone = [];
    this.#shells = [
      {
        group: undefined,
        folders: [this.#cwd],
        otherwise: [],
        before: [this.#cwd],
        start: [this.#cwd],
        output: undefined,
        input: undefined,
        program: "",
        succeeds: false,
      },
    ];
  }

  /** What loops go through, and where. */
  get listed(): readonly { words: readonly Word[]; cwd: string }[] {
    return this.#listed;
  }

  loop(words: readonly ListedWord[]): void {
    for (const word of words) {
      this.#reach(word.groups);
      const values = this.#expand(word);
      this.#assign(word.name, values);
      const known = values.values.map(toWord);
      const list = values.isOpen ? [...known, word] : known;
      for (const cwd of this.#top.folders) this.#listed.push({ words: list, cwd });
    }
  }

  expand(command: SimpleCommand): readonly PlacedCommand[] {
    const shell = this.#enter(command);
    const from = shell.folders;
    const folders = this.#listFolders(command.joint.startsWith("||") ? findElse(shell) : from);
    const input = this.#findInput(command, shell);
    for (const assignment of command.assignments) {
      this.#learnAssignment(assignment);
      // Before a command it is for that alone, and that has it.
      const name = /^\w+/.exec(assignment.text)?.[0];
      if (command.words.length > 0 && name !== undefined) this.#exported.add(name);
    }
    const found: PlacedCommand[] = [];
    const outputs: (Values | undefined)[] = [];
    let reached: readonly string[] = [];
    for (const filled of this.#fill(command)) {
      if (++this.#commands > MAX_COMMANDS) return [...found, { ...command, folders }];
      const variant = this.#feed({ ...command, ...filled, folders }, input);
      found.push(variant);
      this.#learn(variant, input, shell);
      outputs.push(shell.output);
      reached = union(reached, shell.folders);
      // Only one of the variants runs.
      shell.folders = from;
    }
    if (found.length > 0) shell.folders = reached;
    shell.output = joinOutputs(outputs);
    return found;
  }

  /** The shell that a command runs in. */
  #enter({ groups, joint }: SimpleCommand): Shell {
    this.#reach(groups);
    const shell = this.#top;
    joinTo(shell, joint);
    return shell;
  }

  /** A function is called wherever the line has been. */
  #listFolders(folders: readonly string[]): readonly string[] {
    const isCalled = this.#shells.some(({ group }) => group?.kind === "function");
    return isCalled ? union(folders, this.#visited) : folders;
  }

  /** Leaves the shells that have ended, and begins those of further groups. */
  #reach(groups: readonly Group[]): void {
    const same = groups.findIndex((group, index) => this.#shells[index + 1]?.group !== group);
    const kept = 1 + (same < 0 ? groups.length : same);
    while (this.#shells.length > kept) this.#leave();
    for (const group of groups.slice(this.#shells.length - 1)) {
      const around = this.#top;
      joinTo(around, group.joint);
      if (group.kind === "function" && group.name !== undefined) this.#functions.add(group.name);
      const isPiped = group.joint.endsWith("|") && !group.joint.endsWith("||");
      this.#shells.push({
        ...around,
        group,
        input: isPiped ? around.output : around.input,
        output: undefined,
        otherwise: [],
        start: around.folders,
      });
    }
  }

  #leave(): void {
    const left = this.#shells.pop();
    const around = this.#top;
    // What it printed is not known, nor whether it succeeded.
    around.output = undefined;
    around.program = "";
    around.succeeds = false;
    if (!left || left.group?.kind === "subshell") return;
    around.folders = union(around.folders, union(left.folders, left.otherwise));
  }

  get #top(): Shell {
    const top = this.#shells.at(-1);
    if (!top) throw new Error("No command line was begun.");
    return top;
  }

  /**
   * The words of a command, expanded: once for each value that its variables may have together, and once as
   * they are written where they may be something else.
   */
  *#fill({
    words,
    redirects,
  }: SimpleCommand): Generator<Pick<SimpleCommand, "words" | "redirects">> {
    const targets = redirects.map(({ target }) => target);
    const { bindings, isOpen } = this.#bind([...words, ...targets]);
    let hasOther = isOpen;
    for (const binding of bindings) {
      const take = (word: Word): Word[] => {
        const { known, isOpen: mayBeMore } = this.#expandIn(word, binding);
        hasOther ||= mayBeMore && known.length > 0;
        return mayBeMore && known.length === 0 ? [word] : known;
      };
      yield {
        words: words.flatMap(take),
        redirects: redirects.flatMap((redirect) => {
          const taken = take(redirect.target);
          return taken.map((target) => ({ ...redirect, target }));
        }),
      };
    }
    if (!hasOther) return;
    const leave = (word: Word): Word[] => {
      const { known, isOpen: mayBeMore } = this.#expandIn(word, new Map());
      return mayBeMore || (isOpen && !word.literal) ? [word] : known;
    };
    yield {
      words: words.flatMap(leave),
      redirects: redirects.map((redirect) => ({
        ...redirect,
        target: leave(redirect.target)[0] ?? redirect.target,
      })),
    };
  }

  /** The values that variables may have together. `isOpen`: one of them may have another. */
  #bind(words: readonly Word[]): { bindings: ReadonlyMap<string, string>[]; isOpen: boolean } {
    const names = new Set(words.flatMap(({ text, literal }) => (literal ? [] : listNames(text))));
    let bindings: ReadonlyMap<string, string>[] = [new Map()];
    let hasOpen = false;
    // Of a long line all values are put into one command.
    for (const name of this.#commands > MAX_COMMANDS / 2 ? [] : names) {
      const { values, isOpen } = this.#lookup(name, this.#top.folders);
      if (values.length < 2 || bindings.length * values.length > MAX_VARIANTS) continue;
      hasOpen ||= isOpen;
      bindings = bindings.flatMap((binding) =>
        values.map((value) => new Map([...binding, [name, value]])),
      );
    }
    return { bindings, isOpen: hasOpen };
  }

  #expandIn(word: Word, binding: ReadonlyMap<string, string>): { known: Word[]; isOpen: boolean } {
    if (word.literal) return { known: [word], isOpen: false };
    if (word.text === "{}") return this.#listItems();
    const { values, isOpen } = expandWord(word, this.#scope(binding));
    if (values.length > MAX_VALUES) return { known: [], isOpen: true };
    // All of the workspace, whatever is in it now.
    const isAll = /^(?:\.\/)?\*$/.test(word.text) && this.#top.folders.includes(".");
    return { known: values.map(toWord), isOpen: isOpen || isAll };
  }

  #listItems(): { known: Word[]; isOpen: boolean } {
    if (!this.#items) return { known: [], isOpen: true };
    const { paths, isOpen } = this.#items;
    const isMany = paths.length > MAX_VALUES;
    // Of many, what may lead elsewhere.
    const shown = isMany ? paths.filter(({ isLink }) => isLink).slice(0, MAX_VALUES) : paths;
    return { known: shown.map(({ path }) => toWord(path)), isOpen: isOpen || isMany };
  }

  #expand(word: Word): Values {
    return expandWord(word, this.#scope(new Map()));
  }

  #scope(binding: ReadonlyMap<string, string>): Scope {
    const folders = this.#listFolders(this.#top.folders);
    return {
      lookup: (name) => {
        const bound = binding.get(name);
        return bound === undefined
          ? this.#lookup(name, folders)
          : { values: [bound], isOpen: false };
      },
      substitute: (script) => this.#substitute(script),
      separators: this.#separators,
      glob: (pattern) => {
        const found: string[] = [];
        if (folders.includes(ANYWHERE) && !isAbsolute(pattern)) return undefined;
        for (const cwd of folders) {
          const files = findByPattern(pattern, this.#place(cwd));
          if (!files) return undefined;
          found.push(...files, ...this.#findMade(pattern, cwd));
        }
        return found;
      },
    };
  }

  /** What a pattern finds of the files that the line itself makes. */
  #findMade(pattern: string, cwd: string): string[] {
    const start = pattern.lastIndexOf("/") + 1;
    const folder = pattern.slice(0, start);
    const names = compilePattern(pattern.slice(start));
    if (!names || /[*?[]/.test(folder)) return [];
    const path = isAbsolute(folder) ? join(folder, "x") : join(this.#root, cwd, folder, "x");
    return this.#drafts.findNames(dirname(path), names).map((name) => folder + name);
  }

  #lookup(name: string, folders: readonly string[]): Values {
    const known = this.#variables.get(/^\d$|^[@*]$/.test(name) ? "@" : name);
    if (known && this.#isHidden(name)) return { values: [""], isOpen: false };
    if (known) return { values: [...known.values], isOpen: known.isOpen };
    switch (name) {
      case "PWD":
        return this.#listPlaces(folders);
      case "OLDPWD":
        return { ...this.#listPlaces(this.#visited), isOpen: true };
      case "HOME":
        return { values: [homedir()], isOpen: false };
      case "TMPDIR":
        return { values: ["/tmp"], isOpen: false };
      default:
        return UNKNOWN;
    }
  }

  #listPlaces(folders: readonly string[]): Values {
    const known = folders.filter((folder) => folder !== ANYWHERE);
    return {
      values: known.map((folder) => join(this.#root, folder)),
      isOpen: known.length < folders.length,
    };
  }

  /** Whether the process that a script runs in does not have a variable of the line. */
  #isHidden(name: string): boolean {
    return /^[A-Za-z_]/.test(name) && this.#isInProcess && !this.#exported.has(name);
  }

  get #isInProcess(): boolean {
    return this.#shells.some(({ group }) => group?.isProcess);
  }

  #assign(name: string, { values, isOpen }: Values): void {
    if (this.#isInProcess) this.#exported.add(name);
    const known = this.#variables.get(name) ?? { values: new Set(), isOpen: false };
    for (const value of values) known.values.add(value);
    known.isOpen ||= isOpen || known.values.size > MAX_VALUES;
    this.#variables.set(name, known);
  }

  #learnAssignment({ text, literal }: Word): void {
    const [, name = "", sign = "", value = ""] =
      /^([A-Za-z_]\w*)(?:\[[^\]]*\])?(\+?=)(.*)$/s.exec(text) ?? [];
    if (name === "") return;
    if (name === "IFS") this.#separators += value.replaceAll(/[$'"\\\s]|\\[nt]/g, "");
    if (!literal && value.startsWith("(")) {
      const { commands } = parseCommandLine(`: ${value.slice(1, -1)}`);
      for (const word of commands.at(-1)?.words.slice(1) ?? [])
        this.#assign(name, this.#expand(word));
      return;
    }
    const given: Values = literal
      ? { values: [value], isOpen: false }
      : expandValue(value, this.#scope(new Map()));
    const before = sign === "+=" ? [...(this.#variables.get(name)?.values ?? [])] : [];
    const longer = before.flatMap((start) => given.values.map((end) => start + end));
    this.#assign(name, { ...given, values: [...given.values, ...longer.slice(0, MAX_VALUES)] });
  }

  /** What a command sets for those that follow. */
  #learn(command: PlacedCommand, input: Values | undefined, shell: Shell): void {
    const { words, joint, pipes, folders, redirects } = command;
    const [program = "", ...args] = words.map(({ text }) => text);
    const operands = args.filter((arg) => !arg.startsWith("-"));
    switch (program) {
      case "cd":
      case "pushd":
      case "popd":
        if (!pipes && joint !== "|") this.#move(command, shell);
        break;
      case "rm":
      case "rmdir":
      case "mv":
        for (const { text, literal } of words.slice(1)) {
          if (text.startsWith("-")) continue;
          for (const folder of folders)
            this.#gone.push(
              literal && folder !== ANYWHERE ? this.#locate(text, folder) : undefined,
            );
        }
        break;
      case "export":
      case "declare":
      case "local":
      case "readonly":
      case "typeset":
        for (const word of words.slice(1)) {
          this.#learnAssignment(word);
          const name = /^\w+/.exec(word.text)?.[0];
          const isExport = program === "export" || args.some((arg) => /^-\w*x/.test(arg));
          if (isExport && name !== undefined) this.#exported.add(name);
        }
        break;
      case "env":
        for (const [index, word] of words.slice(1).entries()) {
          const isOption = word.text.startsWith("-") || /^-[uC]$/.test(words[index]?.text ?? "");
          if (isOption) continue;
          const name = /^[A-Za-z_]\w*(?==)/.exec(word.text)?.[0];
          // The command that it runs begins here.
          if (name === undefined) break;
          this.#learnAssignment(word);
          this.#exported.add(name);
        }
        break;
      case "read":
        for (const name of operands)
          this.#assign(name, splitLines(input ?? this.#listFed(), this.#separators));
        break;
      case "mapfile":
      case "readarray":
        for (const name of operands) this.#assign(name, input ?? this.#listFed());
        break;
      case "printf":
        if (args[0] === "-v") this.#assign(args[1] ?? "", formatText(args.slice(2)));
        break;
      case "set":
        if (args.includes("--")) this.#pass(words.slice(args.indexOf("--") + 2));
        // From now on all are exported.
        if (args.some((arg) => /^-\w*a|^allexport$/.test(arg)))
          for (const name of this.#variables.keys()) this.#exported.add(name);
        break;
      case "bash":
      case "sh":
      case "dash":
        if (args.some((arg) => /^-\w*c$/.test(arg))) this.#pass(words.slice(3));
        break;
      case "find":
      case "fd":
        this.#items = words.every(({ literal, text }) => literal || text === "{}")
          ? this.#search(args, folders)
          : undefined;
        break;
      case "xargs":
      case "parallel":
        this.#items = this.#takeItems(input, args);
        break;
      default:
        if (this.#functions.has(program)) this.#pass(words.slice(1));
    }
    const writes = redirects.some(({ kind }) => kind === "write");
    const output =
      pipes || writes || program === "tee" ? this.#print(program, args, folders, input) : undefined;
    shell.output = pipes ? output : undefined;
    shell.program = program;
    shell.succeeds =
      SURE.has(program) &&
      isQuiet(redirects) &&
      (program !== "mkdir" || args.some((arg) => /^-\w*p|^--parents$/.test(arg)));
    this.#note({ program, args, folders, redirects }, output);
  }

  /** What a command writes to files. */
  #note(
    {
      program,
      args,
      folders,
      redirects,
    }: Pick<PlacedCommand, "folders" | "redirects"> & { program: string; args: readonly string[] },
    output: Values | undefined,
  ): void {
    for (const folder of folders) {
      const here = join(this.#root, folder);
      noteFiles(this.#drafts, program, args, here);
      const tees = program === "tee" ? args.filter((arg) => !arg.startsWith("-")) : [];
      for (const path of tees)
        this.#drafts.write(isAbsolute(path) ? path : join(here, path), output?.values.join("\n"));
      for (const { kind, target } of redirects) {
        if (kind !== "write" || !target.literal) continue;
        const path = isAbsolute(target.text) ? join(target.text) : join(here, target.text);
        this.#drafts.write(path, output?.values.join("\n"));
        // What it makes of what it reads may have words of its own in it.
        if (!output) this.#drafts.edit(path, args.join(" "));
      }
    }
  }

  #pass(words: readonly Word[]): void {
    for (const word of words) {
      this.#assign("@", word.literal ? { values: [word.text], isOpen: false } : UNKNOWN);
    }
  }

  #locate(path: string, folder: string): string {
    return isAbsolute(path) ? path : `${join(this.#root, folder)}/${path}`;
  }

  #move({ words, joint, redirects }: PlacedCommand, shell: Shell): void {
    const program = words[0]?.text;
    const targets = words.slice(1).filter(({ text }) => !/^-[LPe]+$|^--$/.test(text));
    const old = shell.folders;
    shell.before = old;
    const isBack =
      program === "popd" ||
      (program === "pushd" && targets.length === 0) ||
      targets.some(({ text }) => /^-$|^[-+]\d+$/.test(text));
    if (isBack) {
      shell.folders = union(old, this.#visited);
      return;
    }
    const next: string[] = [];
    // With several `cd` fails, and so it does where its output cannot be written.
    let isSure = targets.length === 1 && isQuiet(redirects);
    for (const { text, literal } of targets) {
      const isSearched = this.#variables.has("CDPATH") && !/^\.{0,2}(?:\/|$)/.test(text);
      if (!literal || isSearched) next.push(ANYWHERE);
      isSure &&= literal && !isSearched;
      if (!literal) continue;
      for (const folder of old) {
        if (folder === ANYWHERE && !isAbsolute(text)) {
          next.push(ANYWHERE);
          isSure = false;
          continue;
        }
        const path = this.#locate(text, folder);
        const inside = relative(this.#root, join(path));
        if (inside.split(sep)[0] === "..") continue;
        const isThere = isFolder(path);
        isSure &&= isThere === true && !this.#isGone(path);
        if (isThere === false) continue;
        // Links stay as they are: "..", behind one, is not the folder that it is in.
        next.push(isAbsolute(text) || text.includes("..") ? inside || "." : join(folder, text));
      }
    }
    if (next.length === 0) return;
    this.#visited = union(this.#visited, next);
    const isTaken = isSure && !joint.startsWith("||");
    shell.folders = union(next, isTaken ? [] : old);
    if (isTaken && joint.startsWith("&&") && !shell.succeeds) shell.otherwise = old;
  }

  /** Whether the line may have taken a folder away before. */
  #isGone(path: string): boolean {
    const place = join(path, "/");
    return this.#gone.some((gone) => gone === undefined || place.startsWith(join(gone, "/")));
  }

  #search(args: readonly string[], folders: readonly string[]): Items | undefined {
    const paths: FoundPath[] = [];
    if (folders.includes(ANYWHERE)) return undefined;
    for (const cwd of folders) {
      const found = this.#find(args, cwd);
      if (!found) return undefined;
      paths.push(...found);
    }
    return { paths, isOpen: folders.some((folder) => isWideSearch(args, folder)) };
  }

  /** The same search is made once. */
  #find(args: readonly string[], cwd: string): FoundPath[] | undefined {
    const key = [cwd, ...args].join("\0");
    if (!this.#searched.has(key)) this.#searched.set(key, findBySearch(args, this.#place(cwd)));
    return this.#searched.get(key);
  }

  #place(cwd: string): SearchPlace {
    return { root: this.#root, cwd, budget: this.#budget };
  }

  /** What `xargs` puts into the command that it runs. */
  #takeItems(input: Values | undefined, args: readonly string[]): Items | undefined {
    const option = args.findIndex((arg) => /^(?:-\w*a|--arg-file(?:=.*)?)$/.test(arg));
    const name = /^--arg-file=(.*)$/s.exec(args[option] ?? "")?.[1] ?? args[option + 1] ?? "";
    const script = /^<\((.*)\)$/s.exec(name)?.[1];
    const text = option < 0 ? undefined : this.#readDraft(name);
    const drafted = text === undefined ? undefined : { values: [text], isOpen: false };
    const file = script === undefined ? drafted : this.#substitute(script);
    const given = option < 0 ? input : file;
    if (!given) return undefined;
    const { values, isOpen } = splitWords(given);
    return { paths: values.map((path) => ({ path, isLink: true })), isOpen };
  }

  #listFed(): Values {
    return { values: [...this.#fed], isOpen: true };
  }

  /** What a command reads, if that is known. */
  #findInput({ redirects, joint, groups }: SimpleCommand, shell: Shell): Values | undefined {
    const given = redirects.findLast(({ kind }) => kind !== "write");
    if (given) {
      const values = this.#readRedirect(given);
      for (const value of values?.values ?? []) this.#fed.add(value);
      return values;
    }
    if (joint === "|" || joint === "|&") return shell.output;
    return groups.length > 0 ? shell.input : undefined;
  }

  #readRedirect({ kind, target, body, written }: Redirect): Values | undefined {
    if (kind === "input") {
      if (body !== undefined) return { values: [body], isOpen: false };
      // A here-document in which something is expanded.
      if (written !== undefined) return { values: [written], isOpen: true };
      return this.#expand(target);
    }
    const script = /^<\((.*)\)$/s.exec(target.text)?.[1];
    if (!target.literal && script !== undefined) return this.#substitute(script);
    const text = target.literal ? this.#readDraft(target.text) : undefined;
    return text === undefined ? undefined : { values: [text], isOpen: false };
  }

  #readDraft(path: string): string | undefined {
    for (const folder of this.#top.folders) {
      const text = this.#drafts.read(isAbsolute(path) ? path : join(this.#root, folder, path));
      if (text !== undefined) return text;
    }
    return undefined;
  }

  /** A shell that reads a text which is known gets it as a here-document. */
  #feed(command: PlacedCommand, input: Values | undefined): PlacedCommand {
    const [value, ...more] = input?.isOpen === false ? input.values : [];
    if (value === undefined || more.length > 0) return command;
    if (command.redirects.some(({ kind }) => kind === "input")) return command;
    const target = toWord(value);
    const redirects = command.redirects.filter(
      ({ kind }) => kind !== "read" || command.joint === "|",
    );
    if (redirects.length < command.redirects.length && !this.#isFed(command)) return command;
    return {
      ...command,
      redirects: [...redirects, { kind: "input", target, body: value, written: value }],
    };
  }

  /** What comes from a file that the line itself writes is no file of the project. */
  #isFed({ redirects }: PlacedCommand): boolean {
    return redirects.every(
      ({ kind, target }) =>
        kind !== "read" || !target.literal || this.#readDraft(target.text) !== undefined,
    );
  }

  /** What a script prints, if that can be known without running it. */
  #substitute(script: string): Values {
    if (this.#nesting >= MAX_NESTING) return UNKNOWN;
    const { commands, unclear, listed } = parseCommandLine(script);
    const own = commands.filter(({ groups }) => groups.length === 0);
    const isPlain = own.every(({ joint }, index) => (index === 0 ? joint === "" : joint === "|"));
    if (unclear !== undefined || listed.length > 0 || !isPlain) return UNKNOWN;
    this.#nesting++;
    try {
      let output: Values | undefined;
      for (const { words, redirects } of own) {
        const given = redirects.findLast(({ kind }) => kind !== "write");
        const input = given ? this.#readRedirect(given) : output;
        const expanded = words.map((word) => this.#expandIn(word, new Map()));
        if (expanded.some(({ isOpen }) => isOpen)) return UNKNOWN;
        const [program = "", ...args] = expanded.flatMap(({ known }) =>
          known.map(({ text }) => text),
        );
        // `$(< file)` has no program.
        output = program === "" ? input : this.#print(program, args, this.#top.folders, input);
        if (!output) return UNKNOWN;
      }
      return output ?? UNKNOWN;
    } finally {
      this.#nesting--;
    }
  }

  #print(
    program: string,
    args: readonly string[],
    folders: readonly string[],
    input: Values | undefined,
  ): Values | undefined {
    if (folders.includes(ANYWHERE) && /^(?:pwd|find|ls|git)$/.test(program)) return undefined;
    return predictOutput(program, args, {
      root: this.#root,
      folders,
      input,
      find: (words, cwd) => this.#find(words, cwd),
      lookup: (name) => this.#lookup(name, folders),
      list: (words, cwd) => findByList(words, this.#place(cwd)),
      read: (path) => this.#readDraft(path),
    });
  }
}

/** What one of several variants of a command prints. */
function joinOutputs(outputs: readonly (Values | undefined)[]): Values | undefined {
  if (outputs.length < 2) return outputs[0];
  const known = outputs.flatMap((output) => output ?? []);
  if (known.length === 0) return undefined;
  const isOpen = known.length < outputs.length || known.some((each) => each.isOpen);
  const texts = known.map(({ values }) => values.join("\n"));
  return { values: [[...new Set(texts)].join("\n")], isOpen };
}

/** What a sign between two commands says of the folder of the second. */
function joinTo(shell: Shell, joint: string): void {
  if (!joint.startsWith("&&") && shell.otherwise.length > 0) {
    shell.folders = union(shell.folders, shell.otherwise);
    shell.otherwise = [];
  }
  // What runs in the background has a shell of its own.
  if (joint === "&") shell.folders = shell.start;
  if (/^(?:&&|\|)/.test(joint)) return;
  shell.start = shell.folders;
  shell.before = shell.folders;
}

/** Where a command behind "||" runs: a `cd` before it has failed, other commands may have failed behind one. */
function findElse({ program, before, folders }: Shell): readonly string[] {
  return program === "cd" || program === "pushd" ? before : union(before, folders);
}

/** Whether no output goes to a file that may not be there to be written. */
function isQuiet(redirects: readonly Redirect[]): boolean {
  return redirects.every(({ target }) => target.literal && target.text === "/dev/null");
}

/** Whether `cd` can go to a path; undefined where nothing is there yet. */
function isFolder(path: string): boolean | undefined {
  try {
    return ifThere(() => statSync(path))?.isDirectory();
  } catch {
    // It goes on behind a file, or may not be looked at.
    return false;
  }
}

function toWord(text: string): Word {
  return { text, literal: true, prefix: text };
}

function union(one: readonly string[], other: readonly string[]): readonly string[] {
  const all = [...new Set([...one, ...other])];
  if (all.length <= MAX_FOLDERS) return all;
  return [...new Set([ANYWHERE, ...all.slice(0, MAX_FOLDERS - 1)])];
}

/** The words in lines, as `xargs` takes them. */
function splitWords({ values, isOpen }: Values, separators = ""): Values {
  const signs = new Set(separators);
  const divide = (value: string): string =>
    [...value].map((sign) => (signs.has(sign) ? " " : sign)).join("");
  const words = values.flatMap((value) =>
    divide(value)
      .split(/\s+/)
      .filter((word) => word !== ""),
  );
  return { values: [...new Set(words)], isOpen };
}

/** The same for `read`, which may take a line as a whole. */
function splitLines(given: Values, separators: string): Values {
  const { values, isOpen } = splitWords(given, separators);
  const lines = given.values.flatMap((value) => value.split("\n")).filter((line) => line !== "");
  return { values: [...new Set([...values, ...lines])], isOpen };
}
