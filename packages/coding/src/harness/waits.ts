import type { AgentOptions } from "@gyre/agent";
import type { Settings } from "../settings/settings.ts";

const MS_PER_SECOND = 1_000;

/** Responses in a row that break off after something was shown, and are asked for again. */
export const MAX_CONTINUATIONS = 3;

/** How long responses may be silent, and how failures are retried. */
export type Waits = Required<Pick<AgentOptions, "watchdog" | "retry" | "maxContinuations">>;

/** What an agent does about silence and failures, as the settings say. */
export function readWaits(settings: Settings): Waits {
  const { firstByteTimeout, connectionTimeout, contentTimeout } = settings;
  const { retryAttempts, retryTime } = settings;
  return {
    watchdog: {
      ...(firstByteTimeout !== undefined && { firstByteMs: firstByteTimeout * MS_PER_SECOND }),
      ...(connectionTimeout !== undefined && { betweenBytesMs: connectionTimeout * MS_PER_SECOND }),
      ...(contentTimeout !== undefined && { contentMs: contentTimeout * MS_PER_SECOND }),
    },
    maxContinuations: MAX_CONTINUATIONS,
    retry: {
      ...(retryAttempts !== undefined && { maxRetries: retryAttempts - 1 }),
      ...(retryTime !== undefined && { maxElapsedMs: retryTime * MS_PER_SECOND }),
    },
  };
}
