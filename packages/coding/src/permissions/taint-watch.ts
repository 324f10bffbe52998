import { setImmediate } from "node:timers/promises";
import { type AgentMessage, listCalls, type Middleware, type ToolInvocation } from "@gyre/agent";
import { errorMessage, isRecord, textOf } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { Toolset } from "@gyre/tools";
import type { CarriedName, DoubtfulCall, Taint } from "@gyre/tools/taint";
import { SKILL_TOOL } from "../guidance/skills.ts";

/** The kind of custom entries that hold what a session that is resumed needs. */
const KIND = "taint";
/** Tools whose results are what other models say. */
const AGENT_TOOLS: ReadonlySet<string> = new Set(["task", "oracle"]);
/** What may put a text into a commit: those from before are the project's own. */
const COMMITS =
  /\b(?:commit|merge|rebase|pull|am|cherry-pick|revert|stash|checkout|switch|reset)\b/;

/** Messages of a conversation that is resumed. */
const REPLAYED_AT_ONCE = 20;

export interface TaintWatchOptions {
  toolset: Pick<Toolset, "env">;
  session: () => Session | undefined;
  /** The conversation so far. */
  messages: readonly AgentMessage[];
  /** What the user stands for: instructions, rules, hosts. */
  given: readonly string[];
  home: string;
  warn: (text: string) => void;
}

/**
 * Notes where names in a conversation come from, also in sub-agents, and finds those in calls that a text of others
 * brought. Nothing is loaded or computed before the first call of a tool.
 */
export class TaintWatch {
  readonly middleware: Middleware = { tool: (call, next) => this.#follow(call, next) };
  readonly #options: TaintWatchOptions;
  /** Messages that came before the first call. */
  readonly #waiting: AgentMessage[] = [];
  #taint: Promise<Taint> | undefined;
  #ready: Taint | undefined;
  #hasSavedCommit = false;

  constructor(options: TaintWatchOptions) {
    this.#options = options;
  }

  /** Must be called with each message of the conversation that comes. */
  observe(message: AgentMessage): void {
    if (this.#ready) addMessage(this.#ready, message);
    else this.#waiting.push(message);
  }

  /** A rule that the user gave with an answer. */
  async addRule(rule: string): Promise<void> {
    (await this.#open()).addUser(rule);
  }

  async doubt(about: DoubtfulCall): Promise<string | undefined> {
    return (await this.#open()).doubt(about);
  }

  /** A call was decided on. */
  decide(callId: string, isApproved: boolean): void {
    this.#ready?.decide(callId, isApproved);
  }

  async #follow(
    call: ToolInvocation,
    next: Parameters<NonNullable<Middleware["tool"]>>[1],
  ): ReturnType<NonNullable<Middleware["tool"]>> {
    const taint = await this.#open();
    const { tool, args, parentId } = call;
    // What a sub-agent's model writes is no message of the conversation.
    if (parentId !== undefined) taint.addModel(JSON.stringify(args));
    if (mayCommit(call)) await this.#saveCommit(taint);
    const result = await next();
    if (tool.name === SKILL_TOOL) taint.addUser(textOf(result));
    else taint.addResult(tool.name, args, result.content);
    if (AGENT_TOOLS.has(tool.name) && parentId === undefined) {
      const names = await taint.findCarried(textOf(result));
      if (names.length > 0) await this.#save({ names });
    }
    return result;
  }

  #open(): Promise<Taint> {
    this.#taint ??= this.#load();
    return this.#taint;
  }

  async #load(): Promise<Taint> {
    const { toolset, session, messages, given, home } = this.#options;
    const { Taint: Loaded } = await import("@gyre/tools/taint");
    const stored = await readStored(session());
    const begun = Math.min(
      session()?.header.createdAt ?? Date.now(),
      ...messages.slice(0, 1).map(({ timestamp }) => timestamp),
    );
    const taint = new Loaded({ env: toolset.env, since: begun, home, commit: stored.commit });
    this.#hasSavedCommit = stored.commit !== undefined;
    for (const text of given) taint.addUser(text);
    // First: what the model says of them is not its own.
    taint.restore(stored.names);
    await replay(taint, messages);
    for (const message of this.#waiting.splice(0)) addMessage(taint, message);
    this.#ready = taint;
    return taint;
  }

  /** The files of the project are those of the commit that the session began with. */
  async #saveCommit(taint: Taint): Promise<void> {
    if (this.#hasSavedCommit) return;
    this.#hasSavedCommit = true;
    const commit = await taint.commit;
    if (commit !== undefined) await this.#save({ commit });
  }

  async #save(data: { commit?: string; names?: readonly CarriedName[] }): Promise<void> {
    try {
      await this.#options.session()?.append({ type: "custom", kind: KIND, data });
    } catch (error) {
      this.#options.warn(`Where names come from is missing in the session: ${errorMessage(error)}`);
    }
  }
}

function mayCommit({ tool, args }: ToolInvocation): boolean {
  if (tool.name === "git") return true;
  const { command } = args;
  return typeof command === "string" && command.includes("git") && COMMITS.test(command);
}

/** A conversation that took place before. Others have their turn meanwhile: it may be long. */
async function replay(taint: Taint, messages: readonly AgentMessage[]): Promise<void> {
  const calls = new Map<string, Readonly<Record<string, unknown>>>();
  for (const [at, message] of messages.entries()) {
    if (at % REPLAYED_AT_ONCE === 0) await setImmediate();
    if (message.role === "toolResult") {
      const { toolCallId, toolName, content } = message;
      if (toolName === SKILL_TOOL) taint.addUser(textOf(message));
      else taint.addResult(toolName, calls.get(toolCallId) ?? {}, content);
    } else addMessage(taint, message);
    if (message.role !== "assistant") continue;
    for (const call of listCalls(message)) calls.set(call.id, call.arguments);
  }
}

/** What a person or the model wrote. Results are noted where they come, in sub-agents too. */
function addMessage(taint: Taint, message: AgentMessage): void {
  switch (message.role) {
    case "user":
      if (typeof message.content === "string") taint.addUser(message.content);
      else {
        const texts = message.content.filter((part) => part.type === "text");
        for (const { text } of texts.filter(({ source }) => !source)) taint.addUser(text);
        taint.addResult(
          "",
          {},
          texts.filter(({ source }) => source),
        );
      }
      return;
    case "userCommand":
      taint.addUser(message.command);
      return;
    case "assistant":
      taint.addModel(textOf(message));
      for (const call of listCalls(message)) taint.addModel(JSON.stringify(call.arguments));
      return;
    default:
  }
}

async function readStored(
  session: Session | undefined,
): Promise<{ commit?: string; names: readonly CarriedName[] }> {
  const names: CarriedName[] = [];
  let commit: string | undefined;
  for (const id of session?.findIds("custom") ?? []) {
    const entry = await session?.read(id);
    if (entry?.type !== "custom" || entry.kind !== KIND || !isRecord(entry.data)) continue;
    const { commit: saved, names: carried } = entry.data;
    if (typeof saved === "string") commit ??= saved;
    if (Array.isArray(carried)) names.push(...carried.filter(isCarried));
  }
  return { names, ...(commit !== undefined && { commit }) };
}

function isCarried(value: unknown): value is CarriedName {
  if (!isRecord(value) || typeof value["key"] !== "string" || !isRecord(value["origin"]))
    return false;
  const { kind, name } = value["origin"];
  return typeof kind === "string" && typeof name === "string";
}
