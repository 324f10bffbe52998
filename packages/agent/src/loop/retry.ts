import { type AssistantMessage, type Failure, isRetryable } from "@gyre/ai";
import type { AgentEvent, RetryOptions } from "../contract/types.ts";

export const DEFAULT_MAX_RETRIES = 4;
export const DEFAULT_BASE_DELAY_MS = 1_000;
export const DEFAULT_MAX_DELAY_MS = 30_000;
/** A service that asks for a longer wait than this fails the run at once. */
export const DEFAULT_MAX_RETRY_DELAY_MS = 60_000;

/** One attempt at a response. `shown`: content was emitted, and cannot be taken back. */
export interface Attempt {
  message: AssistantMessage;
  shown: boolean;
}

/** How `withRetry` waits, and what it calls. */
export interface RetryPolicy<A extends Attempt = Attempt> extends RetryOptions {
  maxRetryDelayMs?: number | undefined;
  random: () => number;
  /** Whether this attempt is the last one, whatever its failure is. */
  isFinal?: (attempt: A) => boolean;
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
  const maxRetries = policy.maxRetries ?? DEFAULT_MAX_RETRIES;
  for (let tries = 1; ; tries++) {
    const outcome = await attempt();
    const { failure, errorMessage = "" } = outcome.message;
    if (!failure || outcome.shown || tries > maxRetries || !isRetryable(failure)) return outcome;
    if (policy.isFinal?.(outcome)) return outcome;
    const longest = policy.maxRetryDelayMs ?? DEFAULT_MAX_RETRY_DELAY_MS;
    const delayMs = retryDelay(failure, tries, policy, longest);
    if (delayMs > longest) {
      outcome.message = {
        ...outcome.message,
        errorMessage:
          `${errorMessage} The service asks to wait ${formatSeconds(delayMs)}, which is more than the ${formatSeconds(longest)} that maxRetryDelayMs allows.`.trim(),
      };
      return outcome;
    }
    await policy.onRetry({ attempt: tries, delayMs, kind: failure.kind, errorMessage });
    if (!(await policy.wait(delayMs))) return outcome;
  }
}

/** As long as the service asks for; else a growing backoff with full jitter, up to the maximum. */
function retryDelay(
  { retryAfterMs }: Failure,
  tries: number,
  { baseDelayMs: base = DEFAULT_BASE_DELAY_MS, ...policy }: Omit<RetryPolicy, "isFinal">,
  longest: number,
): number {
  if (retryAfterMs !== undefined) return Math.max(0, retryAfterMs);
  const cap = Math.min(longest, policy.maxDelayMs ?? DEFAULT_MAX_DELAY_MS);
  return Math.round(policy.random() * Math.min(cap, base * 2 ** (tries - 1)));
}

function formatSeconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}
