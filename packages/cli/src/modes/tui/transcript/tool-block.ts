import { type AgentToolResult, present } from "@gyre/agent";
import { findPresentation } from "@gyre/coding/internal/core/presentations";
import { shownLine } from "@gyre/coding/internal/text/shown-text";
import {
  type Args,
  type CallText,
  callText,
  readDetails,
  duration,
  elapsed,
  splitLines,
  resultText,
  readText,
} from "../../../text/tool-text.ts";
import { measureWidth } from "../../../text/width.ts";
import type { Block } from "../ui/block.ts";
import { type CallTree, describeTree, readCallTree, treeRows } from "./call-tree.ts";
import { createFixedBlock, type LiveBlock } from "./message-blocks.ts";
import { fitRow, type Row, row, span, textOfRow } from "../terminal/row.ts";
import { type FindLinks, linkSpans } from "../terminal/hyperlinks.ts";
import type { Theme } from "../terminal/theme.ts";
import {
  type CallEnd,
  type EndedCall,
  moreRow,
  toolView,
  type ToolView,
  viewRows,
} from "./tool-view.ts";

/** Lines of output of a running call. */
export const RUNNING_LINES = 5;
/** The end of the output that is searched for its last lines. */
const MAX_TAIL_CHARS: number = 8 * 1024;
/** Shorter durations are not shown: of running calls, and of ended ones. */
const SLOW_MS = 2_000;
const SHOWN_DURATION_MS = 1_000;
/** Below this the size of arriving arguments is not shown. */
const SHOWN_ARGUMENT_CHARS = 512;
const CHARS_PER_KB = 1_024;
const NOT_SENT = "(not sent to the model)";
/** Around the purpose of a call: the sign, the gap and the mark. */
const PURPOSE_MARGIN = 6;
/** The least room for the name and the title of a call. */
const MIN_ABOUT_COLUMNS = 8;

const SIGNS: Readonly<Record<CallEnd, string>> = { good: "●", bad: "✗", refused: "⊘" };

export interface ToolBlockOptions {
  theme: Theme;
  /** Paths below it are shown relative to it. */
  cwd: string;
  /** Milliseconds. */
  now: () => number;
  isExpanded?: boolean;
  /** What shows a result in full; empty: nothing does. Default: Ctrl+O. */
  expandKey?: string | undefined;
  /** Finds links in a text as it is shown. Default: nothing is a link. */
  links?: FindLinks | undefined;
  /** Marks a command of the user. `aside`: the model does not see it. */
  userCommand?: { aside: boolean } | undefined;
}

type State =
  /** The model is still writing the arguments. */
  | { type: "arriving"; chars: number }
  | { type: "running"; since: number; tail: readonly string[]; calls?: CallTree }
  | { type: "ended"; view: ToolView; facts: readonly string[] };

/** One call: its arguments as they arrive, its output while it runs, and its result. */
export class ToolBlock implements LiveBlock {
  readonly #options: ToolBlockOptions;
  #tool: string;
  #args: Args;
  #callText: CallText | undefined;
  /** The file that it is about, as it is shown; computed with the text. */
  #path = "";
  /** The model asked for a part. */
  #isLimited = false;
  #state: State = { type: "arriving", chars: 0 };
  #isExpanded: boolean;
  /** It was expanded when its beginning left the screen, and collapsed since. */
  #isRestCut = false;
  #lines = RUNNING_LINES;
  #columns = 0;
  /** How many rows have left the screen. */
  #gone = 0;
  /** The last layout, and whether it is still valid. */
  #shown: readonly Row[] = [];
  #shownClock = "";
  #isMade = false;

  constructor(tool: string, args: Args, options: ToolBlockOptions) {
    this.#options = options;
    this.#isExpanded = options.isExpanded ?? false;
    this.#tool = tool;
    this.#args = args;
  }

  get isOver(): boolean {
    return this.#state.type === "ended";
  }

