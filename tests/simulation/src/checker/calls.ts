import type { AgentEvent, AgentToolResult } from "@gyre/agent";
import {
  type AssistantMessage,
  outcomeOf,
  type ToolCall,
  type ToolOutcome,
  type ToolResultMessage,
} from "@gyre/ai";
import { AFTER_TEXT, DENIED_TEXT, type Gatekeeper, REWRITTEN_TEXT } from "../world/gatekeeper.ts";
import { type RunRecord, joinText } from "../world/run-record.ts";
import { cannotFit } from "../world/schemas.ts";
import type { Execution, SimTool, Toolbox, ToolWatch } from "../world/tools.ts";
import type { Fail, World } from "../world/world.ts";
import type { Queues } from "./queues.ts";
import { listCalls, isIncomplete } from "./transcript.ts";

/** The outcomes of calls that were not even looked at, or that end the run. */
const UNTRIED: ReadonlySet<ToolOutcome> = new Set([
  "interrupted",
  "skipped",
  "truncated",
  "aborted",
]);
/** Of the two limits that end a call, the one on repeated calls: the other is the time of the run. */
const REPEATED = "the same call gave the same result several times in a row";
const DEFAULT_TOOL_TIMEOUT_MS = 600_000;
const LATEST_TIMER_MS = 500;
const DEFAULT_MIDDLEWARE_TIMEOUT_MS = 86_400_000;
export const DEFAULT_GRACE_MS = 200;
const DEFAULT_CONCURRENCY = 10;
const DEFAULT_MAX_IDENTICAL = 3;

/** A call of the model, and what became of it. */
interface CallRecord {
  readonly call: ToolCall;
  readonly message: AssistantMessage;
  readonly place: number;
  readonly madeIn: RunRecord;
  startedIn?: RunRecord | undefined;
  endedIn?: RunRecord | undefined;
  result?: AgentToolResult;
  /** What a journal has of it, from an earlier run. */
  recorded?: AgentToolResult | undefined;
  answered: boolean;
  /** A steering message waited when it had to be looked for: this call must not run. */
  mustSkip: boolean;
  /** The same came of it too often before it was started. */
  isRepeated: boolean;
  /** When its start was reported. */
  startedAt: number;
}

/** How a call ended, as its event and its message say. */
type Ending = Pick<ToolResultMessage, "outcome" | "reason">;

function isRefusal({ outcome, reason }: Ending): boolean {
  return outcome === "limit" && reason === REPEATED;
}

/** The run was stopped, by a person or by its time limit. */
function isStopped(ending: Ending): boolean {
  return ending.outcome === "aborted" || (ending.outcome === "limit" && !isRefusal(ending));
}

/** The rule that a result breaks, and how. */
type Complaint = [rule: string, why: string] | undefined;

interface Ran {
  key: string;
  content: string;
}

/** R8 to R15, R19, R21, R23 and R27 as far as one call is concerned. */
export class Calls implements ToolWatch {
  readonly #world: World;
  readonly #queues: Queues;
  readonly #gatekeeper: Gatekeeper;
  readonly #toolNamed: (name: string) => SimTool | undefined;
  readonly #records = new Map<string, CallRecord>();
  readonly #executions: Execution[] = [];
  readonly #lateDue = new Map<string, number>();
  readonly #running = new Set<Execution>();
  readonly #runOf = new WeakMap<Execution, RunRecord | undefined>();
  #run: RunRecord | undefined;
  /** Why a hook failed on purpose in this run. */
  #excuses: string[] = [];
  #steeringDue = false;
  #ran: Ran[] = [];
  /** Calls refused in a row because they were the same again. */
  refusals = 0;
  /** The same, when the turn began. */
  refusalsBefore = 0;
  /** Whether each result of this turn asks for the end. */
  terminating: boolean[] = [];
  /** When the sink's failure is known to the loop. */
  sinkDeadAt: number = Number.NEGATIVE_INFINITY;
  /** Whether the last request offered a tool of this name; unknown before the first. */
  hasTool: (name: string) => boolean | undefined = () => undefined;

