import {
  type ArgumentsResult,
  errorMessage,
  isRecord,
  isThenable,
  nearNames,
  type ToolCall,
  type ToolOutcome,
  type UserContent,
  validateToolArguments,
} from "@gyre/ai";
import { compose, DeniedError, Suspend, type ToolInvocation } from "../contract/middleware.ts";
import type { Run } from "../run/run.ts";
import { warn } from "../contract/contain.ts";
import type {
  AgentTool,
  AgentToolResult,
  Decision,
  ToolHost,
  ToolReturn,
} from "../contract/types.ts";

export const DEFAULT_TOOL_TIMEOUT_MS = 600_000;
export const DEFAULT_ABORT_GRACE_MS = 200;
/** For a call with its middleware: a person may take a day to approve. */
export const DEFAULT_MIDDLEWARE_TIMEOUT_MS = 86_400_000;
/** How deep tools may call tools. */
export const MAX_NESTED_CALLS = 16;

/** How a call ended: with a result, or suspended until a person decides. */
export type CallOutcome = { result: AgentToolResult } | { suspended: Suspend };

/** A deep copy of the arguments: the tool may write to it, the transcript stays as it was. */
function copyValue<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyValue) as T;
  const entries = Object.entries(value).map(([key, inner]) => [key, copyValue(inner)] as const);
  return Object.fromEntries(entries) as T;
}

/** A result that is not `ok`. `reason`: for people, where the text says more than they need. */
export function errorResult(
  text: string,
  outcome: ToolOutcome = "error",
  reason: string = text,
): AgentToolResult {
  return { content: [{ type: "text", text }], isError: true, outcome, reason };
}

/**
 * Runs one call: finds the tool, validates a copy of the arguments, passes the
 * middleware. Never throws; whatever goes wrong is an error result that names the
 * tool and what happened. Settles within the tool's timeout, and within the grace
 * time after an abort, whether or not the tool listens.
 */
export async function executeCall(
  run: Run,
  call: ToolCall,
  decision?: Decision,
): Promise<CallOutcome> {
  try {
    if (run.gauge.refuses(call)) return withhold(run, call, repeatedResult(call));
    const edited = decision?.type === "approve" ? decision.args : undefined;
    const given = prepare(run, edited ? { ...call, arguments: edited } : call);
    const prepared = isThenable(given) ? await given : given;
    if (run.canceled) return { result: notStartedResult(run, call) };
    const outcome =
      "result" in prepared
        ? withhold(run, call, prepared.result)
        : await invoke(run, call, prepared, decision);
    if (edited && "result" in outcome) outcome.result = withEdited(outcome.result, edited);
    if ("result" in outcome) run.gauge.record(call, outcome.result);
    return outcome;
  } catch (error) {
    if (run.canceled) return { result: notStartedResult(run, call) };
    return withhold(run, call, thrownResult(call.name, error));
  }
}

/** The outcome of a call that is answered before the middleware sees it. */
function withhold(
  run: Run,
  toolCall: ToolCall,
  result: AgentToolResult,
): { result: AgentToolResult } {
  run.reportWithheld({ toolCall, result });
  return { result };
}

/** The transcript keeps what the model asked for; the result says what was run in its place. */
function withEdited(result: AgentToolResult, edited: Record<string, unknown>): AgentToolResult {
  const text = `A person changed the arguments before the tool ran: ${JSON.stringify(edited)}`;
  return { ...result, content: [{ type: "text", text }, ...result.content] };
}

type ReadyCall = Pick<ToolInvocation, "tool" | "args">;
type Prepared = ReadyCall | { result: AgentToolResult };

export function prepare(run: Run, call: ToolCall): Prepared | Promise<Prepared> {
  const tool = run.findTool(call.name);
  if (!tool) return { result: unknownToolResult(run, call.name) };
  if (call.argumentsError !== undefined) {
    return {
      result: errorResult(
        `The arguments for tool "${call.name}" are not valid JSON, and it was not run: ${call.argumentsError}`,
        "invalid",
        call.argumentsError,
      ),
    };
  }
  const judge = (checked: ArgumentsResult): Prepared =>
    checked.ok ? { tool, args: checked.value } : { result: errorResult(checked.error, "invalid") };
  const checked = run.hooks.call(`The schema of tool "${call.name}"`, () =>
    validateToolArguments(tool, copyValue(call.arguments)),
  );
  return isThenable(checked) ? checked.then(judge) : judge(checked);
}

