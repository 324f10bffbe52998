import type { AgentMessage, Decision, QueueName } from "@gyre/agent";
import type { UserMessage } from "@gyre/ai";
import {
  changeQueue,
  DurableError,
  encodeMessages,
  type ItemKind,
  type QueueRequest,
  type RunRequest,
  type Runs,
  toAnsweredEntry,
  toRewriteEntry,
} from "@gyre/durable";
import { invalidRequest, type Payload } from "@gyre/protocol";
import type { SessionChanges, SessionInbox, SessionPrompt } from "../sessions/session-host.ts";
import type { QueueEdit } from "../sessions/session-payloads.ts";
import { busyError, refuseOnError } from "./refusal.ts";
import type { SessionMirror, Settings } from "./session-mirror.ts";

/** How often a prompt is tried in a session that something else than a run has, and how soon. */
const MAX_TRIES = 20;
const TRY_AGAIN_MS = 50;

export interface DurableInboxOptions {
  readonly runs: Runs;
  /** The session. */
  readonly id: string;
  readonly agent: string;
  readonly tenant: string;
  readonly pool: string;
  /** What changes mean to the agent; throws what it cannot have. */
  readonly readChanges: (changes: SessionChanges) => Promise<Settings>;
  readonly view: SessionMirror;
  /** Settles when an entry of the log is in the view. */
  readonly catchUpWith: (seq: number) => Promise<void>;
  /** Settles when all that was stored before the call is in the view. */
  readonly synchronize: () => Promise<void>;
  /** Settles with what is found in the view, now or later. */
  readonly waitFor: <T>(find: () => T | undefined) => Promise<T>;
}

/** What clients ask for becomes rows of the store, each with the id of the request as its key. */
export class DurableInbox implements SessionInbox {
  readonly #options: DurableInboxOptions;

  constructor(options: DurableInboxOptions) {
    this.#options = options;
  }

  get view(): SessionMirror {
    return this.#options.view;
  }

  prompt(prompt: SessionPrompt, key: string): Promise<Payload> {
    return refuseOnError(() => this.#prompt(prompt, key));
  }

  continue(key: string): Promise<Payload> {
    return refuseOnError(() => this.#continue(key));
  }

  decide(decisions: Readonly<Record<string, Decision>>, key: string): Promise<Payload> {
    return refuseOnError(() => this.#decide(decisions, key));
  }

  enqueue(queue: QueueName, message: UserMessage, key: string): Promise<Payload> {
    return refuseOnError(() => this.#enqueue(queue, message, key));
  }

  abort(key: string): Promise<Payload> {
    return refuseOnError(() => this.#abort(key));
  }

  update(changes: SessionChanges, key: string): Promise<Payload> {
    return refuseOnError(() => this.#update(changes, key));
  }

  editQueue(edit: QueueEdit, key: string): Promise<Payload> {
    return refuseOnError(() => this.#editQueue(edit, key));
  }

  replaceMessages(messages: readonly AgentMessage[], key: string): Promise<Payload> {
    return refuseOnError(() => this.#rewrite(key, messages));
  }

  reset(key: string): Promise<Payload> {
    return refuseOnError(() => this.#rewrite(key));
  }

  async #prompt(prompt: SessionPrompt, key: string, triesLeft = MAX_TRIES): Promise<Payload> {
    if (await this.#isKnown(key)) return { seq: this.view.runAfter };
    const { runs, id: session, agent, tenant } = this.#options;
    const id = `${session}:${key}`;
    try {
      await runs.start(toInput(prompt), {
        ...{ id, agent, session, tenant, ifIdle: true },
      });
    } catch (error) {
      const isBusy = error instanceof DurableError && error.code === "busy";
      if (!isBusy) throw error;
      await this.#options.synchronize();
      if (triesLeft > 0 && this.#isAtRest()) {
        // Settings are being written: that takes a moment.
        await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS));
        return this.#prompt(prompt, key, triesLeft - 1);
      }
      return this.#reply(toInput(prompt), key);
    }
    const { firstSeq = 0 } = (await runs.store.readRun(id)) ?? {};
    await this.#options.catchUpWith(firstSeq);
    return { seq: this.view.findRunAfter(firstSeq) };
  }

  #isAtRest(): boolean {
    return !this.view.isRunning && this.view.state.pending.length === 0;
  }

  /** A prompt denies calls that wait for a person, as with every agent. */
  async #reply(input: UserInput, key: string): Promise<Payload> {
    const { runId, isRunning, nextRunAfter: seq } = this.view;
    if (isRunning || runId === undefined || this.view.state.pending.length === 0) throw busyError();
    await this.#send(runId, "steering", encodeMessages(input), key);
    return { seq };
  }

  async #continue(key: string): Promise<Payload> {
    await this.#options.synchronize();
    if (await this.#isKnown(key)) return { seq: this.view.runAfter };
    const { runId, nextRunAfter: seq } = this.view;
    if (this.view.isRunning) throw busyError();
    const { store } = this.#options.runs;
    const row = runId === undefined ? undefined : await store.readRun(runId);
    const isRetried = row && row.stop !== "done" && (await store.retry(row.id, toKey(key)));
    if (isRetried !== "ready" && isRetried !== "known") {
      throw invalidRequest("There is nothing to continue: send a prompt.");
    }
    return { seq };
  }

  async #decide(decisions: Readonly<Record<string, Decision>>, key: string): Promise<Payload> {
    // The run may have been suspended at another server in this moment.
    await this.#options.synchronize();
    const made = Object.entries(decisions).filter(([, { type }]) => type !== "wait");
    const [first] = made;
    if (!first) return { seq: this.view.nextRunAfter, isOver: true };
    if (await this.#isKnown(key)) return { seq: this.view.findDecision(first[0]) };
    const { runId, isRunning, nextRunAfter: seq } = this.view;
    if (isRunning) throw busyError();
    for (const [id, decision] of made) this.#assertPending(id, decision);
    if (runId === undefined) throw invalidRequest("No call waits for a decision.");
    await this.#send(runId, "decision", Object.fromEntries(made), key);
    return { seq };
  }

  #assertPending(id: string, decision: Decision): void {
    const call = this.view.state.pending.find(({ toolCall }) => toolCall.id === id);
    if (!call) throw invalidRequest(`No call "${id}" waits for a decision.`);
    const { fingerprint } = call;
    if (decision.type !== "approve" || decision.fingerprint === undefined) return;
    if (fingerprint === undefined || fingerprint === decision.fingerprint) return;
    throw invalidRequest(`Call "${id}" is another one than was approved: look at it again.`);
  }

  async #enqueue(queue: QueueName, message: UserMessage, key: string): Promise<Payload> {
    const request = { op: "add", queue, id: key, message } as const;
    await this.#request(key, { type: "queue", ...request }, (session) =>
      planQueueChange(session, request),
    );
    return { queued: key };
  }

  async #editQueue(edit: QueueEdit, key: string): Promise<Payload> {
    await this.#options.synchronize();
    if (edit.op === "list") return { isDone: true, queued: this.view.queued(edit.queue) };
    return this.#requestAnswer(key, { type: "queue", ...edit }, (session) =>
      planQueueChange(session, edit),
    );
  }

