import { expect, it } from "vitest";
import { toWatchdog } from "./watchdog.ts";

it("the settings for silence are in seconds, the options of an agent in milliseconds", () => {
  expect(toWatchdog({})).toEqual({});
  const settings = { firstByteTimeout: 600, connectionTimeout: 0.5, contentTimeout: 1_800 };
  expect(toWatchdog(settings)).toEqual({
    firstByteMs: 600_000,
    betweenBytesMs: 500,
    contentMs: 1_800_000,
  });
});
