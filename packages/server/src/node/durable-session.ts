import type { AgentMessage, Decision, QueueName } from "@gyre/agent";
import type { ImageContent, UserMessage } from "@gyre/ai";
import { DurableError, encodeMessages, type ItemKind, type Runs } from "@gyre/durable";
import { invalidRequest, type Payload, ProtocolError } from "@gyre/protocol";
import type {
  SessionInbox,
  SessionPrompt,
  SharedNumbers,
  SharedSession,
  SharedSessionEvents,
} from "../sessions/session-host.ts";
import { EventNumbers, numberEntry } from "./event-numbers.ts";
import { SessionMirror } from "./session-mirror.ts";

export interface DurableSessionOptions {
  readonly runs: Runs;
  readonly id: string;
  /** The agent that works on it. */
  readonly agent: string;
  readonly tenant: string;
  readonly onError: (error: unknown, where: string) => void;
}

type Entries = Awaited<ReturnType<ReturnType<Runs["read"]>["read"]>>;

/**
 * A session of a durable store, followed by its log: what clients ask for is put into its inbox, and
 * a worker, here or elsewhere, acts on it.
 */
export class DurableSession implements SharedSession, SessionInbox {
  readonly id: string;
  readonly view: SessionMirror;
  readonly numbers: SharedNumbers;
  readonly #options: DurableSessionOptions;
  readonly #reader: ReturnType<Runs["read"]>;
  /** Entries that were read, and are not published yet. */
  #ahead: Entries;
  #reading: Promise<void> | undefined;
  #shouldRead = false;
  #stops: (() => void)[] = [];
  #isClosed = false;

  private constructor(
    options: DurableSessionOptions,
    reader: ReturnType<Runs["read"]>,
    nth: number,
    entries: Entries,
  ) {
    this.#options = options;
    this.id = options.id;
    this.#reader = reader;
    this.view = new SessionMirror(new EventNumbers(nth));
    const { view } = this;
    // The last run is published, so that clients which come back within it miss nothing.
    const split = findLastRun(entries);
    for (const entry of entries.slice(0, split)) view.apply(entry);
    this.#ahead = entries.slice(split);
    this.numbers = {
      epoch: options.id,
      first: numberEntry(view.numbers.seq),
      get runAfter() {
        return view.runAfter;
      },
      take: () => view.takeNumber(),
    };
  }

  static async open(options: DurableSessionOptions): Promise<DurableSession> {
    const { runs, id } = options;
    const reader = runs.read(id);
    const nth = await runs.store.count("followed");
    return new DurableSession(options, reader, nth, await reader.read());
  }

  get inbox(): SessionInbox {
    return this;
  }

