import { type AssistantMessage, type Failure, isRetryable } from "@gyre/ai";
import type { RetryOptions } from "../contract/types.ts";

export const DEFAULT_MAX_RETRIES = 4;
export const DEFAULT_BASE_DELAY_MS = 1_000;
export const DEFAULT_MAX_DELAY_MS = 30_000;
/** A service that asks for a longer wait than this fails the run at once. */
export const DEFAULT_MAX_RETRY_DELAY_MS = 60_000;

/** One try at a response. `shown`: content was passed on, so that it cannot be taken back. */
export interface Attempt {
  message: AssistantMessage;
  shown: boolean;
}

/** How `withRetry` waits, and whom it tells. */
export interface RetryPolicy extends RetryOptions {
  maxRetryDelayMs?: number | undefined;
  random: () => number;
  /** Waits; answers false when the run was cancelled meanwhile. */
  wait: (ms: number) => Promise<boolean>;
  onRetry: (retry: {
    attempt: number;
    delayMs: number;
    kind: string;
    errorMessage: string;
  }) => void | Promise<void>;
}

/**
 * The one owner of retries: tries until an attempt succeeds, showed something, or
 * is not worth repeating. Answers with the last attempt, whatever became of it.
 */
export async function withRetry<A extends Attempt>(
  attempt: () => Promise<A>,
  policy: RetryPolicy,
): Promise<A> {
  const maxRetries = policy.maxRetries ?? DEFAULT_MAX_RETRIES;
  for (let tries = 1; ; tries++) {
    const outcome = await attempt();
    const { failure, errorMessage = "" } = outcome.message;
    if (!failure || outcome.shown || tries > maxRetries || !isRetryable(failure)) return outcome;
    const longest = policy.maxRetryDelayMs ?? DEFAULT_MAX_RETRY_DELAY_MS;
    const delayMs = retryDelay(failure, tries, policy, longest);
    if (delayMs > longest) {
      outcome.message = {
        ...outcome.message,
        errorMessage:
          `${errorMessage} The service asks to wait ${seconds(delayMs)}, which is more than the ${seconds(longest)} that maxRetryDelayMs allows.`.trim(),
      };
      return outcome;
    }
    await policy.onRetry({ attempt: tries, delayMs, kind: failure.kind, errorMessage });
    if (!(await policy.wait(delayMs))) return outcome;
  }
}

/** As long as the service asks for; else what we think right, which is never too long. */
function retryDelay(failure: Failure, tries: number, policy: RetryPolicy, longest: number): number {
  if (failure.retryAfterMs !== undefined) return Math.max(0, failure.retryAfterMs);
  const base = policy.baseDelayMs ?? DEFAULT_BASE_DELAY_MS;
  const cap = Math.min(longest, policy.maxDelayMs ?? DEFAULT_MAX_DELAY_MS);
  return Math.round(policy.random() * Math.min(cap, base * 2 ** (tries - 1)));
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}
