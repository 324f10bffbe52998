import { randomUUID } from "node:crypto";
import {
  type AgentEndEvent,
  type AgentMessage,
  type AgentStop,
  type Decision,
  OutputError,
  type PromptInput,
  readDecisions,
  RunFailedError,
} from "@gyre/agent";
import { errorMessage, textOf } from "@gyre/ai";
import { DurableError } from "../contract/errors.ts";
import { assertFits, assertName, encodeMessages } from "../contract/messages.ts";
import { exportSession } from "./export.ts";
import { readActivations, readRunMessages } from "./read-log.ts";
import type { Runs } from "./runs.ts";
import type { ItemKind, RunRow } from "../contract/store.ts";
import { explainStuck } from "./stuck.ts";
import { toInfo } from "./summary.ts";
import type {
  ActivationInfo,
  ExportOptions,
  Keyed,
  Run,
  RunEvent,
  RunInfo,
  RunResult,
  WaitingCall,
  WatchOptions,
} from "../contract/types.ts";
import { waitForEnd, watchRun } from "./watch.ts";

/** A run by its id. It holds nothing: every method asks the store. */
export class RunHandle implements Run {
  readonly id: string;
  readonly #runs: Runs;

  constructor(runs: Runs, id: string) {
    this.#runs = runs;
    this.id = id;
  }

  async info(): Promise<RunInfo> {
    const row = await this.#read();
    const isReady = row.status === "ready" || row.status === "aside";
    const workers = isReady ? await this.#runs.store.listWorkers() : [];
    return toInfo(row, explainStuck(row, workers));
  }

  async prompt(input: PromptInput, { key = randomUUID() }: Keyed = {}): Promise<Run> {
    const { agent, session, tenant, pool, priority } = await this.#read();
    return this.#runs.start(input, { id: key, agent, session, tenant, pool, priority });
  }

  async steer(input: PromptInput, options?: Keyed): Promise<void> {
    await this.#send("steering", encodeMessages(input), options);
  }

  async followUp(input: PromptInput, options?: Keyed): Promise<void> {
    await this.#send("followUp", encodeMessages(input), options);
  }

  async decide(
    decisions: Readonly<Record<string, Decision>>,
    { key = randomUUID() }: Keyed = {},
  ): Promise<void> {
    assertDecisions(decisions);
    const row = await this.#read();
    const pending: WaitingCall[] = row.pending === undefined ? [] : JSON.parse(row.pending);
    for (const [id, decision] of Object.entries(decisions)) {
      const call = pending.find(({ toolCall }) => toolCall.id === id);
      if (!call) {
        // Sent again it is no error.
        if (await this.#runs.store.hasItem(this.id, this.#scope(key))) return;
        throw new DurableError("not_pending", explainNotPending(row, id, pending));
      }
      assertShown(row, call, decision);
    }
    await this.#send("decision", decisions, { key });
  }

  async abort({ reason, ...options }: Keyed & { reason?: string } = {}): Promise<void> {
    await this.#send("abort", reason === undefined ? {} : { reason }, options);
  }

  async retry(): Promise<void> {
    const { stop } = await this.#read();
    const outcome = stop === "done" ? "open" : await this.#runs.store.retry(this.id);
    if (outcome === "not found") throw notFound(this.id);
    if (outcome === "ready") return;
    throw new DurableError(
      "invalid",
      `Run "${this.id}" has nothing to retry: it is done or goes on, or its session has another open run.`,
    );
  }

  async messages(): Promise<AgentMessage[]> {
    return readRunMessages(this.#runs.store, await this.#read());
  }

  async activations(): Promise<ActivationInfo[]> {
    return readActivations(this.#runs.store, await this.#read());
  }

  async export(path: string, options: ExportOptions = {}): Promise<number> {
    const { session, startedAt } = await this.#read();
    return exportSession(this.#runs.store, session, path, { createdAt: startedAt, ...options });
  }

  watch(options: WatchOptions = {}): AsyncIterable<RunEvent> {
    return watchRun(this.#runs, this.id, options);
  }

  async result({ signal }: { signal?: AbortSignal } = {}): Promise<RunResult> {
    const row = await waitForEnd(this.#runs, this.id, signal);
    signal?.throwIfAborted();
    return this.#readResult(row ?? (await this.#read()));
  }

  async #readResult(row: RunRow): Promise<RunResult> {
    const messages = await readRunMessages(this.#runs.store, row);
    const { id, turns, error, answer } = row;
    const stop = row.stop as AgentStop;
    const usage = JSON.parse(row.usage);
    const finalMessage = messages.findLast((message) => message.role === "assistant");
    const end: AgentEndEvent = {
      type: "agent_end",
      ...{ messages, stop, turns, usage, undelivered: [], pending: [] },
      ...(finalMessage && { finalMessage }),
      ...(error !== undefined && { errorMessage: error }),
    };
    const result = {
      ...{ id, stop, messages, turns, usage },
      ...(error !== undefined && { error }),
      get text() {
        if (stop === "error" || stop === "sink") throw new RunFailedError(end);
        return finalMessage ? textOf(finalMessage) : "";
      },
      get output(): unknown {
        if (answer !== undefined) return JSON.parse(answer);
        throw new OutputError(end, `See the run "${id}".`);
      },
    };
    // Both may throw: a copy, or a log of the result, does not read them.
    return Object.defineProperties(result, {
      text: { enumerable: false },
      output: { enumerable: false },
    });
  }

  async #send(
    kind: Exclude<ItemKind, "prompt">,
    data: unknown,
    { key = randomUUID() }: Keyed = {},
  ): Promise<void> {
    const item = { run: this.id, kind, data: JSON.stringify(data), key: this.#scope(key) };
    assertName("`key`", key);
    assertFits("What is sent", item.data);
    const outcome = await this.#runs.store.send(item);
    if (outcome === "not found") throw notFound(this.id);
    if (outcome === "ended") {
      throw new DurableError(
        "ended",
        `Run "${this.id}" has ended: start another one in its session with prompt().`,
      );
    }
  }

  /** Keys of callers are apart by run, and apart from those of timers, children and prompts. */
  #scope(key: string): string {
    return `sent:${this.id}:${key}`;
  }

  async #read(): Promise<RunRow> {
    const row = await this.#runs.store.readRun(this.id);
    if (!row) throw notFound(this.id);
    return row;
  }
}

function notFound(id: string): DurableError {
  return new DurableError("not_found", `There is no run "${id}": list() has those that there are.`);
}

function explainNotPending(row: RunRow, call: string, pending: readonly WaitingCall[]): string {
  if (row.status === "ended") return `Run "${row.id}" has ended: no call of it waits.`;
  const calls = pending.map(({ toolCall: { id, name } }) => `"${id}" (${name})`);
  const waiting = calls.length > 0 ? `These wait: ${calls.join(", ")}.` : "None waits now.";
  return `No call "${call}" of run "${row.id}" waits for a decision. ${waiting}`;
}

function assertDecisions(decisions: unknown): void {
  try {
    readDecisions(decisions);
  } catch (cause) {
    throw new DurableError("invalid", errorMessage(cause), { cause });
  }
}

/** Throws where what was approved is not what the call asks for now. */
function assertShown(row: RunRow, call: WaitingCall, decision: Decision): void {
  if (decision.type !== "approve" || decision.fingerprint === undefined) return;
  if (call.fingerprint === undefined || call.fingerprint === decision.fingerprint) return;
  throw new DurableError(
    "not_pending",
    `Call "${call.toolCall.id}" of run "${row.id}" is another one than was approved: show it again, and decide with its fingerprint.`,
  );
}
