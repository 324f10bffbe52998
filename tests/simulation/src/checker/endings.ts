import type { AgentEndEvent, AgentEvent, AgentMessage } from "@gyre/agent";
import type { AssistantMessage } from "@gyre/ai";
import { type RunRecord, joinText } from "../world/run-record.ts";
import type { Fail, World } from "../world/world.ts";
import type { Calls } from "./calls.ts";
import type { Queues } from "./queues.ts";
import { listCalls } from "./transcript.ts";

/** How one run ends: what `agent_end` says against what was seen (R3, R6, R15, R18, R23, R27, R28). */
export class Endings {
  readonly #world: World;
  readonly #calls: Calls;
  readonly #queues: Queues;
  readonly #run: RunRecord | undefined;
  readonly #produced: AgentMessage[] = [];
  #turns = 0;
  #lastTurn: Extract<AgentEvent, { type: "turn_end" }> | undefined;
  /** How many events had been taken when the last turn ended. */
  #turnEndedAt = 0;
  #limit: Extract<AgentEvent, { type: "limit" }> | undefined;
  #stopAsked = false;
  /** What a callback threw in this run. */
  #threw: string | undefined;
  #polledSinceStart = false;
  /** Every result of the last turn asks for the end. */
  #allTerminate = false;
  /** Callbacks since the last turn's end, in the order of R28. */
  #stage: number | undefined;
  #answer: { message: AssistantMessage; started: number } | undefined;
  #waitedInFlight = 0;

  constructor(world: World, calls: Calls, queues: Queues, run?: RunRecord) {
    this.#world = world;
    this.#calls = calls;
    this.#queues = queues;
    this.#run = run;
  }

