import type { AgentToolResult } from "@gyre/agent";
import type { ToolOutcome } from "@gyre/ai";
import type {
  EditDetails,
  FindDetails,
  GrepDetails,
  LsDetails,
  PatchDetails,
  ReadDetails,
  ShellDetails,
  WriteDetails,
} from "@gyre/tools";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Row, textOfRow, widthOfRow } from "../terminal/row.ts";
import { COLORS, NO_COLORS } from "../terminal/theme.ts";
import { ToolBlock } from "./tool-block.ts";

const clock = { ms: 0 };
const OPTIONS = { theme: NO_COLORS, cwd: "/home/me/project", now: (): number => clock.ms };

function shown(rows: readonly Row[]): string {
  return rows.map((each) => textOfRow(each).trimEnd()).join("\n");
}

function result(text: string, details?: unknown): AgentToolResult {
  return { content: [{ type: "text", text }], ...(details !== undefined && { details }) };
}

interface Ended {
  text?: string;
  details?: unknown;
  outcome?: ToolOutcome;
  reason?: string;
  tookMs?: number;
  columns?: number;
  isExpanded?: boolean;
}

function ended(tool: string, args: Record<string, unknown>, how: Ended): string {
  const { text = "", details, outcome = "ok", reason, tookMs = 0, columns = 80 } = how;
  const block = new ToolBlock(tool, args, { ...OPTIONS, isExpanded: how.isExpanded ?? false });
  block.start(tool, args);
  block.end({ result: result(text, details), outcome, reason }, tookMs);
  return shown(block.rows(columns));
}

function createShellCall(stdout: string, exitCode = 0): ShellDetails {
  return { stdout, stderr: "", exitCode, durationMs: 1, timedOut: false, aborted: false };
}

describe("a call that is being written", () => {
  it("has its name at once, and grows in size", () => {
    const block = new ToolBlock("write", {}, OPTIONS);
    expect(shown(block.rows(80))).toBe("○ write");
    block.arrive("write", { path: "src/a.ts" }, '{"path":"src/a.ts"');
    expect(shown(block.rows(80))).toBe("○ write src/a.ts");
    block.arrive("write", { path: "src/a.ts" }, "x".repeat(1_270));
    expect(shown(block.rows(80))).toBe("○ write src/a.ts  (1.3 KB)");
  });
});

describe("a call that runs", () => {
  it("shows the last lines of its output, and how long it takes once that is long", () => {
    clock.ms = 0;
    const block = new ToolBlock("shell", {}, OPTIONS);
    block.start("shell", { command: "npm test" });
    block.update(result(Array.from({ length: 9 }, (_, index) => `line ${index}`).join("\n")));
    clock.ms = 2_000;
    expect(shown(block.rows(80)).split("\n")[0]).toBe("○ shell npm test");
    clock.ms = 64_900;
    expect(shown(block.rows(40))).toMatchInlineSnapshot(`
      "○ shell npm test  1 min 4 s
        line 4
        line 5
        line 6
        line 7
        line 8"
    `);
  });

  it("gives the same rows as long as nothing changes", () => {
    clock.ms = 0;
    const block = new ToolBlock("shell", {}, OPTIONS);
    block.start("shell", { command: "npm test" });
    const rows = block.rows(80);
    clock.ms = 900;
    expect(block.rows(80)).toBe(rows);
  });

  it("shows fewer lines where it shares them", () => {
    const block = new ToolBlock("shell", {}, OPTIONS);
    block.start("shell", { command: "x" });
    block.update(result("a\nb\nc"));
    block.share(1);
    expect(shown(block.rows(80))).toBe("○ shell x\n  c");
  });

  it("shows what a sub-agent does", () => {
    const block = new ToolBlock("task", { description: "look around" }, OPTIONS);
    block.start("task", { description: "look around" });
    block.update(result("Turn 2.", { turns: 2, tool: 'read {"path":"a"}' }));
    expect(shown(block.rows(80))).toBe('○ task look around\n  read {"path":"a"}');
    block.update(result("Turn 2.", { turns: 2, tool: "read", text: "I see.\nNow this." }));
    expect(shown(block.rows(80))).toBe("○ task look around\n  Now this.");
  });

  it("is shown whole when it ends, if its head has left the screen", () => {
    const block = new ToolBlock("shell", {}, OPTIONS);
    block.start("shell", { command: "npm test" });
    block.update(result("a\nb\nc"));
    block.rows(80);
    expect(shown(block.freeze(2).rows(80))).toBe("○ shell npm test\n  a");
    expect(shown(block.rows(80))).toBe("  b\n  c");
    block.end({ result: result("", createShellCall("done")), outcome: "ok" });
    expect(shown(block.rows(80))).toBe("● shell npm test\n  done");
  });
});

