import type { Failure, FailureKind } from "../messages/messages.ts";
import type { Attempt, RetryPolicy, RetryReport } from "./retry.ts";

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

/** How often a request was made, and when. */
export interface Tries {
  tries: number;
  /** `startedAt`: of the first attempt. `failedAt`: of its failure, kept here by `planRetry`. */
  times: { startedAt: number; failedAt?: number };
  now: number;
}

/** The retry that follows a failed attempt; where none does, its message may say why. */
export function planRetry<A extends Attempt>(
  outcome: A,
  failure: Failure,
  { tries, times, now }: Tries,
  policy: RetryPolicy<A>,
): RetryReport | undefined {
  const { errorMessage = "" } = outcome.message;
  const isPassing = PASSING.has(failure.kind);
  // What the application has set stands, however many models there are.
  const isShort = policy.maxRetries === undefined && policy.hasNext?.(outcome) === true;
  const standard = isPassing ? DEFAULT_MAX_PASSING_RETRIES : DEFAULT_MAX_RETRIES;
  const maxRetries = policy.maxRetries ?? (isShort ? MAX_RETRIES_BEFORE_FALLBACK : standard);
  if (tries > maxRetries || policy.isFinal?.(outcome)) return undefined;
  const { maxElapsedMs = DEFAULT_MAX_ELAPSED_MS } = policy;
  const longest = policy.maxRetryDelayMs ?? DEFAULT_MAX_RETRY_DELAY_MS;
  const delayMs = retryDelay(failure, tries, policy, longest);
  const explain = (why: string): undefined => {
    outcome.message = { ...outcome.message, errorMessage: `${errorMessage} ${why}`.trim() };
  };
  if (delayMs > longest) {
    return explain(
      `The service asks to wait ${formatSeconds(delayMs)}, which is more than the ${formatSeconds(longest)} that maxRetryDelayMs allows.`,
    );
  }
  if (isShort && now + delayMs - times.startedAt > MAX_ELAPSED_BEFORE_FALLBACK_MS) return undefined;
  times.failedAt ??= now;
  if (isPassing && now + delayMs - times.failedAt > maxElapsedMs) {
    return explain(
      `It was tried ${tries} times; the next would be after the ${formatSeconds(maxElapsedMs)} that retry.maxElapsedMs allows.`,
    );
  }
  return { attempt: tries, maxAttempts: maxRetries + 1, delayMs, kind: failure.kind, errorMessage };
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
