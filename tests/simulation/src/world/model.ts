import {
  Accumulator,
  type AssistantMessage,
  type AssistantMessageEvent,
  AssistantMessageEventStream,
  type Context,
  type DoneReason,
  type Failure,
  type FailureKind,
  type Message,
  type Model,
  type StreamOptions,
} from "@gyre/ai";
import type { Shortage } from "./plan.ts";
import type { Random } from "./random.ts";
import { drawArguments } from "./schemas.ts";
import type { World } from "./world.ts";

/** One request, and all that the loop can know of its answer. */
export interface Attempt {
  readonly number: number;
  readonly model: Model;
  readonly thinkingLevel: string | undefined;
  readonly toolNames: readonly string[];
  readonly messages: readonly Message[];
  readonly signal: AbortSignal;
  /** What kind of answer was drawn, for the log. */
  readonly kind: string;
  /** Any event was pushed: the service is at work, and is not asked again for its silence. */
  begun: boolean;
  /** `start` was pushed: what comes is to be passed on. */
  started: boolean;
  /** Content was passed on, so that this attempt must not be repeated. */
  shown: boolean;
  /** Every event of the answer came after `start`: its deltas make up the message. */
  replayable: boolean;
  outcome: "open" | "done" | "error" | "ended" | "failed" | "thrown";
  /** The message as it was when its terminal was pushed. */
  final?: AssistantMessage;
  failure?: Failure | undefined;
  /** Indices of the calls whose end was pushed after `start`. */
  readonly finished: Set<number>;
  /** Something was pushed after the request was called off: what was read is a matter of luck. */
  wentOn: boolean;
  /** What had arrived when the request was called off. */
  atAbort?: AssistantMessage;
  /** Events that came before `start`, which must not be shown. */
  readonly early: WeakSet<object>;
}

type Block =
  | { type: "text"; text: string }
  | { type: "thinking"; text: string; signature?: string }
  | { type: "call"; id: string; name: string; text: string };

type Ending =
  | { type: "done"; reason: DoneReason }
  | { type: "error"; failure: Failure }
  | { type: "end" }
  | { type: "breaks"; failure: Failure | undefined }
  | { type: "stall" };

interface Script {
  kind: string;
  instead?: "throws" | "rejects" | "never";
  thrown?: Failure | undefined;
  blocks: Block[];
  /** The last block is not closed. */
  open: boolean;
  ending: Ending;
  chunk: number;
  delayMs: number;
  betweenMs: number;
  start: "first" | "none" | "late";
  deaf: boolean;
  /** What is pushed once more after the end. */
  encore: boolean;
}

export interface ModelWatch {
  /** A request is made. */
  requested(attempt: Attempt): void;
}

/** After so many requests the model only says that it is done, so that runs end. */
const TALKATIVE_REQUESTS = 12;
const FAILURES: readonly Failure[] = [
  { kind: "rate_limit", status: 429 },
  { kind: "rate_limit", status: 429, retryAfterMs: 700 },
  { kind: "rate_limit", status: 429, retryAfterMs: 0 },
  { kind: "rate_limit", status: 429, retryAfterMs: 15_000 },
  { kind: "overloaded", status: 529, retryAfterMs: 90_000 },
  { kind: "overloaded", status: 529 },
  { kind: "network" },
  { kind: "timeout", status: 408 },
  { kind: "unknown", status: 503 },
  { kind: "unknown", status: 409 },
  { kind: "unknown", status: 425 },
  { kind: "unknown", status: 418 },
  { kind: "unknown", retryable: true },
  { kind: "unknown" },
  { kind: "rate_limit", status: 429, retryable: false },
  { kind: "auth", status: 401 },
  { kind: "quota", status: 429 },
  { kind: "bad_request", status: 400 },
  { kind: "overflow", status: 400 },
  { kind: "refused" },
];

const SHORTAGES: Readonly<Record<Shortage["kind"], readonly Failure[]>> = {
  overloaded: [
    { kind: "overloaded", status: 529 },
    { kind: "overloaded", retryAfterMs: 90_000 },
  ],
  quota: [{ kind: "quota", status: 429 }, { kind: "quota" }],
  // A key that was refused is not one that is missing.
  auth: [{ kind: "auth" }, { kind: "auth", retryable: false }, { kind: "auth", status: 401 }],
};