describe("a command that has ended", () => {
  it("shows how, how long it took, and its last lines", () => {
    const stdout = Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n");
    const how = { details: createShellCall(stdout, 1), outcome: "error" as const, tookMs: 1_234 };
    expect(ended("shell", { command: "npm test" }, how)).toMatchInlineSnapshot(`
      "✗ shell npm test  exit code 1 · 1.2 s
        line 12
        line 13
        line 14
        line 15
        line 16
        line 17
        line 18
        line 19
        … 12 more lines (Ctrl+O)"
    `);
  });

  it("shows all of it when that is wanted", () => {
    const details = createShellCall(
      Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n"),
    );
    const rows = ended("shell", { command: "x" }, { details, isExpanded: true }).split("\n");
    expect(rows).toHaveLength(21);
  });

  it("shows no more than 200 rows in any case", () => {
    const details = createShellCall("x\n".repeat(5_000));
    const rows = ended("shell", { command: "x" }, { details, isExpanded: true }).split("\n");
    expect(rows).toHaveLength(202);
    expect(rows.at(-1)).toBe("  … 4,800 more lines");
  });

  it("keeps what is to be said of it where the command is long", () => {
    const args = { command: "npm run a-very-long-name -- --with many --options and words" };
    const how = {
      details: createShellCall("", 2),
      outcome: "error" as const,
      tookMs: 4_000,
      columns: 40,
    };
    expect(ended("shell", args, how)).toBe("✗ shell npm run a-…  exit code 2 · 4.0 s");
  });

  it("cuts lines that are too wide, by columns", () => {
    const how = { details: createShellCall("漢字".repeat(20)), columns: 20 };
    expect(ended("shell", { command: "x" }, how)).toBe("● shell x\n  漢字漢字漢字漢字…");
  });

  it("shows the lines of a test run as they are", () => {
    const details = createShellCall("✖ adds (1.352805ms)\nnoise\nℹ fail 1", 1);
    expect(ended("shell", { command: "x" }, { details, outcome: "error" })).toBe(
      "✗ shell x  exit code 1\n  ✖ adds (1.352805ms)\n  noise\n  ℹ fail 1",
    );
  });
});

describe("a tool that looks", () => {
  it("read: shows how many lines", () => {
    const details: ReadDetails = {
      path: "a.ts",
      bytes: 1,
      firstLine: 1,
      shownLines: 120,
      totalLines: 120,
    };
    expect(ended("read", { path: "/home/me/project/src/a.ts" }, { details })).toBe(
      "● read src/a.ts\n  120 lines",
    );
    const part = { ...details, firstLine: 41, shownLines: 20, totalLines: 1_204 };
    expect(ended("read", { path: "a.ts" }, { details: part })).toBe(
      "● read a.ts\n  lines 41-60 of 1,204",
    );
  });

  it("ls: counts, and names the first", () => {
    const details: LsDetails = {
      path: "",
      shownEntries: 4,
      totalEntries: 4,
      names: ["docs/", "src/", "a.ts", "b.ts"],
    };
    const text = "docs/\nsrc/\na.ts (1.2 KB)\nb.ts (3 B)";
    expect(ended("ls", {}, { text, details })).toBe("● ls .\n  4 entries: docs/, src/, a.ts, …");
  });

  it("find: counts, and names the first", () => {
    const details: FindDetails = { pattern: "*", path: "", shown: 2, found: 700, stopped: false };
    const text = "a.ts\nb.ts\n\n[2 of 700 matches shown. Use a narrower pattern.]";
    expect(ended("find", { pattern: "*.ts", path: "src" }, { text, details })).toBe(
      "● find *.ts in src\n  2 of 700 matches: a.ts, b.ts",
    );
  });

  it("grep: counts, and shows the first", () => {
    const details: GrepDetails = {
      pattern: "x",
      path: "",
      matches: 4,
      files: 2,
      shownLines: 4,
      isPartial: false,
      engine: "ripgrep",
    };
    const text = ["a.ts:1: x", "a.ts:2: x", "b.ts:1: x", "b.ts:9: x"].join("\n");
    expect(ended("grep", { pattern: "x" }, { text, details })).toMatchInlineSnapshot(`
      "● grep x
        4 matches in 2 files
        a.ts:1: x
        a.ts:2: x
        b.ts:1: x
        … 1 more line (Ctrl+O)"
    `);
  });
});

