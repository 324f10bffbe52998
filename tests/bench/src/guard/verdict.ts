import { MARGIN, type Row } from "./rows.ts";

/** What callgrind counted for a row, in instructions. */
export interface Counted {
  row: Row;
  floor: number;
  gyre: number;
  /** A control does more work than its row, so it has to miss the limit. */
  control?: boolean;
}

export interface Verdict {
  ok: boolean;
  lines: string[];
}

/** Holds each ratio against its limit. A control that does not miss its limit is a failure too. */
export function judge(counted: readonly Counted[]): Verdict {
  const judged = counted.map((one) => judgeOne(one));
  const failures = judged.filter(({ ok }) => !ok).length;
  const lines = judged.map(({ line }) => line);
  lines.push(`${judged.length - failures} of ${judged.length} as they must be`);
  return { ok: judged.length > 0 && failures === 0, lines };
}

function judgeOne({ row, floor, gyre, control = false }: Counted): { ok: boolean; line: string } {
  const limit = row.ratio * MARGIN;
  const ratio = gyre / floor;
  const ok = control ? ratio > limit : ratio <= limit;
  const what = control ? `control, must miss: ${row.what}, done twice` : row.what;
  const figures = `${ratio.toFixed(2)}x (${formatMillions(gyre)} to ${formatMillions(floor)})`;
  const hint = ratio * MARGIN < row.ratio ? "; rows.ts may state the lower ratio" : "";
  const result = ok ? `ok${hint}` : `FAILED: ${row.reason}`;
  return { ok, line: `${what}: ${figures}, at most ${limit.toFixed(2)}x: ${result}` };
}

function formatMillions(instructions: number): string {
  return `${(instructions / 1e6).toFixed(1)}M`;
}
