import type { ConnectionFact } from "@gyre/coding/internal/conversation/types";
import type { Waiting } from "@gyre/coding/internal/conversation/queue";
import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import type { Todo } from "@gyre/tools";
import { elapsed } from "../../../text/tool-text.ts";
import { fitRow, type Row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

const MS_PER_SECOND = 1_000;
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
  /** What interrupts it. */
  stopKey: string;
}

/** `⠙ running npm test · 12 s · Esc interrupts`, or a countdown: `⠙ overloaded, trying again in 3 s, Esc stops` */
export function workingRow(working: Working, columns: number, theme: Theme): Row {
  const { activity, countdown, elapsedMs, stopKey, tick } = working;
  const text =
    countdown === undefined
      ? `${oneLine(activity)} · ${elapsed(elapsedMs)} · ${stopKey} interrupts`
      : `${oneLine(countdown)}, ${stopKey} stops`;
  return fitRow(
    [span(`${SPINNER[tick % SPINNER.length]} `, theme.accent), span(text, theme.dim)],
    columns,
  );
}

/** "connection lost, trying again in 3 s: …"; undefined where it is there. */
export function connectionText(connection: ConnectionFact, now: number): string | undefined {
  if (connection.type === "connected") return undefined;
  if (connection.type === "closed") return `connection lost: ${oneLine(connection.reason)}`;
  const { retryAt, reason } = connection;
  const seconds = Math.ceil(((retryAt ?? now) - now) / MS_PER_SECOND);
  const when = seconds > 0 ? `trying again in ${seconds} s` : "trying again";
  return `connection lost, ${when}: ${oneLine(reason)}`;
}

/** `⇡ aside: Fix the tests · Ctrl+S brings it back` */
export function stashRow(
  text: string,
  columns: number,
  theme: Theme,
  key: string | undefined,
): Row {
  const hint = key === undefined ? "" : ` · ${key} brings it back`;
  const line = text.replaceAll(/\s+/g, " ").trim();
  const room = Math.max(1, columns - "⇡ aside: ".length - hint.length);
  return fitRow(
    [
      span("⇡ aside: ", theme.accent),
      ...fitRow([span(line, theme.dim)], room),
      span(hint, theme.dim),
    ],
    columns,
  );
}

/** One row for each message: `↳ next: …` is a steering message, `↳ then: …` a follow-up. */
export function waitingRows(
  waiting: readonly Waiting[],
  columns: number,
  theme: Theme,
  key: string | undefined,
): Row[] {
  if (waiting.length === 0) return [];
  const shown = waiting.slice(0, MAX_QUEUED).map(({ queue, text }) => {
    const label = queue === "steering" ? "next" : "then";
    const line = shownText(text).replaceAll(/\s+/g, " ").trim();
    return fitRow([span(`↳ ${label}: `, theme.accent), span(line, theme.dim)], columns);
  });
  const more = waiting.length - shown.length;
  const hints = [
    ...(more > 0 ? [`${more} more`] : []),
    ...(key === undefined ? [] : [`${key} takes ${waiting.length > 1 ? "them" : "it"} back`]),
  ];
  if (hints.length === 0) return shown;
  return [...shown, fitRow([span(`  ${hints.join(" · ")}`, theme.dim)], columns)];
}
