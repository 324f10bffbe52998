import { type AgentToolResult, type FileChange, present, type ResultSummary } from "@gyre/agent";
import type { ShortenedResult, ToolOutcome } from "@gyre/ai";
import { findPresentation } from "@gyre/coding/internal/core/presentations";
import { shownLine, shownText } from "@gyre/coding/internal/text/shown-text";
import {
  counted,
  deniedText,
  readDetails,
  splitLines,
  MAX_SHOWN_LINES,
  resultText,
} from "../../../text/tool-text.ts";
import {
  diffTexts,
  countChanges,
  countLines,
  type DiffFile,
  fileRows,
  MAX_DIFF_ROWS,
  parseDiff,
} from "./diff-view.ts";
import { type CallTree, describeTree, readCallTree, treeRows } from "./call-tree.ts";
import { fitRow, type Row, row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import { wrapText } from "../terminal/wrap.ts";

/** The most rows of an expanded result. */
const MAX_WHOLE_ROWS = 200;
/** The most rows of the result of an unknown tool. */
const MAX_TEXT_ROWS = 6;
/** The most calls of a sub-agent that has ended. */
const MAX_TREE_ROWS = 4;
/** Names that are shown of a list. */
const MAX_FOUND = 3;
const MARGIN = "  ";
export const EXPAND_KEY = "Ctrl+O";

/** How a call ended. `refused`: it did not run, or not to its end, without an error. */
export type CallEnd = "good" | "bad" | "refused";

/** The visible part of a result. The result itself need not be kept. */
export interface ToolView {
  end: CallEnd;
  /** Shown behind the name of the call. */
  facts: readonly string[];
  /** A row below the name. */
  summary?: string;
  /** The model got a part of what there is, as the summary says. */
  isPartial?: boolean;
  /** What a sub-agent has done: above the body. */
  calls?: CallTree;
  body?: ViewBody;
}

type ViewBody =
  /** `short` is shown, or `long` when expanded; `total` counts all lines. */
  | { type: "lines"; short: readonly string[]; long: readonly string[]; total?: number }
  /** `text` is shown, or `whole` when expanded. */
  | { type: "text"; text: string; whole: string; total: number }
  | { type: "diff"; files: readonly DiffFile[] };

/** A call with its result. */
export interface EndedCall {
  result: Pick<AgentToolResult, "content" | "details" | "shortened">;
  outcome: ToolOutcome;
  reason?: string | undefined;
}

/**
 * The summary of the tool. For a tool without one, and where the model did not get what the tool gave,
 * the text that the model reads.
 */
export function toolView(tool: string, { result, outcome, reason }: EndedCall): ToolView {
  const summary = present(() => findPresentation(tool)?.summarize?.({ ...result, outcome })) ?? {};
  const { shortened } = result;
  const note = shortened && { summary: describeShortened(shortened) };
  const text = resultText(result);
  if (outcome !== "ok" && summary.lines === undefined) {
    const body = textBody(reason ?? text);
    return endedView(outcome, reason) ?? { end: "bad", facts: [], ...note, body };
  }
  const tree = readCallTree(result);
  const facts = [...(summary.facts ?? []), ...(tree ? describeTree(tree) : [])];
  const body = textBody(shortened?.summary ?? text, text);
  const own = shortened ? undefined : summaryView(summary);
  const shown = summary.changes ? diffView(summary.changes.map(toDiffFile), result) : own;
  const view: Partial<ToolView> = shown ?? (text.trim() === "" ? {} : { ...note, body });
  return {
    end: outcome === "ok" ? "good" : "bad",
    ...view,
    ...(tree && { calls: tree }),
    ...((shortened || summary.isPartial) && { isPartial: true }),
    facts: [...facts, ...(view.facts ?? [])],
  };
}

/** What the model got instead of the result. */
function describeShortened({ summary, tokens }: ShortenedResult): string {
  const what = summary === undefined ? "the beginning and the end" : "a summary";
  return `the model got ${what} of ${counted(tokens, "token")}`;
}

/** The view of a call that was stopped without an error. */
function endedView(outcome: ToolOutcome, reason: string | undefined): ToolView | undefined {
  switch (outcome) {
    case "denied":
      return { end: "refused", facts: [shownLine(deniedText(reason ?? ""))] };
    case "skipped":
      return { end: "refused", facts: ["skipped"] };
    case "aborted":
      return { end: "refused", facts: ["interrupted"] };
    case "limit":
      return { end: "refused", facts: [shownLine(reason ?? "limit reached")] };
    default:
      return undefined;
  }
}

/** Undefined where only the text of the result can be shown. */
function summaryView({ summary, lines }: ResultSummary): Partial<ToolView> | undefined {
  if (summary === undefined && lines === undefined) return undefined;
  const shownSummary = summary === undefined ? {} : { summary };
  if (lines === undefined) return shownSummary;
  const all = splitLines(lines.all.join("\n"));
  switch (lines.keep) {
    case "list": {
      const names = lines.names ?? all;
      const first = names.slice(0, MAX_FOUND).map(shownLine).join(", ");
      const more = names.length > MAX_FOUND ? ", …" : "";
      return {
        summary: `${summary ?? ""}: ${first}${more}`,
        body: { type: "lines", short: [], long: all.slice(0, MAX_WHOLE_ROWS) },
      };
    }
    case "head":
      return { ...shownSummary, body: linesBody(all, all.slice(0, MAX_FOUND)) };
    case "tail": {
      const body = linesBody(all, all.slice(-MAX_SHOWN_LINES));
      const total = Math.max(lines.total ?? 0, all.length);
      return { ...shownSummary, body: { ...body, total, long: all.slice(-MAX_WHOLE_ROWS) } };
    }
    default:
      return lines.keep satisfies never;
  }
}

function linesBody(
  all: readonly string[],
  short: readonly string[],
): Extract<ViewBody, { type: "lines" }> {
  return { type: "lines", short, long: all.slice(0, MAX_WHOLE_ROWS), total: all.length };
}

/** No expanded result shows more. */
const MAX_TEXT_CHARS: number = MAX_WHOLE_ROWS * 200;

/** `whole`: where the output is a short form of it. */
function textBody(output: string, whole = output): ViewBody {
  const text = shownText(output).trim();
  const all = whole === output ? text : shownText(whole).trim();
  return {
    type: "text",
    text: text.slice(0, MAX_TEXT_CHARS),
    whole: all.slice(0, MAX_TEXT_CHARS),
    total: all.split("\n").length,
  };
}

function diffView(
  files: readonly DiffFile[],
  { details }: EndedCall["result"],
): Partial<ToolView> | undefined {
  const { created } = readDetails({ details });
  if (files.length === 0) return undefined;
  const { added, removed } = countChanges(files);
  if (added + removed === 0) return { facts: ["nothing changed"] };
  const fact = created === true ? `new, ${counted(added, "line")}` : `+${added} -${removed}`;
  return { facts: [fact], body: { type: "diff", files: files.map(withinReach) } };
}

/** Drops the lines that are never shown. */
function withinReach({ path, lines }: DiffFile): DiffFile {
  const more = countLines(lines.slice(MAX_WHOLE_ROWS));
  return { path, lines: lines.slice(0, MAX_WHOLE_ROWS), more };
}

function toDiffFile({ path, movedTo, isDeleted, change }: FileChange): DiffFile {
  const [parsed] = "diff" in change ? parseDiff(change.diff) : [];
  const lines =
    "diff" in change ? (parsed?.lines ?? []) : diffTexts(change.oldText ?? "", change.newText);
  const shown =
    movedTo === undefined ? (parsed?.path ?? path) : `${parsed?.path ?? path} → ${movedTo}`;
  return { path: isDeleted === true ? `${shown} (deleted)` : shown, lines };
}

export interface ViewOptions {
  theme: Theme;
  columns: number;
  /** Shows up to `MAX_WHOLE_ROWS`. */
  isExpanded: boolean;
  /** What shows a result in full; empty: nothing does. Default: Ctrl+O. */
  expandKey?: string | undefined;
}

/** The rows below the name of a call. */
export function viewRows({ summary, calls, body, end }: ToolView, options: ViewOptions): Row[] {
  const { theme, columns, isExpanded } = options;
  const first = summary === undefined ? [] : [row(MARGIN + shownLine(summary), theme.dim)];
  const most = isExpanded ? MAX_WHOLE_ROWS : MAX_TREE_ROWS;
  const tree = calls ? treeRows(calls, most, theme) : [];
  const rows = [...first, ...tree, ...(body ? bodyRows(body, end, options) : [])];
  return rows
    .slice(0, isExpanded ? MAX_WHOLE_ROWS + 1 : undefined)
    .map((each) => fitRow(each, columns));
}

function bodyRows(body: ViewBody, end: CallEnd, options: ViewOptions): Row[] {
  const { theme, columns, expandKey = EXPAND_KEY, isExpanded } = options;
  if (body.type === "diff") {
    const maxRows = isExpanded ? MAX_WHOLE_ROWS : MAX_DIFF_ROWS;
    const how = isExpanded || expandKey === "" ? {} : { hint: expandKey };
    return fileRows(body.files, { theme, columns, maxRows, ...how });
  }
  if (body.type === "lines") {
    const shown = isExpanded ? body.long : body.short;
    const rows = shown.map((line) => row(MARGIN + line, theme.dim));
    return [...rows, ...moreRows((body.total ?? 0) - shown.length, options)];
  }
  const most = isExpanded ? MAX_WHOLE_ROWS : MAX_TEXT_ROWS;
  const style = end === "bad" ? theme.bad : theme.dim;
  const text = isExpanded ? body.whole : body.text;
  const head = text.slice(0, columns * (most + 1));
  const wrapped = wrapText(head, columns, style, { first: row(MARGIN) });
  if (wrapped.length <= most && text === body.whole) return wrapped;
  const rows = wrapped.slice(0, most);
  // Rows are not lines, but the number shows whether it is much.
  return [...rows, ...moreRows(Math.max(1, body.total - most), options)];
}

function moreRows(count: number, options: ViewOptions): Row[] {
  if (count <= 0) return [];
  return [moreRow(count, options.isExpanded ? { ...options, expandKey: "" } : options)];
}

/** The number of hidden lines, and the key that shows them. */
export function moreRow(
  count: number,
  { theme, expandKey = EXPAND_KEY }: Pick<ViewOptions, "theme" | "expandKey">,
): Row {
  const how = expandKey === "" ? "" : ` (${expandKey})`;
  return row(`${MARGIN}… ${counted(count, "more line")}${how}`, theme.dim);
}
