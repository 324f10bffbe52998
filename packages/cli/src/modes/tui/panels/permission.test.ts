import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApprovalRequest, ShownEffect } from "@gyre/tools";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { TerminalEvent } from "../terminal/key.ts";
import { MAX_QUIET_MS, PermissionPanel, QUIET_MS } from "./permission.ts";
import { MAX_PREVIEW_ROWS, reasonText, createTextReader } from "./permission-preview.ts";
import { textOfRow, widthOfRow } from "../terminal/row.ts";
import { NO_COLORS } from "../terminal/theme.ts";

const COLUMNS = 60;
const ROWS = 24;

function key(name: string, ctrl = false): TerminalEvent {
  return { type: "key", name, ctrl, alt: false, shift: false };
}

const typed = (text: string): TerminalEvent => ({ type: "text", text });

function shellRequest(command: string, more: Partial<ApprovalRequest> = {}): ApprovalRequest {
  return {
    callId: "1",
    tool: "shell",
    args: { command },
    access: { kind: "run", targets: [command], summary: `Run ${command}` },
    reason: 'In mode "ask" "run" is asked about.',
    byMode: { mode: "ask", about: "run", notes: [] },
    fingerprint: "print",
    ...more,
  };
}

interface Asked {
  panel: PermissionPanel;
  clock: { now: number };
  screen: (columns?: number, rows?: number) => string[];
}

/** A panel that has been visible for long enough, unless the options say otherwise. */
function asked(
  request: ApprovalRequest,
  { rule, files = {}, isSeen = true, isKept = false }: AskedOptions = {},
): Asked {
  const clock = { now: 0 };
  const panel = new PermissionPanel(request, {
    theme: NO_COLORS,
    cwd: "/work",
    now: () => clock.now,
    readText: (path) => files[path],
    ...(rule !== undefined && { rules: [rule] }),
    ...(isKept && { isKept }),
  });
  const screen = (columns = COLUMNS, rows = ROWS): string[] =>
    panel.rows(columns, rows).rows.map(textOfRow);
  if (isSeen) {
    screen();
    clock.now = QUIET_MS;
  }
  return { panel, clock, screen };
}

interface AskedOptions {
  isKept?: boolean;
  rule?: string;
  files?: Readonly<Record<string, string>>;
  isSeen?: boolean;
}

