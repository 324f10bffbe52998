import { UsageError } from "../../core/exit-codes.ts";
import type { OptionName } from "../../core/options.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const UNITS: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
};

/** `90s`, `30m`, `24h`, `30d` or `2w`, in milliseconds. */
export function readDuration(option: OptionName, text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  throw new UsageError(`--${option} takes a time such as 24h or 30d, not "${text}".`);
}

/** A time that long ago, or a date. */
export function readTime(option: OptionName, text: string, now: number): Date {
  const ms = parseDuration(text);
  if (ms !== undefined) return new Date(now - ms);
  const date = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(date.getTime())) return date;
  throw new UsageError(
    `--${option} takes a time such as 24h or 30d, or a date such as 2030-01-31, not "${text}".`,
  );
}

function parseDuration(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (UNITS[unit] ?? 0);
}