/** A model that does what a seed says, over the real accumulator. */
export class SimModel {
  readonly #world: World;
  readonly #watch: ModelWatch;
  #made = 0;
  #ids = 0;
  #sinceCalm = 0;

  constructor(world: World, watch: ModelWatch) {
    this.#world = world;
    this.#watch = watch;
  }

  stream(
    model: Model,
    context: Context,
    options: StreamOptions,
  ): AssistantMessageEventStream | Promise<AssistantMessageEventStream> {
    const world = this.#world;
    const script = world.calm ? this.#calmScript() : this.#script(model, context);
    const { signal } = options;
    if (!signal) throw new Error("The loop gave no signal.");
    const attempt: Attempt = {
      number: ++this.#made,
      model,
      thinkingLevel: options.thinkingLevel,
      toolNames: (context.tools ?? []).map(({ name }) => name),
      messages: [...context.messages],
      signal,
      kind: script.kind,
      started: false,
      begun: false,
      shown: false,
      replayable: true,
      outcome: "open",
      finished: new Set(),
      wentOn: false,
      early: new WeakSet(),
    };
    world.note(
      () =>
        `request ${attempt.number} of ${context.messages.length} messages, answer: ${script.kind}`,
    );
    if (world.runsAway()) return new Promise(() => {});
    this.#watch.requested(attempt);
    if (script.instead === "never") return new Promise(() => {});
    if (script.instead) {
      attempt.outcome = "thrown";
      attempt.failure = script.thrown ?? { kind: "hook", retryable: false };
      const error = Object.assign(new Error("the stream function fails"), {
        failure: script.thrown,
      });
      if (script.instead === "throws") throw error;
      return Promise.reject(error);
    }
    return new Performance(world, attempt, script).stream;
  }

