/** One line of the table. `measured` is held against `limit`. */
export interface Line {
  what: string;
  floor?: string;
  gyre: string;
  measured: number;
  limit: number;
  unit: string;
}

export interface Case {
  name: string;
  run: () => Promise<Line[]>;
}

/** A line for how many times the figure of the floor ours is. */
export function createRatio(
  what: string,
  { floor, gyre }: Readonly<Record<"floor" | "gyre", number>>,
  show: (value: number) => string,
  limit: number,
): Line {
  return { what, floor: show(floor), gyre: show(gyre), measured: gyre / floor, limit, unit: "x" };
}

/** A line for how many times of itself a figure grows. */
export function createGrowth(what: string, gyre: string, measured: number): Line {
  return { what, gyre, measured, limit: 1.2, unit: "x" };
}

/** Formats a time in milliseconds. */
export function formatMs(digits: number): (ms: number) => string {
  return (ms) => `${ms.toFixed(digits)} ms`;
}

/** Formats a time in milliseconds as what one of `count` took. */
export function formatShare(count: number): (ms: number) => string {
  return (ms) => `${((ms * 1000) / count).toFixed(2)} us`;
}
