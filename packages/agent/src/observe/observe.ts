import {
  type AssistantMessage,
  type AssistantMessageEventStream,
  errorMessage,
  type Failure,
  IncompleteStreamError,
  isThenable,
  toAssistantStream,
} from "@gyre/ai";
import { warn } from "../contract/contain.ts";
import {
  type Middleware,
  type ModelInvocation,
  type RunInfo,
  Suspend,
  type ToolInvocation,
} from "../contract/middleware.ts";
import type { AgentEndEvent, AgentToolResult } from "../contract/types.ts";

/** What went wrong: a kind of failure, or the name of an error's class. */
export interface Trouble {
  kind: string;
  message?: string;
}

export interface RunOutcome {
  /** Absent when the sink failed. */
  end?: AgentEndEvent;
  trouble?: Trouble;
}

export interface ModelOutcome {
  /** Absent when there was none, or the loop did not wait for it. */
  message?: AssistantMessage;
  trouble?: Trouble;
}

export interface ToolOutcome {
  /** Absent when there was none, or the loop did not wait for it. */
  result?: AgentToolResult;
  trouble?: Trouble;
  /** Why the call waits for a person. */
  suspended?: string;
}

/** Watches one thing happen. */
export interface Watch<O> {
  /** Called once, at the latest when the run ends. */
  settled(outcome: O): void;
  /** Calls `next` and gives what it gives; for those who have a context to call it in. */
  within?<T>(next: () => T): T;
}

export interface Observer {
  run(run: RunInfo): Watch<RunOutcome>;
  model(call: ModelInvocation): Watch<ModelOutcome>;
  tool(call: ToolInvocation): Watch<ToolOutcome>;
}

const ABORTED: Trouble = { kind: "aborted" };

/** Calls what it is given, and keeps what that throws from the run. */
export type Contained = <T>(call: () => T) => T | undefined;

/** Reports the first fault, also of a promise, as a process warning, and stays silent about more. */
export function containment(what: string): Contained {
  let reported = false;
  const report = (error: unknown): void => {
    if (reported) return;
    reported = true;
    warn(`${what} failed (told only once)`, error);
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
 * A middleware that only looks on: it changes, delays and consumes nothing, and
 * whatever the observer throws is contained. A response that was cut off settles when
 * its signal fires, a tool that was left behind when the run ends.
 */
export function observe(contained: Contained, observer: Observer): Middleware {
  const openByRun = new WeakMap<RunInfo, Set<() => void>>();

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
        const trouble = runTrouble(end);
        contained(() => watch?.settled({ ...(end && { end }), ...(trouble && { trouble }) }));
      };
    },

    async model(call, next) {
      const { signal } = call.options;
      const left: ModelOutcome = { trouble: ABORTED };
      const { settled, within } = follow(call.run, () => observer.model(call), left);
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
        const answer = await within(() => next());
        // Somebody's stream function may give nothing: that is the loop's to judge.
        stream = answer && toAssistantStream(answer);
      } catch (error) {
        finish({ trouble: modelTrouble(error) });
        throw error;
      }
      if (!stream) {
        finish({ trouble: { kind: "incomplete" } });
        return stream;
      }
      stream.result().then(
        (message) => finish(ofMessage(message)),
        (error: unknown) => finish({ trouble: modelTrouble(error) }),
      );
      return stream;
    },

    async tool(call, next) {
      const { settled, within } = follow<ToolOutcome>(call.run, () => observer.tool(call), {
        trouble: ABORTED,
      });
      try {
        const result = await within(() => next());
        settled({ result, ...(result?.isError && { trouble: { kind: "tool_error" } }) });
        return result;
      } catch (error) {
        settled(
          error instanceof Suspend
            ? { suspended: error.message }
            : { trouble: { kind: classOf(error), message: errorMessage(error) } },
        );
        throw error;
      }
    },
  };
}

function ofMessage(message: AssistantMessage): ModelOutcome {
  const trouble = messageTrouble(message);
  return { message, ...(trouble && { trouble }) };
}

function messageTrouble({
  errorMessage,
  failure,
  stopReason,
}: AssistantMessage): Trouble | undefined {
  if (!failure && stopReason !== "error" && stopReason !== "aborted") return undefined;
  return {
    kind: failure?.kind ?? (stopReason === "aborted" ? "aborted" : "unknown"),
    ...(errorMessage !== undefined && { message: errorMessage }),
  };
}

/** Named as the loop names it in the message that it makes of such an error. */
function modelTrouble(error: unknown): Trouble {
  const { failure } = (error ?? {}) as { failure?: Failure };
  const kind = error instanceof IncompleteStreamError ? "incomplete" : "hook";
  return { kind: failure?.kind ?? kind, message: errorMessage(error) };
}

function runTrouble(end: AgentEndEvent | undefined): Trouble | undefined {
  if (!end || end.stop === "sink") return { kind: "sink" };
  if (end.stop === "aborted") return ABORTED;
  if (end.stop !== "error") return undefined;
  return (end.finalMessage && messageTrouble(end.finalMessage)) ?? { kind: "unknown" };
}

function classOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
