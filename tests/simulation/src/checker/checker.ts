import { type AgentEndEvent, type AgentEvent, SinkError } from "@gyre/agent";
import type { Driver } from "../world/driver.ts";
import type { Gatekeeper } from "../world/gatekeeper.ts";
import type { RunRecord, Watch } from "../world/run-record.ts";
import type { Toolbox } from "../world/tools.ts";
import type { World } from "../world/world.ts";
import { Calls, DEFAULT_GRACE_MS } from "./calls.ts";
import { Endings } from "./endings.ts";
import { Grammar } from "./grammar.ts";
import { ListenerOrder } from "./listening.ts";
import { Queues } from "./queues.ts";
import { Replay } from "./replay.ts";
import { Requests } from "./requests.ts";
import { Transcript } from "./transcript.ts";

/** Between the abort and the end of a run, beside grace time and what others take. */
const ABORT_SLACK_MS = 50;
/** Work in one go: the ten milliseconds of R21 and what may come between two looks. */
const MAX_BLOCKED_MS = 150;

/** Hears of everything that happens in a world, and says when a rule does not hold. */
export class Checker implements Watch {
  readonly transcript: Transcript;
  readonly queues: Queues;
  readonly calls: Calls;
  readonly requests: Requests;
  readonly #world: World;
  readonly #toolbox: () => Toolbox;
  #endings: Endings;
  readonly #listening: ListenerOrder;
  readonly #replay: Replay;
  #grammar: Grammar;
  #driver: Driver | undefined;
  #run: RunRecord | undefined;
  /** The last run that is over. */
  last: RunRecord | undefined;

  constructor(world: World, gatekeeper: Gatekeeper, toolbox: () => Toolbox) {
    this.#world = world;
    this.#toolbox = toolbox;
    this.transcript = new Transcript(world);
    this.queues = new Queues(world);
    this.calls = new Calls(world, this.queues, gatekeeper, toolbox);
    this.requests = new Requests(world, this.calls, this.queues, this.transcript);
    this.#endings = new Endings(world, this.calls, this.queues);
    this.#listening = new ListenerOrder(world);
    this.#replay = new Replay(world);
    this.#grammar = this.#newGrammar();
    this.calls.hasTool = (name) => this.requests.last?.toolNames.includes(name);
    this.queues.onSteered = () => this.#steered();
  }

