import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Block } from "../ui/block.ts";
import { BlockList, KEPT_ROWS } from "./block-list.ts";
import { createFixedBlock, ThinkingBlock } from "./message-blocks.ts";
import { type Row, row, textOfRow } from "../terminal/row.ts";
import { NO_COLORS } from "../terminal/theme.ts";
import { ToolBlock } from "./tool-block.ts";

const COLUMNS = 40;
const OPTIONS = { theme: NO_COLORS, cwd: "/", now: (): number => 0 };

function lines(name: string, count: number): Block {
  return createFixedBlock(Array.from({ length: count }, (_, index) => row(`${name}${index}`)));
}

function texts(rows: readonly Row[]): string[] {
  return rows.map(textOfRow);
}

describe("blocks", () => {
  it("have an empty row between them, and empty ones have none", () => {
    const list = new BlockList();
    for (const block of [lines("a", 2), lines("x", 0), lines("b", 1)]) list.add(block);
    expect(texts(list.rows(COLUMNS).rows)).toEqual(["a0", "a1", "", "b0"]);
  });

  it("are not looked at once they have left the screen", () => {
    let asked = 0;
    const list = new BlockList();
    list.add({ rows: () => [row(`asked ${++asked}`)] });
    list.add(lines("b", 3));
    list.rows(COLUMNS);
    list.release(1);
    list.rows(COLUMNS);
    expect(asked).toBe(1);
  });

  it("leave the screen in part, also those that cannot be divided", () => {
    const list = new BlockList();
    list.add(lines("a", 3));
    list.add(lines("b", 1));
    list.rows(COLUMNS);
    list.release(2);
    const { base, rows } = list.rows(COLUMNS);
    expect([base, texts(rows)]).toEqual([2, ["a2", "", "b0"]]);
  });

  it("that are still open go on below what has left the screen", () => {
    const list = new BlockList();
    const thought = new ThinkingBlock({ ...OPTIONS, isExpanded: true });
    list.add(thought);
    thought.feed("one\ntwo\nthree");
    list.rows(COLUMNS);
    list.release(2);
    thought.feed("\nfour");
    const { base, rows } = list.rows(COLUMNS);
    expect([base, texts(rows)]).toEqual([2, ["┊ three", "┊ four"]]);
  });

  it("are all laid out again for another width, undivided", () => {
    const list = new BlockList();
    const call = new ToolBlock("shell", { command: "x" }, OPTIONS);
    list.add(lines("a", 2));
    list.add(call);
    call.start("shell", { command: "x" });
    call.update({ content: [{ type: "text", text: "1\n2\n3" }] });
    list.rows(COLUMNS);
    list.release(5);
    expect(texts(list.rows(COLUMNS).rows)).toEqual(["  2", "  3"]);
    list.relayout();
    const { base, rows } = list.rows(COLUMNS / 2);
    expect(base).toBe(0);
    expect(texts(rows)).toEqual(["a0", "a1", "", "○ shell x", "  1", "  2", "  3"]);
  });

  it("are kept for another width as far as the last rows", () => {
    const list = new BlockList();
    for (let index = 0; index < 2 * KEPT_ROWS; index++) {
      list.add(lines(`${index} `, 1));
      list.release(list.rows(COLUMNS).base + list.rows(COLUMNS).rows.length);
    }
    list.relayout();
    const { rows } = list.rows(COLUMNS);
    expect(rows.length).toBeGreaterThanOrEqual(KEPT_ROWS - 1);
    expect(rows.length).toBeLessThanOrEqual(KEPT_ROWS + 1);
  });

  it("leave the others as they were, however much of them leaves the screen", () => {
    const block = fc.oneof(
      fc.nat(5).map((count) => lines("f", count)),
      fc.array(fc.constantFrom("one", "two\n", "three")).map((words) => {
        const thought = new ThinkingBlock({ ...OPTIONS, isExpanded: true });
        thought.feed(words.join(" "));
        return thought;
      }),
      fc.string().map((text) => {
        const call = new ToolBlock("shell", {}, OPTIONS);
        call.start("shell", { command: "x" });
        call.update({ content: [{ type: "text", text: `${text}\nb\nc` }] });
        return call;
      }),
    );
    fc.assert(
      fc.property(fc.array(block), fc.array(fc.nat(6)), (blocks, steps) => {
        const list = new BlockList();
        for (const each of blocks) list.add(each);
        const before = list.rows(COLUMNS).rows;
        let top = 0;
        for (const step of steps) {
          top = Math.min(top + step, before.length);
          list.release(top);
          const { base, rows } = list.rows(COLUMNS);
          expect(base).toBe(top);
          expect(texts(rows)).toEqual(texts(before.slice(top)));
        }
      }),
    );
  });
});
