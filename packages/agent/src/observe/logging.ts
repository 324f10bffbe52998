import { checkShape } from "#checks";
import {
  type Clock,
  type Model,
  redact,
  listSecrets,
  type StopReason,
  systemClock,
  type Usage,
} from "@gyre/ai";
import type { Middleware, RunInfo } from "../contract/middleware.ts";
import { type Containment, createContainment, observe, type ErrorReport } from "./observe.ts";
import type { AgentEndEvent, AgentStop } from "../contract/types.ts";

export type LogLevel = "info" | "warn" | "error";

/** What went wrong. `message` is that of a service or a program, never of a model or a tool. */
export type LogError = Pick<ErrorReport, "kind" | "message">;

interface LogLineBase {
  /** ISO 8601, in UTC. */
  time: string;
  level: LogLevel;
  /** The run's `sessionId`. */
  conversation_id?: string;
}

interface LogOutcome {
  latency_ms: number;
  is_error: boolean;
  error?: LogError;
}

interface LogModel {
  provider: string;
  model: string;
}

/** A run begins. */
export interface RunStartLine extends LogLineBase, LogModel {
  event: "run_start";
}

/** A run has ended. */
export interface RunEndLine extends LogLineBase, LogModel, LogOutcome {
  event: "run_end";
  stop: AgentStop;
  turns?: number;
  usage?: Usage;
}

/** One a request: a response that was retried has several. */
export interface ModelCallLine extends LogLineBase, LogModel, LogOutcome {
  event: "model_call";
  /** The model that was to be asked in place of this one, and why it was not. */
  fallback?: LogModel & { kind: string };
  stop_reason?: StopReason;
  usage?: Usage;
}

/** A call was answered, or waits for a decision. */
export interface ToolCallLine extends LogLineBase, LogOutcome {
  event: "tool_call";
  tool_name: string;
  tool_call_id: string;
  /** The call waits for a person's decision. */
  suspended?: true;
}

/** A result came after its call had been answered without it. */
export interface LateResultLine extends LogLineBase {
  event: "late_result";
  tool_name: string;
  tool_call_id: string;
  is_error: boolean;
}

/** What `logging` writes: one object for each thing that happened. */
export type LogLine = RunStartLine | RunEndLine | ModelCallLine | ToolCallLine | LateResultLine;

export interface LoggingOptions {
  /** For times and latencies; the system's, if absent. */
  clock?: Clock;
}

/**
 * What is used of a logger: the instance that pino makes fits, that of winston and `console`, too.
 * Level and time of an entry are then the logger's own. pino gets `(fields, message)`, the other
 * two get `(message, fields)`.
 */
export interface Logger {
  info(first: object | string, second: object | string): unknown;
  warn(first: object | string, second: object | string): unknown;
  error(first: object | string, second: object | string): unknown;
}

/**
 * Writes a line when a run starts and ends, and when a model or a tool has answered.
 * Lines hold no content: no messages, no arguments, no results, no keys; of a tool
 * that failed only the kind of its error. `write` is not waited for. When it throws
 * or rejects, the run goes on, and the first time is reported as a process warning.
 */
export function logging(
  write: ((line: LogLine) => void) | Logger,
  { clock = systemClock }: LoggingOptions = {},
): Middleware {
  checkShape("logging", write);
  const contained = createContainment("The log");
  const put = writeTo(write, contained);
  /** A service may repeat a key in its error message. */
  const secrets = new WeakMap<RunInfo, Set<string>>();

  const base = (level: LogLevel, { sessionId }: RunInfo): LogLineBase => ({
    time: new Date(clock.now()).toISOString(),
    level,
    ...(sessionId !== undefined && { conversation_id: sessionId }),
  });
  const outcome = (from: number, error: ErrorReport | undefined, run: RunInfo): LogOutcome => ({
    latency_ms: clock.now() - from,
    is_error: error !== undefined,
    ...(error && { error: toLogError(error, secrets.get(run)) }),
  });

  const observer = observe(contained, {
    run(run) {
      const from = clock.now();
      const asked = toLogModel(run.model);
      secrets.set(run, new Set());
      put({ ...base("info", run), event: "run_start", ...asked });
      return {
        settled: ({ end, error }) =>
          put({
            ...base(chooseLevel(end), run),
            event: "run_end",
            ...asked,
            ...outcome(from, error, run),
            stop: end?.stop ?? "sink",
            ...(end && { turns: end.turns, ...known(end.usage) }),
          }),
      };
    },
    model({ model, options, run }) {
      const from = clock.now();
      const last = run.fallbacks.at(-1);
      const fallback = last && { ...toLogModel(last.from), kind: last.kind };
      for (const secret of listSecrets(model, options)) secrets.get(run)?.add(secret);
      return {
        settled: ({ message, error }) =>
          put({
            ...base(error ? "warn" : "info", run),
            event: "model_call",
            ...toLogModel(model),
            ...(fallback && { fallback }),
            ...outcome(from, error, run),
            ...(message && { stop_reason: message.stopReason, ...known(message.usage) }),
          }),
      };
    },
    withheld({ toolCall, run }, { error, suspended }) {
      put({
        ...base(error ? "warn" : "info", run),
        event: "tool_call",
        tool_name: toolCall.name,
        tool_call_id: toolCall.id,
        ...outcome(clock.now(), error, run),
        ...(suspended !== undefined && { suspended: true }),
      });
    },
    tool({ tool, toolCall, run }) {
      const from = clock.now();
      return {
        settled: ({ error, suspended }) =>
          put({
            ...base(error ? "warn" : "info", run),
            event: "tool_call",
            tool_name: tool.name,
            tool_call_id: toolCall.id,
            // The text of a tool's error goes to the model, and is content.
            ...outcome(from, error && { kind: error.kind }, run),
            ...(suspended !== undefined && { suspended: true }),
          }),
      };
    },
  });
  return {
    ...observer,
    late: ({ id, name }, { isError = false }, run) =>
      put({
        ...base("warn", run),
        event: "late_result",
        tool_name: name,
        tool_call_id: id,
        is_error: isError,
      }),
  };
}

function writeTo(
  write: ((line: LogLine) => void) | Logger,
  contained: Containment,
): (line: LogLine) => void {
  if (typeof write === "function") return (line) => contained(() => write(line));
  // Only winston has transports, and only a console has groups: both take the message first.
  const isMessageFirst = "transports" in write || "group" in write;
  return (line) => {
    const { time: _, level, ...fields } = line;
    const { event } = line;
    contained(() => (isMessageFirst ? write[level](event, fields) : write[level](fields, event)));
  };
}

/** Makes `logging` write text: each line one JSON object with a line feed after it. */
export function jsonLines(write: (text: string) => void): (line: LogLine) => void {
  return (line) => write(`${JSON.stringify(line)}\n`);
}

function chooseLevel(end: AgentEndEvent | undefined): LogLevel {
  if (!end || end.stop === "error" || end.stop === "sink") return "error";
  return end.stop === "aborted" || end.stop === "limit" ? "warn" : "info";
}

function toLogError({ kind, message }: ErrorReport, secrets: Iterable<string> = []): LogError {
  // The text of a refusal is the model's.
  if (message === undefined || kind === "refused") return { kind };
  return { kind, message: redact(message, [...secrets]) };
}

function toLogModel({ provider, id }: Pick<Model, "provider" | "id">): LogModel {
  return { provider, model: id };
}

function known(usage: Usage): { usage?: Usage } {
  return Object.keys(usage).length > 0 ? { usage: { ...usage } } : {};
}
