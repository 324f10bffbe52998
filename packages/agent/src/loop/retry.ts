import {
  type AssistantMessage,
  type Failure,
  type FailureKind,
  isRetryable,
  systemClock,
} from "@gyre/ai";
import type { AgentEvent, RetryOptions } from "../contract/types.ts";

export const DEFAULT_MAX_RETRIES = 4;
/** The same for failures of `PASSING`: ten attempts in all. */
export const DEFAULT_MAX_PASSING_RETRIES = 9;
/** Of those, no attempt begins later than this after the first failure. */
export const DEFAULT_MAX_ELAPSED_MS = 300_000;
/** While another model can be asked, a service gets no more retries than this, */
export const MAX_RETRIES_BEFORE_FALLBACK = 2;
/** and none that begins later than this after the first request. */
export const MAX_ELAPSED_BEFORE_FALLBACK_MS = 10_000;
export const DEFAULT_BASE_DELAY_MS = 1_000;
export const DEFAULT_MAX_DELAY_MS = 30_000;
/** A service that asks for a longer wait than this fails the run at once. */
export const DEFAULT_MAX_RETRY_DELAY_MS = 60_000;

/** Overload, rate limits and network faults pass, but may take minutes to. */
const PASSING: ReadonlySet<FailureKind> = new Set([
  "overloaded",
  "rate_limit",
  "network",
  "incomplete",
]);

/** One attempt at a response. `shown`: content was emitted, and cannot be taken back. */
export interface Attempt {
  message: AssistantMessage;
  shown: boolean;
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
  onRetry: (retry: Omit<Extract<AgentEvent, { type: "retry" }>, "type">) => void | Promise<void>;
}

/**
 * The one place where requests are retried: until an attempt succeeds, has emitted content, or
 * is not worth repeating. Resolves to the last attempt, whatever became of it.
 */
export async function withRetry<A extends Attempt>(
  attempt: () => Promise<A>,
  policy: RetryPolicy<A>,
): Promise<A> {
  const { now = () => systemClock.now(), maxElapsedMs = DEFAULT_MAX_ELAPSED_MS } = policy;
  const startedAt = now();
  let failedAt: number | undefined;
  for (let tries = 1; ; tries++) {
    const outcome = await attempt();
    const { failure, errorMessage = "" } = outcome.message;
    if (!failure || outcome.shown || !isRetryable(failure)) return outcome;
    const isPassing = PASSING.has(failure.kind);
    // What the application has set stands, however many models there are.
    const isShort = policy.maxRetries === undefined && policy.hasNext?.(outcome) === true;
    const standard = isPassing ? DEFAULT_MAX_PASSING_RETRIES : DEFAULT_MAX_RETRIES;
    const maxRetries = policy.maxRetries ?? (isShort ? MAX_RETRIES_BEFORE_FALLBACK : standard);
    if (tries > maxRetries || policy.isFinal?.(outcome)) return outcome;
    const longest = policy.maxRetryDelayMs ?? DEFAULT_MAX_RETRY_DELAY_MS;
    const delayMs = retryDelay(failure, tries, policy, longest);
    const endWith = (why: string): A => {
      outcome.message = { ...outcome.message, errorMessage: `${errorMessage} ${why}`.trim() };
      return outcome;
    };
    if (delayMs > longest) {
      return endWith(
        `The service asks to wait ${formatSeconds(delayMs)}, which is more than the ${formatSeconds(longest)} that maxRetryDelayMs allows.`,
      );
    }
    if (isShort && now() + delayMs - startedAt > MAX_ELAPSED_BEFORE_FALLBACK_MS) return outcome;
    failedAt ??= now();
    if (isPassing && now() + delayMs - failedAt > maxElapsedMs) {
      return endWith(
        `It was tried ${tries} times; the next would be after the ${formatSeconds(maxElapsedMs)} that retry.maxElapsedMs allows.`,
      );
    }
    const { kind } = failure;
    const maxAttempts = maxRetries + 1;
    await policy.onRetry({ attempt: tries, maxAttempts, delayMs, kind, errorMessage });
    if (!(await policy.wait(delayMs))) return outcome;
  }
}

/** As long as the service asks for; else a growing backoff with full jitter, up to the maximum. */
function retryDelay(
  { retryAfterMs }: Failure,
  tries: number,
  {
    baseDelayMs: base = DEFAULT_BASE_DELAY_MS,
    ...policy
  }: Omit<RetryPolicy, "isFinal" | "hasNext">,
  longest: number,
): number {
  if (retryAfterMs !== undefined) return Math.max(0, retryAfterMs);
  const cap = Math.min(longest, policy.maxDelayMs ?? DEFAULT_MAX_DELAY_MS);
  return Math.round(policy.random() * Math.min(cap, base * 2 ** (tries - 1)));
}

function formatSeconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}
