import { manualClock } from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { statusLineProblems } from "@gyre/coding/internal/settings/terminal/status-line";
import { formatCells, splitCells, textOfRow, widthOfRow } from "../terminal/row.ts";
import { COLORS, NO_COLORS } from "../terminal/theme.ts";
import { STATUS_INTERVAL_MS, StatusCommand, type StatusEnd } from "./command.ts";
import { describeFacts } from "./status-line.ts";
import { parseStyledLine } from "./styled-line.ts";
import { templateRow } from "./template.ts";

const facts = {
  model: { id: "claude-sonnet-5-5", name: "Claude Sonnet 5.5" },
  thinking: "off",
  mode: "auto",
  usage: {
    input: 1_000,
    cacheRead: 9_000,
    output: 512,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0.034 },
  },
  contextTokens: 80_000,
  compactAt: 160_000,
  folder: "/home/me/shop",
  session: "7k2m",
} as const;

describe("a template", () => {
  const fill = (template: string, more: object = {}, columns = 60): string =>
    textOfRow(templateRow(template, { ...facts, ...more }, columns, NO_COLORS));

  test.each([
    ["{model} · {mode}", "claude-sonnet-5-5 · auto"],
    ["{folder}: {context}", "shop: 50% of context"],
    ["{cost} {tokens} {cache} {session}", "$0.034 ↑10k ↓512 cache 90% 7k2m"],
    // What has nothing to show is left out with its separator.
    ["{model} · {thinking} · on {branch} · {jobs} · {mode}", "claude-sonnet-5-5 · auto"],
    ["plain", "plain"],
  ])("%s", (template, shown) => {
    expect(fill(template)).toBe(shown);
  });

  it("fills the row, and is cut where there is no room", () => {
    expect(fill("{model}{fill}{mode}", {}, 30)).toBe("claude-sonnet-5-5         auto");
    expect(fill("{folder}{fill}{branch}{fill}{mode}", { branch: "main" }, 21)).toBe(
      "shop    main     auto",
    );
    for (const columns of [20, 30, 40]) {
      const row = templateRow("{model}{fill}{mode} {cost}", facts, columns, COLORS);
      expect(widthOfRow(row)).toBeLessThanOrEqual(columns);
    }
  });

  it("has the mode of vim before it", () => {
    expect(fill("{mode}", { keyMode: "NORMAL" })).toBe("NORMAL · auto");
  });

  it("is an error where a field is unknown", () => {
    expect(statusLineProblems("{modle} {fill} {mode}")).toEqual([
      'there is no field "modle"; may "model" or "mode" be meant',
    ]);
    expect(statusLineProblems("{xyzzy}")).toEqual([
      expect.stringMatching(/^there is no field "xyzzy"; there are model, thinking, /),
    ]);
  });
});

describe("a program", () => {
  it.each([
    ["date", []],
    ["~/bin/status --short", []],
    [["/usr/bin/status"], []],
    [
      "./status.sh",
      ['the program "./status.sh" must be a name, or a path that begins with / or ~/'],
    ],
    [["bin/status"], [expect.stringContaining('"bin/status" must be a name')]],
  ])("%j is not one of the project", (command, problems) => {
    expect(statusLineProblems({ command })).toEqual(problems);
  });

  it("gets what is known, in the words of other agents", () => {
    expect(describeFacts({ ...facts, branch: "main" })).toMatchObject({
      session_id: "7k2m",
      cwd: "/home/me/shop",
      model: { id: "claude-sonnet-5-5", display_name: "Claude Sonnet 5.5" },
      workspace: { current_dir: "/home/me/shop" },
      cost: { total_cost_usd: 0.034 },
      context_window: { used_percentage: 50, total_input_tokens: 10_000, total_output_tokens: 512 },
      mode: "auto",
      branch: "main",
      jobs: 0,
    });
  });
});

/** Colors, and what is written around characters whose width is not sure. */
const DRAWING = new RegExp(String.raw`\x1b\[(?:[\d;]*m|\?7[hl]|2X|\d+G)`, "g");

