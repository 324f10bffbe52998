import { DurableError } from "../contract/errors.ts";

const MINUTE_MS = 60_000;
/** No zone changes its clocks twice within a week. */
const STEP_MS = 7 * 86_400_000;

/** Where the clocks of a zone are changed. */
export interface Transition {
  /** The first moment of the new offset. */
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

/** A time zone, as `Intl` knows it. */
export class Zone {
  readonly #format: Intl.DateTimeFormat;

  /** Throws `DurableError` on a name that there is not. */
  constructor(name: string) {
    try {
      this.#format = new Intl.DateTimeFormat("en-US", {
        ...{ timeZone: name, calendar: "gregory", numberingSystem: "latn", hourCycle: "h23" },
        ...{ year: "numeric", month: "numeric", day: "numeric" },
        ...{ hour: "numeric", minute: "numeric", second: "numeric" },
      });
    } catch (cause) {
      throw new DurableError(
        "invalid",
        `${JSON.stringify(name)} is no time zone: write one such as "Europe/Berlin" or "UTC".`,
        { cause },
      );
    }
  }

  /** What the clocks show at a moment, minus UTC, in milliseconds. */
  readOffset(at: number): number {
    const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of this.#format.formatToParts(at)) parts[type] = Number(value);
    const { year = 0, month = 1, day, hour, minute, second } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1_000) * 1_000;
  }

  /** The first change of the clocks after `from` and not after `to`. */
  findTransition(from: number, to: number): Transition | undefined {
    const before = this.readOffset(from);
    let low = from;
    while (low < to) {
      const high = Math.min(low + STEP_MS, to);
      if (this.readOffset(high) !== before) return this.#narrow(low, high, before);
      low = high;
    }
    return undefined;
  }

  /** The minute in which the offset is no longer `before`. */
  #narrow(from: number, to: number, before: number): Transition {
    let low = Math.floor(from / MINUTE_MS);
    let high = Math.ceil(to / MINUTE_MS);
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.readOffset(middle * MINUTE_MS) === before) low = middle;
      else high = middle;
    }
    const at = high * MINUTE_MS;
    return { at, before, after: this.readOffset(at) };
  }
}