/** Runs the call through middleware and tool, and abandons it when its time is over. */
export function invoke(
  run: Run,
  call: ToolCall,
  ready: ReadyCall,
  decision: Decision | undefined,
  execute: typeof throughMiddleware = throughMiddleware,
): Promise<CallOutcome> {
  return new Promise((resolve) => {
    const controller = new AbortController();
    let answered = false;
    let stopGrace: () => void = () => {};
    const answer = (outcome: CallOutcome): void => {
      if (answered) return;
      answered = true;
      for (const stopTimer of execution.timers) stopTimer();
      stopGrace();
      unlink();
      resolve(outcome);
    };
    const stopped = (): AgentToolResult =>
      execution.started ? abortedResult(run, call) : notStartedResult(run, call);
    const unlink = run.cancellation.onCancel(() => {
      abort(execution);
      const graceMs = ready.tool.abortGraceMs ?? run.config.abortGraceMs ?? DEFAULT_ABORT_GRACE_MS;
      stopGrace = run.clock.after(graceMs, () => answer({ result: stopped() }));
    });
    const execution: Execution = {
      run,
      call,
      controller,
      isAnswered: () => answered,
      timers: [],
      started: false,
      nested: [],
      decision,
      update: (partialResult) => {
        if (answered) return;
        run.emitProgress({
          type: "tool_execution_update",
          toolCallId: call.id,
          toolName: call.name,
          args: call.arguments,
          partialResult,
        });
      },
    };
    const { middleware, middlewareTimeoutMs = DEFAULT_MIDDLEWARE_TIMEOUT_MS } = run.config;
    if (middleware) {
      const abandon = (): void => {
        abort(execution);
        answer({
          result: errorResult(
            `Tool "${call.name}" was abandoned: its middleware did not settle within ${middlewareTimeoutMs} ms.`,
            "timeout",
          ),
        });
      };
      execution.timers.push(run.clock.after(middlewareTimeoutMs, abandon));
    }
    execute(execution, call, ready, 0).then(
      (result) => answer({ result: toResult(call.name, result) }),
      (error: unknown) => {
        if (error instanceof Suspend) answer({ suspended: error });
        else if (run.canceled) answer({ result: stopped() });
        else answer({ result: thrownResult(call.name, error) });
      },
    );
  });
}

interface Execution {
  run: Run;
  call: ToolCall;
  controller: AbortController;
  isAnswered: () => boolean;
  /** Stop the timeouts of what was abandoned, which would keep a process alive. */
  timers: (() => void)[];
  /** The tool was reached: it may have had effects. */
  started: boolean;
  /** Calls that this one makes of other tools, while they run. */
  nested: Execution[];
  /** A person's answer; it holds for calls that the tool makes, too. */
  decision: Decision | undefined;
  update: (partial: AgentToolResult) => void;
}

function remove<T>(list: T[], item: T): void {
  const index = list.indexOf(item);
  if (index >= 0) list.splice(index, 1);
}

function abort({ controller, nested }: Execution): void {
  controller.abort();
  for (const inner of nested) abort(inner);
}

function throughMiddleware(
  execution: Execution,
  toolCall: ToolCall,
  { tool, args }: ReadyCall,
  depth: number,
  key?: string,
): Promise<AgentToolResult> {
  const { run, call, controller, decision } = execution;
  const parentId = depth > 0 ? call.id : run.config.caller?.id;
  const invocation: ToolInvocation = {
    toolCall,
    tool,
    args,
    signal: controller.signal,
    run: run.info,
    ...(parentId !== undefined && { parentId }),
    ...(decision && { decision }),
  };
  if (tool.needsApproval && decision?.type !== "approve") {
    return checkApproval(tool, args).then(
      () => pass(execution, invocation, depth, key),
      (error: unknown) => {
        run.reportWithheld({
          toolCall,
          ...(depth > 0 && { parentId: call.id }),
          ...(error instanceof Suspend
            ? { suspended: error.message }
            : { result: thrownResult(tool.name, error) }),
        });
        throw error;
      },
    );
  }
  return pass(execution, invocation, depth, key);
}

/** Throws where a person has to approve the call. */
async function checkApproval(
  { name, needsApproval }: AgentTool,
  args: Record<string, unknown>,
): Promise<void> {
  const isNeeded =
    typeof needsApproval === "function" ? await needsApproval(copyValue(args)) : needsApproval;
  if (isNeeded) throw new Suspend(`Tool "${name}" needs approval.`);
}