describe("a tool that changes files", () => {
  const diff = "--- a/a.ts\n+++ b/a.ts\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";

  it("edit: shows the diff, at any width", () => {
    const details: EditDetails = { path: "a.ts", diff, edits: [] };
    const rows = "● edit a.ts  +1 -1\n  1   one\n  2 - two\n  2 + 2";
    for (const columns of [40, 80, 200]) {
      expect(ended("edit", { path: "a.ts" }, { details, columns })).toBe(rows);
    }
  });

  it("write: shows a new file", () => {
    const details: WriteDetails = { path: "a.ts", created: true, bytes: 8, newText: "one\ntwo\n" };
    expect(ended("write", { path: "a.ts" }, { details })).toBe(
      "● write a.ts  new, 2 lines\n  1 + one\n  2 + two",
    );
  });

  it("write: shows what is different in a replaced one", () => {
    const texts = { oldText: "one\ntwo\n", newText: "one\n2\n" };
    const details: WriteDetails = { path: "a.ts", created: false, bytes: 6, ...texts };
    expect(ended("write", { path: "a.ts" }, { details })).toBe(
      "● write a.ts  +1 -1\n  1   one\n  2 - two\n  2 + 2",
    );
  });

  it("write: does not take a file for new whose old text is not known", () => {
    const details: WriteDetails = { path: "a.ts", created: false, bytes: 6, newText: "x" };
    const text = "Replaced a.ts: 1 line.";
    expect(ended("write", { path: "a.ts" }, { text, details })).toBe(`● write a.ts\n  ${text}`);
  });

  it("apply_patch: shows each file under its name", () => {
    const details: PatchDetails = {
      files: [
        { type: "update", path: "a.ts", diff, edits: [] },
        {
          type: "delete",
          path: "b.ts",
          diff: "--- a/b.ts\n+++ /dev/null\n-gone\n",
          edits: [],
        },
      ],
    };
    const patch = "*** Begin Patch\n*** Update File: a.ts\n*** Delete File: b.ts\n*** End Patch";
    expect(ended("apply_patch", { patch }, { details })).toMatchInlineSnapshot(`
      "● apply_patch a.ts, b.ts  +1 -2
        a.ts
        1   one
        2 - two
        2 + 2
        b.ts (deleted)
        1 - gone"
    `);
  });
});

describe("any other tool", () => {
  it("shows six rows of what it gave", () => {
    const text = Array.from({ length: 10 }, (_, index) => `fact ${index}`).join("\n");
    const rows = ended("weather", { city: "Bern", days: 2 }, { text }).split("\n");
    expect(rows[0]).toBe("● weather city: Bern, days: 2");
    expect(rows.slice(-2)).toEqual(["  fact 5", "  … 4 more lines (Ctrl+O)"]);
  });

  it("mcp_call: is shown as the tool that is meant", () => {
    const args = { tool: "mcp__wiki__look", arguments: { title: "Fox" } };
    expect(ended("mcp_call", args, { text: "A fox." })).toBe(
      "● mcp__wiki__look title: Fox\n  A fox.",
    );
  });

  it("shows why it failed, without the words that are for the model", () => {
    const how = {
      text: 'Tool "edit" failed: There is no such text.',
      outcome: "error" as const,
      reason: "There is no such text.",
    };
    expect(ended("edit", { path: "a" }, how)).toBe("✗ edit a\n  There is no such text.");
  });

  it("has a sign of its own where it was denied, skipped or interrupted", () => {
    const reason = "a person said no. Ask them.";
    const first = ended("shell", { command: "rm x" }, { outcome: "denied", reason });
    expect(first).toBe("⊘ shell rm x  denied: a person said no.");
    expect(ended("ls", {}, { outcome: "skipped" })).toBe("⊘ ls .  skipped");
    const block = new ToolBlock("ls", {}, OPTIONS);
    block.leave();
    expect(shown(block.rows(80))).toBe("⊘ ls .  interrupted");
  });
});

describe("whatever a model, a tool or a file says", () => {
  const hostile = fc
    .array(
      fc.oneof(fc.constantFrom("\x1b[2J", "\x1b]0;t\x07", "\x9b1A", "\r", "漢", "👩‍👩‍👧"), fc.string()),
    )
    .map((parts) => parts.join(""));

  it("no row has anything that a terminal obeys, and none is too wide", () => {
    const tools = fc.constantFrom("shell", "read", "ls", "grep", "edit", "write", "mcp_call", "x");
    const keys = ["stdout", "stderr", "diff", "newText", "oldText", "tool", "path", "command"];
    fc.assert(
      fc.property(
        tools,
        fc.dictionary(fc.constantFrom(...keys), hostile),
        hostile,
        fc.boolean(),
        fc.integer({ min: 4, max: 100 }),
        (tool, record, text, isError, columns) => {
          const details = { ...record, totalEntries: 3, matches: 2, files: 1, created: true };
          const block = new ToolBlock(`${tool}${isError ? text : ""}`, record, {
            ...OPTIONS,
            theme: COLORS,
          });
          const look = (): void => {
            for (const row of block.rows(columns)) {
              expect(widthOfRow(row)).toBeLessThanOrEqual(columns);
              expect(textOfRow(row)).not.toMatch(/\p{Cc}/u);
            }
          };
          look();
          block.start(tool, record);
          block.update(result(text, details));
          look();
          block.end({ result: result(text, details), outcome: isError ? "error" : "ok" }, 5_000);
          look();
          block.expand(true);
          look();
        },
      ),
    );
  });
});