  constructor(world: World, queues: Queues, gatekeeper: Gatekeeper, toolbox: () => Toolbox) {
    this.#world = world;
    this.#queues = queues;
    this.#gatekeeper = gatekeeper;
    this.#toolNamed = (name) => toolbox().tools.find((tool) => tool.name === name);
  }

  begun(run: RunRecord): void {
    this.#run = run;
    this.#excuses = [];
    this.#ran = [];
    this.refusals = 0;
    this.refusalsBefore = 0;
    this.#steeringDue = false;
  }

  excuse(text: string): void {
    this.#excuses.push(text);
  }

  get excuses(): readonly string[] {
    return this.#excuses;
  }

  /** The process died; what ran in it is gone. */
  died(): void {
    this.#running.clear();
    this.#lateDue.clear();
    this.#run = undefined;
  }

  isSuspended(id: string): boolean {
    const record = this.#records.get(id);
    if (!record || record.endedIn === this.#run) return false;
    if (this.#run?.decisions[id]?.type === "wait") return true;
    return this.#gatekeeper.verdicts.get(id) === "suspend" && record.startedIn === this.#run;
  }

  mayRunTogether(one: string, other: string): boolean {
    const mode = this.#world.plan.config.toolExecution ?? "auto";
    if (mode !== "auto") return mode === "parallel";
    return [one, other].every((id) => this.#findTool(id)?.concurrent === true);
  }

  #findTool(id: string): SimTool | undefined {
    const name = this.#records.get(id)?.call.name;
    return name === undefined ? undefined : this.#toolNamed(name);
  }

  take(event: AgentEvent): void {
    switch (event.type) {
      case "turn_start":
        this.terminating = [];
        this.refusalsBefore = this.refusals;
        break;
      case "message_end":
        if (event.message.role === "assistant") this.#answer(event.message);
        else if (event.message.role === "toolResult") this.#result(event.message);
        break;
      case "tool_execution_start":
        this.#start(event);
        break;
      case "tool_execution_update":
        this.#update(event);
        break;
      case "tool_execution_end":
        this.#end(event);
        break;
      default:
        break;
    }
  }

  #answer(message: AssistantMessage): void {
    // Results before it are of an earlier message.
    this.terminating = [];
    const run = this.#run;
    if (!run) return;
    this.#steeringDue = false;
    for (const [place, call] of listCalls(message).entries()) {
      if (this.#records.has(call.id)) this.#fail("R8", `the call id ${call.id} is used twice`);
      this.#records.set(call.id, {
        call,
        message,
        place,
        madeIn: run,
        answered: false,
        mustSkip: false,
        isRepeated: false,
        startedAt: 0,
      });
    }
  }