describe("a question about a command", () => {
  it("shows the command, why it is asked about, and the answers", () => {
    const { screen } = asked(shellRequest("npm test"), { rule: "shell(npm test)" });
    expect(screen()).toEqual([
      "Allow shell?",
      "Running commands is asked about in mode ask.",
      "$ npm test",
      "› 1 y yes, this once",
      "  2 a yes, and from now on: shell(npm test)",
      "  3 n no",
      "  4 t no, and type what to do instead",
      "↑↓ and Enter, or its number or letter · Esc stops the agent",
    ]);
  });

  it("says where it runs, that it leaves the sandbox, and that it cannot be undone", () => {
    const { screen } = asked(
      shellRequest("make", {
        access: {
          kind: "run",
          targets: ["make"],
          summary: "Run make in sub outside of the sandbox: it needs the network",
          unsandboxed: true,
          destructive: true,
        },
      }),
    );
    expect(screen().slice(0, 5)).toEqual([
      "Allow shell?",
      "! It runs outside of the sandbox.",
      "! It cannot be undone.",
      "Run make in sub outside of the sandbox: it needs the network",
      "Running commands is asked about in mode ask.",
    ]);
  });

  it("has no answer for all times where no rule would do", () => {
    const { panel, screen } = asked(shellRequest("rm -rf ~"));
    expect(screen().join("\n")).not.toContain("from now on");
    expect(panel.take(typed("a"))).toEqual({ type: "none" });
  });

  it("shows control sequences and invisible characters as what they are", () => {
    const hostile = "echo safe\r\x1b[2K\x1b]0;title\x07 # \u202Egnol\u202C\u200B; rm x\tend";
    const { screen } = asked(shellRequest(hostile));
    const shown = screen().join("\n");
    expect(shown).toContain("echo safe␍␛[2K␛]0;title␇");
    expect(shown).toContain("<U+202E>gnol<U+202C><U+200B>;");
    expect(shown).toContain("rm x    end");
  });

  it("has the end of a long command in sight, and counts what is between", () => {
    const lines = Array.from({ length: 60 }, (_, index) => `echo ${index}`);
    const { screen } = asked(shellRequest([...lines, "rm -rf ~"].join("\n")));
    const shown = screen();
    expect(shown).toContain("$ echo 0");
    expect(shown).toContain("  rm -rf ~");
    expect(shown).toContainEqual(expect.stringMatching(/^… \d+ more lines \(Ctrl\+O shows all\)$/));
  });

  it("has it in sight behind thousands of rows, too", () => {
    const { screen } = asked(shellRequest(`${"a\n".repeat(3 * MAX_PREVIEW_ROWS)}rm -rf ~`));
    expect(screen()).toContain("  rm -rf ~");
  });

  it("is gone through page by page with Ctrl+O, PageDown and PageUp", () => {
    const lines = Array.from({ length: 60 }, (_, index) => `echo ${index}`);
    const { panel, screen } = asked(shellRequest(lines.join("\n")));
    const cut = screen();
    expect(panel.take(key("o", true))).toEqual({ type: "redraw" });
    expect(screen()[2]).toBe("$ echo 0");
    expect(screen()).toContain("1-17 of 60 · PageUp and PageDown · Ctrl+O goes back");
    panel.take(key("pageDown"));
    expect(screen()[2]).toBe("  echo 17");
    for (let page = 0; page < 9; page++) panel.take(key("pageDown"));
    expect(screen()[18]).toBe("  echo 59");
    panel.take(key("pageUp"));
    expect(screen()[2]).toBe("  echo 26");
    panel.take(key("o", true));
    expect(screen()).toEqual(cut);
  });

  it("keeps to the rows and columns that it is given, and always shows its answers", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 400 }),
        fc.integer({ min: 8, max: 120 }),
        fc.integer({ min: 1, max: 40 }),
        fc.constantFrom(undefined, "o", "t"),
        (command, columns, rows, press) => {
          const { panel } = asked(shellRequest(command), { rule: "shell(x)" });
          if (press === "o") panel.take(key("o", true));
          if (press === "t") panel.take(typed("t"));
          const view = panel.rows(columns, rows);
          expect(view.rows.length).toBeLessThanOrEqual(rows);
          for (const each of view.rows) {
            expect(widthOfRow(each)).toBeLessThanOrEqual(columns);
            expect(textOfRow(each)).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
          }
          expect(view.rows.map(textOfRow).join("\n")).toContain("› ");
          if (view.cursor) expect(view.cursor.row).toBeLessThan(view.rows.length);
        },
      ),
    );
  });
});

