import xterm from "@xterm/headless";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Row, row, span, textOfRow } from "./row.ts";
import { type Frame, Screen, type Size } from "./screen.ts";
import { wrapText } from "./wrap.ts";
import { countCases } from "../../../../../../tests/support/cases.ts";

/** More of them: GYRE_SCREENS. */
const RUNS = countCases(50, 150, "GYRE_SCREENS");

/** What takes more off the screen than the rest of a row. */
const CLEARS = ["\x1b[J", "\x1b[0J", "\x1b[1J", "\x1b[2J", "\x1b[3J", "\x1bc"];

/** A real terminal with a screen on it. */
function open(size: Size, before = "") {
  const terminal = new xterm.Terminal({
    cols: size.columns,
    rows: size.rows,
    scrollback: 10_000,
    allowProposedApi: true,
  });
  const written: string[] = [];
  let answer: ((place: { row: number; column: number }) => void) | undefined;
  terminal.onData((data) => {
    const [, line = "1", column = "1"] = /\[(\d+);(\d+)R/.exec(data) ?? [];
    answer?.({ row: Number(line) - 1, column: Number(column) - 1 });
  });
  const put = (text: string): void => terminal.write(text.replaceAll(/(?<!\r)\n/g, "\r\n"));
  put(before);
  const screen = new Screen(
    (text) => {
      written.push(text);
      put(text);
    },
    size,
    { lowersCursor: true },
  );
  const parsed = (): Promise<void> => new Promise((settle) => terminal.write("", settle));
  const lines = (from: number, to: number): string[] => {
    const { active } = terminal.buffer;
    return Array.from({ length: to - from }, (_, n) =>
      (active.getLine(from + n)?.translateToString(true) ?? "").trimEnd(),
    );
  };
  return {
    screen,
    written,
    parsed,
    viewport: () =>
      lines(terminal.buffer.active.baseY, terminal.buffer.active.baseY + terminal.rows),
    all: () => lines(0, terminal.buffer.active.baseY + terminal.rows),
    cursor: () => ({ row: terminal.buffer.active.cursorY, column: terminal.buffer.active.cursorX }),
    async resize(next: Size, frame: () => Frame): Promise<void> {
      await parsed();
      terminal.resize(next.columns, next.rows);
      const position = new Promise<{ row: number; column: number }>((settle) => (answer = settle));
      screen.resize(next);
      screen.settle(frame(), await position);
      await parsed();
    },
  };
}

const createFrame = (lines: readonly string[], cursor?: Frame["cursor"]): Frame => ({
  base: 0,
  rows: lines.map((line) => row(line)),
  ...(cursor && { cursor }),
});

describe("what is written", () => {
  test("a row that grows costs its new characters and the way there and back", async () => {
    const { screen, written, parsed, viewport } = open({ columns: 40, rows: 8 });
    screen.draw(createFrame(["Hello", "", "› "], { row: 2, column: 2 }));
    written.length = 0;
    screen.draw(createFrame(["Hello wor", "", "› "], { row: 2, column: 2 }));
    expect(written).toEqual(["\x1b7\x1b[2A\x1b[6G wor\x1b8"]);
    await parsed();
    expect(viewport().slice(0, 3)).toEqual(["Hello wor", "", "›"]);
  });

  test("a row more moves those below, which are not written again", async () => {
    const { screen, written, parsed, viewport } = open({ columns: 40, rows: 4 });
    screen.draw(createFrame(["one", "two", "› ask", "the footer"], { row: 2, column: 2 }));
    written.length = 0;
    screen.draw(createFrame(["one", "two", "three", "› ask", "the footer"], { row: 3, column: 2 }));
    expect(written.join("")).not.toMatch(/ask|footer|one|two/);
    await parsed();
    expect(viewport()).toEqual(["two", "three", "› ask", "the footer"]);
  });

  test("a typed character alone is written as it is", () => {
    const { screen, written } = open({ columns: 40, rows: 8 });
    screen.draw(createFrame(["", "› "], { row: 1, column: 2 }));
    written.length = 0;
    screen.draw(createFrame(["", "› a"], { row: 1, column: 3 }));
    expect(written).toEqual(["a"]);
  });

  test("the same frame again writes nothing", () => {
    const { screen, written } = open({ columns: 40, rows: 8 });
    screen.draw(createFrame(["a", "b"], { row: 1, column: 0 }));
    written.length = 0;
    screen.draw(createFrame(["a", "b"], { row: 1, column: 0 }));
    expect(written).toEqual([]);
  });

  test("what stood on the screen before is pushed up and stays", async () => {
    const { screen, parsed, all } = open({ columns: 20, rows: 4 }, "$ ls\na  b\n$ gyre\n");
    screen.draw(createFrame(["1", "2", "3", "4", "5"]));
    await parsed();
    expect(all()).toEqual(["$ ls", "a  b", "$ gyre", "1", "2", "3", "4", "5"]);
  });

  test("finish leaves the cursor on a row of its own, visible", async () => {
    const { screen, written, parsed, cursor } = open({ columns: 20, rows: 6 });
    screen.draw(createFrame(["1", "2"]));
    screen.finish();
    await parsed();
    expect(cursor()).toEqual({ row: 2, column: 0 });
    expect(written.at(-1)).toContain("\x1b[?25h");
  });

  test("a character whose width is not agreed on moves nothing behind it", async () => {
    const { screen, parsed, viewport } = open({ columns: 20, rows: 4 });
    screen.draw({ base: 0, rows: [[span("abcdefgh")]] });
    screen.draw({ base: 0, rows: [[span("👍🏽 ok"), span("|", "1")]] });
    await parsed();
    expect(viewport()[0]?.indexOf("ok")).toBeGreaterThan(0);
    expect(viewport()[0]).not.toContain("d");
  });
});

/** A made-up program: paragraphs, of which the last ones change, above a few rows of its own. */
interface Model {
  paragraphs: string[];
  chrome: string[];
  cursor: number;
}

type Step =
  | { type: "say"; text: string }
  | { type: "grow"; text: string }
  | { type: "replace"; back: number; text: string }
  | { type: "chrome"; rows: string[]; cursor: number }
  | { type: "resize"; columns: number; rows: number }
  /** What was changed before and is changed now is drawn at once. */
  | { type: "several"; steps: Exclude<Step, { type: "resize" | "several" }>[] };

const text = fc.stringMatching(/^[a-z ]{0,60}$/);
const one = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant("say" as const), text }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constant("grow" as const), text }) },
  fc.record({ type: fc.constant("replace" as const), back: fc.integer({ min: 1, max: 3 }), text }),
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("chrome" as const),
      rows: fc.array(fc.stringMatching(/^[A-Z]{0,45}$/), { minLength: 1, maxLength: 6 }),
      cursor: fc.nat({ max: 30 }),
    }),
  },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: one },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("several" as const), steps: fc.array(one) }),
  },
  fc.record({
    type: fc.constant("resize" as const),
    columns: fc.integer({ min: 20, max: 60 }),
    rows: fc.integer({ min: 8, max: 20 }),
  }),
);

