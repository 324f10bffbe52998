import type { AgentEvent, AgentToolResult } from "@gyre/agent";
import type { AssistantMessage } from "@gyre/ai";
import type { EditDetails, LsDetails, ReadDetails, ShellDetails } from "@gyre/tools";
import { describe, expect, it } from "vitest";
import { duration, MAX_SHOWN_LINES, Renderer } from "./render.ts";
import { plainText } from "./plain-text.ts";
import { type Environment, openTerminal } from "../core/terminal.ts";
import { widthOf } from "./width.ts";

interface Screen {
  renderer: Renderer;
  readonly text: string;
}

function screen(env: Environment = {}, columns = 80, isTTY = false): Screen {
  let text = "";
  const output = { columns, isTTY, write: (piece: string) => (text += piece) };
  const renderer = new Renderer(openTerminal(output, env));
  return {
    renderer,
    get text() {
      return text;
    },
  };
}

const message: AssistantMessage = {
  role: "assistant",
  content: [],
  api: "scripted",
  provider: "scripted",
  model: "scripted",
  usage: {},
  stopReason: "stop",
  timestamp: 0,
};

function streamed(type: "text" | "thinking", ...deltas: string[]): AgentEvent[] {
  const at = { contentIndex: 0, partial: message };
  const update = (
    assistantMessageEvent: Extract<AgentEvent, { type: "message_update" }>["assistantMessageEvent"],
  ): AgentEvent => ({
    type: "message_update",
    message,
    assistantMessageEvent,
  });
  return [
    update({ type: `${type}_start`, ...at }),
    ...deltas.map((delta) => update({ type: `${type}_delta`, delta, ...at })),
    update({ type: `${type}_end`, content: deltas.join(""), ...at }),
  ];
}

function started(id: string, toolName: string, args: Record<string, unknown>): AgentEvent {
  return { type: "tool_execution_start", toolCallId: id, toolName, args };
}

function updated(id: string, text: string): AgentEvent {
  const partialResult: AgentToolResult = { content: [{ type: "text", text }] };
  return { type: "tool_execution_update", toolCallId: id, toolName: "x", args: {}, partialResult };
}

type Details = EditDetails | LsDetails | ReadDetails | ShellDetails;

function readOf(totalLines: number): ReadDetails {
  return { path: "a.js", bytes: 1, firstLine: 1, shownLines: totalLines, totalLines };
}

/** Of an edit, from the rows of its diff below the names. */
function editOf(...rows: string[]): EditDetails {
  const diff = ["--- a/a.js", "+++ b/a.js", "@@ -1,3 +1,4 @@", ...rows, ""].join("\n");
  return { path: "a.js", diff, edits: [] };
}

function shellOf(stdout: string, more: Partial<ShellDetails> = {}): ShellDetails {
  const how = { exitCode: 0, durationMs: 1, timedOut: false, aborted: false };
  return { stdout, stderr: "", ...how, ...more };
}

function ended(id: string, text: string, details?: Details, isError = false): AgentEvent {
  return {
    type: "tool_execution_end",
    toolCallId: id,
    toolName: "x",
    result: { content: [{ type: "text", text }], ...(details && { details }) },
    isError,
    durationMs: 1234,
  };
}

function play(on: Screen, ...events: AgentEvent[]): string {
  for (const event of events) on.renderer.handle(event);
  return on.text;
}

