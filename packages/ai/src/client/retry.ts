import { systemClock } from "../common/clock.ts";
import { loadPart } from "../common/loading.ts";
import { isRetryable } from "../messages/failure.ts";
import type { AssistantMessage, FailureKind } from "../messages/messages.ts";

/** How often a failed request is sent again, and how long to wait in between. */
export interface RetryOptions {
  /**
   * Default 4; for overload, rate limits, network faults and early ends 9. While another of
   * `fallbackModels` can be asked: 2, and none that begins later than 10 s after the request.
   */
  maxRetries?: number;
  /**
   * Default 300,000: of overload, rate limits, network faults and early ends, no retry begins
   * later than this after the first failure.
   */
  maxElapsedMs?: number;
  /** Default 1,000; doubles with each attempt, with full jitter. */
  baseDelayMs?: number;
  /** Default 30,000. */
  maxDelayMs?: number;
}

/** One attempt at a response. `shown`: content was emitted, and cannot be taken back. */
export interface Attempt {
  message: AssistantMessage;
  shown: boolean;
}

/** A wait before the next attempt. */
export interface RetryReport {
  /** The attempt that failed: the first is 1. */
  attempt: number;
  /** How many there are at most. */
  maxAttempts: number;
  delayMs: number;
  kind: FailureKind;
  errorMessage: string;
}

/** How `withRetry` waits, and what it calls. */
export interface RetryPolicy<A extends Attempt = Attempt> extends RetryOptions {
  maxRetryDelayMs?: number | undefined;
  random: () => number;
  /** The time in milliseconds. Default: the system's. */
  now?: () => number;
  /** Whether this attempt is the last one, whatever its failure is. */
  isFinal?: (attempt: A) => boolean;
  /** Whether another model can be asked in place of this one. */
  hasNext?: (attempt: A) => boolean;
  /** Waits. Resolves to false when the run was canceled meanwhile. */
  wait: (ms: number) => Promise<boolean>;
  onRetry: (retry: RetryReport) => void | Promise<void>;
}

/**
 * The one place where requests are retried: until an attempt succeeds, has emitted content, or
 * is not worth repeating. Resolves to the last attempt, whatever became of it.
 */
export async function withRetry<A extends Attempt>(
  attempt: () => Promise<A>,
  policy: RetryPolicy<A>,
): Promise<A> {
  const { now = () => systemClock.now() } = policy;
  const times = { startedAt: now() };
  for (let tries = 1; ; tries++) {
    const outcome = await attempt();
    const { failure } = outcome.message;
    if (!failure || outcome.shown || !isRetryable(failure)) return outcome;
    const { planRetry } = await loadPart(import("./retry-plan.ts"));
    const retry = planRetry(outcome, failure, { tries, times, now: now() }, policy);
    if (!retry) return outcome;
    await policy.onRetry(retry);
    if (!(await policy.wait(retry.delayMs))) return outcome;
  }
}