  #newGrammar(): Grammar {
    return new Grammar(
      (id) => this.calls.isSuspended(id),
      (one, other) => this.calls.mayRunTogether(one, other),
    );
  }

  /** A driver is there: the first one, or the one after a crash. */
  attach(driver: Driver): void {
    this.#driver = driver;
    this.queues.attach(driver);
    this.requests.attach(driver);
  }

  /** The process died. */
  died(): void {
    this.#run = undefined;
    this.calls.died();
  }

  begun(run: RunRecord): void {
    this.#world.note(() => `run ${run.number} begins (${run.kind})`);
    if (this.#run) this.#world.fail("R20", "a run begins while another goes on");
    this.#run = run;
    this.#grammar = this.#newGrammar();
    this.calls.begun(run);
    this.requests.begun(run);
    this.#endings = new Endings(this.#world, this.calls, this.queues, run);
    this.#listening.begun();
    this.queues.begun();
  }

  taken(event: AgentEvent): void {
    const run = this.#run;
    this.#world.note(() => `event ${describe(event)}`);
    if (!run || run.over) return this.#world.fail("R1", `${event.type} comes when no run goes on`);
    if (run.sinkFailedOn && event.type !== "agent_end") {
      return this.#world.fail("R25", `${event.type} comes after the sink had failed`);
    }
    run.events.push(event);
    const wrong = this.#grammar.take(event);
    if (wrong) this.#world.fail("grammar", `${event.type}: ${wrong}`);
    this.#checkState(event);
    this.queues.take(event);
    this.transcript.take(event);
    this.requests.take(event);
    this.calls.take(event);
    this.#replay.take(event, this.requests.isReplayable);
    this.#endings.take(event);
    this.#listening.taken(event);
    this.#checkYield();
  }

  /** R25: no listener knows of a message before the sink has taken it. */
  #checkState(event: AgentEvent): void {
    const { plan } = this.#world;
    if (plan.entry !== "agent" || plan.sink === "none" || event.type !== "message_end") return;
    if (this.#driver?.transcript().includes(event.message)) {
      this.#world.fail("R25", "state.messages has a message that the sink has not taken");
    }
  }

  #checkYield(): void {
    const { entry, burnMs } = this.#world.plan;
    if (burnMs === 0 || entry === "stream") return;
    const ms = this.#world.clock.burned;
    if (ms > MAX_BLOCKED_MS) this.#world.fail("R21", `the loop ran for ${ms} ms without a yield`);
  }

  sinkFails(event: AgentEvent, inMs: number): void {
    const run = this.#run;
    if (!run) return;
    if (run.sinkFailedOn) this.#world.fail("R25", "the sink is called again after it failed");
    run.sinkFailedOn = event;
    this.calls.sinkDeadAt = this.#world.now + inMs;
  }

  heard(listener: number, event: AgentEvent): void {
    this.#listening.heard(listener, event);
  }

  listenerDone(listener: number): void {
    this.#listening.done(listener);
  }

  finished(run: RunRecord, end: AgentEndEvent | undefined, error: unknown): void {
    this.#world.note(() => `run ${run.number} is over: ${end ? end.stop : describeError(error)}`);
    run.over = true;
    this.#run = undefined;
    this.last = run;
    this.#listening.finished(run.sinkFailedOn !== undefined);
    if (run.sinkFailedOn) {
      const isReported = error instanceof SinkError || end?.stop === "sink";
      if (!isReported) this.#world.fail("R25", `the run settled with ${describeError(error)}`);
      return;
    }
    if (error !== undefined)
      return this.#world.fail("R5", `the run rejected: ${describeError(error)}`);
    if (!this.#grammar.isOver) this.#world.fail("R1", "the run is over without agent_end");
    if (end !== run.end) this.#world.fail("R3", "the run did not settle with its agent_end");
    this.#checkAbort(run);
    this.#checkTranscript(run);
  }

  /** R21: an abort is obeyed within the grace time, whether or not tools listen. */
  #checkAbort(run: RunRecord): void {
    if (run.abortedAt === undefined || this.#world.plan.entry === "stream") return;
    const { abortGraceMs = DEFAULT_GRACE_MS } = this.#world.plan.config;
    const graceMs = this.#toolbox().longestGrace(abortGraceMs);
    const held = this.#world.waits.total - run.waitsAtAbort;
    const burned = this.#world.plan.burnMs * 1_000;
    const took = this.#world.now - run.abortedAt;
    if (took > graceMs + held + ABORT_SLACK_MS + burned) {
      this.#world.fail("R21", `the run went on for ${took} ms after the abort`);
    }
  }

  #checkTranscript(run: RunRecord): void {
    const messages = this.#driver?.transcript() ?? [];
    const recorded = this.transcript.messages;
    const isSame =
      messages.length === recorded.length &&
      messages.every((message, i) => message === recorded[i]);
    if (!isSame) this.#world.fail("R3", "the transcript is not what the events say");
    const waiting = new Set(run.end?.pending.map(({ toolCall }) => toolCall.id));
    this.transcript.check(messages, waiting);
  }

  polled(queue: "steering" | "followUp"): void {
    this.#world.note(() => `${queue} is polled`);
    this.#endings.polled(queue);
  }

  drained(queue: "steering" | "followUp", count: number): void {
    this.#world.note(() => `${queue} gives ${count}`);
    this.queues.look();
  }

  hookCalled(name: string): void {
    this.#endings.called(name);
    if (name === "prepareTurn") this.requests.preparing();
  }

  hookFailed(text: string, how: "throws" | "waits"): void {
    this.calls.excuse(text);
    if (how === "throws") this.#endings.hookThrew(text);
  }

  keyMissing(): void {
    this.requests.keyMissing();
  }

  prepared(changes: { model?: { id: string }; thinkingLevel?: string }): void {
    this.requests.prepared(changes);
  }

  stopAsked(): void {
    this.#endings.stopAsked();
  }

  lateResult(callId: string): void {
    this.calls.lateResult(callId);
  }

  /** R15: under `redirect`, what is streamed is cut off at once. */
  #steered(): void {
    if (this.#world.plan.config.steering !== "redirect" || !this.#run) return;
    const attempt = this.requests.last;
    if (!attempt || attempt.outcome !== "open" || this.#world.plan.entry === "stream") return;
    const answered = this.#run.events.at(-1)?.type;
    const isReading = answered !== "message_end" && answered !== "turn_end";
    if (isReading && attempt.kind !== "never" && !attempt.signal.aborted) {
      this.#world.fail("R15", "a steering message did not cut off the answer");
    }
  }

  /** Everything that could happen without time passing has happened. */
  stepDone(): void {
    this.calls.stepDone();
    if (!this.#run && !this.#driver?.running) this.#checkQuiet();
  }

  /** When nothing goes on, nothing is left over. */
  #checkQuiet(): void {
    this.queues.idle();
    const leftovers = this.#driver?.leftovers();
    if (leftovers) this.#world.fail("idle", leftovers);
    const owner = this.#world.agentOwner;
    const timers = this.#world.clock.pending(owner);
    if (timers === 0) return;
    // Tools get their grace time also when the sink has failed and the run does not wait for them.
    const { abortGraceMs = DEFAULT_GRACE_MS } = this.#world.plan.config;
    const graceEnds = this.calls.sinkDeadAt + this.#toolbox().longestGrace(abortGraceMs);
    if (this.#world.now > graceEnds) this.#world.fail("idle", `${timers} timers are left over`);
  }
}

function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : JSON.stringify(error);
}

function describe(event: AgentEvent): string {
  switch (event.type) {
    case "message_start":
    case "message_end":
      return `${event.type} ${JSON.stringify(event.message)}`;
    case "message_update": {
      const { partial: _, ...rest } = { partial: undefined, ...event.assistantMessageEvent };
      return `${event.type} ${JSON.stringify(rest)}`;
    }
    case "turn_end":
      return `turn_end with ${event.toolResults.length} results`;
    case "agent_end":
      return `agent_end ${event.stop} ${event.limit ?? ""} turns ${event.turns} messages ${event.messages.length} pending ${event.pending.length} undelivered ${event.undelivered.length}`;
    default:
      return JSON.stringify(event);
  }
}