describe("an answer", () => {
  it.each([
    ["y", { allow: true, fingerprint: "print" }],
    ["Y", { allow: true, fingerprint: "print" }],
    ["a", { allow: "always", rule: "shell(npm test)" }],
    ["n", { allow: false }],
  ])("is given by the key %s", (letter, value) => {
    const { panel } = asked(shellRequest("npm test"), { rule: "shell(npm test)" });
    expect(panel.take(typed(letter))).toEqual({ type: "done", value });
  });

  it("is chosen with its number", () => {
    expect(asked(shellRequest("npm test")).panel.take(typed("2"))).toEqual({
      type: "done",
      value: { allow: false },
    });
    expect(asked(shellRequest("npm test")).panel.take(typed("9"))).toEqual({ type: "none" });
    expect(asked(shellRequest("npm test")).panel.take(typed("12"))).toEqual({ type: "none" });
  });

  it("that lasts for the project takes one key", () => {
    const rules = { rule: "shell(npm test)", isKept: true };
    const value = { allow: "always", rule: "shell(npm test)", scope: "project" };
    for (const key of ["d", "2"]) {
      const { panel, screen } = asked(shellRequest("npm test"), rules);
      expect(screen(100).join("\n")).toContain("2 d yes, and do not ask again in this project:");
      expect(panel.take(typed(key))).toEqual({ type: "done", value });
    }
  });

  it("is chosen with arrows and Enter", () => {
    const { panel, screen } = asked(shellRequest("npm test"));
    panel.take(key("down"));
    expect(screen()).toContain("› 2 n no");
    expect(panel.take(key("enter"))).toEqual({ type: "done", value: { allow: false } });
  });

  it("may say what to do instead", () => {
    const { panel, screen } = asked(shellRequest("npm test"));
    panel.take(typed("t"));
    for (const event of [typed("use "), typed("make")]) panel.take(event);
    expect(screen()).toContain("› use make");
    expect(panel.rows(COLUMNS, ROWS).cursor).toEqual({ row: 3, column: 10 });
    expect(panel.take(key("enter"))).toEqual({
      type: "done",
      value: { allow: false, reason: "use make" },
    });
  });

  it("is no where nothing was said, and Esc goes back to the answers", () => {
    const { panel, screen } = asked(shellRequest("npm test"));
    panel.take(typed("t"));
    expect(panel.take(key("escape"))).toEqual({ type: "redraw" });
    expect(screen()).toContain("› 3 t no, and type what to do instead");
    panel.take(typed("t"));
    expect(panel.take(key("enter"))).toEqual({ type: "done", value: { allow: false } });
  });

  it("is not taken from several letters at once, nor from what is pasted", () => {
    const { panel } = asked(shellRequest("npm test"));
    expect(panel.take(typed("yes"))).toEqual({ type: "none" });
    expect(panel.take({ type: "paste", text: "y" })).toEqual({ type: "none" });
  });

  it("is not taken from keys that were typed before it could be seen, but for Esc", () => {
    const { panel, clock, screen } = asked(shellRequest("npm test"), { isSeen: false });
    expect(panel.take(typed("y"))).toEqual({ type: "none" });
    screen();
    clock.now = QUIET_MS - 1;
    expect(panel.take(key("enter"))).toEqual({ type: "none" });
    expect(panel.take(key("escape"))).toEqual({
      type: "done",
      value: { allow: false, reason: "interrupted" },
    });
  });

  it("is not taken in the middle of typing, and not waited for without end", () => {
    const { panel, clock, screen } = asked(shellRequest("npm test"), { isSeen: false });
    screen();
    for (; clock.now < MAX_QUIET_MS; clock.now += QUIET_MS - 100) {
      expect(panel.take(typed("y"))).toEqual({ type: "none" });
    }
    expect(panel.take(typed("y"))).toMatchObject({ type: "done" });
  });
});

