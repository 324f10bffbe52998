import { counted } from "../../../text/tool-text.ts";
import type { Block } from "../ui/block.ts";
import { EMPTY_ROW, fitRow, type Row, span } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import { createFixedBlock, type LiveBlock } from "./message-blocks.ts";
import type { ToolBlock } from "./tool-block.ts";
import { moreRow } from "./tool-view.ts";

/** How calls are counted, by the verb of their tool. */
const COUNTS: Readonly<Record<string, { done: string; running: string; one: string }>> = {
  Read: { done: "read", running: "reading", one: "file" },
  Search: { done: "searched", running: "searching", one: "pattern" },
  Find: { done: "found", running: "finding", one: "name" },
  List: { done: "listed", running: "listing", one: "folder" },
};

/** Whether calls with this verb are counted together. */
export function isCounted(verb: string | undefined): verb is string {
  return verb !== undefined && Object.hasOwn(COUNTS, verb);
}

export interface GroupOptions {
  theme: Theme;
  isExpanded: boolean;
  /** What shows a result in full; empty: nothing does. Default: Ctrl+O. */
  expandKey?: string | undefined;
}

/**
 * Calls that read and search, one behind the other. Several of them are one row; when it is expanded, each has its
 * own rows, and so have always those that fail or give only a part. One alone looks as it does without a group.
 */
export class CallGroup implements LiveBlock {
  readonly #look: Omit<GroupOptions, "isExpanded">;
  readonly #calls: ToolBlock[];
  #isExpanded: boolean;
  /** It was expanded when its beginning left the screen, and collapsed since. */
  #isRestCut = false;
  /** How many rows have left the screen. */
  #gone = 0;
  /** The last layout, and how many calls were over in it. */
  #shown: readonly Row[] = [];
  #shownOver = 0;

  constructor(first: ToolBlock, { isExpanded, ...look }: GroupOptions) {
    this.#look = look;
    this.#isExpanded = isExpanded;
    this.#calls = [first];
  }

  get isOver(): boolean {
    return this.#countOver() === this.#calls.length;
  }

  /** Adds a call; false where rows have left the screen, which would then be wrong. */
  join(call: ToolBlock): boolean {
    if (this.#gone > 0) return false;
    this.#calls.push(call);
    return true;
  }

  expand(isExpanded: boolean): void {
    if (this.#gone > 0 && this.isOver) {
      this.#isRestCut = this.#isExpanded && !isExpanded;
      return;
    }
    this.#isExpanded = isExpanded;
    for (const call of this.#calls) call.expand(isExpanded);
  }

  restart(): void {
    this.#gone = 0;
    if (this.#isRestCut) this.expand(false);
    this.#isRestCut = false;
    for (const call of this.#calls) call.restart();
  }

  rows(columns: number): readonly Row[] {
    const over = this.#countOver();
    // What ends after its row has left the screen is shown again: the user has not seen it.
    if (over !== this.#shownOver) this.#gone = 0;
    this.#shownOver = over;
    const rest = this.#layOut(columns).slice(this.#gone);
    const isCut = this.#isRestCut && rest.length > 1;
    const rows = isCut ? [fitRow(moreRow(rest.length, this.#look), columns)] : rest;
    if (rows.length !== this.#shown.length || rows.some((each, at) => each !== this.#shown[at])) {
      this.#shown = rows;
    }
    return this.#shown;
  }

  freeze(count: number): Block {
    const frozen = createFixedBlock(this.#shown.slice(0, count));
    if (this.#countOver() === this.#shownOver) this.#gone += count;
    return frozen;
  }

  #countOver(): number {
    return this.#calls.filter(({ isOver }) => isOver).length;
  }

  #layOut(columns: number): Row[] {
    const usual = this.#isExpanded ? [] : this.#calls.filter(({ isRemarkable }) => !isRemarkable);
    const isGroup = usual.length > 1;
    const apart = isGroup ? this.#calls.filter(({ isRemarkable }) => isRemarkable) : this.#calls;
    const first = isGroup ? [[this.#countRow(usual, columns)]] : [];
    return [...first, ...apart.map((call) => call.rows(columns))].flatMap((rows, index) =>
      index > 0 ? [EMPTY_ROW, ...rows] : rows,
    );
  }

  /** `● searched 1 pattern, read 2 files  TODO, src/a.ts, src/b.ts` */
  #countRow(calls: readonly ToolBlock[], columns: number): Row {
    const { accent, dim, good, strong } = this.#look.theme;
    const isRunning = calls.some(({ isOver }) => !isOver);
    const subjects = new Map<string, Set<string>>();
    for (const { verb, subject } of calls) {
      subjects.set(verb, (subjects.get(verb) ?? new Set()).add(subject));
    }
    const counts = [...subjects].flatMap(([verb, { size }]) => {
      const words = COUNTS[verb];
      return words ? [`${isRunning ? words.running : words.done} ${counted(size, words.one)}`] : [];
    });
    const names = [...new Set([...subjects.values()].flatMap((each) => [...each]))].join(", ");
    return fitRow(
      [
        isRunning ? span("○ ", accent) : span("● ", good),
        span(counts.join(", "), strong),
        span(`  ${names}`, dim),
      ],
      columns,
    );
  }
}
