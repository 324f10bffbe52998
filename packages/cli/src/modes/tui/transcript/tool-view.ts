import { SKIPPED_TEXT, type AgentToolResult } from "@gyre/agent";
import { withoutMarks } from "../../acp/tool-call.ts";
import { deniedReason } from "../../print/progress.ts";
import { shownLine, shownText } from "../../../text/shown-text.ts";
import {
  type Args,
  counted,
  detailsOf,
  exitOf,
  grouped,
  isRecord,
  linesOf,
  listedName,
  resultText,
  MAX_SHOWN_LINES,
  wordOf,
} from "../../../text/tool-text.ts";
import {
  changedLines,
  changesIn,
  countOf,
  type DiffFile,
  fileRows,
  MAX_DIFF_ROWS,
  parseDiff,
} from "./diff-view.ts";
import { fitRow, type Row, row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import { wrapText } from "../terminal/wrap.ts";

/** Rows of a result that is shown whole. */
export const MAX_WHOLE_ROWS = 200;
/** Rows of the result of a tool that nothing is known of. */
export const MAX_TEXT_ROWS = 6;
/** Of what was found or listed. */
export const MAX_FOUND = 3;
const MARGIN = "  ";
const EXPAND_KEY = "Ctrl+O";

/** How a call ended. `refused`: it was not run, or not to its end, and nothing is wrong with it. */
export type CallEnd = "good" | "bad" | "refused";

/** What a person is shown of a result. Small: the result itself need not be kept. */
export interface ToolView {
  end: CallEnd;
  /** Behind the name of the call, one after the other. */
  facts: readonly string[];
  /** A row of its own below it. */
  summary?: string;
  body?: ViewBody;
}

type ViewBody =
  /** `short` is shown, or `long`; `total` is how many there are, where that has to be said. */
  | { type: "lines"; short: readonly string[]; long: readonly string[]; total?: number }
  | { type: "text"; text: string; total: number }
  | { type: "diff"; files: readonly DiffFile[] };

type Result = Pick<AgentToolResult, "content" | "details">;

/** From the details of the tools that are known here; of others, what the model is told. */
export function toolView(tool: string, result: Result, isError: boolean): ToolView {
  const details = detailsOf(result);
  if (tool === "shell" && typeof details["stdout"] === "string") return shellView(details, isError);
  if (isError) return errorView(resultText(result));
  return { end: "good", facts: [], ...knownView(tool, details, result) };
}

function knownView(tool: string, details: Args, result: Result): Partial<ToolView> {
  const { totalLines, shownLines, firstLine, totalEntries, found, matches, files } = details;
  const lines = (): string[] => listed(withoutMarks(resultText(result)));
  switch (tool) {
    case "read":
      if (typeof totalLines === "number") {
        return { summary: readText(totalLines, shownLines, firstLine) };
      }
      return typeof details["mimeType"] === "string" ? { summary: "an image" } : textView(result);
    case "ls":
      if (typeof totalEntries !== "number") return textView(result);
      return listView(counted(totalEntries, "entry", "entries"), totalEntries, lines());
    case "find":
      if (typeof found !== "number") return textView(result);
      return listView(counted(found, "match", "matches"), found, lines());
    case "grep": {
      if (typeof matches !== "number" || typeof files !== "number") return textView(result);
      if (matches === 0) return { summary: "no matches" };
      const all = lines();
      const summary = `${counted(matches, "match", "matches")} in ${counted(files, "file")}`;
      return { summary, body: linesBody(all, all.slice(0, MAX_FOUND)) };
    }
    case "edit":
    case "write":
    case "apply_patch":
      return diffView(changesOf(tool, details), details) ?? textView(result);
    default:
      return textView(result);
  }
}

/** The lines of a list, without what a tool says of it behind it. */
function listed(text: string): string[] {
  const lines = linesOf(text);
  return /^\[.*\.\]$/.test(lines.at(-1) ?? "") ? lines.slice(0, -1) : lines;
}

function readText(total: number, shown: unknown, first: unknown): string {
  if (typeof shown !== "number" || typeof first !== "number" || shown >= total) {
    return counted(total, "line");
  }
  return `lines ${first}-${first + shown - 1} of ${grouped(total)}`;
}

function listView(count: string, total: number, lines: readonly string[]): Partial<ToolView> {
  if (total === 0) return { summary: count };
  const first = lines.slice(0, MAX_FOUND).map(listedName).join(", ");
  const summary = `${count}: ${first}${lines.length > MAX_FOUND ? ", …" : ""}`;
  return { summary, body: { type: "lines", short: [], long: lines.slice(0, MAX_WHOLE_ROWS) } };
}

function linesBody(all: readonly string[], short: readonly string[]): ViewBody {
  return { type: "lines", short, long: all.slice(0, MAX_WHOLE_ROWS), total: all.length };
}

function shellView(details: Args, isError: boolean): ToolView {
  const { stdout, stderr, exitCode } = details;
  const all = linesOf(`${wordOf(stdout)}\n${wordOf(stderr)}`);
  const exit = exitOf(details).replace("exit code", "exit");
  return {
    end: isError ? "bad" : "good",
    facts: exitCode === 0 ? [] : [exit],
    body: {
      type: "lines",
      short: all.slice(-MAX_SHOWN_LINES),
      long: all.slice(-MAX_WHOLE_ROWS),
      total: all.length,
    },
  };
}

const FAILED = /^Tool "[^"\n]*" failed: /;
const DENIED = /^Denied(?: by a hook)?: /;