describe("messages", () => {
  it("shows the prompt with a mark, and hangs its later lines", () => {
    const content = "The tests of this small project fail. Mend them.";
    const prompt: AgentEvent = {
      type: "message_start",
      message: { role: "user", content, timestamp: 0 },
    };
    expect(play(screen({}, 40), prompt)).toBe(
      "\n  › The tests of this small project\n    fail. Mend them.\n",
    );
  });

  it("writes words as they arrive", () => {
    const on = screen();
    const [start, ...rest] = streamed("text", "Hello wor", "ld");
    play(on, ...(start ? [start] : []), ...rest.slice(0, 1));
    expect(on.text).toBe("\n  Hello");
    play(on, ...rest.slice(1));
    expect(on.text).toBe("\n  Hello world\n");
  });

  it("dims thoughts", () => {
    expect(play(screen({ FORCE_COLOR: "1" }), ...streamed("thinking", "hm"))).toContain(
      "\x1b[2m  hm\x1b[22m",
    );
  });

  it("paints code, which may come in pieces; without colours its marks stay", () => {
    const events = streamed("text", "see `a ", "b` now");
    expect(play(screen(), ...events)).toBe("\n  see `a b` now\n");
    const painted = play(screen({ FORCE_COLOR: "1" }), ...events);
    expect(painted).toContain("\x1b[36ma\x1b[39m");
    expect(painted).not.toContain("`");
    expect(plainText(painted)).toBe("\n  see a b now\n");
  });

  it("tells which model is asked in place of another, and why", () => {
    const fallback: AgentEvent = {
      type: "fallback",
      from: { provider: "one", id: "large" },
      to: { provider: "other", id: "small" },
      kind: "overloaded",
      errorMessage: "Overloaded.",
    };
    expect(play(screen(), fallback)).toBe(
      "\n  one/large cannot answer; asking other/small. Overloaded.\n",
    );
  });

  it("ends the line of a text that was cut off, and tells an error", () => {
    const on = screen();
    play(on, ...streamed("text", "half a sen").slice(0, 2));
    const broken: AssistantMessage = { ...message, stopReason: "error", errorMessage: "It broke." };
    play(on, { type: "message_end", message: broken });
    expect(on.text).toBe("\n  half a sen\n\n  It broke.\n");
  });
});