  /** Settles with the answer. A run that could not be worked on has ended without one. */
  async #requestAnswer(
    key: string,
    request: RunRequest,
    plan: (session: StoredSession) => Promise<PlannedWrite>,
  ): Promise<Payload> {
    for (let triesLeft = MAX_TRIES; triesLeft > 0; triesLeft--) {
      const run = await this.#request(key, request, plan);
      const answer = await this.#options.waitFor(() => {
        const found = this.view.findAnswer(toKey(key));
        if (found) return { found };
        return run !== undefined && this.view.hasEnded(run) ? {} : undefined;
      });
      if ("found" in answer && answer.found) return answer.found;
      await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS));
    }
    throw busyError();
  }

  /**
   * Has the worker of the open run do something, or does it here where no run is open. Once for a
   * key: the log has the answer. Resolves to the run that is to answer.
   */
  async #request(
    key: string,
    request: RunRequest,
    plan: (session: StoredSession) => Promise<PlannedWrite>,
  ): Promise<string | undefined> {
    for (let triesLeft = MAX_TRIES; ; triesLeft--) {
      await this.#options.synchronize();
      if (this.view.findAnswer(toKey(key))) return undefined;
      const run = await this.#findOpenRun();
      if (run !== undefined) {
        const { store } = this.#options.runs;
        const data = JSON.stringify(request);
        const outcome = await store.send({ run, kind: "request", data, key: toKey(key) });
        if (outcome === "sent" || outcome === "known") return run;
      } else if (await this.#write(key, plan)) return undefined;
      if (triesLeft <= 0) throw busyError();
      await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS));
    }
  }

  /** Begins the transcript again; with messages, what waits in queues stays. */
  async #rewrite(key: string, messages?: readonly AgentMessage[]): Promise<Payload> {
    for (let triesLeft = MAX_TRIES; ; triesLeft--) {
      await this.#options.synchronize();
      if (this.view.findAnswer(toKey(key))) break;
      if (this.view.isRunning) throw busyError();
      const run = await this.#findOpenRun();
      const isWaiting = this.view.state.pending.length > 0;
      if (run !== undefined && isWaiting) {
        // Calls that wait for a person go with the transcript.
        await this.#send(run, "abort", {}, `${key}/abort`);
        await this.#options.waitFor(() => this.view.hasEnded(run) || undefined);
      } else if (run === undefined) {
        if (await this.#write(key, (session) => planRewrite(session, messages))) break;
      }
      if (triesLeft <= 0) throw busyError();
      await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS));
    }
    return { seq: this.view.nextRunAfter };
  }

  /** Writes to a session that no run has. False: something else has it. */
  async #write(
    key: string,
    plan: (session: StoredSession) => Promise<PlannedWrite>,
  ): Promise<boolean> {
    const { runs, id, tenant, pool } = this.#options;
    let session: StoredSession;
    try {
      session = await runs.sessions({ tenant, pool }).open(id);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "locked") return false;
      throw error;
    }
    try {
      await this.#options.synchronize();
      // The same request may have been made at another server before.
      if (this.view.findAnswer(toKey(key))) return true;
      const { entries, answer } = await plan(session);
      const answered = toAnsweredEntry({ key: toKey(key), answer });
      // In one go, and so in one commit.
      const written = await Promise.all(
        [...entries, answered].map((entry) =>
          entry.type === "leaf" ? session.branch(null) : session.append(entry),
        ),
      );
      await this.#options.catchUpWith(written.at(-1)?.id ?? 0);
    } finally {
      await session.close();
    }
    return true;
  }

  async #abort(key: string): Promise<Payload> {
    const run = (await this.#isKnown(key)) ? undefined : await this.#findOpenRun();
    if (run !== undefined) await this.#send(run, "abort", {}, key);
    return {};
  }

  /** A run that goes on has them for its next turn, as far as its agent can be changed. */
  async #update(changes: SessionChanges, key: string): Promise<Payload> {
    const settings = await this.#options.readChanges(changes);
    return this.#requestAnswer(key, { type: "settings", settings }, async () => ({
      entries: [{ type: "settings", settings }],
      answer: { ...settings },
    }));
  }

  /** Whether a request was done before, here or on another server. */
  async #isKnown(key: string): Promise<boolean> {
    const { runId } = this.view;
    const run = runId ?? (await this.#findOpenRun());
    return run !== undefined && this.#options.runs.store.hasItem(run, toKey(key));
  }

  async #findOpenRun(): Promise<string | undefined> {
    const statuses = ["ready", "running", "waiting", "aside"] as const;
    const { store } = this.#options.runs;
    const [run] = await store.listRuns({ session: this.#options.id, statuses, limit: 1 });
    return run?.id;
  }

  async #send(
    run: string,
    kind: Exclude<ItemKind, "prompt">,
    data: unknown,
    key: string,
  ): Promise<void> {
    const { store } = this.#options.runs;
    const item = { run, kind, data: JSON.stringify(data), key: toKey(key) };
    const outcome = await store.send(item);
    if (outcome === "sent" || outcome === "known" || kind === "abort") return;
    throw invalidRequest("The run has ended: send a prompt.");
  }
}

