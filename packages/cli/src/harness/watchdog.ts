import type { WatchdogOptions } from "@gyre/agent";
import type { Settings } from "../settings/settings.ts";

const MS_PER_SECOND = 1_000;

/** How long responses may be silent, as the settings say. */
export function toWatchdog(settings: Settings): WatchdogOptions {
  const { firstByteTimeout, connectionTimeout, contentTimeout } = settings;
  return {
    ...(firstByteTimeout !== undefined && { firstByteMs: firstByteTimeout * MS_PER_SECOND }),
    ...(connectionTimeout !== undefined && { betweenBytesMs: connectionTimeout * MS_PER_SECOND }),
    ...(contentTimeout !== undefined && { contentMs: contentTimeout * MS_PER_SECOND }),
  };
}
