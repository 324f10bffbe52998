import { statSync } from "node:fs";
import { homedir } from "node:os";
import { relative, resolve } from "node:path";
import type { AgentToolResult, ToolInvocation } from "@gyre/agent";
import type { TextContent } from "@gyre/ai";
import type { ToolEnv } from "../../contract/env.ts";
import type { Access } from "../../contract/access.ts";
import { KEPT_PREFIX } from "../../files/read/kept-results.ts";
import { commandParts, type CommandParts } from "../command/parts.ts";
import { needsNetwork } from "../danger/network.ts";
import { type CallName, listCallNames } from "./call-names.ts";
import { nameKey, takeNames } from "./names.ts";
import { type Origin, SourceIndex } from "./sources.ts";
import { isForeignPath, TrackedFiles } from "./tracked.ts";
import { ifThere } from "../follow/if-there.ts";

export type { Origin } from "./sources.ts";

/** Calls with names from elsewhere that were asked about, until they are decided on. */
const MAX_PENDING = 1_000;
/** Names that one text carries on. */
const MAX_CARRIED = 1_000;
/** Files that a command names. */
const MAX_FILES = 32;
/** Of a command, in a reason. */
const MAX_SHOWN_CHARS = 80;

/** `src/a.ts:12: text`, as searches print lines. */
const FOUND_LINE = /^([^\s:][^:\n]*):\d+[:-]/;
/** They print what is in the files that they are given. */
const SHOWERS = new Set(
  "cat bat head tail less more nl tac rev sed awk gawk grep egrep fgrep rg ag strings xxd od sort uniq cut paste tr fold fmt column jq yq diff cmp comm tee".split(
    " ",
  ),
);
/** They may print any file that their code names. */
const INTERPRETERS = /^(?:python[\d.]*|node|deno|bun|perl|ruby|php)$/;

export interface TaintOptions {
  env: ToolEnv;
  /** When the session began, in milliseconds. */
  since: number;
  /** The commit that a session which is resumed began with. */
  commit?: string | undefined;
  /** The home of the user. */
  home?: string;
}

/** A call as permissions look at it. */
export interface DoubtfulCall {
  call: ToolInvocation;
  access: Access | undefined;
  commands: readonly CommandParts[];
  /** A sandbox without a network is around it, and nothing about it is delicate. */
  isLocal: boolean;
}

/** A name that a text of others brought, for a session that is resumed. */
export interface CarriedName {
  key: string;
  origin: Origin;
}

/**
 * Knows where the names in calls come from: hosts, addresses, paths, packages and branches. One that a text of others
 * brought (a page, a server, a file that is not the project's), and that neither the user nor a tracked file has, is
 * a reason to ask. What the model named before any such text did is its own.
 */
export class Taint {
  readonly #index = new SourceIndex();
  readonly #files: TrackedFiles;
  readonly #root: string;
  /** Where long outputs of commands are kept. */
  readonly #spool: string;
  readonly #home: string;
  /** By call. */
  readonly #pending = new Map<string, readonly string[]>();
  #hasForeignJobs = false;

  constructor({ env, since, commit, home = homedir() }: TaintOptions) {
    this.#files = new TrackedFiles({ env, since, commit });
    this.#root = env.workspace.root;
    this.#spool = env.spoolFolder;
    this.#home = home;
  }

  /** The commit whose files count as the project's. */
  get commit(): Promise<string | undefined> {
    return this.#files.commit;
  }

  /** What the user wrote or stands for: messages, instruction files, rules. */
  addUser(text: string): void {
    this.#index.addUser(text);
  }

  /** What the model wrote. */
  addModel(text: string): void {
    this.#index.addModel(text);
  }

  /** The result of a call, with where its parts come from. */
  addResult(
    tool: string,
    args: Readonly<Record<string, unknown>>,
    content: AgentToolResult["content"],
  ): void {
    const texts = content.filter((part) => part.type === "text");
    if (tool === "fetch") {
      const origin = { kind: "web", name: String(args["url"]), isForeign: true };
      for (const { text, source } of texts) {
        this.#index.addSource(text, source ? { ...origin, name: source.name } : origin);
      }
      return;
    }
    const command = typeof args["command"] === "string" ? args["command"] : undefined;
    const cwd = typeof args["cwd"] === "string" ? args["cwd"] : "";
    const ran = command === undefined ? undefined : describeCommand(command, this.#root, cwd);
    if (ran?.isForeign && args["background"] === true) this.#hasForeignJobs = true;
    for (const part of texts) {
      if (part.source) this.#addPart(tool, part, part.source, ran);
      // Where the rest of a long output is.
      else if (ran?.isForeign) this.#index.addSource(part.text, ran);
    }
  }

  #addPart(
    tool: string,
    { text }: TextContent,
    { kind, name }: NonNullable<TextContent["source"]>,
    ran: Origin | undefined,
  ): void {
    switch (kind) {
      case "web":
      case "mcp":
        this.#index.addSource(text, { kind, name, isForeign: true });
        return;
      case "file":
        // The whole of a result that was noted when it came.
        if (name.startsWith(KEPT_PREFIX)) return;
        if (tool !== "grep") this.#index.addSource(text, { kind, name, files: [name] });
        else {
          for (const [file, lines] of splitByFile(text, name)) {
            this.#index.addSource(lines, { kind, name: file, files: [file] });
          }
        }
        return;
      default: {
        const job = this.#hasForeignJobs ? { kind, name, isForeign: true } : undefined;
        const origin = ran ?? job;
        if (origin) this.#index.addSource(text, origin);
        for (const [file, lines] of splitByFile(text, "")) {
          if (isForeignPath(file))
            this.#index.addSource(lines, { kind: "file", name: file, isForeign: true });
        }
      }
    }
  }