  #calmScript(): Script {
    return {
      ...plain("calm"),
      blocks: [{ type: "text", text: `All is well ${++this.#sinceCalm}.` }],
      delayMs: 5,
    };
  }

  #script(model: Model, context: Context): Script {
    const random = this.#world.random("model");
    const { modelFaults, mood } = this.#world.plan;
    const script = plain("answer");
    script.chunk = random.pick([1, 3, 8, 1_000]);
    script.delayMs = random.pick([0, 0, 3, 40, 200]);
    script.betweenMs = random.pick([0, 0, 1, 7, 30]);
    script.deaf = random.chance(0.15);
    script.encore = random.chance(0.25);
    const isExhausted = context.messages.length > TALKATIVE_REQUESTS * 3 && random.chance(0.7);
    const calls = isExhausted || random.chance(0.3) ? 0 : random.between(1, 4);
    this.#fill(script, context, calls);
    this.#applyMood(script, context, mood);
    if (random.chance(modelFaults)) this.#spoil(script, context, random);
    this.#withhold(script, model);
    if (random.chance(0.03)) {
      // A burst with no pause at all, longer than a lagging reader lets wait.
      script.blocks.unshift({ type: "text", text: "wall of text ".repeat(35) });
      Object.assign(script, { chunk: 1, betweenMs: 0, kind: `burst ${script.kind}` });
    }
    return script;
  }

  #fill(script: Script, context: Context, calls: number): void {
    const random = this.#world.random("model");
    script.blocks = [];
    if (random.chance(0.3)) {
      script.blocks.push({
        type: "thinking",
        text: random.chance(0.1) ? "" : `hm ${this.#made}`,
        ...(random.chance(0.5) && { signature: "sig" }),
      });
    }
    if (calls === 0 || random.chance(0.4)) {
      script.blocks.push({ type: "text", text: `text ${this.#made} é😀` });
    }
    for (let i = 0; i < calls; i++) script.blocks.push(this.#call(context));
    script.ending = { type: "done", reason: calls > 0 ? "toolUse" : "stop" };
    script.kind = calls > 0 ? `${calls} calls` : "text";
  }

  #call(context: Context): Block & { type: "call" } {
    const random = this.#world.random("model");
    const tool = random.chance(0.07) ? undefined : random.pick(context.tools ?? [undefined]);
    const name = tool?.name ?? random.pick(["nothing", "t9", "T1"]);
    const text = drawArguments(random, tool?.parameters);
    return { type: "call", id: this.#id(context), name, text };
  }

  /** Mostly a new one; some services give the same again, or none at all. */
  #id(context: Context): string {
    const random = this.#world.random("model");
    const way = random.weighted({ own: 12, again: 1, empty: 0.5, constant: 1 });
    if (way === "empty") return "";
    if (way === "constant") return "call_0";
    if (way === "again") {
      for (const message of context.messages.toReversed()) {
        if (message.role === "toolResult") return message.toolCallId;
      }
    }
    return `c${++this.#ids}`;
  }

  #applyMood(script: Script, context: Context, mood: World["plan"]["mood"]): void {
    const random = this.#world.random("model");
    if (mood === "stubborn" && random.chance(0.85)) {
      const tool = context.tools?.[0];
      if (!tool) return;
      const times = random.pick([1, 1, 1, 2, 3]);
      script.blocks = Array.from({ length: times }, () => ({
        type: "call",
        id: this.#id(context),
        name: tool.name,
        // Keys in another order are the same arguments.
        text: random.pick(['{"n":7,"tags":["x"]}', '{"tags":["x"],"n":7}']),
      }));
      script.ending = { type: "done", reason: "toolUse" };
      script.kind = `the same call ${times} times`;
    } else if (mood === "pausing" && random.chance(0.9)) {
      this.#fill(script, context, 0);
      script.ending = { type: "done", reason: "pause" };
      script.kind = "pause";
    } else if (mood === "cutting" && random.chance(0.8)) {
      this.#fill(script, context, random.between(1, 2));
      script.ending = { type: "done", reason: "length" };
      script.kind = "cut off calls";
    } else if (mood === "busy") {
      // All at once, so that nothing but the loop's own yield lets a timer run.
      Object.assign(script, { delayMs: 0, betweenMs: 0, chunk: 1, deaf: false });
    }
  }

  /** The model may not be to be had: mostly that shows at once. */
  #withhold(script: Script, { id }: Model): void {
    const shortage = this.#world.plan.shortages.get(id);
    const random = this.#world.random("shortages");
    if (!shortage || !random.chance(shortage.rate)) return;
    const failure = random.pick(SHORTAGES[shortage.kind]);
    const way = random.weighted({ first: 6, late: 1, breaks: 1, throws: 1, rejects: 1 });
    script.kind = `${shortage.kind} (${way})`;
    script.open = true;
    script.start = "first";
    if (way !== "late") script.blocks = random.chance(0.3) ? [{ type: "text", text: "" }] : [];
    if (way === "throws" || way === "rejects") {
      Object.assign(script, { instead: way, thrown: failure });
    } else {
      delete script.instead;
      script.ending = { type: way === "breaks" ? "breaks" : "error", failure };
    }
  }

  #spoil(script: Script, context: Context, random: Random): void {
    const kind = random.weighted({
      error: 6,
      errorFirst: 6,
      end: 2,
      endFirst: 2,
      stall: 1.5,
      stallFirst: 1.5,
      breaks: 1.5,
      breaksFirst: 1.5,
      empty: 2,
      emptyBlocks: 1,
      noCall: 2,
      length: 2,
      lengthCalls: 2,
      pause: 2,
      throws: 1,
      rejects: 1,
      never: 1,
      noStart: 2,
      lateStart: 2,
    });
    script.kind = `${kind} after ${script.kind}`;
    const first = kind.endsWith("First");
    // A block may have begun before anything of it came.
    if (first) script.blocks = random.chance(0.3) ? [{ type: "text", text: "" }] : [];
    if (first) script.open = true;
    else if (random.chance(0.5)) {
      script.open = true;
      script.blocks.length = Math.max(1, random.below(script.blocks.length + 1));
    }
    const failure = random.pick(FAILURES);
    const finish = (reason: DoneReason): void => {
      Object.assign(script, { open: false, ending: { type: "done", reason } });
    };
    switch (kind) {
      case "error":
      case "errorFirst":
        script.ending = { type: "error", failure };
        break;
      case "end":
      case "endFirst":
        script.ending = { type: "end" };
        break;
      case "stall":
      case "stallFirst":
        script.ending = { type: "stall" };
        break;
      case "breaks":
      case "breaksFirst":
        script.ending = { type: "breaks", failure: random.chance(0.5) ? failure : undefined };
        break;
      case "empty":
        script.blocks = [];
        finish("stop");
        break;
      case "emptyBlocks":
        script.blocks = [
          { type: "text", text: "" },
          { type: "thinking", text: "" },
        ];
        finish("stop");
        break;
      case "noCall":
        this.#fill(script, context, 0);
        if (random.chance(0.5)) script.blocks = [];
        finish("toolUse");
        break;
      case "length":
      case "pause":
        this.#fill(script, context, 0);
        finish(kind);
        break;
      case "lengthCalls":
        this.#fill(script, context, random.between(1, 3));
        script.ending = { type: "done", reason: "length" };
        break;
      case "throws":
      case "rejects":
      case "never":
        script.instead = kind;
        script.thrown = random.chance(0.5) ? failure : undefined;
        break;
      case "noStart":
        script.start = "none";
        break;
      case "lateStart":
        script.start = "late";
        break;
      default:
        kind satisfies never;
    }
  }
}

