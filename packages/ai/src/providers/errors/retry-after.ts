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
// `Date.parse` makes a date of nearly anything, so the form is checked first.
const HTTP_DATE = /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*, .+ gmt$|^\d{4}-\d\d-\d\dt[\d:.]+z$/i;
/** A reset above this is a point in time in seconds; below it, seconds from now. */
const EPOCH_SECONDS = 1_000_000_000;
/** A reset above this is a point in time in milliseconds. */
const EPOCH_MS = 100_000_000_000;

/** Headers that can be looked up by name, such as a `Headers`. */
export interface HeaderLookup {
  get(name: string): string | null;
}

/**
 * How long a response asks us to wait: `retry-after` (seconds or a date) and
 * `retry-after-ms`. With both, the longer counts, because some services send a
 * second in one and zero in the other. A time in the past is 0; a value that cannot be
 * parsed is ignored.
 */
export function parseRetryAfter(headers: HeaderLookup, now: number): number | undefined {
  return findLongest([
    parseNumber(headers.get("retry-after-ms"), 1),
    parseNumber(headers.get("retry-after"), MS_PER_SECOND) ??
      parseDuration(headers.get("retry-after")) ??
      parseDate(headers.get("retry-after"), now),
  ]);
}

/**
 * How long until the exhausted limit is renewed, by the `x-ratelimit-*` headers. For services
 * without `retry-after`; only meaningful with a 429.
 */
export function parseRateLimitReset(headers: HeaderLookup, now: number): number | undefined {
  return findLongest(
    ["", "-requests", "-tokens"].map((what) => {
      if (Number(headers.get(`x-ratelimit-remaining${what}`) ?? NaN) !== 0) return undefined;
      const reset = headers.get(`x-ratelimit-reset${what}`);
      return parseDuration(reset) ?? parseReset(reset, now) ?? parseDate(reset, now);
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
  return roundUp(ms);
}

/** The longest of the known waits. */
export function findLongest(waits: readonly (number | undefined)[]): number | undefined {
  const known = waits.filter((wait) => wait !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
}

function parseNumber(text: string | null, unitMs: number): number | undefined {
  const trimmed = text?.trim() ?? "";
  return NUMBER.test(trimmed) ? roundUp(Number(trimmed) * unitMs) : undefined;
}

function parseDate(text: string | null, now: number): number | undefined {
  const trimmed = text?.trim() ?? "";
  return HTTP_DATE.test(trimmed) ? roundUp(Date.parse(trimmed) - now) : undefined;
}

function parseReset(text: string | null, now: number): number | undefined {
  const value = parseNumber(text, 1);
  if (value === undefined) return undefined;
  if (value >= EPOCH_MS) return roundUp(value - now);
  // A fraction of a second would be lost in `value`.
  const ms = Number(text) * MS_PER_SECOND;
  return roundUp(value >= EPOCH_SECONDS ? ms - now : ms);
}

/** Rounded up, so that a retry never comes too early. */
function roundUp(ms: number): number | undefined {
  return Number.isFinite(ms) ? Math.max(0, Math.ceil(ms)) : undefined;
}