  /** Whether its rows say more than that it was done: it failed, or the model got less than it asked for. */
  get isRemarkable(): boolean {
    if (this.#state.type !== "ended") return false;
    const { end, isPartial = false } = this.#state.view;
    return end !== "good" || (isPartial && !this.#isLimited);
  }

  /** What its tool does: "Read", "Search"; empty where that is unknown. */
  get verb(): string {
    return findPresentation(this.#tool)?.verb ?? "";
  }

  /** The file that it reads, or what it searches for. */
  get subject(): string {
    const { about } = this.#text();
    const isRead = findPresentation(this.#tool)?.kind === "read";
    return isRead && this.#path !== "" ? this.#path : about;
  }

  /** The files that it has changed. */
  get changedFiles(): readonly string[] {
    const body = this.#state.type === "ended" ? this.#state.view.body : undefined;
    return body?.type === "diff" ? body.files.map(({ path }) => path) : [];
  }

  /** The call in one line: `npm test`, `write src/a.ts`. */
  get activity(): string {
    const { name, about } = this.#text();
    const isCommand = findPresentation(this.#tool)?.verb === "";
    return isCommand && about !== "" ? about : `${name} ${about}`.trim();
  }

  /** Adds a piece of the arguments; `args` are all of them so far. */
  arrive(tool: string, args: Args, delta: string): void {
    if (this.#state.type !== "arriving") return;
    this.#state = { type: "arriving", chars: this.#state.chars + delta.length };
    this.#describe(tool, args);
  }

  start(tool: string, args: Args): void {
    if (this.#state.type === "ended") return;
    this.#state = { type: "running", since: this.#options.now(), tail: [] };
    this.#describe(tool, args);
  }

  /** Shows the last output of a running call. */
  update(partial: AgentToolResult): void {
    if (this.#state.type !== "running") return;
    const calls = readCallTree(partial);
    this.#state = { ...this.#state, tail: this.#readTail(partial), ...(calls && { calls }) };
    this.#isMade = false;
  }

  /** `tookMs` is absent where it is unknown. */
  end(ended: EndedCall, tookMs = 0): void {
    const view = toolView(this.#tool, ended);
    const slow = tookMs >= SHOWN_DURATION_MS ? [duration(tookMs)] : [];
    this.#finish(view, [...view.facts, ...slow]);
  }

  /** Ends a call that gets no result. */
  leave(): void {
    if (!this.isOver) this.#finish({ end: "refused", facts: [] }, ["interrupted"]);
  }

  expand(isExpanded: boolean): void {
    if (this.#gone === 0 || !this.isOver) this.#isExpanded = isExpanded;
    else this.#isRestCut = this.#isExpanded && !isExpanded;
    this.#isMade = false;
  }

  restart(): void {
    if (this.#isRestCut) this.#isExpanded = false;
    this.#isRestCut = false;
    this.#gone = 0;
    this.#isMade = false;
  }

  /** Limits the lines of output of a running call: several calls share them. */
  share(lines: number): void {
    if (lines === this.#lines) return;
    this.#lines = lines;
    if (!this.isOver) this.#isMade = false;
  }

  rows(columns: number): readonly Row[] {
    const clock = this.#clock();
    if (this.#isMade && this.#columns === columns && this.#shownClock === clock) return this.#shown;
    const rest = this.#layOut(columns, clock).slice(this.#gone);
    const isCut = this.#isRestCut && rest.length > 1;
    const rows = isCut ? [moreRow(rest.length, this.#options)] : rest;
    this.#shown = rows.map((each) => fitRow(each, columns));
    this.#columns = columns;
    this.#shownClock = clock;
    this.#isMade = true;
    return this.#shown;
  }

  /** A running call shows all of its result when it ends: the user has not seen it. */
  freeze(count: number): Block {
    const frozen = createFixedBlock(this.#shown.slice(0, count));
    const hasJustEnded = this.isOver && !this.#isMade;
    if (!hasJustEnded) this.#gone += count;
    this.#isMade = false;
    return frozen;
  }

  #describe(tool: string, args: Args): void {
    this.#tool = tool;
    this.#args = args;
    this.#callText = undefined;
    this.#isMade = false;
  }

  /** Computed for each frame: arguments arrive in many pieces between two frames. */
  #text(): CallText {
    const { cwd } = this.#options;
    if (this.#callText) return this.#callText;
    const text = callText(this.#tool, this.#args);
    const shorten = (path: string): string =>
      path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
    const [place] = present(() => findPresentation(this.#tool)?.locations?.(this.#args)) ?? [];
    this.#path = shorten(shownLine(place?.path ?? ""));
    this.#callText = { ...text, about: shorten(text.about) };
    return this.#callText;
  }

  #finish(view: ToolView, facts: readonly string[]): void {
    this.#state = { type: "ended", view, facts };
    // The arguments may contain a whole file: their title is enough.
    this.#callText = this.#text();
    this.#isLimited = this.#args["limit"] !== undefined;
    this.#args = {};
    this.#gone = 0;
    this.#isMade = false;
  }

  #readTail(partial: AgentToolResult): string[] {
    const { tool, text } = readDetails(partial);
    if (findPresentation(this.#tool)?.delegates === true) {
      const last = splitLines(readText(text)).at(-1) ?? shownLine(readText(tool));
      if (last !== "") return [last];
    }
    return splitLines(resultText(partial).slice(-MAX_TAIL_CHARS)).slice(-RUNNING_LINES);
  }

  /** The time that a slow call has run. */
  #clock(): string {
    if (this.#state.type !== "running") return "";
    const ms = this.#options.now() - this.#state.since;
    return ms > SLOW_MS ? elapsed(ms) : "";
  }

  #layOut(columns: number, clock: string): readonly Row[] {
    const { expandKey, theme } = this.#options;
    const state = this.#state;
    if (state.type === "ended") {
      const { view, facts } = state;
      const style = { good: theme.good, bad: theme.bad, refused: theme.warning }[view.end];
      const below = viewRows(view, { theme, columns, expandKey, isExpanded: this.#isExpanded });
      return [this.#head(columns, SIGNS[view.end], style, facts.join(" · ")), ...below];
    }
    if (state.type === "arriving") {
      return [this.#head(columns, "○", theme.accent, sizeText(state.chars))];
    }
    const { calls } = state;
    const facts = [...(calls ? describeTree(calls) : []), clock].filter((fact) => fact !== "");
    const tail = this.#lines > 0 ? state.tail.slice(-this.#lines) : [];
    const below =
      calls && calls.calls.length > 0
        ? treeRows(calls, Math.max(1, this.#lines), theme)
        : tail.map((line) => row(`  ${line}`, theme.dim));
    return [this.#head(columns, "○", theme.accent, facts.join(" · ")), ...below];
  }

  /** The sign, the name, the title as far as it fits, and the facts. */
  #head(columns: number, sign: string, style: string, facts: string): Row {
    const { links, userCommand, theme } = this.#options;
    const { name, about, purpose = "" } = this.#text();
    const parts = userCommand?.aside ? [NOT_SENT, facts] : [facts];
    const last = parts.flatMap((each) => (each === "" ? [] : [span(`  ${each}`, theme.dim)]));
    // What it is for is shown where the call itself leaves room for it.
    const taken = measureWidth(`${name} ${about}`) + measureWidth(textOfRow(last)) + PURPOSE_MARGIN;
    const isShown = purpose !== "" && taken + measureWidth(purpose) <= columns;
    const behind = isShown ? [span(`  # ${purpose}`, theme.dim), ...last] : last;
    const asked = userCommand ? "!" : name;
    const hidesSign = userCommand !== undefined && sign === SIGNS.good;
    const call = [
      ...(hidesSign ? [] : [span(`${sign} `, style)]),
      span(asked, userCommand ? theme.accent : theme.strong),
      ...(about === "" ? [] : linkTitle(` ${about}`, links)),
    ];
    const room = Math.max(MIN_ABOUT_COLUMNS, columns - measureWidth(textOfRow(behind)));
    return [...fitRow(call, Math.min(room, columns)), ...behind];
  }
}

function linkTitle(title: string, links: FindLinks | undefined): Row {
  const spans = [span(title)];
  return links
    ? linkSpans(spans, links, (each, from, to) => span(each.text.slice(from, to)))
    : spans;
}

function sizeText(chars: number): string {
  return chars < SHOWN_ARGUMENT_CHARS ? "" : `(${(chars / CHARS_PER_KB).toFixed(1)} KB)`;
}