  #start(event: Extract<AgentEvent, { type: "tool_execution_start" }>): void {
    const record = this.#records.get(event.toolCallId);
    if (!record)
      return this.#fail("R8", `a call ${event.toolCallId} is started that the model never made`);
    if (record.answered)
      this.#fail("R8", `call ${event.toolCallId} is started, and was answered before`);
    const isSame = event.toolName === record.call.name && event.args === record.call.arguments;
    if (!isSame)
      this.#fail("R12", `tool_execution_start of ${event.toolCallId} has other arguments`);
    record.startedIn = this.#run;
    record.recorded = record.result;
    record.startedAt = this.#world.now;
    const waits = this.#steeringIsKnown();
    const mayRun =
      record.madeIn === this.#run &&
      !isIncomplete(record.message) &&
      record.message.stopReason !== "length";
    record.mustSkip = mayRun && record.place > 0 && this.#steeringDue && waits;
    if (waits) this.#steeringDue = true;
    const isAlone = ![...this.#records.values()].some(
      (other) => other !== record && other.startedIn === this.#run && other.endedIn !== this.#run,
    );
    record.isRepeated = isAlone && this.#timesInARow(record.call) >= this.#maxIdentical;
  }

  /** Whether a steering message waits or is in flight, under a policy that skips for it. */
  #steeringIsKnown(): boolean {
    if (this.#world.plan.config.steering === "after-batch") return false;
    // A stream is read late, and a queue that fails reports nothing.
    if (this.#world.plan.entry === "stream" || this.#world.plan.queueFaults > 0) return false;
    return this.#queues.steeringWaits || this.#queues.inFlight("steering") > 0;
  }

  #update(event: Extract<AgentEvent, { type: "tool_execution_update" }>): void {
    const text = contentText(event.partialResult);
    for (const execution of this.#allExecutions(event.toolCallId)) {
      if (execution.lateUpdates.has(text)) {
        this.#fail("R14", `"${text}" was reported after the tool had settled, and was passed on`);
      }
    }
  }

  /** Those of the call and of the tools that it called. */
  #allExecutions(id: string): Execution[] {
    return [...this.#running, ...this.#executions].filter(
      (execution) => execution.id === id || execution.id.startsWith(`${id}/`),
    );
  }

  #end(ending: Extract<AgentEvent, { type: "tool_execution_end" }>): void {
    const { toolCallId, result, outcome, reason, isError, durationMs } = ending;
    const record = this.#records.get(toolCallId);
    if (!record) return;
    if (outcome !== outcomeOf(result) || isError !== (outcome !== "ok"))
      this.#fail("R8", `the outcome of ${toolCallId} is wrong`);
    if (reason !== (isError ? result.reason : undefined))
      this.#fail("R8", `the reason of ${toolCallId} is wrong`);
    if (!(durationMs >= 0)) this.#fail("R8", `durationMs of ${toolCallId} is ${durationMs}`);
    if (record.mustSkip && !this.#isCanceled() && outcome !== "skipped") {
      this.#fail("R15", `call ${toolCallId} was not skipped for the steering message that waited`);
    }
    const isLeftBehind = isStopped(ending) || outcome === "timeout";
    if (!isLeftBehind) this.#checkOrder(record);
    record.endedIn = this.#run;
    record.result = result;
    this.#remember(record, ending);
  }

  /** R13: calls that ran together end in the order in which they were done. */
  #checkOrder(record: CallRecord): void {
    const mine = this.#current(record);
    if (mine?.settledStep === undefined || this.#world.plan.entry === "stream") return;
    for (const other of this.#records.values()) {
      if (other === record || other.startedIn !== this.#run || other.endedIn === this.#run)
        continue;
      const its = this.#current(other);
      const verdict = this.#gatekeeper.verdicts.get(other.call.id) ?? "pass";
      if (its?.settledStep === undefined || verdict !== "pass") continue;
      if (its.settledStep < mine.settledStep && !this.#isCanceled()) {
        this.#fail(
          "R13",
          `${record.call.id} ended before ${other.call.id}, which was done earlier`,
        );
      }
    }
  }

  #remember(record: CallRecord, ending: Extract<AgentEvent, { type: "tool_execution_end" }>): void {
    if (isRefusal(ending)) {
      this.refusals++;
      return;
    }
    const decision = this.#run?.decisions[record.call.id];
    if (decision && decision.type !== "approve") return;
    const isUntried = UNTRIED.has(ending.outcome) || isIncomplete(record.message);
    if (isUntried || (record.recorded && this.#world.plan.recorded)) return;
    const ran = { key: computeKey(record.call), content: JSON.stringify(ending.result.content) };
    const last = this.#ran.at(-1);
    if (last?.key !== ran.key || last.content !== ran.content) this.refusals = 0;
    this.#ran.push(ran);
  }

  /** Whether all calls of the message are answered in this run: of others the loop may not know what they asked for. */
  #isWholeTurn({ message }: CallRecord): boolean {
    const siblings = [...this.#records.values()].filter((record) => record.message === message);
    return siblings.every(({ endedIn }) => endedIn === undefined || endedIn === this.#run);
  }

  #result(message: ToolResultMessage): void {
    const { toolCallId: id } = message;
    const record = this.#records.get(id);
    if (!record) return this.#fail("R8", `a result of ${id} comes, and there is no such call`);
    if (record.answered) return this.#fail("R8", `call ${id} has two results`);
    record.answered = true;
    if (message.toolName !== record.call.name)
      this.#fail("R8", `the result of ${id} names another tool`);
    this.terminating.push(record.result?.terminate === true && this.#isWholeTurn(record));
    const expected = record.result?.content ?? [];
    const isSame =
      expected.length === 0
        ? joinText(message) === "(no output)"
        : JSON.stringify(expected) === JSON.stringify(message.content);
    if (!isSame) this.#fail("R8", `the result of ${id} is not what tool_execution_end said`);
    const outcome = record.result && outcomeOf(record.result);
    if (message.outcome !== outcome || message.isError !== (outcome !== "ok")) {
      this.#fail("R8", `the outcome of the result of ${id} is wrong`);
    }
    if (message.reason !== (message.isError ? record.result?.reason : undefined)) {
      this.#fail("R8", `the reason of the result of ${id} is wrong`);
    }
    const text = joinText(message);
    const named = text.includes(record.call.name) || outcome === "skipped";
    const ownWords = [DENIED_TEXT, AFTER_TEXT].some((words) => text.includes(words));
    if (message.isError && !named && !ownWords) {
      this.#fail("R9", `the error result of ${id} does not name its tool: ${text}`);
    }
    const wrong = this.#complaint(record, message);
    if (wrong)
      this.#fail(
        wrong[0],
        `call ${id} of ${record.call.name}: ${wrong[1]}; its result says: ${text}`,
      );
    if (this.#steeringIsKnown()) this.#steeringDue = true;
  }

  /** Why this cannot be the result of that call; nothing where it can. */
  #complaint(record: CallRecord, message: ToolResultMessage): Complaint {
    const text = joinText(message);
    const { call } = record;
    const decision = this.#run?.decisions[call.id];
    const repaired = record.madeIn !== this.#run;
    if (repaired && decision?.type === "result") {
      return text === "done by hand" ? undefined : ["R27", "a person gave its result"];
    }
    if (repaired && decision?.type === "deny") {
      return message.outcome === "denied" ? undefined : ["R27", "a person denied it"];
    }
    if (repaired && decision?.type === "wait") return ["R27", "it waits for a person"];
    const isNew = !(record.recorded && this.#world.plan.recorded);
    if (isNew && this.#isAbandoned(call, message)) return this.#timeoutComplaint(record);
    const execution = this.#current(record);
    if (execution) return this.#executedComplaint(record, execution, message);
    const mayRun = decision?.type === "approve" && !(record.recorded && this.#world.plan.recorded);
    if (repaired && !mayRun) return this.#repairComplaint(record, message);
    return this.#unexecutedComplaint(record, message);
  }

  #timeoutMs(tool: SimTool): number {
    return tool.timeoutMs ?? this.#world.plan.config.toolTimeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS;
  }

  get #middlewareTimeoutMs(): number {
    return this.#world.plan.config.middlewareTimeoutMs ?? DEFAULT_MIDDLEWARE_TIMEOUT_MS;
  }

  /** Of the two deadlines that end a call, the middleware's: the other is the tool's. */
  #isAbandoned({ name }: ToolCall, { outcome, reason }: Ending): boolean {
    const isLate = `its middleware did not settle within ${this.#middlewareTimeoutMs} ms.`;
    return outcome === "timeout" && reason === `Tool "${name}" was abandoned: ${isLate}`;
  }

  /** A call with its middleware has a deadline of its own. */
  #timeoutComplaint(record: CallRecord): Complaint {
    const middlewareTimeoutMs = this.#middlewareTimeoutMs;
    if (this.#world.plan.entry === "stream") return undefined;
    const isOver = this.#world.now >= record.startedAt + middlewareTimeoutMs;
    if (!isOver) return ["R14", "its middleware had time left"];
    const execution = this.#current(record);
    const verdict = this.#gatekeeper.verdicts.get(record.call.id) ?? "pass";
    if (!execution || verdict !== "pass") return undefined;
    const timedOutAt = execution.startedAt + this.#timeoutMs(execution.tool);
    return timedOutAt < record.startedAt + middlewareTimeoutMs
      ? ["tools", "it should have timed out long before"]
      : undefined;
  }

  #repairComplaint(record: CallRecord, message: ToolResultMessage): Complaint {
    const text = joinText(message);
    if (record.recorded && this.#world.plan.recorded) {
      return contentText(record.recorded) === text || text === "(no output)"
        ? undefined
        : ["R19", "the journal has another result of it"];
    }
    if (isStopped(message)) return this.#abortedComplaint();
    const isInterrupted = message.outcome === "interrupted";
    const wasNeverToRun = isIncomplete(record.message) || record.message.stopReason === "length";
    if (record.call.argumentsError !== undefined || wasNeverToRun) return undefined;
    const tool = this.#toolNamed(record.call.name);
    if (tool?.idempotent) {
      const mayRepeat = this.#run?.tools.includes(tool.name) === true;
      return isInterrupted && mayRepeat ? ["R19", "it may be repeated"] : undefined;
    }
    return isInterrupted ? undefined : ["R19", "its outcome before the crash is unknown"];
  }

  #executedComplaint(
    record: CallRecord,
    execution: Execution,
    message: ToolResultMessage,
  ): Complaint {
    const { outcome, tool } = execution;
    const { reason } = message;
    const timeoutMs = this.#timeoutMs(tool);
    const dueAt = execution.startedAt + timeoutMs;
    const canceledAt = this.#canceledAt();
    if (message.outcome === "timeout") {
      if (!execution.signal.aborted) return ["tools", "its signal did not fire"];
      if (this.#world.now < dueAt) return ["tools", `it had ${dueAt - this.#world.now} ms left`];
      return execution.settledAt !== undefined && execution.settledAt < dueAt
        ? ["tools", "it was done in time"]
        : undefined;
    }
    if (isStopped(message)) {
      const wrong = this.#abortedComplaint();
      if (wrong) return wrong;
      const graceMs = tool.abortGraceMs ?? this.#world.plan.config.abortGraceMs ?? DEFAULT_GRACE_MS;
      const graceEnds = (canceledAt ?? 0) + graceMs;
      const hadTime = this.#world.now < Math.min(graceEnds, dueAt);
      if (!outcome && hadTime) return ["R21", "its grace time was not over"];
      const verdict = this.#gatekeeper.verdicts.get(record.call.id) ?? "pass";
      const { settledAt = Infinity } = execution;
      const inTime = settledAt < Math.min(graceEnds, dueAt);
      return inTime && outcome?.type === "result" && verdict === "pass"
        ? ["R21", "it gave its result within its grace time"]
        : undefined;
    }
    const verdict = this.#gatekeeper.verdicts.get(record.call.id) ?? "pass";
    if (joinText(message) === REWRITTEN_TEXT)
      return verdict === "rewrite" ? undefined : ["R14", "no middleware rewrote it"];
    const isOwnError = outcome?.type === "thrown" && reason === outcome.message;
    if (reason === AFTER_TEXT && !isOwnError) {
      return verdict === "throwAfter" ? undefined : ["R14", "no middleware objected"];
    }
    if (!outcome) return ["R8", "the tool has not settled"];
    if (outcome.type === "thrown") {
      return isOwnError ? undefined : ["R9", `the tool threw "${outcome.message}"`];
    }
    if (outcome.type === "rubbish") {
      const isReported = message.outcome === "error" && reason?.includes("returned") === true;
      return isReported ? undefined : ["R9", "the tool gave back rubbish"];
    }
    // Where work takes time, timers run late.
    const lateMs = this.#world.plan.burnMs * LATEST_TIMER_MS;
    if (execution.settledAt !== undefined && execution.settledAt > dueAt + lateMs) {
      return ["tools", `it took longer than ${timeoutMs} ms`];
    }
    if (verdict === "rewrite" || verdict === "throwAfter")
      return ["R14", `the middleware's word: ${verdict}`];
    const expected = outcome.result.content;
    const isSame =
      expected.length === 0 || JSON.stringify(expected) === JSON.stringify(message.content);
    const sameDetails = JSON.stringify(outcome.result.details) === JSON.stringify(message.details);
    return isSame && sameDetails ? undefined : ["R8", "the tool gave another result"];
  }

  #unexecutedComplaint(record: CallRecord, message: ToolResultMessage): Complaint {
    const { call, place } = record;
    const verdict = this.#gatekeeper.verdicts.get(call.id);
    if (joinText(message) === REWRITTEN_TEXT)
      return verdict === "answer" ? undefined : ["R14", "it was not run"];
    const { outcome, reason } = message;
    if (outcome === "ok") return ["R8", "it was not run"];
    if (isStopped(message)) return this.#abortedComplaint();
    if (outcome === "skipped") {
      if (place === 0) return ["R15", "the first call of a message is never skipped"];
      if (this.#world.plan.config.steering === "after-batch")
        return ["R15", "the policy runs all calls"];
      const steered = this.#queues.inFlight("steering") > 0 || this.#world.plan.entry === "stream";
      return steered ? undefined : ["R15", "there was no steering message"];
    }
    if (record.message.stopReason === "length") {
      return outcome === "truncated" ? undefined : ["R10", "the message was cut off"];
    }
    if (isIncomplete(record.message)) {
      const isRefused = outcome === "error" && verdict === undefined;
      return isRefused ? undefined : ["R6", "the message is incomplete"];
    }
    if (this.#excuses.some((excuse) => reason?.includes(excuse))) return undefined;
    if (isRefusal(message)) return this.#refusalComplaint(record);
    const tool = this.#toolNamed(call.name);
    if (outcome === "unknown_tool") {
      return this.hasTool(call.name) === true ? ["R9", "there is such a tool"] : undefined;
    }
    if (!tool) return ["R9", "there is no such tool"];
    if (call.argumentsError !== undefined) {
      return outcome === "invalid" && reason === call.argumentsError
        ? undefined
        : ["R11", "its arguments did not parse"];
    }
    if (cannotFit(tool.parameters, call.arguments)) {
      return outcome === "invalid" ? undefined : ["R12", "its arguments do not fit"];
    }
    if (verdict === "deny") return reason === DENIED_TEXT ? undefined : ["R14", "it was denied"];
    return ["R8", "nothing kept it from being run"];
  }

  #refusalComplaint(record: CallRecord): Complaint {
    if (this.#world.plan.config.toolExecution !== "sequential") return undefined;
    return this.#timesInARow(record.call) >= this.#maxIdentical
      ? undefined
      : ["R23", "it was not called that often"];
  }

  #abortedComplaint(): Complaint {
    return this.#isCanceled() ? undefined : ["R21", "there was no abort"];
  }

  #canceledAt(): number | undefined {
    const { abortedAt = Infinity, startedAt = Infinity } = this.#run ?? {};
    const { maxDurationMs = Infinity } = this.#world.plan.config.limits ?? {};
    const first = Math.min(abortedAt, startedAt + maxDurationMs);
    return first <= this.#world.now ? first : undefined;
  }

  #isCanceled(): boolean {
    return this.#canceledAt() !== undefined || this.#run?.sinkFailedOn !== undefined;
  }

  #current(record: CallRecord): Execution | undefined {
    return this.#executions.findLast(
      (execution) => execution.id === record.call.id && this.#runOf.get(execution) === this.#run,
    );
  }

  /** A tool is about to run: everything that forbids it. */
  executing(execution: Execution): void {
    this.#running.add(execution);
    this.#runOf.set(execution, this.#run);
    const run = this.#run;
    const { id, nested, tool } = execution;
    const stop: Fail = (rule, why) => {
      this.#fail(rule, `${tool.name} was run for ${id}, although ${why}`);
    };
    if (!run || run.over) return stop("R21", "no run goes on");
    if (run.abortedAt !== undefined) stop("R21", "the run was aborted");
    if (run.sinkFailedOn && this.#world.now > this.sinkDeadAt) stop("R25", "the sink has failed");
    const { maxDurationMs = Infinity } = this.#world.plan.config.limits ?? {};
    if (this.#world.clock.lastRunAt > run.startedAt + maxDurationMs) {
      stop("R23", "the time of the run was over");
    }
    const verdict = this.#gatekeeper.verdicts.get(id) ?? "pass";
    if (verdict === "deny" || verdict === "suspend" || verdict === "answer") {
      stop("R14", `the middleware's word was ${verdict}`);
    }
    if (this.#world.plan.middleware && !this.#gatekeeper.verdicts.has(id)) {
      stop("R14", "the middleware was not asked");
    }
    if (nested) return;
    this.#executingCall(execution, run, stop);
    this.#executions.push(execution);
  }

  #executingCall(execution: Execution, run: RunRecord, stop: Fail): void {
    const { id, tool } = execution;
    const record = this.#records.get(id);
    if (this.#world.plan.entry === "stream") return;
    if (!record) return stop("R8", "there is no such call");
    const { call, message } = record;
    if (record.startedIn !== run) stop("R2", "its start was not reported");
    if (record.endedIn === run || record.answered) stop("R8", "it was answered");
    if (call.name !== tool.name) stop("R8", `the call is one of ${call.name}`);
    if (call.argumentsError !== undefined) stop("R11", "its arguments did not parse");
    if (message.stopReason === "length") stop("R10", "its message was cut off");
    if (isIncomplete(message)) stop("R6", "its message is incomplete");
    if (record.mustSkip) stop("R15", "a steering message waited");
    const decision = run.decisions[id];
    if (decision && decision.type !== "approve")
      stop("R27", `a person's decision is ${decision.type}`);
    if (this.#executions.some((other) => other.id === id) && decision?.type !== "approve") {
      if (!tool.idempotent) stop("R19", "it was run before, and may not be repeated");
      if (record.madeIn === run) stop("R8", "it was run before in this run");
    }
    if (record.recorded && this.#world.plan.recorded && record.madeIn !== run) {
      stop("R19", "the journal has its result");
    }
    if (record.madeIn !== run && decision?.type !== "approve" && !tool.idempotent) {
      stop("R19", "it was left over and may not be repeated");
    }
    const others = [...this.#running].filter(
      (other) => other !== execution && !other.nested && !other.outcome && !other.signal.aborted,
    );
    const most = this.#world.plan.config.maxToolConcurrency ?? DEFAULT_CONCURRENCY;
    if (others.length >= most) stop("tools", `${others.length} others run, and ${most} may`);
    const intruder = others.find((other) => !this.mayRunTogether(id, other.id));
    if (intruder) stop("tools", `${intruder.id} runs, and they may not run together`);
    if (record.isRepeated) stop("R23", `the same came of it ${this.#maxIdentical} times in a row`);
  }

  get #maxIdentical(): number {
    return this.#world.plan.config.limits?.maxIdenticalCalls ?? DEFAULT_MAX_IDENTICAL;
  }

  /** How often this very call was the last thing done, with the same result each time. */
  #timesInARow(call: ToolCall): number {
    const key = computeKey(call);
    const content = this.#ran.at(-1)?.content;
    const other = this.#ran.findLastIndex((ran) => ran.key !== key || ran.content !== content);
    return this.#ran.length - 1 - other;
  }

  settled(execution: Execution): void {
    this.#running.delete(execution);
    const record = this.#records.get(execution.id);
    if (execution.nested || !record || this.#world.plan.entry === "stream") return;
    const wasAnswered =
      record.endedIn !== undefined && record.endedIn === this.#runOf.get(execution);
    if (wasAnswered) this.#lateDue.set(execution.id, this.#world.steps);
  }

  /** R21: what comes too late goes to `onLateResult`. */
  lateResult(id: string): void {
    this.#lateDue.delete(id);
  }

  stepDone(): void {
    for (const execution of this.#running) {
      if (execution.signal.aborted) continue;
      const run = this.#runOf.get(execution);
      if (run?.abortedAt !== undefined) {
        this.#fail("R21", `the signal of ${execution.id} did not fire on abort`);
      }
      if (run?.sinkFailedOn && this.#world.now > this.sinkDeadAt) {
        this.#fail("R25", `the signal of ${execution.id} did not fire when the sink failed`);
      }
    }
    for (const [id, step] of this.#lateDue) {
      if (this.#world.steps <= step) continue;
      this.#fail("R21", `the late result of ${id} did not go to onLateResult`);
      this.#lateDue.delete(id);
    }
  }

  #fail(rule: string, text: string): void {
    this.#world.fail(rule, text);
  }
}

function contentText(result: AgentToolResult): string {
  return result.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function computeKey({ name, arguments: args, rawArguments = "" }: ToolCall): string {
  return `${name} ${rawArguments} ${JSON.stringify(sorted(args))}`;
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
