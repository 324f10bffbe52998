import type { Block, OpenBlock } from "../ui/block.ts";
import type { LiveBlock } from "./message-blocks.ts";
import { EMPTY_ROW, type Row } from "../terminal/row.ts";

/** How many rows that have left the screen are laid out again when its width changes. */
export const KEPT_ROWS = 500;

interface Entry {
  readonly block: Block;
  /** The block that this part, which has left the screen, belongs to. */
  readonly partOf?: Block;
  /** It continues the entry before it: there is no empty row between them. */
  isRest: boolean;
  /** The empty row before it has left the screen. */
  isGapGone: boolean;
  /** The rows of a block that cannot be divided which are still on the screen. */
  left?: readonly Row[];
  /** The last layout, and whether an empty row preceded it. */
  hasGap: boolean;
  shown: readonly Row[];
}

/** Blocks with an empty row between them. A frame lays out only the rows that have not left the screen. */
export class BlockList {
  #kept: { entry: Entry; count: number }[] = [];
  #keptRows = 0;
  #live: Entry[] = [];
  #base = 0;

  add(block: Block): void {
    this.#live.push(createEntry(block));
  }

  /** Blocks that have not left the screen. */
  get blocks(): readonly Block[] {
    return this.#live.map(({ block }) => block);
  }

  /** All rows that have not left the screen; `base` counts those that have. */
  rows(columns: number): { base: number; rows: readonly Row[] } {
    const rows: Row[] = [];
    for (const entry of this.#live) {
      entry.shown = entry.left ?? entry.block.rows(columns);
      const isFirst = this.#base + rows.length === 0;
      entry.hasGap =
        entry.shown.length > 0 && !isFirst && !entry.isRest && !entry.isGapGone && !entry.left;
      if (entry.hasGap) rows.push(EMPTY_ROW);
      for (const each of entry.shown) rows.push(each);
    }
    return { base: this.#base, rows };
  }

  /** Rows before `top`, as in the last `rows`, have left the screen. */
  release(top: number): void {
    const staying: Entry[] = [];
    let seen = 0;
    for (const entry of this.#live) {
      if (this.#base >= top) break;
      seen += 1;
      const count = entry.shown.length + (entry.hasGap ? 1 : 0);
      const leaving = Math.min(count, top - this.#base);
      this.#base += leaving;
      if (leaving === count && !mayGrow(entry)) {
        this.#keep(entry, count);
        continue;
      }
      if (leaving > 0) this.#divide(entry, leaving);
      staying.push(entry);
    }
    if (seen > 0) this.#live = [...staying, ...this.#live.slice(seen)];
  }

  /** Lays out all kept blocks from their beginning for another width; `base` is 0 again. */
  relayout(): void {
    const all = [...this.#kept.map(({ entry }) => entry), ...this.#live];
    const whole = new Set<Block>();
    for (const { block } of all) {
      if (!isLive(block)) continue;
      block.restart();
      whole.add(block);
    }
    this.#live = all
      .filter(({ partOf }) => partOf === undefined || !whole.has(partOf))
      .map(({ block, partOf, isRest }) => ({
        ...createEntry(block, partOf),
        isRest: isRest && !whole.has(block),
      }));
    this.#kept = [];
    this.#keptRows = 0;
    this.#base = 0;
  }

  /** Separates the first `count` rows of an entry, which have left the screen. */
  #divide(entry: Entry, count: number): void {
    const ofBlock = count - (entry.hasGap ? 1 : 0);
    entry.isGapGone = true;
    entry.hasGap = false;
    if (ofBlock === 0) return;
    const left = entry.shown.slice(ofBlock);
    if (isOpen(entry.block)) {
      const part = createEntry(entry.block.freeze(ofBlock), entry.block);
      this.#keep({ ...part, isRest: entry.isRest }, count);
      entry.isRest = true;
    } else entry.left = left;
    entry.shown = left;
  }

  #keep(entry: Entry, count: number): void {
    this.#kept.push({ entry, count });
    this.#keptRows += count;
    for (let first = this.#kept[0]; first; first = this.#kept[0]) {
      if (this.#keptRows - first.count < KEPT_ROWS) break;
      this.#keptRows -= first.count;
      this.#kept.shift();
    }
  }
}

function createEntry(block: Block, partOf?: Block): Entry {
  const entry = { block, isRest: false, isGapGone: false, hasGap: false, shown: [] };
  return partOf === undefined ? entry : { ...entry, partOf };
}

/** Whether a block that has left the screen may get more rows. */
function mayGrow({ block, shown }: Entry): boolean {
  return isLive(block) ? !block.isOver : shown.length === 0;
}

function isOpen(block: Block): block is OpenBlock {
  return "freeze" in block;
}

function isLive(block: Block): block is LiveBlock {
  return isOpen(block) && "restart" in block;
}
