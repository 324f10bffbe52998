/** What a run of the benchmark found; `bench/results/latest.json` is one. */
export interface Results {
  readonly when: string;
  readonly node: string;
  readonly machine: string;
  readonly rounds: number;
  readonly columns: readonly Heading[];
  readonly rows: readonly ResultRow[];
  readonly growth: readonly GrowthRow[];
  readonly behaviors: readonly BehaviorRow[];
}

export interface Heading {
  readonly id: string;
  readonly name: string;
  readonly version: string;
}

export type Unit = "ms" | "us" | "KB" | "MB" | "";

export interface ResultRow {
  readonly case: string;
  readonly size: number;
  readonly title: string;
  readonly unit: Unit;
  /** By the id of the column. */
  readonly cells: Readonly<Record<string, Cell>>;
}

/** The median of the samples with the least and the most; or, without samples, why not. */
export interface Cell {
  readonly median?: number;
  readonly low?: number;
  readonly high?: number;
  readonly note?: string;
}

/** Exponents of growth: 1 is linear, 2 is quadratic. */
export interface GrowthRow {
  readonly case: string;
  readonly title: string;
  readonly cells: Readonly<Record<string, number>>;
}

export interface BehaviorRow {
  readonly name: string;
  readonly title: string;
  readonly cells: Readonly<Record<string, string>>;
}

/** The floor is what the job costs; it is in no race. */
export const FLOOR = "floor";
export const OURS = "gyre";
/** Our other way of doing it, beside the first. */
const OUR_OTHER = "gyre-agent";

/** The columns that are compared, in the order of the race: the least first. */
export function ranking(row: ResultRow): readonly string[] {
  return Object.entries(row.cells)
    .filter(([id, { median }]) => id !== FLOOR && id !== OUR_OTHER && median !== undefined)
    .toSorted(([, one], [, other]) => (one.median ?? 0) - (other.median ?? 0))
    .map(([id]) => id);
}

/** How many times ours a figure is; nothing where either has none, or ours is nothing. */
export function timesOurs(row: ResultRow, id: string): number | undefined {
  const [ours, theirs] = [row.cells[OURS]?.median, row.cells[id]?.median];
  return ours === undefined || theirs === undefined || ours <= 0 ? undefined : theirs / ours;
}

/** Notes of cells that say nothing about a library but that the benchmark, or its script, is at fault. */
export const FAULTS: readonly string[] = ["failed", "died"];

/** The cells without a figure that ought to have one: work and column. */
export function failures(results: Results): string[] {
  return results.rows.flatMap(({ title, cells }) =>
    Object.entries(cells).flatMap(([id, { note = "" }]) =>
      FAULTS.includes(note) ? [`${title}: ${id} ${note}`] : [],
    ),
  );
}
