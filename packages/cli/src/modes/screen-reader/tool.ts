import { type CallText, counted, readDetails, MAX_SHOWN_LINES } from "../../text/tool-text.ts";
import { shownText } from "@gyre/coding/internal/text/shown-text";
import { countChanges, type DiffFile, type DiffLine } from "../tui/transcript/diff-view.ts";
import {
  type CallEnd,
  type EndedCall,
  toolView,
  type ToolView,
} from "../tui/transcript/tool-view.ts";
import { timeInWords } from "./format.ts";

/** Lines of a change that are shown. */
export const MAX_CHANGED_LINES = 20;
/** What took less than this is shown without a time. */
const MIN_SHOWN_MS = 100;

const ENDS: Readonly<Record<CallEnd, string>> = {
  good: "Done",
  bad: "Failed",
  refused: "Not done",
};

/** A call that is over, and how long it took. */
export interface TimedCall extends EndedCall {
  tool: string;
  durationMs: number;
}

/** Said when a call begins. */
export function startText({ name, about }: CallText): string {
  return about === "" ? `Running ${name}.` : `Running ${name}: ${about}`;
}

/** Said when it is over: how it ended, and what matters most in its result. */
export function endLines(called: string, call: TimedCall): string[] {
  const view = toolView(call.tool, call);
  const { body } = view;
  if (body?.type === "diff") {
    const isNew = readDetails(call.result)["created"] === true;
    return changeLines(body.files, (text) => shownText(text), isNew ? "Made" : "Changed");
  }
  const time = call.durationMs < MIN_SHOWN_MS ? [] : [timeInWords(call.durationMs)];
  const summary = view.summary === undefined ? [] : [view.summary];
  const { exitCode } = readDetails(call.result);
  const exit = exitCode === 0 ? ["exit code 0"] : [];
  const facts = [called, ...exit, ...view.facts, ...summary, ...time];
  // A command that ended by itself has done what it was asked to, whatever it says of that.
  const end = typeof exitCode === "number" ? ENDS.good : ENDS[view.end];
  return [`${end}: ${facts.join(", ").replace(/\.$/, "")}.`, ...resultLines(view)];
}

function resultLines({ body }: ToolView): string[] {
  if (!body || body.type === "diff") return [];
  if (body.type === "lines") return withRest(body.short, body.total ?? 0);
  return withRest(body.text.split("\n").slice(0, MAX_SHOWN_LINES), body.total);
}

function withRest(lines: readonly string[], total: number): string[] {
  const hidden = lines.length > 0 ? total - lines.length : 0;
  return [...lines, ...(hidden > 0 ? [`${counted(hidden, "more line")}.`] : [])];
}

/** What became of files: a sentence for each, then what came and what went. */
export function changeLines(
  files: readonly DiffFile[],
  shown: (text: string) => string,
  verb: string,
  most: number = MAX_CHANGED_LINES,
): string[] {
  const lines: string[] = [];
  let count = 0;
  let hidden = 0;
  for (const file of files) {
    lines.push(`${verb} ${shown(file.path).replaceAll("\n", " ")}: ${changeText(file)}.`);
    for (const line of file.lines) {
      const text = lineText(line, shown);
      if (text === undefined) continue;
      if (count++ < most) lines.push(text);
      else hidden++;
    }
  }
  return hidden > 0 ? [...lines, `${counted(hidden, "more changed line")}.`] : lines;
}

function changeText(file: DiffFile): string {
  const { added, removed } = countChanges([file]);
  const more = file.more ? `, and ${counted(file.more, "line")} further on` : "";
  return `${counted(added, "line")} added, ${removed} removed${more}`;
}

function lineText(line: DiffLine, shown: (text: string) => string): string | undefined {
  if (line.type === "added") return `Added: ${shown(line.text)}`;
  return line.type === "removed" ? `Removed: ${shown(line.text)}` : undefined;
}