/** What is written to a session that no run has, and what its client gets. */
interface PlannedWrite {
  readonly entries: readonly Parameters<StoredSession["append"]>[0][];
  readonly answer: Payload;
}

type StoredSession = Awaited<ReturnType<ReturnType<Runs["sessions"]>["open"]>>;

type UserInput = Pick<UserMessage, "role" | "content">;

/** A change of a queue of a session that no worker has. */
async function planQueueChange(
  session: StoredSession,
  request: QueueRequest,
): Promise<PlannedWrite> {
  const { queue } = request;
  const { queued: before } = await session.context();
  const { queued, ...answer } = changeQueue(before[queue], request);
  const known = new Set(before[queue]);
  const messages = queued.filter((item) => !known.has(item));
  const ids = queued.map(({ id }) => id);
  return {
    entries: [{ type: "queue", queue, ids, ...(messages.length > 0 && { messages }) }],
    answer: { ...answer, queued },
  };
}

/** Another transcript, with the settings that there are. */
async function planRewrite(
  session: StoredSession,
  messages: readonly AgentMessage[] | undefined,
): Promise<PlannedWrite> {
  const { settings, queued } = await session.context();
  const queues = (["steering", "followUp"] as const).flatMap((queue) => {
    const waiting = messages ? queued[queue] : [];
    const ids = waiting.map(({ id }) => id);
    return ids.length > 0 ? [{ type: "queue", queue, ids, messages: waiting } as const] : [];
  });
  return {
    entries: [
      toRewriteEntry({ isReset: !messages }),
      { type: "leaf" },
      ...(Object.keys(settings).length > 0 ? [{ type: "settings", settings } as const] : []),
      ...(messages ?? []).map((message) => ({ type: "message", message }) as const),
      ...queues,
    ],
    answer: {},
  };
}

/** Without a time: the same request is the same run, whenever it arrives. */
function toInput({ text, images = [], attachments = [] }: SessionPrompt): UserInput {
  const files = [...attachments, ...images];
  const content = text === "" ? files : [{ type: "text" as const, text }, ...files];
  return { role: "user", content: files.length === 0 ? text : content };
}

/** Keys of requests are apart from those of other senders. */
function toKey(key: string): string {
  return `request:${key}`;
}
