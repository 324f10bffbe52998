import type { ResponseHeaders } from "./wire.ts";

const MS_PER_SECOND = 1_000;
const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: MS_PER_SECOND,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const NUMBER = /^[+-]?\d+(?:\.\d+)?$/;
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/i;
const DURATION_PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/gi;
// `Date.parse` makes a date of nearly anything, so that the form is asked first.
const HTTP_DATE = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*, .+ gmt$|^\d{4}-\d\d-\d\dt[\d:.]+z$/i;
/** A reset above this is a point in time in seconds; below it, seconds from now. */
const EPOCH_SECONDS = 1_000_000_000;
/** A reset above this is a point in time in milliseconds. */
const EPOCH_MS = 100_000_000_000;

/**
 * How long a response asks us to wait: `retry-after` (seconds or a date) and
 * `retry-after-ms`. With both, the longer counts, because some services send a
 * second in one and zero in the other. A time that is past is 0; what cannot be
 * read is ignored.
 */
export function parseRetryAfter(
  headers: Pick<ResponseHeaders, "get">,
  now: number,
): number | undefined {
  return longest([
    scaled(headers.get("retry-after-ms"), 1),
    scaled(headers.get("retry-after"), MS_PER_SECOND) ??
      parseDuration(headers.get("retry-after")) ??
      untilDate(headers.get("retry-after"), now),
  ]);
}

/**
 * When the limit that is used up is renewed, by the `x-ratelimit-*` headers. A
 * service without `retry-after` may tell it so; only of use with a 429.
 */
export function parseRateLimitReset(
  headers: Pick<ResponseHeaders, "get">,
  now: number,
): number | undefined {
  return longest(
    ["", "-requests", "-tokens"].map((what) => {
      if (Number(headers.get(`x-ratelimit-remaining${what}`) ?? NaN) !== 0) return undefined;
      const reset = headers.get(`x-ratelimit-reset${what}`);
      return parseDuration(reset) ?? untilReset(reset, now) ?? untilDate(reset, now);
    }),
  );
}

/** The milliseconds of "6m0s", "1.5s", "20ms" and the like. */
export function parseDuration(text: string | null): number | undefined {
  const trimmed = text?.trim() ?? "";
  if (!DURATION.test(trimmed)) return undefined;
  let ms = 0;
  for (const [, amount, unit = ""] of trimmed.matchAll(DURATION_PART))
    ms += Number(amount) * (UNIT_MS[unit.toLowerCase()] ?? 0);
  return whole(ms);
}

/** The longest of those that are known. */
export function longest(waits: readonly (number | undefined)[]): number | undefined {
  const known = waits.filter((wait) => wait !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
}

function scaled(text: string | null, unitMs: number): number | undefined {
  const trimmed = text?.trim() ?? "";
  return NUMBER.test(trimmed) ? whole(Number(trimmed) * unitMs) : undefined;
}

function untilDate(text: string | null, now: number): number | undefined {
  const trimmed = text?.trim() ?? "";
  return HTTP_DATE.test(trimmed) ? whole(Date.parse(trimmed) - now) : undefined;
}

function untilReset(text: string | null, now: number): number | undefined {
  const value = scaled(text, 1);
  if (value === undefined) return undefined;
  if (value >= EPOCH_MS) return whole(value - now);
  // A fraction of a second would be lost in `value`.
  const ms = Number(text) * MS_PER_SECOND;
  return whole(value >= EPOCH_SECONDS ? ms - now : ms);
}

/** Rounded up, so that nobody comes too early. */
function whole(ms: number): number | undefined {
  return Number.isFinite(ms) ? Math.max(0, Math.ceil(ms)) : undefined;
}