describe("a question about a change", () => {
  const write = (path: string, content: string): ApprovalRequest => ({
    callId: "1",
    tool: "write",
    args: { path, content },
    access: { kind: "write", targets: [path], summary: `Replace "${path}"` },
    reason: "It is asked about.",
    fingerprint: "print",
  });
  const edit = (edits: unknown): ApprovalRequest => ({
    ...write("a.txt", ""),
    tool: "edit",
    args: { path: "a.txt", edits },
  });

  it("shows what a whole file would become, against what it is", () => {
    const { screen } = asked(write("a.txt", "one\n2\n"), { files: { "a.txt": "one\ntwo\n" } });
    expect(screen().slice(1, 6)).toEqual([
      'Replace "a.txt"',
      "It is asked about.",
      "1   one",
      "2 - two",
      "2 + 2",
    ]);
  });

  it("shows edits where they are in the file", () => {
    const files = { "a.txt": "one\ntwo\nthree\n" };
    const { screen } = asked(edit([{ oldText: "three", newText: "3" }]), { files });
    expect(screen()).toEqual(expect.arrayContaining(["3 - three", "3 + 3"]));
  });

  it.each([
    ["is not there", {}],
    ["has the text twice", { "a.txt": "x\nx\n" }],
  ])("shows edits alone where the file %s", (_what, files) => {
    const { screen } = asked(edit([{ oldText: "x", newText: "y" }]), { files });
    expect(screen()).toEqual(
      expect.arrayContaining(["    (lines are counted within each edit)", "1 - x", "1 + y"]),
    );
  });

  it("takes arguments that are no edits for none", () => {
    for (const edits of [undefined, "x", [null, { oldText: 1 }, 7]]) {
      expect(() => asked(edit(edits)).screen()).not.toThrow();
    }
  });

  it("shows a patch as it is", () => {
    const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch";
    const { screen } = asked({ ...write("a.txt", ""), tool: "apply_patch", args: { patch } });
    expect(screen()).toEqual(expect.arrayContaining(["-one", "+two", "*** Update File: a.txt"]));
  });

  it("shows the arguments of a tool that does not describe what it does", () => {
    const { screen } = asked({
      callId: "1",
      tool: "mcp__x__send",
      args: { to: "a\x1b[31m", body: "hi" },
      reason: "It is asked about.",
      fingerprint: "print",
    });
    expect(screen()).toContain('  "body": "hi"');
    expect(screen().join("\n")).not.toContain("\x1b");
  });

  const LONG = Array.from({ length: 60 }, (_, index) => `line ${index}`).join("\n");

  it("has the beginning and the end of a long change in sight, and counts what is between", () => {
    const shown = asked(write("a.txt", LONG)).screen();
    expect(shown).toHaveLength(ROWS);
    expect(shown).toContain(" 1 + line 0");
    expect(shown).toContain("60 + line 59");
    expect(shown).toContain("… 45 more lines (Ctrl+O shows all)");
  });

  it("uses all the room that there is for a change", () => {
    const shown = asked(write("a.txt", LONG)).screen(200, 80);
    expect(shown.filter((line) => line.includes("+ line"))).toHaveLength(60);
  });

  it("has its end in sight behind thousands of lines, too", () => {
    const content = `${"a\n".repeat(3 * MAX_PREVIEW_ROWS)}the end`;
    expect(asked(write("a.txt", content)).screen().join("\n")).toContain("+ the end");
  });

  it("names the file, also where there is one row for it", () => {
    const request = write("src/deep/inside/of/it/cart.ts", LONG);
    expect(asked(request).screen()[0]).toBe("Allow write src/deep/inside/of/it/cart.ts?");
    expect(asked(request).screen(24, 2)[0]).toBe("Allow write src/d…rt.ts?");
  });

  it("says that an edit will fail whose text is not in the file", () => {
    const files = { "a.txt": "one\ntwo\n" };
    const { screen } = asked(edit([{ oldText: "three", newText: "3" }]), { files });
    expect(screen()).toContain("! The text to replace is not in the file: this will fail.");
  });

  it("says so of one whose text is there more than once", () => {
    const { screen } = asked(edit([{ oldText: "x", newText: "y" }]), {
      files: { "a.txt": "x\nx\n" },
    });
    expect(screen().join(" ")).toContain("! The text to replace is in the file more than once");
  });

  it("says nothing of an edit that is found in spite of its white space and quotes", () => {
    const files = { "a.txt": "  say('one')\n" };
    const { screen } = asked(edit([{ oldText: "say(\u2018one\u2019)", newText: "x" }]), { files });
    expect(screen().join("\n")).not.toContain("will fail");
  });
});

describe("the rule of an answer", () => {
  const rule = "shell(npm run a-long-name-of-a-script -- --and its options)";

  it.each([
    [40, 6],
    [40, 12],
    [60, 24],
  ])("is cut in its middle and stays in sight on %d columns and %d rows", (columns, rows) => {
    const { screen } = asked(shellRequest("npm test"), { rule });
    const shown = screen(columns, rows).find((line) => /always|from now on/.test(line));
    expect(shown).toMatch(/: shell\(.*…/);
    expect(shown).toMatch(/ons\)$/);
  });
});

