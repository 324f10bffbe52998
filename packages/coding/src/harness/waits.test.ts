import { expect, it } from "vitest";
import { readWaits } from "./waits.ts";

it("the settings for waits are in seconds, the options of an agent in milliseconds", () => {
  expect(readWaits({})).toEqual({ watchdog: {}, retry: {}, maxContinuations: 3 });
  const settings = { firstByteTimeout: 600, connectionTimeout: 0.5, contentTimeout: 1_800 };
  expect(readWaits({ ...settings, retryTime: 90 })).toEqual({
    watchdog: { firstByteMs: 600_000, betweenBytesMs: 500, contentMs: 1_800_000 },
    retry: { maxElapsedMs: 90_000 },
    maxContinuations: 3,
  });
});

it("R22: the setting counts attempts, the option of an agent counts retries", () => {
  expect(readWaits({ retryAttempts: 1 }).retry).toEqual({ maxRetries: 0 });
  expect(readWaits({ retryAttempts: 20 }).retry).toEqual({ maxRetries: 19 });
});