function pass(
  execution: Execution,
  invocation: ToolInvocation,
  depth: number,
  key: string | undefined,
): Promise<AgentToolResult> {
  const core = (inner: ToolInvocation): Promise<AgentToolResult> =>
    executeTool(execution, inner, depth, key);
  const { middleware } = execution.run.config;
  if (!middleware) return core(invocation);
  const layers = middleware.flatMap((m) => (m.tool ? [m.tool.bind(m)] : []));
  // The async arrow turns a synchronous throw of a layer into a rejection.
  return (async () => compose(layers, core)(invocation))();
}

/**
 * The tool itself, within its timeout. A late result goes to `onLateResult`. `key`: that of a call
 * that a tool makes.
 */
export function executeTool(
  execution: Execution,
  { tool, args, toolCall }: Pick<ToolInvocation, "tool" | "args" | "toolCall">,
  depth: number,
  key?: string,
): Promise<AgentToolResult> {
  const { run, call } = execution;
  // Middleware may have waited, for a person say, while the run was stopped.
  if (run.canceled) return Promise.resolve(notStartedResult(run, toolCall));
  if (execution.isAnswered()) {
    return Promise.resolve(
      errorResult(
        `Tool "${tool.name}" was not run: the call that asked for it is over.`,
        "aborted",
      ),
    );
  }
  // Middleware may retry a tool that has timed out, and whose signal has fired.
  const isFirst = depth === 0 && !execution.controller.signal.aborted;
  // Of a tool that a tool called the timeout is its own, and an abort is shared.
  const own: Execution = isFirst
    ? execution
    : { ...execution, call: toolCall, controller: new AbortController(), nested: [] };
  if (!isFirst) execution.nested.push(own);
  execution.started = true;
  return new Promise((resolve, reject) => {
    let timedOut = false;
    let isSettled = false;
    let isCounted = false;
    const timeoutMs = tool.timeoutMs ?? run.config.toolTimeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS;
    const stopTimer = run.clock.after(timeoutMs, () => {
      timedOut = true;
      isSettled = true;
      abort(own);
      reject(new TimedOut(tool.name, timeoutMs));
    });
    execution.timers.push(stopTimer);
    const settled = (result: AgentToolResult): boolean => {
      isSettled = true;
      remove(execution.nested, own);
      stopTimer();
      remove(execution.timers, stopTimer);
      const late = timedOut || execution.isAnswered();
      if (late && depth === 0) run.reportLate(call, result);
      return !late;
    };
    const update = (partial: AgentToolResult): void => {
      if (!isSettled) execution.update(partial);
    };
    let made = 0;
    const host: ToolHost = {
      get key() {
        return key ?? run.computeKey(toolCall.id);
      },
      // In another attempt the nth call has the same key.
      call: (name, given) => callNested(own, name, given, depth + 1, `${host.key}/${++made}`),
      left: () => run.left(),
      spend: (usage) => {
        isCounted = true;
        run.addToolUsage(usage);
      },
    };
    const returned = (value: ToolReturn): void => {
      const result = toResult(tool.name, value);
      // Here, and not where results are published: what comes too late was spent as well.
      if (result.usage && !isCounted) run.addToolUsage(result.usage);
      if (settled(result)) resolve(result);
    };
    const threw = (error: unknown): void => {
      if (settled(thrownResult(tool.name, error))) reject(error);
    };
    try {
      const given = tool.execute(args, {
        id: toolCall.id,
        signal: own.controller.signal,
        update,
        host,
        messages: run.history.messages,
      });
      if (isThenable(given)) given.then(returned, threw);
      else returned(given);
    } catch (error) {
      threw(error);
    }
  });
}

async function callNested(
  execution: Execution,
  name: string,
  args: Record<string, unknown>,
  depth: number,
  key: string,
): Promise<AgentToolResult> {
  if (depth > MAX_NESTED_CALLS) {
    return errorResult(
      `Tool "${name}" was not run: tools call tools more than ${MAX_NESTED_CALLS} deep.`,
      "limit",
    );
  }
  const { run, call, controller } = execution;
  if (controller.signal.aborted || execution.isAnswered()) {
    return errorResult(
      `Tool "${name}" was not run: the call that asked for it was stopped.`,
      "aborted",
    );
  }
  const toolCall: ToolCall = {
    type: "toolCall",
    id: run.nextNestedId(call),
    name,
    arguments: args,
  };
  const prepared = await prepare(run, toolCall);
  if ("result" in prepared) {
    run.reportWithheld({ toolCall, parentId: call.id, result: prepared.result });
    return prepared.result;
  }
  const given = await throughMiddleware(execution, toolCall, prepared, depth, key);
  // A tool that passes this on as its own result must not spend it a second time.
  const { usage: _counted, ...result } = toResult(name, given);
  return result;
}

