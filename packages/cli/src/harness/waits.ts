import type { RetryOptions, WatchdogOptions } from "@gyre/agent";
import type { Settings } from "../settings/settings.ts";

const MS_PER_SECOND = 1_000;

/** How long responses may be silent, and how long failed requests are retried. */
export interface Waits {
  watchdog: WatchdogOptions;
  retry: RetryOptions;
}

/** The waits of an agent, as the settings say. */
export function readWaits(settings: Settings): Waits {
  const { firstByteTimeout, connectionTimeout, contentTimeout } = settings;
  const { retryAttempts, retryTime } = settings;
  return {
    watchdog: {
      ...(firstByteTimeout !== undefined && { firstByteMs: firstByteTimeout * MS_PER_SECOND }),
      ...(connectionTimeout !== undefined && { betweenBytesMs: connectionTimeout * MS_PER_SECOND }),
      ...(contentTimeout !== undefined && { contentMs: contentTimeout * MS_PER_SECOND }),
    },
    retry: {
      ...(retryAttempts !== undefined && { maxRetries: retryAttempts - 1 }),
      ...(retryTime !== undefined && { maxElapsedMs: retryTime * MS_PER_SECOND }),
    },
  };
}
