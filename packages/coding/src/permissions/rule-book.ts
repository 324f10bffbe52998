import { readFileSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { isRecord } from "@gyre/ai";
import { NETWORK, type RuleScope } from "@gyre/tools";
import type { Environment } from "../core/environment.ts";
import { configFolder } from "../settings/file.ts";

/** A rule that a person gave with an answer. */
export interface GivenRule {
  rule: string;
  scope: RuleScope;
}

/** Where rules of answers are kept for the user. */
export function findRuleFile(env: Environment): string {
  return join(configFolder(env, env["HOME"] || homedir()), "permissions.json");
}

/** Of the file with rules. */
const MAX_FILE_BYTES: number = 1024 * 1024;
const HOST_RULE = new RegExp(`^${NETWORK}\\((.+)\\)$`);

/** The host that a rule of an answer is about, where it is about one. */
export function readHostRule(rule: string): string | undefined {
  return HOST_RULE.exec(rule)?.[1];
}

/**
 * The rules that a person gave with answers: for this session, for the project, or everywhere. The last two are in a
 * file that people can read and change: `{"everywhere": [...], "projects": {"/folder": [...]}}`.
 */
export class RuleBook {
  readonly #file: string | undefined;
  readonly #project: string;
  readonly #rules: GivenRule[] = [];
  readonly #revoked = new Set<string>();
  #saving: Promise<void> = Promise.resolve();

  /** Without a file rules hold for the session alone. Throws where the file is damaged. */
  constructor(project: string, file?: string) {
    this.#project = project;
    this.#file = file;
    const { everywhere, projects } = file === undefined ? EMPTY : readBook(file);
    for (const rule of everywhere) this.#rules.push({ rule, scope: "everywhere" });
    for (const rule of projects[project] ?? []) this.#rules.push({ rule, scope: "project" });
  }

  get all(): readonly GivenRule[] {
    return this.#rules;
  }

  /** The longest that rules can hold. */
  get isKept(): boolean {
    return this.#file !== undefined;
  }

  isRevoked(rule: string): boolean {
    return this.#revoked.has(rule);
  }

  async add(rule: string, scope: RuleScope): Promise<void> {
    this.#revoked.delete(rule);
    if (this.#rules.some((each) => each.rule === rule && each.scope === scope)) return;
    this.#rules.push({ rule, scope });
    if (scope !== "session") await this.#save((book) => this.#listIn(book, scope).push(rule));
  }

  /** Takes a rule back, wherever it holds. Whether there was one. */
  async remove(rule: string): Promise<boolean> {
    const given = this.#rules.filter((each) => each.rule === rule);
    if (given.length === 0) return false;
    this.#revoked.add(rule);
    this.#rules.splice(0, Infinity, ...this.#rules.filter((each) => each.rule !== rule));
    for (const { scope } of given) {
      if (scope === "session") continue;
      await this.#save((book) => {
        const list = this.#listIn(book, scope);
        list.splice(0, Infinity, ...list.filter((each) => each !== rule));
      });
    }
    return true;
  }

  #listIn(book: Book, scope: RuleScope): string[] {
    if (scope === "everywhere") return book.everywhere;
    return (book.projects[this.#project] ??= []);
  }

  /** Reads the file again: other programs write it as well. */
  #save(change: (book: Book) => void): Promise<void> {
    const file = this.#file;
    if (file === undefined) return Promise.resolve();
    const save = async (): Promise<void> => {
      const book = readBook(file);
      change(book);
      await mkdir(dirname(file), { recursive: true });
      const draft = `${file}.${process.pid}.new`;
      await writeFile(draft, `${JSON.stringify(book, undefined, 2)}\n`, { mode: 0o600 });
      await rename(draft, file);
    };
    this.#saving = this.#saving.then(save, save);
    return this.#saving;
  }
}

interface Book {
  everywhere: string[];
  projects: Record<string, string[]>;
}

const EMPTY: Readonly<Book> = { everywhere: [], projects: {} };

function readBook(file: string): Book {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") {
      return { everywhere: [], projects: {} };
    }
    throw error;
  }
  if (text.length > MAX_FILE_BYTES) throw new Error(`${file} is too large for a list of rules.`);
  const parsed: unknown = parse(text, file);
  if (!isRecord(parsed)) throw damaged(file);
  const projects = isRecord(parsed["projects"]) ? parsed["projects"] : {};
  return {
    everywhere: readList(parsed["everywhere"], file),
    projects: Object.fromEntries(
      Object.entries(projects).map(([folder, rules]) => [folder, readList(rules, file)]),
    ),
  };
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw damaged(file, error);
  }
}

function readList(value: unknown, file: string): string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw damaged(file);
  return value.map((each: unknown) => {
    if (typeof each !== "string") throw damaged(file);
    return each;
  });
}

function damaged(file: string, cause?: unknown): Error {
  const form = '{"everywhere": ["shell(npm test)"], "projects": {"/folder": []}}';
  return new Error(`${file} cannot be read as a list of rules: ${form}. Fix or remove it.`, {
    cause,
  });
}