function change(model: Model, given: Exclude<Step, { type: "resize" }>): void {
  const { paragraphs } = model;
  const last = paragraphs.length - 1;
  if (given.type === "several") for (const each of given.steps) change(model, each);
  else if (given.type === "say") paragraphs.push(given.text);
  else if (given.type === "grow") paragraphs[last] = (paragraphs[last] ?? "") + given.text;
  else if (given.type === "chrome")
    Object.assign(model, { chrome: given.rows, cursor: given.cursor });
  else if (given.back <= paragraphs.length) paragraphs[paragraphs.length - given.back] = given.text;
}

function layOut({ paragraphs, chrome, cursor }: Model, columns: number): Frame {
  const conversation = paragraphs.flatMap((paragraph) => wrapText(paragraph, columns));
  const rows: Row[] = [...conversation, ...chrome.map((line) => row(line.slice(0, columns)))];
  const at = cursor % chrome.length;
  const column = Math.min(chrome[at]?.length ?? 0, columns - 1);
  return { base: 0, rows, cursor: { row: conversation.length + at, column } };
}

test(
  "property: after any updates and resizes the screen is as if drawn from scratch",
  { tags: "long" },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 40 }),
        fc.nat({ max: 6 }),
        async (steps, above) => {
          let size: Size = { columns: 30, rows: 10 };
          const terminal = open(size, "$\n".repeat(above));
          const model: Model = { paragraphs: [""], chrome: ["> "], cursor: 0 };
          let top = 0;
          let shown: readonly Row[] = [];
          let at = { row: 0, column: 0 };
          for (const each of steps) {
            if (each.type === "resize") {
              size = { columns: each.columns, rows: each.rows };
              const frame = layOut(model, size.columns);
              await terminal.resize(size, () => frame);
              top = terminal.screen.top;
              shown = frame.rows;
              at = frame.cursor ?? at;
              continue;
            }
            change(model, each);
            const { rows, cursor } = layOut(model, size.columns);
            // Rows that have left the screen cannot change, and none can come back.
            const kept = [...shown.slice(0, top), ...rows.slice(top)];
            shown = kept;
            at = cursor ?? at;
            terminal.screen.draw({ base: 0, rows: kept, ...(cursor && { cursor }) });
            top = Math.max(top, kept.length - size.rows);
          }
          await terminal.parsed();
          expect(terminal.screen.top).toBe(top);
          const expected = shown.slice(top).map((each) => textOfRow(each).trimEnd());
          const seen = terminal.viewport();
          // Earlier rows may be above; the cursor shows where.
          const first = terminal.cursor().row - (at.row - top);
          if (top > 0) expect(first).toBe(0);
          expect(seen.slice(0, first).join("").replaceAll("$", "")).toBe("");
          expect(terminal.cursor().column).toBe(at.column);
          expect(seen.slice(first, first + expected.length)).toEqual(expected);
          expect(seen.slice(first + expected.length).join("")).toBe("");
          const written = terminal.written.join("");
          expect(CLEARS.filter((each) => written.includes(each))).toEqual([]);
        },
      ),
      { numRuns: RUNS },
    );
  },
);

test(
  "property: without a resize, screen and scrollback are what was shown, in order",
  { tags: "long" },
  async () => {
    const only = fc.array(
      step.filter(({ type }) => type === "say" || type === "grow"),
      { maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(only, async (steps) => {
        const size: Size = { columns: 30, rows: 10 };
        const terminal = open(size);
        const model: Model = { paragraphs: [""], chrome: ["> ", "foot"], cursor: 0 };
        terminal.screen.draw(layOut(model, size.columns));
        for (const each of steps) {
          if (each.type !== "resize") change(model, each);
          terminal.screen.draw(layOut(model, size.columns));
        }
        await terminal.parsed();
        const whole = layOut(model, size.columns).rows.map((each) => textOfRow(each).trimEnd());
        expect(terminal.all().slice(0, whole.length)).toEqual(whole);
      }),
      { numRuns: RUNS },
    );
  },
);