describe("tool calls", () => {
  it("shows a call with its time and a summary when it has ended", () => {
    const call = started("1", "read", { path: "a.js" });
    expect(play(screen(), call, ended("1", "...", readOf(17)))).toBe(
      "\n  ● read  a.js  1.2 s\n    17 lines\n",
    );
    expect(play(screen(), call, ended("1", "...", readOf(1)))).toContain("    1 line\n");
  });

  it("shows a folder as the names in it", () => {
    const listed = "a.js (163 B)\nlib/\nlong.js (1.5 KB)\nway -> lib";
    const details: LsDetails = { path: "", shownEntries: 4, totalEntries: 4 };
    const text = play(screen(), started("1", "ls", { path: "." }), ended("1", listed, details));
    expect(text).toBe("\n  ● ls  .  1.2 s\n    a.js  lib/  long.js  way -> lib\n");
  });

  it("shows an error with another mark, its exit and what it said", () => {
    const details = shellOf("so far\n", { stderr: "oh no\n", exitCode: 3 });
    const text = play(
      screen(),
      started("1", "shell", { command: "false" }),
      ended("1", "", details, true),
    );
    expect(text).toBe("\n  ✗ shell  false  exit code 3 · 1.2 s\n    so far\n    oh no\n");
  });

  it.each([
    ["out of time", { exitCode: null, timedOut: true }],
    ["aborted", { exitCode: null, aborted: true }],
    ["ended by a signal", { exitCode: null }],
  ])("tells of a command that it was %s", (how, more) => {
    const events = [started("1", "shell", {}), ended("1", "", shellOf("", more), true)];
    expect(play(screen(), ...events)).toContain(`  ${how} · 1.2 s\n`);
  });

  it("shows what the model is told where a tool failed, or is not known", () => {
    for (const name of ["read", "ls", "edit", "shell", "other"]) {
      const text = play(
        screen(),
        started("1", name, {}),
        ended("1", "It is gone.", undefined, true),
      );
      expect(text).toContain("\n    It is gone.\n");
    }
  });

  it("shows an edit as a diff in red and green, without the shared indent", () => {
    const details = editOf(" {", "-    old", "+    new", "+      inner\r", " }");
    const events = [started("1", "edit", { path: "a.js" }), ended("1", "", details)];
    expect(play(screen(), ...events)).toBe(
      "\n  ● edit  a.js  1.2 s\n    - old\n    + new\n    +   inner\n",
    );
    const painted = play(screen({ FORCE_COLOR: "1" }), ...events);
    expect(painted).toContain("\x1b[31m- old\x1b[39m");
    expect(painted).toContain("\x1b[32m+ new\x1b[39m");
  });

  it("shows the end of a long output and counts the rest", () => {
    const text = Array.from({ length: 50 }, (_, index) => `line ${index}`).join("\n");
    const shown = play(screen(), started("1", "shell", {}), ended("1", text));
    expect(shown).not.toContain(`line ${49 - MAX_SHOWN_LINES}\n`);
    expect(shown).toContain(`line ${50 - MAX_SHOWN_LINES}\n`);
    expect(shown).toContain(`line 49\n    … ${50 - MAX_SHOWN_LINES} more lines\n`);
  });

  it("picks the verdicts out of a test run, each once", () => {
    const report = [
      "✔ adds (1.352805ms)",
      "✖ loses nothing (2ms)",
      "  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:",
      "  999 !== 1000",
      "      at TestContext.<anonymous> (file:///x.js:1:1)",
      "ℹ tests 2",
      "ℹ pass 1",
      "ℹ fail 1",
      "✖ failing tests:",
      "✖ loses nothing (2ms)",
      "  999 !== 1000",
    ].join("\n");
    expect(play(screen(), started("1", "shell", {}), ended("1", "", shellOf(report)))).toContain(
      [
        "    ✔ adds (1.4 ms)",
        "    ✖ loses nothing (2ms)",
        "      999 !== 1000",
        "    ℹ pass 1",
        "    ℹ fail 1",
        "    … 6 more lines",
      ].join("\n"),
    );
  });

  it("lets nothing through that a terminal would obey", () => {
    const evil = "\x1b[2J\x1b]0;title\x07b\u200ba\u202ed\u{e0041}\x07";
    const calls: [string, Details][] = [
      ["ls", { path: evil, shownEntries: 1, totalEntries: 1 }],
      ["shell", shellOf(evil, { stderr: evil })],
      ["edit", editOf(`+${evil}`)],
    ];
    for (const [name, details] of calls) {
      const on = screen();
      play(on, ...streamed("text", evil), started("1", name, { command: evil }));
      const text = play(on, ended("1", evil, details), started("2", "x", {}), ended("2", evil));
      expect(text.match(/bad/g)?.length).toBeGreaterThanOrEqual(4);
      expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    }
  });

  it("keeps a character whole that comes in two pieces", () => {
    const [high = "", low = ""] = "😀".split("");
    expect(play(screen(), ...streamed("text", `so ${high}`, `${low} it`))).toBe("\n  so 😀 it\n");
  });

  it("has a running call in the last line of a terminal, with the last it said, and then replaces it", () => {
    const on = screen({ NO_COLOR: "1" }, 80, true);
    play(on, started("1", "shell", { command: "make" }), updated("1", "one\ntwo\n"));
    expect(on.text).toBe("\n\r\x1b[2K  ○ shell  make\r\x1b[2K  ○ shell  make  two");
    play(on, ended("1", "", shellOf("")));
    expect(on.text.endsWith("\r\x1b[2K  ● shell  make  exit code 0 · 1.2 s\n")).toBe(true);
  });

  it("shows calls that run together one after the other, as they end", () => {
    const details = readOf(2);
    const events = [
      started("1", "read", { path: "a" }),
      started("2", "read", { path: "b" }),
      ended("2", "", details),
      ended("1", "", details),
    ];
    const plain = "\n  ● read  b  1.2 s\n    2 lines\n\n  ● read  a  1.2 s\n    2 lines\n";
    expect(play(screen(), ...events)).toBe(plain);
    const live = play(screen({ NO_COLOR: "1" }, 80, true), ...events);
    const settled = live
      .split("\n")
      .map((line) => line.slice(line.lastIndexOf("\x1b[2K") + 1).replace("[2K", ""))
      .join("\n");
    expect(settled).toBe(plain);
  });

  it.each([40, 50, 80, 120])("keeps within %i columns", (columns) => {
    const long = "word ".repeat(60);
    const on = screen({}, columns);
    play(on, ...streamed("text", long), ...streamed("thinking", "x".repeat(300)));
    play(on, started("1", "shell", { command: long }));
    play(on, ended("1", "", shellOf(long)));
    play(on, started("2", "edit", { path: long }));
    play(on, ended("2", "", editOf(`+  ${long}`)));
    const details: LsDetails = { path: "", shownEntries: 1, totalEntries: 1 };
    play(on, started("3", "ls", { path: "." }), ended("3", long, details));
    on.renderer.paragraph(long);
    expect(Math.max(...on.text.split("\n").map(widthOf))).toBeLessThan(columns);
  });
});

it("leaves a line whole, however long: it may be a path to copy", () => {
  const on = screen({}, 40);
  on.renderer.line(`/tmp/${"x".repeat(100)}`);
  on.renderer.line("");
  expect(on.text).toBe(`  /tmp/${"x".repeat(100)}\n\n`);
});

it("tells durations for people", () => {
  expect([0, 12.4, 999, 1000, 12_345].map(duration)).toEqual([
    "0 ms",
    "12 ms",
    "999 ms",
    "1.0 s",
    "12.3 s",
  ]);
});