function errorView(said: string): ToolView {
  const text = said.replace(FAILED, "");
  if (DENIED.test(text)) {
    const reason = deniedReason(text.replace(DENIED, ""));
    return { end: "refused", facts: [shownLine(reason)] };
  }
  if (text === SKIPPED_TEXT) return { end: "refused", facts: ["skipped"] };
  if (text.startsWith("Aborted: ")) return { end: "refused", facts: ["interrupted"] };
  return { end: "bad", facts: [], body: textBody(text) };
}

function textView(result: Result): Partial<ToolView> {
  const text = resultText(result);
  return text.trim() === "" ? {} : { body: textBody(text) };
}

/** Wider than any terminal: what is longer is not shown whole either. */
const MAX_TEXT_CHARS: number = MAX_WHOLE_ROWS * 200;

function textBody(said: string): ViewBody {
  const text = shownText(withoutMarks(said)).trim();
  return { type: "text", text: text.slice(0, MAX_TEXT_CHARS), total: text.split("\n").length };
}

function diffView(files: readonly DiffFile[], { created }: Args): Partial<ToolView> | undefined {
  if (files.length === 0) return undefined;
  const { added, removed } = changesIn(files);
  if (added + removed === 0) return { facts: ["nothing changed"] };
  const fact = created === true ? `new, ${counted(added, "line")}` : `+${added} -${removed}`;
  return { facts: [fact], body: { type: "diff", files: files.map(withinReach) } };
}

/** Without the lines that are not shown in any case. */
function withinReach({ path, lines }: DiffFile): DiffFile {
  const more = countOf(lines.slice(MAX_WHOLE_ROWS));
  return { path, lines: lines.slice(0, MAX_WHOLE_ROWS), more };
}

function changesOf(tool: string, details: Args): DiffFile[] {
  const { files, diff, newText, oldText, created } = details;
  if (tool === "apply_patch") {
    if (!Array.isArray(files)) return [];
    return files.flatMap((file: unknown) =>
      isRecord(file) ? parseDiff(wordOf(file["diff"])).map((each) => named(each, file)) : [],
    );
  }
  if (tool === "edit") return typeof diff === "string" ? parseDiff(diff) : [];
  // A replaced file whose old text is not known must not look like a new one.
  if (typeof newText !== "string" || (typeof oldText !== "string" && created !== true)) return [];
  return [{ path: wordOf(details["path"]), lines: changedLines(wordOf(oldText), newText) }];
}

function named(file: DiffFile, { movedTo, type }: Args): DiffFile {
  if (typeof movedTo === "string") return { ...file, path: `${file.path} → ${movedTo}` };
  return type === "delete" ? { ...file, path: `${file.path} (deleted)` } : file;
}

export interface ViewOptions {
  theme: Theme;
  columns: number;
  /** Shown whole, up to `MAX_WHOLE_ROWS`. */
  isExpanded: boolean;
}

/** What is shown below the name of a call. */
export function viewRows({ summary, body, end }: ToolView, options: ViewOptions): Row[] {
  const { theme, columns, isExpanded } = options;
  const first = summary === undefined ? [] : [row(MARGIN + shownLine(summary), theme.dim)];
  const rows = [...first, ...(body ? bodyRows(body, end, options) : [])];
  return rows
    .slice(0, isExpanded ? MAX_WHOLE_ROWS + 1 : undefined)
    .map((each) => fitRow(each, columns));
}

function bodyRows(body: ViewBody, end: CallEnd, options: ViewOptions): Row[] {
  const { theme, columns, isExpanded } = options;
  if (body.type === "diff") {
    const maxRows = isExpanded ? MAX_WHOLE_ROWS : MAX_DIFF_ROWS;
    const how = isExpanded ? {} : { hint: EXPAND_KEY };
    return fileRows(body.files, { theme, columns, maxRows, ...how });
  }
  if (body.type === "lines") {
    const shown = isExpanded ? body.long : body.short;
    const rows = shown.map((line) => row(MARGIN + line, theme.dim));
    return [...rows, ...moreRows((body.total ?? 0) - shown.length, options)];
  }
  const most = isExpanded ? MAX_WHOLE_ROWS : MAX_TEXT_ROWS;
  const style = end === "bad" ? theme.bad : theme.dim;
  const head = body.text.slice(0, columns * (most + 1));
  const wrapped = wrapText(head, columns, style, { first: row(MARGIN) });
  if (wrapped.length <= most) return wrapped;
  const rows = wrapped.slice(0, most);
  // Rows are not lines, but what a person wants to know is whether it is much.
  return [...rows, ...moreRows(Math.max(1, body.total - most), options)];
}

function moreRows(count: number, { theme, isExpanded }: ViewOptions): Row[] {
  if (count <= 0) return [];
  return [isExpanded ? row(moreText(count), theme.dim) : moreRow(count, theme)];
}

/** Says how many lines are cut, and what shows them. */
export function moreRow(count: number, theme: Theme): Row {
  return row(`${moreText(count)} (${EXPAND_KEY})`, theme.dim);
}

function moreText(count: number): string {
  return `${MARGIN}… ${counted(count, "more line")}`;
}
