import { alignLines } from "./align.ts";
import type { AppliedEdit, EditPlan } from "./plan.ts";
import { type Line, lineAt, splitLines } from "../text/line-ends.ts";

/** Lines around a change that are shown with it. */
const CONTEXT_LINES = 3;
/** A diff that is longer is cut. */
export const MAX_DIFF_CHARS: number = 64 * 1024;

/** What a plan changes, as a unified diff. For people: it is cut where it is very long. */
export function formatDiff(path: string, before: string, plan: EditPlan): string {
  const old = splitLines(before);
  const next = splitLines(plan.content);
  let diff = `--- a/${path}\n+++ b/${path}\n`;
  for (const { a0, a1, b0, b1 } of withContext(changedSpans(old, next, before, plan), old, next)) {
    const a = old.slice(a0, a1).map((line) => line.text + line.end);
    const b = next.slice(b0, b1).map((line) => line.text + line.end);
    diff += `@@ -${formatSpan(a0, a.length)} +${formatSpan(b0, b.length)} @@\n${formatChanges(a, b)}`;
    if (diff.length > MAX_DIFF_CHARS) break;
  }
  return cutDiff(diff);
}

/** At most `MAX_DIFF_CHARS` of a diff, in whole lines, with a word where it is cut. */
export function cutDiff(diff: string): string {
  if (diff.length <= MAX_DIFF_CHARS) return diff;
  const end = diff.lastIndexOf("\n", MAX_DIFF_CHARS - 1) + 1;
  return `${diff.slice(0, end)}[cut: the diff is longer than this]\n`;
}

/** Lines `a0` to `a1` (without it) before are lines `b0` to `b1` after. */
interface Span {
  a0: number;
  a1: number;
  b0: number;
  b1: number;
}

/** Edits as whole lines. Those that share a line, or join two, are one span. */
function changedSpans(
  old: readonly Line[],
  next: readonly Line[],
  before: string,
  { edits, content }: EditPlan,
): Span[] {
  const spans: Span[] = [];
  let index = 0;
  let grown = 0;
  const findLine = (offset: number): number =>
    offset >= content.length ? next.length : lineAt(next, offset);
  const take = (edit: AppliedEdit): number => {
    index += 1;
    grown += edit.grown;
    return lineAt(old, Math.max(edit.start, edit.end - 1)) + 1;
  };
  for (let edit = edits[index]; edit; edit = edits[index]) {
    const a0 = lineAt(old, edit.start);
    const from = (old[a0]?.start ?? 0) + grown;
    let a1 = take(edit);
    for (;;) {
      const behind = old[a1]?.start ?? before.length;
      const to = behind + grown;
      const further = edits[index];
      if (further && further.start < behind) a1 = Math.max(a1, take(further));
      else if (to > from && to < content.length && content.charAt(to - 1) !== "\n") a1 += 1;
      else {
        spans.push({ a0, a1: Math.min(a1, old.length), b0: findLine(from), b1: findLine(to) });
        break;
      }
    }
  }
  return spans;
}

/** Spans with the lines around them; near ones are one. */
function withContext(spans: readonly Span[], old: readonly Line[], next: readonly Line[]): Span[] {
  const hunks: Span[] = [];
  for (const { a0, a1, b0, b1 } of spans) {
    const lead = Math.min(CONTEXT_LINES, a0, b0);
    const tail = Math.min(CONTEXT_LINES, old.length - a1, next.length - b1);
    const last = hunks.at(-1);
    if (last && a0 - lead <= last.a1) [last.a1, last.b1] = [a1 + tail, b1 + tail];
    else hunks.push({ a0: a0 - lead, a1: a1 + tail, b0: b0 - lead, b1: b1 + tail });
  }
  return hunks;
}

function formatSpan(start: number, length: number): string {
  return `${length === 0 ? start : start + 1},${length}`;
}

function formatChanges(old: readonly string[], next: readonly string[]): string {
  const rows: string[] = [];
  const add = (mark: string, line: string): void => {
    rows.push(mark + line + (line.endsWith("\n") ? "" : "\n\\ No newline at end of file\n"));
  };
  const aligned = alignLines(old, next);
  let at = 0;
  let index = 0;
  while (at < old.length || index < next.length) {
    let behind = index;
    while (behind < next.length && (aligned[behind] ?? -1) < 0) behind += 1;
    const stays = aligned[behind] ?? old.length;
    while (at < stays) add("-", old[at++] ?? "");
    while (index < behind) add("+", next[index++] ?? "");
    if (index < next.length) add(" ", next[index++] ?? "");
    at += 1;
  }
  return rows.join("");
}
