import {
  type AssistantMessage,
  type AssistantMessageEventStream,
  errorMessage,
  type Failure,
  IncompleteStreamError,
  isThenable,
  outcomeOf,
  toAssistantStream,
} from "@gyre/ai";
import { warn } from "../contract/contain.ts";
import {
  type Middleware,
  type ModelInvocation,
  type RunInfo,
  Suspend,
  type ToolInvocation,
  type WithheldCall,
} from "../contract/middleware.ts";
import type { AgentEndEvent, AgentToolResult } from "../contract/types.ts";

/** What went wrong: a kind of failure, or the name of an error's class. */
export interface ErrorReport {
  kind: string;
  message?: string;
  /** HTTP status, where there was one. */
  status?: number;
}

export interface RunOutcome {
  /** Absent when the sink failed. */
  end?: AgentEndEvent;
  error?: ErrorReport;
}

export interface ModelOutcome {
  /** Absent when there was none, or the loop did not wait for it. */
  message?: AssistantMessage;
  error?: ErrorReport;
}

export interface ToolOutcome {
  /** Absent when there was none, or the loop did not wait for it. */
  result?: AgentToolResult;
  error?: ErrorReport;
  /** Why the call waits for a person. */
  suspended?: string;
}

/** Watches one thing happen. */
export interface Watch<O> {
  /** Called once, at the latest when the run ends. */
  settled(outcome: O): void;
  /** Calls `next` in a context, and returns what it returns. */
  within?<T>(next: () => T): T;
}

/** Watches one request to a model. */
export interface ModelWatch extends Watch<ModelOutcome> {
  /** The first content has arrived. */
  firstContent?(): void;
  /** The service has answered, at this address. */
  responded?(url: string): void;
}

export interface Observer {
  run(run: RunInfo): Watch<RunOutcome>;
  model(call: ModelInvocation): ModelWatch;
  tool(call: ToolInvocation): Watch<ToolOutcome>;
  /** A call that was not run, and why; or that waits for a person. */
  withheld(call: WithheldCall, outcome: ToolOutcome): void;
}

const ABORTED: ErrorReport = { kind: "aborted" };

/** Calls a function, and keeps its errors from the run. */
export type Containment = <T>(call: () => T) => T | undefined;

/** Reports the first error, also of a promise, as a process warning, and ignores the rest. */
export function createContainment(what: string): Containment {
  let reported = false;
  const report = (error: unknown): void => {
    if (reported) return;
    reported = true;
    warn(`${what} failed (reported only once)`, error);
  };
  return (call) => {
    try {
      const given = call();
      if (isThenable(given)) given.then(undefined, report);
      return given;
    } catch (error) {
      report(error);
      return undefined;
    }
  };
}

/**
 * A middleware that only observes: it changes, delays and consumes nothing, and
 * whatever the observer throws is contained. A response that was cut off settles when
 * its signal fires, an abandoned tool when the run ends.
 */