class TimedOut extends Error {
  constructor(name: string, ms: number) {
    super(`Tool "${name}" timed out after ${ms} ms and was stopped; it may have had effects.`);
    this.name = "TimedOut";
  }
}

/** The value of a tool or an application as a result; an error result if JSON cannot hold it. */
export function toResult(name: string, value: ToolReturn): AgentToolResult {
  if (typeof value === "string") return { content: [{ type: "text", text: value }] };
  if (isRecord(value) && isContent(value["content"])) return value as unknown as AgentToolResult;
  if (isContent(value) && value.length > 0) return { content: value };
  const text = toJson(value);
  if (text !== undefined && (text !== "{}" || isPlain(value))) {
    return { content: [{ type: "text", text }], details: value };
  }
  const problem = `Tool "${name}" returned ${describe(value, text)}: it has to return a text, content, or a value that JSON can hold.`;
  // The model reads it as well; the mistake is one of the program.
  warn("A mistake in the program", problem);
  return errorResult(problem);
}

function isContent(value: unknown): value is UserContent[] {
  return (
    Array.isArray(value) &&
    value.every(
      (block) =>
        isRecord(block) &&
        ((block["type"] === "text" && typeof block["text"] === "string") ||
          block["type"] === "image" ||
          block["type"] === "file"),
    )
  );
}

/** Whether "{}" is all that there is in it. A Map, a generator, a response or an error has more. */
function isPlain(value: unknown): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function describe(value: unknown, text: string | undefined): string {
  if (value === undefined) return "nothing";
  const type = text ? Object.prototype.toString.call(value).slice(8, -1) : typeof value;
  return `a value of type ${type}`;
}

function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function thrownResult(name: string, error: unknown): AgentToolResult {
  if (error instanceof TimedOut) return errorResult(error.message, "timeout");
  const text = `Tool "${name}" failed: ${errorMessage(error)}`;
  if (error instanceof DeniedError) return errorResult(text, "denied", error.reason);
  return errorResult(text, "error", errorMessage(error));
}

export function abortedResult(run: Run, { name }: ToolCall): AgentToolResult {
  const text = `while tool "${name}" was running; it may have had effects.`;
  return stoppedResult(run, text, "while it was running");
}

export function notStartedResult(run: Run, { name }: ToolCall): AgentToolResult {
  return stoppedResult(run, `before tool "${name}" was started.`, "before it was started");
}

/** Of a call that a person has denied. */
export function deniedResult({ name }: ToolCall, reason: string | undefined): AgentToolResult {
  const why = reason ? `: ${reason}` : ".";
  return errorResult(`Tool "${name}" was denied${why}`, "denied", reason);
}

/** Of a call that never began before a crash. */
export function notBegunResult({ name }: ToolCall): AgentToolResult {
  const text = `Not started: the run ended before tool "${name}" was started, so it had no effects. Call it again if it is still needed.`;
  return errorResult(text, "interrupted", "the run ended before it was started");
}

/** Of a call that may have begun before a crash. */
export function interruptedResult(call: ToolCall): AgentToolResult {
  return errorResult(
    `Interrupted: the run ended before tool "${call.name}" gave its result. Whether it had effects is not known; look before you call it again.`,
    "interrupted",
    "the run ended before it gave its result; its effects are unknown",
  );
}

function stoppedResult(run: Run, text: string, when: string): AgentToolResult {
  const isLimit = run.canceled === "limit";
  const why = isLimit ? "the time limit of the run was reached" : "the user stopped the run";
  return errorResult(`Aborted: ${why} ${text}`, isLimit ? "limit" : "aborted", `${why} ${when}`);
}

function repeatedResult(call: ToolCall): AgentToolResult {
  return errorResult(
    `Tool "${call.name}" was not run: it was called with the same arguments and gave the same result several times in a row. Do something else.`,
    "limit",
    "the same call gave the same result several times in a row",
  );
}

function unknownToolResult(run: Run, name: string): AgentToolResult {
  const near = nearNames(name, run.toolbox.byName.keys());
  const all = [...run.toolbox.byName.keys()];
  const hint =
    near.length > 0
      ? `. Did you mean ${near.join(", ")}?`
      : all.length > 0
        ? `. Available: ${all.join(", ")}.`
        : "";
  return errorResult(`Tool ${name} not found${hint}`, "unknown_tool");
}
