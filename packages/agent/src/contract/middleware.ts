import type {
  AssistantMessageEvent,
  AssistantMessageEventStream,
  Context,
  Model,
  StreamOptions,
  ToolCall,
} from "@gyre/ai";
import type { ArgumentsOf } from "./by-tool.ts";
import type {
  AgentEndEvent,
  AgentEvent,
  AgentTool,
  AgentToolResult,
  Decision,
  PendingCall,
} from "./types.ts";

/** A run has moved on to another model of `fallbackModels`. */
export type FallbackEvent = Extract<AgentEvent, { type: "fallback" }>;

/** The run that a call belongs to: one object a run. */
export interface RunInfo {
  readonly sessionId: string | undefined;
  /** The model that the run started with. */
  readonly model: Model;
  /** The fallbacks that led to the model in use, the newest last. */
  readonly fallbacks: readonly FallbackEvent[];
}

/** A tool call on its way to the tool, arguments validated and coerced. */
export interface ToolInvocation {
  readonly toolCall: ToolCall;
  readonly tool: AgentTool;
  /** A copy; the transcript keeps what the model sent. */
  readonly args: Record<string, unknown>;
  readonly signal: AbortSignal;
  /** A person's answer, when this call was suspended before. */
  readonly decision?: Decision;
  /** Id of the call that made this call: a tool called a tool, or the run works for that call. */
  readonly parentId?: string;
  readonly run: RunInfo;
}

/** A call that did not get as far as the `tool` layers of the middleware. */
export interface WithheldCall {
  readonly toolCall: ToolCall;
  /** Id of the call that made this call, when a tool called a tool. */
  readonly parentId?: string;
  /** Why it was not run: no such tool, arguments that are not valid, the same call too often. */
  readonly result?: AgentToolResult;
  /** The tool's own `needsApproval` leaves it to a person, for this reason. */
  readonly suspended?: string;
  readonly run: RunInfo;
}

/** A request on its way to the model. */
export interface ModelInvocation {
  readonly model: Model;
  readonly context: Context;
  readonly options: StreamOptions;
  readonly run: RunInfo;
}

/** A response on its way, as a model or a middleware gives it. */
export type ModelAnswer = AssistantMessageEventStream | AsyncIterable<AssistantMessageEvent>;

/**
 * Wraps what the run does. The first in the list is the outermost. Around a tool: throwing
 * before `next()` keeps the tool from running (`DeniedError` says that it was refused), throwing
 * after it makes an error result, `Suspend` leaves the call pending. `next` accepts a changed
 * invocation.
 */
export interface Middleware {
  /** Called when a run starts; the function that it returns is called when the run has ended. */
  run?(run: RunInfo): ((end: AgentEndEvent | undefined) => void) | void;
  /** Called with a result that came after its call had been answered without it (R21). */
  late?(call: ToolCall, result: AgentToolResult, run: RunInfo): void;
  /** Called with a call that the `tool` layers do not see. */
  withheld?(call: WithheldCall): void;
  /** Called when the first content of a response arrives. */
  firstContent?(run: RunInfo): void;
  tool?(
    call: ToolInvocation,
    next: (changed?: ToolInvocation) => Promise<AgentToolResult>,
  ): Promise<AgentToolResult>;
  model?(
    call: ModelInvocation,
    next: (changed?: ModelInvocation) => Promise<ModelAnswer>,
  ): Promise<ModelAnswer>;
}

/** See `PendingCall`. */
export type SuspendQuestion = Pick<PendingCall, "access" | "fingerprint">;

/** Thrown by middleware: the call waits for a person, and the run ends suspended. */
export class Suspend extends Error {
  readonly code = "suspend";
  /** What the person is to know beside the reason: fields of the `PendingCall`. */
  readonly question: SuspendQuestion;
  constructor(reason: string, question: SuspendQuestion = {}) {
    super(reason);
    this.name = "Suspend";
    this.question = question;
  }
}

/**
 * Thrown by middleware before `next()`: the call is refused. The model gets the message, the
 * result has the outcome `denied` and the reason.
 */
export class DeniedError extends Error {
  readonly code = "denied";
  readonly reason: string;
  constructor(reason: string, message = `Denied: ${reason}`) {
    super(message);
    this.name = "DeniedError";
    this.reason = reason;
  }
}

/** Functions around a core, the first outermost. Each may call `next` with a changed value. */
export function compose<C, R>(
  layers: readonly ((call: C, next: (changed?: C) => Promise<R>) => Promise<R>)[],
  core: (call: C) => Promise<R>,
): (call: C) => Promise<R> {
  return layers.reduceRight<(call: C) => Promise<R>>(
    (inner, layer) => (call) => layer(call, (changed = call) => inner(changed)),
    core,
  );
}

/** What became of the question whether a tool may run. `deny`: why not, for the model. */
export type Approval = "allow" | "suspend" | { deny: string };

/** A call of one of these tools, as `approval()` asks about it: `toolName` narrows `args`. */
export type ToolInvocationOf<Tool extends AgentTool> = Tool extends { name: infer Name }
  ? Omit<ToolInvocation, "toolCall" | "tool" | "args"> & {
      readonly toolName: Name;
      readonly toolCall: ToolCall<Name, ArgumentsOf<Tool>>;
      readonly tool: Tool;
      readonly args: ArgumentsOf<Tool>;
    }
  : never;

/**
 * Asks before a tool runs. `allow` runs it, `{deny}` gives the model the reason,
 * `suspend` ends the run and waits for `continue({decisions})`. It does not ask about a call
 * that a person has decided already. With `tools`, it asks about calls of tools of these names
 * alone, and `toolName` narrows `args`; all others run.
 */
export function approval<const Answer extends Approval>(
  ask: (call: ToolInvocationOf<AgentTool>) => Answer | Promise<Answer>,
): Middleware;
export function approval<Tool extends AgentTool, const Answer extends Approval>(
  tools: readonly Tool[],
  ask: (call: ToolInvocationOf<Tool>) => Answer | Promise<Answer>,
): Middleware;
export function approval(...given: [Ask] | [readonly AgentTool[], Ask]): Middleware {
  const [tools, ask] = given.length === 1 ? [undefined, given[0]] : given;
  const names = tools && new Set(tools.map(({ name }) => name));
  return {
    async tool(call, next) {
      const { name } = call.tool;
      if (call.decision?.type === "approve" || names?.has(name) === false) return next();
      const answer = await ask({ ...call, toolName: name });
      if (answer === "allow") return next();
      if (answer === "suspend") throw new Suspend(`Tool "${name}" needs approval.`);
      throw new DeniedError(answer.deny);
    },
  };
}

/** Any function that `approval()` takes: a method, as arguments differ by tool. */
type Ask = {
  ask(call: ToolInvocationOf<AgentTool>): Approval | Promise<Approval>;
}["ask"];
