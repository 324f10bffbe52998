import type { Block } from "../ui/block.ts";
import type { LaidRow, Place } from "./range.ts";
import type { Node } from "./tree.ts";
import type { Row } from "../terminal/row.ts";

/** Rows that stay what they are, but for another width. */
export function createFrozenBlock(layout: (columns: number) => readonly LaidRow[]): Block {
  let shown: { columns: number; rows: readonly Row[] } | undefined;
  return {
    rows(columns) {
      if (shown?.columns !== columns) {
        shown = { columns, rows: layout(columns).map(({ row }) => row) };
      }
      return shown.rows;
    },
  };
}

/** Lines are still added to code that is open: what was frozen keeps its own. */
export function copyFrozen(node: Node, from: Place, until: Place): Node {
  if (node.type !== "code") return node;
  const first = node.lines.findLastIndex(({ at }) => at <= from.at);
  const lines = node.lines.slice(Math.max(0, first)).filter(({ at }) => at < until.at);
  return { ...node, lines };
}