  /** Names of texts of others that a text brings along, as that of a sub-agent does. */
  async findCarried(text: string): Promise<CarriedName[]> {
    const seen = new Map<string, readonly Origin[]>();
    takeNames(text, (key) => {
      if (seen.size < MAX_CARRIED && !this.#index.isUsers(key))
        seen.set(key, this.#index.find(key));
    });
    const found: CarriedName[] = [];
    for (const [key, origins] of seen) {
      for (const origin of origins) {
        if (!(await this.#isForeign(origin))) continue;
        found.push({ key, origin: { ...origin, isForeign: true } });
        break;
      }
    }
    return found;
  }

  /** Names that were carried in a session before it was resumed. */
  restore(names: readonly CarriedName[]): void {
    for (const { key, origin } of names) this.#index.addOrigin(key, origin);
  }

  /** Why a call is asked about, as a sentence; nothing where its names are the user's, the project's or the model's own. */
  async doubt({ call, access, commands, isLocal }: DoubtfulCall): Promise<string | undefined> {
    const { tool, args, toolCall } = call;
    const place = { root: this.#root, home: this.#home };
    const names = listCallNames({ tool, args, access, commands, isLocal, ...place });
    for (const name of names) {
      const origin = await this.#findForeign(name);
      if (!origin) continue;
      this.#remember(toolCall.id, names);
      return explain(name, origin);
    }
    return undefined;
  }

  /** A person has decided on a call: what is in one that was allowed is theirs from now on. */
  decide(callId: string, isAllowed: boolean): void {
    if (isAllowed) this.#index.addKeys(this.#pending.get(callId) ?? []);
    this.#pending.delete(callId);
  }

  #remember(callId: string, names: readonly CallName[]): void {
    this.#pending.set(
      callId,
      names.flatMap(({ keys }) => keys),
    );
    const [oldest] = this.#pending.size > MAX_PENDING ? this.#pending.keys() : [];
    if (oldest !== undefined) this.#pending.delete(oldest);
  }

  /** The text of others that a name comes from, if it comes from nowhere else. */
  async #findForeign(name: CallName): Promise<Origin | undefined> {
    const { keys } = name;
    const seen = keys.flatMap((key) => this.#index.find(key));
    if (seen.length === 0 || keys.some((key) => this.#index.isUsers(key))) return undefined;
    for (const origin of seen) {
      if (!(await this.#isForeign(origin))) continue;
      return (await this.#files.has(name)) ? undefined : origin;
    }
    return undefined;
  }

  async #isForeign({ isForeign, files = [] }: Origin): Promise<boolean> {
    if (isForeign) return true;
    for (const file of files) {
      const isKept = resolve(this.#root, file).startsWith(this.#spool);
      if (this.#index.find(nameKey(file)).some((origin) => origin.isForeign)) return true;
      if (!isKept && (await this.#files.isForeign(file))) return true;
    }
    return false;
  }
}

function explain({ what, shown }: CallName, { kind, name }: Origin): string {
  const from =
    kind === "web"
      ? `the page ${name}`
      : kind === "mcp"
        ? `the MCP server ${name}`
        : kind === "file"
          ? `the file ${name}`
          : `the output of ${name}`;
  return `The ${what} ${shown} comes from ${from}, and is in no message of yours and in no tracked file.`;
}

/** Where the output of a command comes from: the network, or the files that it shows. */
function describeCommand(command: string, root: string, cwd: string): Origin | undefined {
  const { parts } = commandParts(command);
  const name = command.length > MAX_SHOWN_CHARS ? `${command.slice(0, MAX_SHOWN_CHARS)}…` : command;
  const files: string[] = [];
  for (const { words, redirects } of parts) {
    const [program = "", ...args] = words.map(({ text }) => text);
    const base = program.slice(program.lastIndexOf("/") + 1);
    if (needsNetwork(base, args)) return { kind: "command", name, isForeign: true };
    const read = redirects.filter(({ kind }) => kind === "input").map(({ target }) => target.text);
    const shown = SHOWERS.has(base)
      ? args
      : INTERPRETERS.test(base)
        ? args.flatMap(listQuoted)
        : [];
    files.push(...[...shown, ...read].filter((word) => !word.startsWith("-")));
  }
  const found = files
    .map((file) => relative(root, resolve(root, cwd, file)))
    .filter((file) => ifThere(() => statSync(resolve(root, file)))?.isFile())
    .slice(0, MAX_FILES);
  return found.length === 0 ? undefined : { kind: "command", name, files: found };
}

/** What is in quotes in code, where a word is code. */
function listQuoted(word: string): string[] {
  return [...word.matchAll(/(["'`])([^"'`\n]+)\1/g)].map(([, , text = ""]) => text);
}

/** The lines of a text by the file that each is of, where a search has printed them. */
function splitByFile(text: string, name: string): Map<string, string> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const file = FOUND_LINE.exec(line)?.[1] ?? name;
    const lines = found.get(file) ?? [];
    lines.push(file === name ? line : line.slice(file.length));
    found.set(file, lines);
  }
  return new Map([...found].map(([file, lines]) => [file, lines.join("\n")]));
}
