import type { Waiting } from "@gyre/coding/internal/conversation/queue";
import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import type { Todo } from "@gyre/tools";
import { elapsed } from "../../../text/tool-text.ts";
import { fitRow, type Row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

const SPINNER = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇"];
/** The most queued messages with a row of their own. */
const MAX_QUEUED = 4;

/** The most steps of a list with a row of their own. */
const MAX_STEPS = 6;

/** The list of steps, as long as some are to be done: those around the one in progress, the others counted. */
export function todoRows(items: readonly Todo[], columns: number, theme: Theme): Row[] {
  const done = items.filter(({ status }) => status === "done").length;
  if (done === items.length) return [];
  const current = items.findIndex(({ status }) => status !== "done");
  const first = Math.max(0, Math.min(current - 1, items.length - MAX_STEPS));
  const shown = items.slice(first, first + MAX_STEPS).map(({ content, status }) => {
    const [sign, style] = {
      done: ["☑", theme.dim],
      in_progress: ["▸", theme.strong],
      pending: ["☐", ""],
    }[status] as [string, string];
    return fitRow([span(`${sign} `, theme.accent), span(oneLine(content), style)], columns);
  });
  const isWhole = shown.length === items.length;
  const count = `  ${done} of ${items.length} done`;
  return isWhole ? shown : [...shown, fitRow([span(count, theme.dim)], columns)];
}

/** The activity in the row above the editor. */
export interface Working {
  activity: string;
  /** What is waited for in place of an activity. */
  countdown?: string | undefined;
  /** Milliseconds since the prompt. */
  elapsedMs: number;
  /** The frame of the spinner. */
  tick: number;
}

/** `⠙ running npm test · 12 s · Esc interrupts`, or a countdown: `⠙ overloaded, trying again in 3 s, Esc stops` */
export function workingRow(working: Working, columns: number, theme: Theme): Row {
  const { activity, countdown, elapsedMs, tick } = working;
  const text =
    countdown === undefined
      ? `${oneLine(activity)} · ${elapsed(elapsedMs)} · Esc interrupts`
      : `${oneLine(countdown)}, Esc stops`;
  return fitRow(
    [span(`${SPINNER[tick % SPINNER.length]} `, theme.accent), span(text, theme.dim)],
    columns,
  );
}

/** One row for each message: `↳ next: …` is a steering message, `↳ then: …` a follow-up. */
export function waitingRows(waiting: readonly Waiting[], columns: number, theme: Theme): Row[] {
  if (waiting.length === 0) return [];
  const shown = waiting.slice(0, MAX_QUEUED).map(({ queue, text }) => {
    const label = queue === "steering" ? "next" : "then";
    const line = shownText(text).replaceAll(/\s+/g, " ").trim();
    return fitRow([span(`↳ ${label}: `, theme.accent), span(line, theme.dim)], columns);
  });
  const more = waiting.length - shown.length;
  const back = `Alt+Up takes ${waiting.length > 1 ? "them" : "it"} back`;
  const hint = more > 0 ? `${more} more · ${back}` : back;
  return [...shown, fitRow([span(`  ${hint}`, theme.dim)], columns)];
}
