import { randomUUID } from "node:crypto";
import type { AgentTool, AgentToolResult, Recovered, ToolContext } from "@gyre/agent";
import { errorMessage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import {
  type ClientAnswer,
  type ClientCall,
  type ClientToolSpec,
  readClientCall,
  toCallEntry,
  toCancelEntry,
  type ToolClientRow,
} from "../contract/client-tools.ts";
import type { Store } from "../contract/store.ts";
import { capResult } from "./cap-result.ts";
import type { RunLog } from "./run-log.ts";

/** How soon it is asked again whether a client is there, where the store did not answer. */
const ASK_AGAIN_MS = 1_000;
const AWAY = "The client of this tool went away; the call may have had effects.";

interface ClientToolsParts {
  readonly store: Store;
  readonly session: string;
  readonly run: string;
  readonly transcript: Session;
  readonly log: RunLog;
  readonly report: (error: unknown, where: string) => void;
}

/** A call that waits for its client. */
interface WaitingCall extends Pick<ClientCall, "client" | "holder"> {
  readonly settle: (answer: ClientAnswer) => void;
  readonly fail: (error: Error) => void;
}

interface KnownTool {
  readonly print: string;
  readonly tool: AgentTool;
}

/**
 * The tools that clients of servers have registered with a session. A call is an entry of the log,
 * which the server that has the client passes on; its answer is an item of the inbox. So it does not
 * matter where the client is, and a worker that takes over waits for the same answer.
 */
export class ClientTools {
  readonly #parts: ClientToolsParts;
  readonly #waiting = new Map<string, WaitingCall>();
  /** Answers that no call has waited for yet. */
  readonly #answers = new Map<string, { item: number; answer: ClientAnswer }>();
  /** By client: those of clients that are gone stay, so that the model sees the same tools. */
  readonly #tools = new Map<string, readonly KnownTool[]>();
  #changes = 0;

  constructor(parts: ClientToolsParts) {
    this.#parts = parts;
  }

  /** The tools of all clients. */
  list(): AgentTool[] {
    return [...this.#tools.values()].flatMap((known) => known.map(({ tool }) => tool));
  }

  /** Reads the tools where they have changed; whether they have. */
  async load(changes: number): Promise<boolean> {
    if (changes === this.#changes) return false;
    const rows = await this.#readRows();
    this.#changes = changes;
    for (const row of rows) this.#tools.set(row.client, this.#toTools(row));
    for (const call of [...this.#waiting.values()]) checkPresence(call, rows);
    return true;
  }

  /** Takes an answer. */
  accept(item: number, answer: ClientAnswer): void {
    const waiting = this.#waiting.get(answer.call);
    if (!waiting) return void this.#answers.set(answer.call, { item, answer });
    this.#parts.log.take(item);
    waiting.settle(answer);
  }

  #readRows(): Promise<ToolClientRow[]> {
    const { store, session } = this.#parts;
    return store.toolClients.read(session);
  }

  /** A tool that is registered again without a change stays the same object. */
  #toTools({ client, tools }: ToolClientRow): KnownTool[] {
    const before = this.#tools.get(client) ?? [];
    const specs: ClientToolSpec[] = JSON.parse(tools);
    return specs.map((spec) => {
      const print = JSON.stringify(spec);
      const same = before.find((known) => known.print === print);
      return same ?? { print, tool: this.#createTool(client, spec) };
    });
  }

  #createTool(client: string, spec: ClientToolSpec): AgentTool {
    return {
      ...spec,
      execute: (args, context) => this.#execute(client, spec.name, args, context),
      recover: (_args, context) => this.#recover(context),
    };
  }

  async #execute(
    client: string,
    name: string,
    args: Readonly<Record<string, unknown>>,
    { id: toolCallId, signal }: ToolContext,
  ): Promise<AgentToolResult> {
    const row = (await this.#readRows()).find((each) => each.client === client);
    if (!row) throw new Error("The client of this tool is not connected.");
    signal.throwIfAborted();
    const { transcript, log, run } = this.#parts;
    const { holder } = row;
    const call: ClientCall = {
      ...{ call: randomUUID(), client, holder, run, toolCallId, name, arguments: args },
    };
    // Before it is stored: the answer may be there at once.
    const answered = this.#wait(call, signal);
    answered.catch(() => {});
    await transcript.append(toCallEntry(call));
    await log.flush();
    return answered;
  }

  /** A call that another worker has made is with its client already, which answers once. */
  async #recover({ id, signal }: ToolContext): Promise<Recovered> {
    const call = await this.#findCall(id);
    if (!call) return "again";
    try {
      return capResult(call.name, await this.#wait(call, signal));
    } catch (error) {
      const text = `Tool "${call.name}" failed: ${errorMessage(error)}`;
      return { content: [{ type: "text", text }], isError: true, outcome: "error" };
    }
  }

  async #findCall(toolCallId: string): Promise<ClientCall | undefined> {
    const { transcript } = this.#parts;
    for (const id of transcript.findIds("begin", "custom").reverse()) {
      const entry = await transcript.read(id);
      const call = readClientCall(entry);
      if (call?.toolCallId === toolCallId) return call;
      // It had begun, and no further. What is before it is of an earlier call of the same id.
      if (entry.type === "begin" && entry.toolCallId === toolCallId) return undefined;
    }
    return undefined;
  }

  #wait(call: ClientCall, signal: AbortSignal): Promise<AgentToolResult> {
    const known = this.#answers.get(call.call);
    if (known) {
      this.#answers.delete(call.call);
      this.#parts.log.take(known.item);
      return toResult(known.answer);
    }
    const { client, holder } = call;
    const cancel = (): void => this.#cancel(call.call);
    signal.addEventListener("abort", cancel, { once: true });
    let stopWatching = (): void => {};
    const answered = new Promise<ClientAnswer>((settle, fail) => {
      const waiting: WaitingCall = { client, holder, settle, fail };
      this.#waiting.set(call.call, waiting);
      stopWatching = this.#watch(waiting);
    });
    return answered.then(toResult).finally(() => {
      stopWatching();
      signal.removeEventListener("abort", cancel);
      this.#waiting.delete(call.call);
    });
  }

  /** The client gets to know that no answer is needed. */
  #cancel(call: string): void {
    const { transcript, log } = this.#parts;
    transcript
      .append(toCancelEntry(call))
      .then(() => log.flush())
      // What fails here fails every later commit, too.
      .catch(() => {});
  }

  /** Fails a call whose client stays away. */
  #watch(call: WaitingCall): () => void {
    let timer: NodeJS.Timeout | undefined;
    let isStopped = false;
    const look = async (): Promise<void> => {
      let nextMs = ASK_AGAIN_MS;
      try {
        nextMs = checkPresence(call, await this.#readRows());
      } catch (error) {
        this.#parts.report(error, "client tools");
      }
      if (!isStopped) timer = setTimeout(() => void look(), nextMs);
    };
    void look();
    return () => {
      isStopped = true;
      clearTimeout(timer);
    };
  }
}

/** Fails a call whose client is gone. Returns in how many milliseconds it may be. */
function checkPresence(
  { client, holder, fail }: WaitingCall,
  rows: readonly ToolClientRow[],
): number {
  const row = rows.find((each) => each.client === client);
  const isThere = row && (row.holder === holder || row.keepsCalls);
  if (!isThere) fail(new Error(AWAY));
  return Math.max(1, row?.leftMs ?? ASK_AGAIN_MS);
}

async function toResult(answer: ClientAnswer): Promise<AgentToolResult> {
  if ("error" in answer) throw new Error(answer.error);
  return answer.result;
}