describe("the reason", () => {
  it.each([
    ["write", [], "Writing files is asked about in mode ask."],
    [
      "run",
      ["There is no sandbox around it."],
      "Running commands is asked about in mode ask. There is no sandbox around it.",
    ],
    ["mcp__x__y", [], "The tool mcp__x__y is asked about in mode ask."],
  ])("is said as a person would: %s", (about, notes, expected) => {
    const byMode = { mode: "ask", about, notes } as const;
    expect(reasonText({ reason: "", byMode })).toBe(expected);
  });

  it("that is no mode's stays as it is", () => {
    const reason = 'In mode "ask" "write" is asked about.';
    expect(reasonText({ reason })).toBe(reason);
  });
});

describe("files that are looked at before a change", () => {
  const made: string[] = [];
  afterEach(() => {
    for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  it("are texts; what is no file or no text is nothing", () => {
    const folder = mkdtempSync(join(tmpdir(), "gyre-permission-"));
    made.push(folder);
    writeFileSync(join(folder, "a.txt"), "one");
    writeFileSync(join(folder, "b.bin"), Buffer.from([0xff, 0xfe, 0x00]));
    mkdirSync(join(folder, "sub"));
    symlinkSync(join(folder, "a.txt"), join(folder, "link"));
    const textNow = createTextReader(folder);
    expect(textNow("a.txt")).toBe("one");
    expect(textNow(join(folder, "a.txt"))).toBe("one");
    expect(["b.bin", "sub", "missing"].map(textNow)).toEqual([undefined, undefined, undefined]);
  });
});

describe("how long a rule holds", () => {
  const open = (): Asked =>
    asked(shellRequest("npm test"), { rule: "shell(npm test)", isKept: true });

  it.each([
    ["s", {}],
    ["p", { scope: "project" }],
    ["e", { scope: "everywhere" }],
  ])("is chosen in a second step: %s", (letter, scope) => {
    const { panel, screen } = open();
    expect(panel.take(typed("a"))).toEqual({ type: "redraw" });
    expect(screen().join("\n")).toContain("in this session: shell(npm test)");
    expect(panel.take(typed(letter))).toEqual({
      type: "done",
      value: { allow: "always", rule: "shell(npm test)", ...scope },
    });
  });

  it("Esc goes back to the question", () => {
    const { panel, screen } = open();
    panel.take(typed("a"));
    expect(panel.take(key("escape"))).toEqual({ type: "redraw" });
    expect(screen().join("\n")).toContain("yes, this once");
  });
});

it("all edits of the session can be allowed at once", () => {
  const access = { kind: "write", targets: ["a.txt"], summary: "Make a.txt" } as const;
  const { panel } = asked(
    shellRequest("", { tool: "write", args: { path: "a.txt", content: "a" }, access }),
  );
  expect(panel.take(typed("e"))).toEqual({
    type: "done",
    value: { allow: "always", rule: "write", moreRules: ["edit", "apply_patch"] },
  });
});

it("what a command destroys is the first thing below the question, once", () => {
  const why = '"git push" cannot be undone.';
  const request = shellRequest("git push --force", {
    reason: why,
    danger: { kind: "destructive", why },
  });
  delete request.byMode;
  const rows = asked(request).screen();
  expect(rows[1]).toBe(`! ${why}`);
  expect(rows.join("\n").split(why)).toHaveLength(2);
});

describe("a question about what a command did", () => {
  const effect = (id: number, path: string, more: Partial<ShownEffect> = {}): ShownEffect => ({
    id,
    path,
    kind: "create",
    type: "file",
    notes: [],
    ...more,
  });
  const ran = (...effects: ShownEffect[]): ApprovalRequest =>
    shellRequest("make", {
      effects: { exitCode: 0, timedOut: false, durationMs: 800, isHarmless: false, effects },
    });

  it("shows how it ended, each effect with its change, and the answers", () => {
    const request = ran(
      effect(1, "package.json", { notes: ["Other programs run or obey what it says."] }),
      effect(2, "tea.txt", { kind: "modify", texts: { before: "green\n", after: "black\n" } }),
      effect(3, "old", { kind: "delete", type: "folder", below: 5_000 }),
      effect(4, "run.sh", { kind: "mode", mode: { from: 0o644, to: 0o755 } }),
    );
    expect(asked(request, { rule: "shell(make)" }).screen()).toEqual([
      "Keep what it did?",
      "Ran in a layer (0.8 s, exit 0): 1 new, 1 changed, 1 with",
      "other rights, 1 deleted (5,000 entries in folders).",
      "$ make",
      "+ package.json: new",
      "  ! Other programs run or obey what it says.",
      "~ tea.txt: changed",
      "  1 - green",
      "  1 + black",
      "- old/: deleted, with 5,000 entries in it",
      "~ run.sh: rights 644 to 755",
      "› 1 y keep it",
      "  2 a keep it, and run it directly from now on: shell(make)",
      "  3 p pick what to keep",
      "  4 n discard it",
      "  5 r discard it, and run it directly",
      "  6 t discard it, and type what to do instead",
      "↑↓ and Enter, or its number or letter · Esc stops the agent",
    ]);
  });

  it.each<[string, unknown]>([
    ["y", { allow: true, fingerprint: "print" }],
    ["n", { allow: false }],
    ["r", { allow: true, fingerprint: "print", direct: true }],
  ])("takes %s as an answer", (answer, value) => {
    const { panel } = asked(ran(effect(1, "a")));
    expect(panel.take(typed(answer))).toEqual({ type: "done", value });
  });

  it("has conflicts in sight however long the command is, and keeps the others", () => {
    const request = ran(
      effect(7, "mine", { kind: "modify", conflict: "was changed meanwhile" }),
      effect(8, "pipe", { kind: "special", type: "special" }),
      effect(9, "b"),
    );
    const long = { ...request, access: { kind: "run", summary: "", targets: ["x\n".repeat(500)] } };
    const { panel, screen } = asked({ ...request, ...long } as ApprovalRequest);
    expect(screen()).toContain("! Conflict: mine was changed meanwhile.");
    expect(screen()).toContain("› 1 y keep the other 1");
    expect(panel.take(typed("y"))).toEqual({
      type: "done",
      value: { allow: true, fingerprint: "print", keep: [9] },
    });
  });

  it("offers nothing to keep where nothing can be kept", () => {
    const { panel, screen } = asked(ran(effect(1, "a", { conflict: "was changed meanwhile" })));
    expect(screen().join("\n")).not.toMatch(/ [yap] (?:keep|pick)/);
    expect(panel.take(typed("y"))).toEqual({ type: "none" });
  });

  it("has a list to pick from, without what cannot be kept", () => {
    const { panel, screen } = asked(
      ran(effect(1, "a", { conflict: "was changed meanwhile" }), effect(2, "b"), effect(3, "c")),
    );
    panel.take(typed("p"));
    expect(screen()).toEqual(
      [
        "Keep which? 2 of 3",
        "›  !  + a: new",
        "  [x] + b: new",
        "  [x] + c: new",
        "↑↓ and Space · Enter keeps these and discards the rest · Esc",
      ].map((line) => expect.stringContaining(line.slice(0, COLUMNS - 4))),
    );
    expect(panel.take(typed(" "))).toEqual({ type: "none" });
    panel.take(key("down"));
    panel.take(typed(" "));
    expect(panel.take(key("enter"))).toEqual({
      type: "done",
      value: { allow: true, fingerprint: "print", keep: [3] },
    });
  });

  it("obeys nothing that a file says", () => {
    const texts = { before: "", after: "\u001B[2J\u001B]0;owned\u0007x\n" };
    const { screen } = asked(ran(effect(1, "a", { texts })));
    // oxlint-disable-next-line no-control-regex -- they are what is looked for
    expect(screen().join("")).not.toMatch(/[\u0000-\u001F\u007F]/);
  });
});