  async follow(events: SharedSessionEvents): Promise<void> {
    const { runs } = this.#options;
    this.view.report(events);
    for (const entry of this.#ahead.splice(0)) this.view.apply(entry);
    this.#stops = [
      runs.logs.watch(this.id, () => void this.#readSoon()),
      runs.live.listen(this.id, (event) => this.view.applyLive(event)),
    ];
    await this.synchronize();
  }

  async synchronize(): Promise<void> {
    // What is being read may have been asked for before.
    await this.#reading;
    await this.#readSoon();
  }

  /** Always: a run goes on without it. */
  canReopen(): boolean {
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const stop of this.#stops.splice(0)) stop();
    await this.#reading;
  }

  #readSoon(): Promise<void> {
    this.#shouldRead = true;
    this.#reading ??= this.#read()
      .catch((error: unknown) => this.#options.onError(error, `following session ${this.id}`))
      .finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<void> {
    while (this.#shouldRead && !this.#isClosed) {
      this.#shouldRead = false;
      for (const entry of await this.#reader.read()) this.view.apply(entry);
    }
  }

  // Requests of clients.

  async prompt({ text, images }: SessionPrompt, key: string): Promise<Payload> {
    if (await this.#isKnown(key)) return { seq: this.view.runAfter };
    const { runs, agent, tenant } = this.#options;
    const id = `${this.id}:${key}`;
    try {
      await runs.start(toInput(text, images), {
        ...{ id, agent, session: this.id, tenant, ifIdle: true },
      });
    } catch (error) {
      const isBusy = error instanceof DurableError && error.code === "busy";
      if (!isBusy) throw toRefusal(error);
      return this.#reply(toInput(text, images), key);
    }
    const { firstSeq = 0 } = (await runs.store.readRun(id)) ?? {};
    await this.#catchUpWith(firstSeq);
    return { seq: this.view.findRunAfter(firstSeq) };
  }

  /** A prompt denies calls that wait for a person, as with every agent. */
  async #reply(input: UserInput, key: string): Promise<Payload> {
    const { runId, isRunning, nextRunAfter: seq } = this.view;
    if (isRunning || runId === undefined || this.view.state.pending.length === 0) throw busyError();
    await this.#send(runId, "steering", encodeMessages(input), key);
    return { seq };
  }

  async continue(): Promise<Payload> {
    const { runId, nextRunAfter: seq } = this.view;
    if (this.view.isRunning) throw busyError();
    if (runId === undefined) throw invalidRequest("There is nothing to continue: send a prompt.");
    await refuseOnError(() => this.#options.runs.get(runId).retry());
    return { seq };
  }

  async decide(decisions: Readonly<Record<string, Decision>>, key: string): Promise<Payload> {
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

  async enqueue(queue: QueueName, message: UserMessage, key: string): Promise<Payload> {
    const answer = { queued: key };
    if (await this.#isKnown(key)) return answer;
    const run = await this.#findOpenRun();
    if (run === undefined) throw invalidRequest("No run goes on: send it as a prompt.");
    const kind = queue === "steering" ? "steering" : "followUp";
    await this.#send(run, kind, encodeMessages(message), key);
    return answer;
  }

  async abort(key: string): Promise<Payload> {
    const run = (await this.#isKnown(key)) ? undefined : await this.#findOpenRun();
    if (run !== undefined) await this.#send(run, "abort", {}, key);
    return {};
  }

  editQueue(): Promise<Payload> {
    return Promise.reject(notImplemented("queue_edit"));
  }

  update(): Promise<Payload> {
    return Promise.reject(notImplemented("session_update"));
  }

  replaceMessages(_messages: readonly AgentMessage[]): Promise<Payload> {
    return Promise.reject(notImplemented("messages_replace"));
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
    const [run] = await store.listRuns({ session: this.id, statuses, limit: 1 });
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

  /** An entry that is stored is read, however busy the store is. */
  async #catchUpWith(seq: number): Promise<void> {
    while (this.view.numbers.seq < seq && !this.#isClosed) await this.synchronize();
  }
}

type UserInput = Pick<UserMessage, "role" | "content">;

/** Without a time: the same request is the same run, whenever it arrives. */
function toInput(text: string, images: readonly ImageContent[] = []): UserInput {
  const content = text === "" ? [...images] : [{ type: "text" as const, text }, ...images];
  return { role: "user", content: images.length === 0 ? text : content };
}

/** Keys of requests are apart from those of other senders. */
function toKey(key: string): string {
  return `request:${key}`;
}

/** The entries before it are those of earlier runs. */
function findLastRun(entries: Entries): number {
  const ends = entries.flatMap(({ end }, at) => (end ? [at] : []));
  return (ends.at(-2) ?? -1) + 1;
}

function busyError(): ProtocolError {
  return new ProtocolError("session_busy", "A run goes on: steer it, abort it, or wait.");
}

function notImplemented(type: string): ProtocolError {
  return new ProtocolError("not_implemented", `"${type}" is not served here.`);
}

async function refuseOnError<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw toRefusal(error);
  }
}

/** What the store refuses, with the code that a client can act on. */
export function toRefusal(error: unknown): unknown {
  if (!(error instanceof DurableError)) return error;
  switch (error.code) {
    case "busy":
      return busyError();
    case "rate_limited":
      return new ProtocolError("rate_limited", error.message, { cause: error });
    case "too_large":
      return new ProtocolError("too_large", error.message, { cause: error });
    case "unavailable":
    case "closed":
    case "fenced":
      return error;
    default:
      return invalidRequest(error.message, { cause: error });
  }
}