function plain(kind: string): Script {
  return {
    kind,
    blocks: [],
    open: false,
    ending: { type: "done", reason: "stop" },
    chunk: 1_000,
    delayMs: 0,
    betweenMs: 0,
    start: "first",
    deaf: false,
    encore: false,
  };
}

/** A stream that notes what goes into it, and can hold `start` back. */
class WatchedStream extends AssistantMessageEventStream {
  readonly #attempt: Attempt;
  readonly #start: Script["start"];
  #held: AssistantMessageEvent | undefined;
  #seen = 0;

  constructor(attempt: Attempt, start: Script["start"]) {
    super();
    this.#attempt = attempt;
    this.#start = start;
  }

  override push(event: AssistantMessageEvent): void {
    if (event.type === "start" && this.#start !== "first") {
      this.#held = event;
      return;
    }
    if (this.#held && this.#start === "late" && ++this.#seen === 3) {
      this.#note(this.#held);
      super.push(this.#held);
    }
    this.#note(event);
    super.push(event);
  }

  #note(event: AssistantMessageEvent): void {
    const attempt = this.#attempt;
    if (attempt.signal.aborted) {
      attempt.wentOn = true;
      return;
    }
    if (attempt.outcome !== "open") return;
    attempt.begun = true;
    switch (event.type) {
      case "start":
        attempt.started = true;
        return;
      case "done":
        attempt.outcome = "done";
        attempt.final = structuredClone(event.message);
        return;
      case "error":
        attempt.outcome = "error";
        attempt.final = structuredClone(event.error);
        attempt.failure = event.error.failure;
        return;
      default:
        if (!attempt.started) {
          attempt.replayable = false;
          attempt.early.add(event);
          return;
        }
        if (event.type === "toolcall_end") attempt.finished.add(event.contentIndex);
        if (isContent(event)) attempt.shown = true;
    }
  }
}

/** What R22 holds `start` back for. */
function isContent(event: AssistantMessageEvent): boolean {
  if (event.type === "text_start" || event.type === "thinking_start") return false;
  if (event.type === "text_end") return event.content !== "";
  if (event.type !== "thinking_end") return true;
  const block = event.partial.content[event.contentIndex];
  return event.content !== "" || (block?.type === "thinking" && block.signature !== undefined);
}

/** Plays a script by the clock. */
class Performance {
  readonly stream: WatchedStream;
  readonly #world: World;
  readonly #attempt: Attempt;
  readonly #script: Script;
  readonly #out: Accumulator;
  readonly #acts: Generator<number, void>;
  #stopTimer: () => void = () => {};

  constructor(world: World, attempt: Attempt, script: Script) {
    this.#world = world;
    this.#attempt = attempt;
    this.#script = script;
    this.stream = new WatchedStream(attempt, script.start);
    this.#out = new Accumulator(this.stream, attempt.model, world.now);
    this.#acts = this.#play();
    attempt.signal.addEventListener("abort", () => this.#calledOff(), { once: true });
    if (script.delayMs > 0) this.#stopTimer = world.later(script.delayMs, () => this.#goOn());
    else this.#goOn();
  }

  #calledOff(): void {
    if (this.#attempt.outcome === "open")
      this.#attempt.atAbort = structuredClone(this.#out.message);
    if (this.#script.deaf) return;
    this.#stopTimer();
    // Some wires say so, others just fall silent.
    if (this.#attempt.number % 2 === 0) {
      this.#out.fail("called off", { kind: "aborted", retryable: false });
    }
  }

  #goOn(): void {
    for (let act = this.#acts.next(); !act.done; act = this.#acts.next()) {
      if (this.#attempt.signal.aborted && !this.#script.deaf) return;
      if (act.value > 0) {
        this.#stopTimer = this.#world.later(act.value, () => this.#goOn());
        return;
      }
    }
  }

  *#play(): Generator<number, void> {
    const { blocks, open, ending, chunk, betweenMs, encore } = this.#script;
    const out = this.#out;
    out.start();
    for (const [index, block] of blocks.entries()) {
      const at = this.#openBlock(block);
      for (let from = 0; from < block.text.length; from += chunk) {
        this.#write(block, at, block.text.slice(from, from + chunk));
        yield betweenMs;
      }
      if (!(open && index === blocks.length - 1)) this.#close(block, at);
    }
    out.usage({ input: 40, output: 10 });
    this.#end(ending);
    if (!encore || ending.type === "stall") return;
    yield betweenMs;
    // What comes after the end is ignored.
    out.text(0, "encore");
    this.stream.push({
      type: "text_delta",
      contentIndex: 0,
      delta: "encore",
      partial: out.message,
    });
    out.done("stop");
    this.stream.end();
  }

  #openBlock(block: Block): number {
    if (block.type === "text") return this.#out.textStart();
    if (block.type === "thinking") return this.#out.thinkingStart();
    return this.#out.toolCallStart(block.id, block.name);
  }