  stopAsked(): void {
    // Late, from a run that was not waited for; or reported long before its turn is read.
    if (this.#stage === undefined || this.#world.plan.entry === "stream") return;
    this.#stopAsked = true;
  }

  hookThrew(text: string): void {
    this.#threw ??= text;
  }

  called(name: string): void {
    const order = ["shouldStopAfterTurn", "steering", "followUp", "prepareTurn"].indexOf(name);
    // A stream is read late: what it reports has long been followed by more.
    if (this.#stage === undefined || order < 0 || this.#world.plan.entry === "stream") return;
    if (order < this.#stage) this.#fail("R28", `${name} was called too late`);
    this.#stage = order;
  }

  /** A queue was asked; only a queue of our own reports it. */
  polled(queue: "steering" | "followUp"): void {
    this.called(queue);
    if (queue === "steering") this.#polledSinceStart = true;
    if (this.#world.plan.entry !== "loop") return;
    const answer = this.#answer;
    if (answer && queue === "steering") {
      const calls = listCalls(answer.message).length;
      if (answer.started === 0 && calls > 0) {
        this.#fail("R15", "steering was polled before the first call");
      }
      const isAfterBatch = this.#world.plan.config.steering === "after-batch";
      if (isAfterBatch && answer.started < calls)
        this.#fail("R15", "steering was polled among calls");
    }
    if (queue !== "followUp") return;
    const turn = this.#lastTurn;
    if (!turn || this.#stage === undefined)
      return this.#fail("R18", "follow-ups were polled in a turn");
    if (turn.toolResults.length > 0) this.#fail("R18", "follow-ups were polled after calls");
    const { stopReason } = turn.message;
    if (["error", "aborted", "pause", "redirected"].includes(stopReason)) {
      this.#fail("R6", `follow-ups were polled after ${stopReason}`);
    }
  }

  take(event: AgentEvent): void {
    switch (event.type) {
      case "turn_start":
        this.#turns++;
        this.#stage = undefined;
        this.#checkGoesOn();
        break;
      case "message_start":
        this.#checkInjected(event.message);
        break;
      case "message_end":
        this.#produced.push(event.message);
        if (event.message.role === "assistant")
          this.#answer = { message: event.message, started: 0 };
        this.#checkFollowUp(event.message);
        break;
      case "tool_execution_start":
        if (this.#answer) this.#answer.started++;
        this.#polledSinceStart = false;
        break;
      case "turn_end":
        this.#checkLastPoll();
        this.#answer = undefined;
        this.#lastTurn = event;
        this.#allTerminate = this.#everyTerminates();
        this.#turnEndedAt = this.#queues.events;
        this.#stage = 0;
        this.#stopAsked = false;
        break;
      case "limit":
        this.#limit = event;
        break;
      case "agent_end":
        this.#end(event);
        break;
      default:
        break;
    }
    this.#waitedInFlight = this.#queues.inFlight("steering") + this.#queues.inFlight("followUp");
  }

  /** R16: what comes from a queue waits out an abort. */
  #checkInjected(message: AgentMessage): void {
    const { abortedAt = Infinity } = this.#run ?? {};
    if (message.role !== "user" || this.#world.now <= abortedAt) return;
    if (this.#world.plan.entry === "stream" || joinText(message).startsWith("prompt")) return;
    this.#fail("R16", `"${joinText(message)}" was delivered after the abort`);
  }

  /** R15: steering is looked for after the last call too. */
  #checkLastPoll(): void {
    const { entry } = this.#world.plan;
    const answer = this.#answer;
    if (entry !== "loop" || !answer || listCalls(answer.message).length === 0) return;
    const isStopped =
      this.#run?.abortedAt !== undefined || this.#isOutOfTime || this.#threw !== undefined;
    const mayRun = ["stop", "toolUse", "pause"].includes(answer.message.stopReason);
    if (isStopped || !mayRun || this.#calls.excuses.length > 0) return;
    if (!this.#polledSinceStart && this.#queues.inFlight("steering") === 0) {
      this.#fail("R15", "steering was not polled after the last call");
    }
  }

  get #isOutOfTime(): boolean {
    const { maxDurationMs = Infinity } = this.#world.plan.config.limits ?? {};
    return this.#run !== undefined && this.#world.now >= this.#run.startedAt + maxDurationMs;
  }

  /** R28, R6: a further turn where the last one ended the run. A turn with only an error is R5's. */
  #checkGoesOn(): void {
    const turn = this.#lastTurn;
    if (!turn || this.#calls.excuses.length > 0) return;
    const { stopReason } = turn.message;
    if (stopReason === "error" || stopReason === "aborted") {
      this.#fail("R6", `a turn follows one that ended ${stopReason}`);
    }
    if (this.#allTerminate) this.#fail("R28", "a turn follows one whose results all terminate");
    if (this.#stopAsked) this.#fail("R28", "a turn follows though shouldStopAfterTurn said stop");
  }

  #everyTerminates(): boolean {
    const { terminating } = this.#calls;
    return terminating.length > 0 && terminating.every(Boolean);
  }

  /** R18: follow-ups only where there were neither calls nor steering. */
  #checkFollowUp(message: AgentMessage): void {
    if (message.role !== "user" || !joinText(message).startsWith("followUp")) return;
    if (!this.#lastTurn) return;
    if (this.#lastTurn.toolResults.length > 0) {
      this.#fail("R18", "a follow-up was delivered after a turn with calls");
    }
  }

  #end(end: AgentEndEvent): void {
    const run = this.#run;
    if (!run) return;
    run.end = end;
    const isSame =
      end.messages.length === this.#produced.length &&
      end.messages.every((message, index) => message === this.#produced[index]);
    if (!isSame) {
      this.#fail(
        "R3",
        `agent_end has ${end.messages.length} messages, ${this.#produced.length} were reported`,
      );
    }
    if (end.turns !== this.#turns)
      this.#fail("R3", `agent_end counts ${end.turns} turns of ${this.#turns}`);
    const answers = this.#produced.filter((message) => message.role === "assistant");
    if (end.finalMessage !== answers.at(-1))
      this.#fail("R3", "finalMessage is not the last answer");
    const lost = run.prompts.find((prompt) => !this.#produced.includes(prompt));
    if (lost) this.#fail("R3", `the prompt ${JSON.stringify(lost)} is lost`);
    this.#checkUsage(end, answers);
    this.#checkStop(run, end);
    this.#checkPending(end);
    this.#checkUndelivered(end);
  }

  #checkUsage(end: AgentEndEvent, answers: readonly AssistantMessage[]): void {
    const sum = (of: (message: AssistantMessage) => number | undefined): number =>
      answers.reduce((total, message) => total + (of(message) ?? 0), 0);
    const input = sum(({ usage }) => usage.input);
    const output = sum(({ usage }) => usage.output);
    const cost = sum(({ usage }) => usage.cost?.total);
    // A price that is not known makes the whole unknown.
    const isPriced = answers.every(({ usage }) => usage.cost !== undefined || !usage.input);
    const reported = end.usage.cost?.total;
    const isRight =
      (end.usage.input ?? 0) === input &&
      (end.usage.output ?? 0) === output &&
      (isPriced ? Math.abs((reported ?? 0) - cost) < 1e-9 : reported === undefined);
    if (!isRight) this.#fail("R3", `agent_end's usage is ${JSON.stringify(end.usage)}`);
  }

  #checkStop(run: RunRecord, end: AgentEndEvent): void {
    const { stop } = end;
    const last = this.#lastTurn?.message;
    const fail: Fail = (rule, why) => this.#fail(rule, `the run ended ${stop}: ${why}`);
    const isOutOfTime = this.#isOutOfTime;
    if (
      this.#threw !== undefined &&
      stop !== "error" &&
      run.abortedAt === undefined &&
      !isOutOfTime
    ) {
      fail("R5", `"${this.#threw}" is lost`);
    }
    if ((stop === "limit") !== (this.#limit !== undefined))
      fail("R23", "a limit event belongs to it");
    if (stop === "limit" && end.limit !== this.#limit?.limit) fail("R23", "it names another limit");
    if (stop === "limit") this.#checkLimit(end, isOutOfTime, fail);
    if (stop === "aborted" && run.abortedAt === undefined && last?.stopReason !== "aborted") {
      fail("R21", "there was no abort");
    }
    if (stop === "error" && last?.stopReason !== "error") fail("R5", "there is no error message");
    const isLate = this.#world.plan.entry === "stream";
    if (stop === "stopped" && !this.#stopAsked && !isLate) fail("R28", "it was not asked for");
    if (stop === "terminated" && !this.#allTerminate) fail("R28", "not every result terminates");
    if (stop === "suspended" && end.pending.length === 0) fail("R27", "nothing waits");
    if (stop !== "done") return;
    if (last && last.stopReason !== "stop" && last.stopReason !== "length") {
      fail("R7", `the last answer ended ${last.stopReason}`);
    }
    if ((this.#lastTurn?.toolResults.length ?? 0) > 0)
      fail("R8", "the model has not seen the results");
    if (this.#world.plan.entry === "stream" || this.#world.plan.queueFaults > 0) return;
    for (const queue of ["steering", "followUp"] as const) {
      if (this.#queues.waitsSince(queue, this.#turnEndedAt)) {
        fail("R18", `a message of ${queue} had been waiting before the last turn's end`);
      }
    }
  }

  #checkLimit(end: AgentEndEvent, isOutOfTime: boolean, fail: Fail): void {
    const limits = this.#world.plan.config.limits ?? {};
    const { limit } = end;
    if (limit === "maxDurationMs" && !isOutOfTime) fail("R23", "there was time left");
    const { abortedAt = Infinity, startedAt = 0 } = this.#run ?? {};
    if (limit === "maxDurationMs" && abortedAt < startedAt + (limits.maxDurationMs ?? 0)) {
      fail("R21", "it was aborted before");
    }
    if (limit === "maxTurns" && end.turns < (limits.maxTurns ?? limits.maxIterations ?? Infinity)) {
      fail("R23", `there were only ${end.turns} turns`);
    }
    if (limit === "maxCostUsd" && (end.usage.cost?.total ?? 0) < (limits.maxCostUsd ?? Infinity)) {
      fail("R23", "there was money left");
    }
    if (limit === "maxIdenticalCalls" && this.#calls.refusals < 2)
      fail("R23", "no call was refused twice");
  }

  /** R27: what waits for a person, and nothing else. */
  #checkPending(end: AgentEndEvent): void {
    if (end.stop === "sink") return;
    for (const { toolCall } of end.pending) {
      if (this.#calls.isSuspended(toolCall.id)) continue;
      this.#fail("R27", `call ${toolCall.id} is pending, and was not suspended`);
    }
  }

  /** R16: what was taken and not delivered is named. */
  #checkUndelivered(end: AgentEndEvent): void {
    if (this.#world.plan.entry === "stream") return;
    if (end.undelivered.length < this.#waitedInFlight) {
      this.#fail(
        "R16",
        `${this.#waitedInFlight} were in flight, ${end.undelivered.length} are named`,
      );
    }
  }

  #fail(rule: string, text: string): void {
    this.#world.fail(rule, text);
  }
}