export function observe(contained: Containment, observer: Observer): Middleware {
  const openByRun = new WeakMap<RunInfo, Set<() => void>>();
  /** The newest request of each run. */
  const requests = new WeakMap<RunInfo, ModelWatch>();

  /** Begins a watch that settles once: with `left`, if nothing did when the run ends. */
  const follow = <O>(run: RunInfo, start: () => Watch<O>, left: O): Required<Watch<O>> => {
    const open = openByRun.get(run);
    const watch = contained(start);
    let waiting = true;
    const settled = (outcome: O): void => {
      if (!waiting) return;
      waiting = false;
      open?.delete(leave);
      contained(() => watch?.settled(outcome));
    };
    const leave = (): void => settled(left);
    open?.add(leave);
    return { settled, within: (next) => (watch?.within ? watch.within(next) : next()) };
  };

  return {
    run(run) {
      const open = new Set<() => void>();
      openByRun.set(run, open);
      const watch = contained(() => observer.run(run));
      return (end) => {
        for (const leave of open) leave();
        const error = reportRunError(end);
        contained(() => watch?.settled({ ...(end && { end }), ...(error && { error }) }));
      };
    },

    async model(call, next) {
      const { signal } = call.options;
      const left: ModelOutcome = { error: ABORTED };
      const watching: { watch?: ModelWatch } = {};
      const { settled, within } = follow(
        call.run,
        () => (watching.watch = observer.model(call)),
        left,
      );
      const { watch } = watching;
      if (watch) requests.set(call.run, watch);
      let stream: AssistantMessageEventStream | undefined;
      // The service's own listener goes first: if it closes the stream, that has the facts.
      const cutOff = (): void =>
        queueMicrotask(() => {
          if (!stream?.closed) settled(left);
        });
      const finish = (outcome: ModelOutcome): void => {
        signal?.removeEventListener("abort", cutOff);
        settled(outcome);
      };
      if (signal?.aborted) cutOff();
      else signal?.addEventListener("abort", cutOff, { once: true });
      try {
        const answer = await within(() => next(watch?.responded && withAddress(call, watch)));
        // A stream function may return nothing: the loop reports that.
        stream = answer && toAssistantStream(answer);
      } catch (error) {
        finish({ error: reportModelError(error) });
        throw error;
      }
      if (!stream) {
        finish({ error: { kind: "incomplete" } });
        return stream;
      }
      stream.result().then(
        (message) => {
          const error = reportMessageError(message);
          finish({ message, ...(error && { error }) });
        },
        (error: unknown) => finish({ error: reportModelError(error) }),
      );
      return stream;
    },

    firstContent: (run) => contained(() => requests.get(run)?.firstContent?.()),

    withheld(call) {
      const { result, suspended } = call;
      const error = result && { kind: outcomeOf(result) };
      contained(() =>
        observer.withheld(call, {
          ...(result && { result }),
          ...(error && { error }),
          ...(suspended !== undefined && { suspended }),
        }),
      );
    },

    async tool(call, next) {
      const { settled, within } = follow<ToolOutcome>(call.run, () => observer.tool(call), {
        error: ABORTED,
      });
      try {
        const result = await within(() => next());
        settled({ result, ...(result?.isError && { error: { kind: "tool_error" } }) });
        return result;
      } catch (error) {
        settled(
          error instanceof Suspend
            ? { suspended: error.message }
            : {
                error: {
                  kind: error instanceof Error ? error.name : typeof error,
                  message: errorMessage(error),
                },
              },
        );
        throw error;
      }
    },
  };
}

/** The request, with a hook that reports where the service has answered. */
function withAddress(call: ModelInvocation, watch: ModelWatch): ModelInvocation {
  const { onResponse } = call.options;
  return {
    ...call,
    options: {
      ...call.options,
      onResponse: (response, model) => {
        watch.responded?.(response.url);
        return onResponse?.(response, model);
      },
    },
  };
}

function reportMessageError({
  errorMessage,
  failure,
  stopReason,
}: AssistantMessage): ErrorReport | undefined {
  if (!failure && stopReason !== "error" && stopReason !== "aborted") return undefined;
  return {
    kind: failure?.kind ?? (stopReason === "aborted" ? "aborted" : "unknown"),
    ...(errorMessage !== undefined && { message: errorMessage }),
    ...(failure?.status !== undefined && { status: failure.status }),
  };
}

/** Named as the loop names it in the message that it makes of such an error. */
function reportModelError(error: unknown): ErrorReport {
  const { failure } = (error ?? {}) as { failure?: Failure };
  const kind = error instanceof IncompleteStreamError ? "incomplete" : "hook";
  return { kind: failure?.kind ?? kind, message: errorMessage(error) };
}

function reportRunError(end: AgentEndEvent | undefined): ErrorReport | undefined {
  if (!end || end.stop === "sink") return { kind: "sink" };
  if (end.stop === "aborted") return ABORTED;
  if (end.stop !== "error") return undefined;
  return (end.finalMessage && reportMessageError(end.finalMessage)) ?? { kind: "unknown" };
}
