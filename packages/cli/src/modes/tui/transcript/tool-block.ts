import type { AgentToolResult } from "@gyre/agent";
import { findPresentation } from "@gyre/tools/catalog";
import { shownLine } from "../../../text/shown-text.ts";
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
import { FixedBlock, type LiveBlock } from "./message-blocks.ts";
import { fitRow, type Row, row, span, textOfRow } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import {
  type CallEnd,
  type EndedCall,
  moreRow,
  toolView,
  type ToolView,
  viewRows,
} from "./tool-view.ts";

/** Lines of the output of a call that runs. */
export const RUNNING_LINES = 5;
/** Of what a call has said, looked at for its last lines. */
const MAX_TAIL_CHARS: number = 8 * 1024;
/** A call that takes less is not said to take time: while it runs, and when it has ended. */
const SLOW_MS = 2_000;
const SHOWN_DURATION_MS = 1_000;
/** Of arguments that are on their way: below this nothing is said of their size. */
const SHOWN_ARGUMENT_CHARS = 512;
const CHARS_PER_KB = 1_024;
const NOT_SENT = "(not sent to the model)";
/** Of the name and what it is for, where what follows takes too much. */
const MIN_ABOUT_COLUMNS = 8;

const SIGNS: Readonly<Record<CallEnd, string>> = { good: "●", bad: "✗", refused: "⊘" };

export interface ToolBlockOptions {
  theme: Theme;
  /** Paths are told from here on. */
  cwd: string;
  /** Milliseconds. */
  now: () => number;
  isExpanded?: boolean;
  /** It is a command of the user's own. `aside`: the model does not see it. */
  userCommand?: { aside: boolean } | undefined;
}

type State =
  /** The model is still writing the arguments. */
  | { type: "arriving"; chars: number }
  | { type: "running"; since: number; tail: readonly string[] }
  | { type: "ended"; view: ToolView; facts: readonly string[] };

/** One call: as it is written by the model, while it runs, and what came of it. */
export class ToolBlock implements LiveBlock {
  readonly #options: ToolBlockOptions;
  #tool: string;
  #args: Args;
  #callText: CallText | undefined;
  #state: State = { type: "arriving", chars: 0 };
  #isExpanded: boolean;
  /** It was whole as its beginning left the screen, and the rest is cut since. */
  #isRestCut = false;
  #lines = RUNNING_LINES;
  #columns = 0;
  /** How many rows have left the screen. */
  #gone = 0;
  /** As laid out last, and whether that is still right. */
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

  /** What is done, for a line of its own: `npm test`, `write src/a.ts`. */
  get activity(): string {
    const { name, about } = this.#text();
    const isCommand = findPresentation(this.#tool)?.verb === "";
    return isCommand && about !== "" ? about : `${name} ${about}`.trim();
  }

  /** A piece of the arguments has come; `args` is what they are by now. */
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

  /** What a call that runs has said last. */
  update(partial: AgentToolResult): void {
    if (this.#state.type !== "running") return;
    this.#state = { ...this.#state, tail: this.#readTail(partial) };
    this.#isMade = false;
  }

  /** `tookMs` is absent where nobody knows any more. */
  end(ended: EndedCall, tookMs = 0): void {
    const view = toolView(this.#tool, ended);
    const slow = tookMs >= SHOWN_DURATION_MS ? [duration(tookMs)] : [];
    this.#finish(view, [...view.facts, ...slow]);
  }

  /** It has come to nothing: there will be no result. */
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

  /** How many lines of output it may show while it runs: several calls share them. */
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
    const rows = isCut ? [moreRow(rest.length, this.#options.theme)] : rest;
    this.#shown = rows.map((each) => fitRow(each, columns));
    this.#columns = columns;
    this.#shownClock = clock;
    this.#isMade = true;
    return this.#shown;
  }

  /** Where it runs on, what is shown when it ends is all of it: nobody saw how it ended. */
  freeze(count: number): Block {
    const frozen = new FixedBlock(this.#shown.slice(0, count));
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

  /** Looked up when it is shown: arguments come in many pieces between two frames. */
  #text(): CallText {
    const { cwd } = this.#options;
    if (this.#callText) return this.#callText;
    const { name, about } = callText(this.#tool, this.#args);
    const isInside = about.startsWith(`${cwd}/`);
    this.#callText = { name, about: isInside ? about.slice(cwd.length + 1) : about };
    return this.#callText;
  }

  #finish(view: ToolView, facts: readonly string[]): void {
    this.#state = { type: "ended", view, facts };
    // What it was called with may be a whole file: the words for it are enough.
    this.#callText = this.#text();
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

  /** How long it has run, once that is long. */
  #clock(): string {
    if (this.#state.type !== "running") return "";
    const ms = this.#options.now() - this.#state.since;
    return ms > SLOW_MS ? elapsed(ms) : "";
  }

  #layOut(columns: number, clock: string): readonly Row[] {
    const { theme } = this.#options;
    const state = this.#state;
    if (state.type === "ended") {
      const { view, facts } = state;
      const style = { good: theme.good, bad: theme.bad, refused: theme.warning }[view.end];
      const below = viewRows(view, { theme, columns, isExpanded: this.#isExpanded });
      return [this.#head(columns, SIGNS[view.end], style, facts.join(" · ")), ...below];
    }
    const fact = state.type === "arriving" ? sizeText(state.chars) : clock;
    const tail = state.type === "running" && this.#lines > 0 ? state.tail.slice(-this.#lines) : [];
    const below = tail.map((line) => row(`  ${line}`, theme.dim));
    return [this.#head(columns, "○", theme.accent, fact), ...below];
  }

  /** The sign, the name, as much as fits of what it is for, and what is to be said of it. */
  #head(columns: number, sign: string, style: string, facts: string): Row {
    const { userCommand, theme } = this.#options;
    const parts = userCommand?.aside ? [NOT_SENT, facts] : [facts];
    const behind = parts.flatMap((each) => (each === "" ? [] : [span(`  ${each}`, theme.dim)]));
    const { name, about } = this.#text();
    const asked = userCommand ? "!" : name;
    const hidesSign = userCommand !== undefined && sign === SIGNS.good;
    const call = [
      ...(hidesSign ? [] : [span(`${sign} `, style)]),
      span(asked, userCommand ? theme.accent : theme.strong),
      ...(about === "" ? [] : [span(` ${about}`)]),
    ];
    const room = Math.max(MIN_ABOUT_COLUMNS, columns - measureWidth(textOfRow(behind)));
    return [...fitRow(call, Math.min(room, columns)), ...behind];
  }
}

function sizeText(chars: number): string {
  return chars < SHOWN_ARGUMENT_CHARS ? "" : `(${(chars / CHARS_PER_KB).toFixed(1)} KB)`;
}