describe("what a program prints", () => {
  const read = (output: string, hasColors = true) =>
    parseStyledLine(output, hasColors).map(({ text, style }) => [text, style]);

  test.each([
    ["one\ntwo\n", [["one", ""]]],
    ["\n\n  one", [["one", ""]]],
    [
      "\x1b[1;31mred\x1b[0m plain",
      [
        ["red", "1;31"],
        [" plain", ""],
      ],
    ],
    [
      "\x1b[38;5;208ma\x1b[48;2;1;2;3mb",
      [
        ["a", "38;5;208"],
        ["b", "38;5;208;48;2;1;2;3"],
      ],
    ],
    // Hidden and blinking text, and what is no color.
    [
      "\x1b[8;5mx\x1b[38;9;1my\x1b[38;5;999mz",
      [
        ["x", ""],
        ["y", "1"],
        ["z", "1"],
      ],
    ],
    ["a\x1b]0;title\x07b\x1b[2Jc\x1b]8;;http://x\x07d\u202e", [["abcd", ""]]],
    ["", []],
  ])("%j", (output, spans) => {
    expect(read(output)).toEqual(spans);
  });

  it("has no colors where there are none", () => {
    expect(read("\x1b[31mred", false)).toEqual([["red", ""]]);
  });

  it("never has the terminal do anything but show colors", () => {
    const pieces = fc.constantFrom(
      "\x1b[",
      "\x1b]",
      "m",
      ";",
      "5",
      "38",
      "0",
      "x",
      "\x07",
      "\x9b",
      "\n",
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string())), (parts) => {
        const drawn = formatCells(splitCells(parseStyledLine(parts.join(""), true)));
        const rest = drawn.replaceAll(DRAWING, "");
        expect(rest).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

describe("the runs of a program", () => {
  function setUp() {
    const clock = manualClock();
    const runs: { input: string; end: (end: StatusEnd) => void; signal: AbortSignal }[] = [];
    const warnings: string[] = [];
    const command = new StatusCommand({
      clock,
      hasColors: true,
      run: (input, signal) => new Promise((end) => runs.push({ input, end, signal })),
      changed: () => {},
      warn: (problem) => warnings.push(problem),
    });
    const shown = (): string => textOfRow(command.row ?? []);
    return { clock, command, runs, shown, warnings };
  }

  it("come when what it gets has changed, one at a time, with the last of it", async () => {
    const { clock, command, runs, shown } = setUp();
    command.update("a");
    await clock.advance(0);
    command.update("b");
    command.update("c");
    await clock.advance(10_000);
    expect(runs.map(({ input }) => input)).toEqual(["a\n"]);
    runs[0]?.end({ stdout: "A" });
    await clock.advance(0);
    expect(shown()).toBe("A");
    expect(runs.map(({ input }) => input)).toEqual(["a\n", "c\n"]);
    runs[1]?.end({ stdout: "C" });
    await clock.advance(0);
    expect(shown()).toBe("C");
    command.update("c");
    // Nothing has changed: nothing waits.
    expect(clock.pending).toBe(0);
  });

  it("do not follow each other faster than every 300 ms", async () => {
    const { clock, command, runs } = setUp();
    command.update("a");
    await clock.advance(0);
    runs[0]?.end({ stdout: "A" });
    await clock.advance(0);
    command.update("b");
    await clock.advance(STATUS_INTERVAL_MS - 1);
    expect(runs).toHaveLength(1);
    await clock.advance(1);
    expect(runs).toHaveLength(2);
  });

  it("that fail leave the last line, and are reported once", async () => {
    const { clock, command, runs, shown, warnings } = setUp();
    for (const [index, end] of [
      { stdout: "good" },
      { stdout: "", problem: "ended with 1" },
      { stdout: "", problem: "ended with 1" },
    ].entries()) {
      command.update(String(index));
      await clock.advance(STATUS_INTERVAL_MS);
      runs[index]?.end(end);
      await clock.advance(0);
    }
    expect(shown()).toBe("good");
    expect(warnings).toEqual(["ended with 1"]);
  });

  it("end with the program", async () => {
    const { clock, command, runs } = setUp();
    command.update("a");
    await clock.advance(0);
    command.update("b");
    command.close();
    expect(runs[0]?.signal.aborted).toBe(true);
    runs[0]?.end({ stdout: "late" });
    await clock.advance(10_000);
    expect([runs.length, clock.pending, command.row]).toEqual([1, 0, undefined]);
  });
});