  #write(block: Block, at: number, delta: string): void {
    if (block.type === "text") this.#out.text(at, delta);
    else if (block.type === "thinking") this.#out.thinking(at, delta);
    else this.#out.toolCall(at, delta);
  }

  #close(block: Block, at: number): void {
    if (block.type === "text") this.#out.textEnd(at);
    else if (block.type === "call") {
      this.#out.toolCallEnd(at);
      this.#checkArguments(block, at);
    } else {
      const { signature } = block;
      this.#out.thinkingEnd(at, signature === undefined ? {} : { signature });
    }
  }

  /** R11: what does not parse to an object is never arguments. */
  #checkArguments({ text }: Block, at: number): void {
    const block = this.#out.message.content[at];
    if (block?.type !== "toolCall" || this.stream.closed) return;
    let parses = text === "";
    try {
      const value: unknown = JSON.parse(text);
      parses ||= typeof value === "object" && value !== null && !Array.isArray(value);
    } catch {
      parses ||= false;
    }
    if (parses === (block.argumentsError === undefined)) return;
    this.#world.fail("R11", `${text} was taken for ${JSON.stringify(block)}`);
  }

  #end(ending: Ending): void {
    switch (ending.type) {
      case "done":
        this.#out.done(ending.reason);
        return;
      case "error":
        this.#out.fail(`failure of kind ${ending.failure.kind}`, { ...ending.failure });
        return;
      case "end":
        this.#settle("ended", { kind: "incomplete" });
        this.stream.end();
        return;
      case "breaks":
        this.#settle("failed", ending.failure ?? { kind: "hook", retryable: false });
        this.stream.fail(
          Object.assign(new Error("the stream breaks"), { failure: ending.failure }),
        );
        return;
      case "stall":
        return;
      default:
        ending satisfies never;
    }
  }

  #settle(outcome: "ended" | "failed", failure: Failure): void {
    const attempt = this.#attempt;
    if (attempt.signal.aborted || attempt.outcome !== "open") return;
    attempt.outcome = outcome;
    attempt.failure = failure;
  }
}

const RETRYABLE_KINDS: ReadonlySet<FailureKind> = new Set([
  "rate_limit",
  "overloaded",
  "network",
  "timeout",
  "stalled",
  "incomplete",
  "empty",
]);
/** Kinds of which the status decides. */
const OPEN_KINDS: ReadonlySet<FailureKind> = new Set(["invalid_transcript", "hook", "unknown"]);

/** R22's list, in our own words: the checker does not ask the code under test. */
export function mayBeRetried({ kind, retryable, status = 0 }: Failure): boolean {
  if (retryable !== undefined) return retryable;
  if (!OPEN_KINDS.has(kind)) return RETRYABLE_KINDS.has(kind);
  return [408, 409, 425, 429].includes(status) || status >= 500;
}

/** Whether another model is to be asked, if there is one; in our own words as well. */
export function mayFallBack({ kind, status }: Failure): boolean {
  return RETRYABLE_KINDS.has(kind) || ["quota", "auth", "unknown"].includes(kind) || status === 404;
}

/** Whether it is to be asked at once, without a retry of the model in use. */
export function fallsBackAtOnce({ kind }: Failure): boolean {
  return ["overloaded", "quota", "auth"].includes(kind);
}
