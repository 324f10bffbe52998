import type { AgentEnd, AgentEvent, PartialOutput } from "@gyre/agent";
import { errorMessage, type Usage } from "@gyre/ai";
import { copyPlain } from "./copy-plain.ts";
import { keepEqual } from "./keep-equal.ts";
import { SnapshotFeed, type StoreOptions } from "./snapshot-feed.ts";

/** What a page shows of one run. It does not change. */
export interface RunSnapshot<Output = undefined> {
  /** `waiting`: calls wait for a person. `failed`: see `error`. */
  readonly status: "idle" | "running" | "done" | "waiting" | "failed" | "aborted";
  /** The text of the newest answer, as far as it has come. */
  readonly text: string;
  /** The answer of a run with an `output` schema as far as it has come. Nothing of it is checked yet. */
  readonly partial: PartialOutput<Output> | undefined;
  /** The answer that fits the schema, at the end. */
  readonly output: Output | undefined;
  readonly error: string | undefined;
  readonly usage: Usage;
}

/** A run that was started: what `agent.run(...)` gives. */
export interface StartedRun<Output> extends AsyncIterable<unknown> {
  readonly hasOutput: boolean;
  readonly outputStream: AsyncIterable<PartialOutput<Output>>;
  result(): Promise<AgentEnd<Output, unknown>>;
}

/** Starts a run. The signal fires when the page is left, when the run is stopped, and when another one is started. */
export type StartRun<Input, Output> = (
  input: Input,
  signal: AbortSignal,
) => StartedRun<Output> | Promise<StartedRun<Output>>;

const IDLE: RunSnapshot<never> = {
  status: "idle",
  text: "",
  partial: undefined,
  output: undefined,
  error: undefined,
  usage: {},
};

/** One run at a time, as a page sees it. Its methods do not reject, and need no `this`. */
export class RunStore<Input, Output> {
  /** Replaced by `useRun` with each render: it may use what the component has then. */
  startRun: StartRun<Input, Output>;
  readonly #feed: SnapshotFeed<RunSnapshot<Output>>;
  #now: RunSnapshot<Output> = IDLE;
  /** It grows in place, and is copied once a frame. */
  #growing: { partial: PartialOutput<Output> } | undefined;
  #current: AbortController | undefined;

  constructor(startRun: StartRun<Input, Output>, options: StoreOptions = {}) {
    this.startRun = startRun;
    this.#feed = new SnapshotFeed<RunSnapshot<Output>>({
      ...options,
      build: (before) => this.#build(before),
      onUnused: () => this.abort(),
    });
  }

  readonly getSnapshot: () => RunSnapshot<Output> = () => this.#feed.snapshot;

  /** As of `AgentStore`. The run is aborted when the last listener is gone. */
  readonly subscribe: (listener: (snapshot: RunSnapshot<Output>) => void) => () => void = (
    listener,
  ) => this.#feed.subscribe(listener);

  /** Starts a run; one that goes on is aborted. Settles with its end. */
  readonly start: (input: Input) => Promise<void> = async (input) => {
    this.abort();
    const control = new AbortController();
    this.#current = control;
    this.#growing = undefined;
    this.#set(control, { ...IDLE, status: "running" });
    try {
      const run = await this.startRun(input, control.signal);
      await (run.hasOutput ? this.#readOutput(run, control) : this.#readText(run, control));
      this.#set(control, readEnd(await run.result(), run.hasOutput));
    } catch (error) {
      const { aborted } = control.signal;
      const failed = { status: "failed", error: errorMessage(error) } as const;
      this.#set(control, aborted ? { status: "aborted" } : failed);
    }
  };

  /** Ends the run. What has arrived stays. */
  readonly abort: () => void = () => this.#current?.abort();

  async #readText(run: StartedRun<Output>, control: AbortController): Promise<void> {
    for await (const event of run as AsyncIterable<AgentEvent>) {
      if (event.type === "message_start" && event.message.role === "assistant") {
        this.#set(control, { text: "" });
      }
      if (event.type !== "message_update") continue;
      const { assistantMessageEvent: update } = event;
      if (update.type === "text_delta") {
        this.#set(control, { text: this.#now.text + update.delta });
      }
    }
  }

  async #readOutput(run: StartedRun<Output>, control: AbortController): Promise<void> {
    for await (const partial of run.outputStream) {
      if (this.#current === control) this.#growing = { partial };
      this.#feed.refresh();
    }
  }

  /** Of a run in whose place another one was started, nothing is shown any more. */
  #set(control: AbortController, change: Partial<RunSnapshot<Output>>): void {
    if (this.#current !== control) return;
    this.#now = { ...this.#now, ...change };
    this.#feed.refresh();
  }

  #build(before: RunSnapshot<Output> | undefined): RunSnapshot<Output> {
    if (this.#growing) {
      this.#now = { ...this.#now, partial: copyPlain(this.#growing.partial) };
      this.#growing = undefined;
    }
    return keepEqual(before, this.#now);
  }
}

/** A store of one run at a time. */
export function createRunStore<Input, Output = undefined>(
  startRun: StartRun<Input, Output>,
  options: StoreOptions = {},
): RunStore<Input, Output> {
  return new RunStore(startRun, options);
}

function readEnd<Output>(
  end: AgentEnd<Output, unknown>,
  hasOutput: boolean,
): Partial<RunSnapshot<Output>> {
  const { stop, limit, usage } = end;
  switch (stop) {
    case "aborted":
      return { status: "aborted", usage };
    case "suspended":
      return { status: "waiting", usage };
    case "limit":
      return { status: "failed", usage, error: `The run reached its limit ${limit}.` };
    case "error":
    case "sink": {
      const error = end.errorMessage ?? end.finalMessage?.errorMessage ?? "The run failed.";
      return { status: "failed", usage, error };
    }
    case "done":
    case "terminated":
    case "stopped":
      return { status: "done", text: end.text, usage, ...(hasOutput && { output: end.output }) };
  }
}
