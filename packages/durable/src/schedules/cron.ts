import { DurableError } from "../contract/errors.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const MINUTES_OF_HOUR = 60;
/** February 29 may be 8 years away. */
const MAX_DAYS = 9 * 366;

/** The times of a cron expression, by the clock on the wall. */
export interface Cron {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: readonly number[];
  readonly months: readonly number[];
  /** 0: Sunday. */
  readonly weekdays: readonly number[];
  /** Days of the month and weekdays are both given: one of them is enough. */
  readonly isEitherDay: boolean;
}

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** What the first numbers are called. */
  readonly names?: readonly string[];
}

const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const WEEKDAYS = "sun mon tue wed thu fri sat".split(" ");
const SUNDAY = 7;
const FIELDS = {
  minute: { name: "minute", min: 0, max: 59 },
  hour: { name: "hour", min: 0, max: 23 },
  day: { name: "day of the month", min: 1, max: 31 },
  month: { name: "month", min: 1, max: 12, names: MONTHS },
  weekday: { name: "weekday", min: 0, max: SUNDAY, names: WEEKDAYS },
} as const satisfies Record<string, Field>;
const ANY = "*";
const SHORTHANDS: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
};

/** Reads five fields: minute, hour, day of the month, month, weekday. Throws `DurableError`. */
export function parseCron(text: string): Cron {
  const fail = (reason: string): never => {
    throw new DurableError(
      "invalid",
      `${JSON.stringify(text)} is no cron expression: ${reason}. Write minute, hour, day of the month, month and weekday, such as "0 8 * * 1-5".`,
    );
  };
  if (text.startsWith("@") && !(text in SHORTHANDS)) {
    return fail(`there are ${Object.keys(SHORTHANDS).join(", ")}`);
  }
  const fields = (SHORTHANDS[text] ?? text).trim().split(/\s+/);
  const [minute, hour, day, month, weekday, ...more] = fields;
  if (!minute || !hour || !day || !month || !weekday || more.length > 0) {
    return fail(`it has ${text.trim() === "" ? 0 : fields.length} fields and not five`);
  }
  const cron: Cron = {
    minutes: parseField(FIELDS.minute, minute, fail),
    hours: parseField(FIELDS.hour, hour, fail),
    days: parseField(FIELDS.day, day, fail),
    months: parseField(FIELDS.month, month, fail),
    weekdays: [
      ...new Set(parseField(FIELDS.weekday, weekday, fail).map((each) => each % SUNDAY)),
    ].sort((a, b) => a - b),
    isEitherDay: day !== ANY && weekday !== ANY,
  };
  // Whatever year it is read in.
  if (findWallTime(cron, 0) === undefined) return fail("no month of it has such a day");
  return cron;
}

function parseField(field: Field, text: string, fail: (reason: string) => never): number[] {
  const found = new Set<number>();
  for (const part of text.split(",")) {
    const { first, last, step } = parseRange(field, part, fail);
    for (let value = first; value <= last; value += step) found.add(value);
  }
  return [...found].sort((a, b) => a - b);
}

function parseRange(
  field: Field,
  part: string,
  fail: (reason: string) => never,
): { first: number; last: number; step: number } {
  const { name, min, max } = field;
  const [, range = "", from = "", to, by] = /^(\*|(\w+)(?:-(\w+))?)(?:\/(\d+))?$/.exec(part) ?? [];
  const isRange = range === ANY || to !== undefined;
  if (range === "") return fail(`the ${name} ${JSON.stringify(part)} is not understood`);
  if (by !== undefined && !isRange) {
    return fail(`the ${name} has a step and no range: write ${from}-${max}/${by}`);
  }
  const first = range === ANY ? min : readValue(field, from);
  const end = range === ANY ? max : readValue(field, to ?? from);
  // A week may end with Sunday.
  const last = field === FIELDS.weekday && end === 0 && first > 0 ? SUNDAY : end;
  const step = by === undefined ? 1 : Number(by);
  for (const value of [first, last]) {
    if (!(value >= min && value <= max)) {
      return fail(`the ${name} is ${min} to ${max}, got ${JSON.stringify(part)}`);
    }
  }
  if (first > last) return fail(`the ${name} ${JSON.stringify(part)} goes down`);
  if (!(step >= 1 && step <= max)) {
    return fail(`the step of the ${name} is 1 to ${max}, got ${JSON.stringify(part)}`);
  }
  return { first, last, step };
}

function readValue({ min, names = [] }: Field, text: string): number {
  const index = names.indexOf(text.toLowerCase());
  if (index >= 0) return index + min;
  return /^\d+$/.test(text) ? Number(text) : NaN;
}

/** Whether it has one time a day: such a job runs once a day, whatever the clocks do. */
export function isOnceADay({ minutes, hours }: Cron): boolean {
  return minutes.length === 1 && hours.length === 1;
}

/**
 * The first time at `from` or later: both are the time on the wall, in milliseconds as if it were
 * UTC. Undefined: there is none.
 */
export function findWallTime(cron: Cron, from: number): number | undefined {
  const first = Math.ceil(from / MINUTE_MS) * MINUTE_MS;
  const firstDay = Math.floor(first / DAY_MS) * DAY_MS;
  const end = firstDay + MAX_DAYS * DAY_MS;
  for (let day = firstDay; day < end; day += DAY_MS) {
    if (!hasDay(cron, new Date(day))) continue;
    const minute = findMinute(cron, Math.max(0, first - day) / MINUTE_MS);
    if (minute !== undefined) return day + minute * MINUTE_MS;
  }
  return undefined;
}

function hasDay(cron: Cron, date: Date): boolean {
  if (!cron.months.includes(date.getUTCMonth() + 1)) return false;
  const isDay = cron.days.includes(date.getUTCDate());
  const isWeekday = cron.weekdays.includes(date.getUTCDay());
  return cron.isEitherDay ? isDay || isWeekday : isDay && isWeekday;
}

/** The first minute of a day at `from` or later. */
function findMinute({ minutes, hours }: Cron, from: number): number | undefined {
  for (const hour of hours) {
    const minute = minutes.find((each) => hour * MINUTES_OF_HOUR + each >= from);
    if (minute !== undefined) return hour * MINUTES_OF_HOUR + minute;
  }
  return undefined;
}
