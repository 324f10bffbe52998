import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import { describe, expect, it } from "vitest";
import { LineDriver } from "../../testing/line-driver.ts";
import { QUIET_MS } from "../tui/panels/permission.ts";
import { LineTerminal } from "./line-terminal.ts";
import { askPermission } from "./permission.ts";

function request(more: Partial<ApprovalRequest> = {}): ApprovalRequest {
  return {
    callId: "1",
    tool: "shell",
    args: {},
    reason: "So it is.",
    fingerprint: "print",
    ...more,
  };
}

function shell(command: string): ApprovalRequest {
  return request({
    args: { command },
    access: { kind: "run", targets: [command], summary: `Run ${command}` },
  });
}

interface Asked {
  driver: LineDriver;
  answer: Promise<ApprovalAnswer>;
}

async function ask(of: ApprovalRequest, rule?: string): Promise<Asked> {
  const driver = new LineDriver();
  const terminal = new LineTerminal(driver, { line: () => {}, end: () => {} });
  let now = 0;
  const answer = askPermission(of, {
    terminal,
    cwd: "/work",
    // Each look is a while after the one before.
    now: () => (now += QUIET_MS),
    textNow: () => "one\ntwo\n",
    ...(rule !== undefined && { rule }),
  });
  await driver.until("Answer: ");
  return { driver, answer };
}

describe("asking for permission", () => {
  it.each<[string, ApprovalAnswer]>([
    ["yes", { allow: true, fingerprint: "print" }],
    [" Y ", { allow: true, fingerprint: "print" }],
    ["always", { allow: "always", rule: "shell(x)" }],
    ["no", { allow: false }],
    ["no: use git mv", { allow: false, reason: "use git mv" }],
    ["n, later", { allow: false, reason: "later" }],
    ["/stop", { allow: false, reason: "interrupted" }],
  ])("%j is an answer", async (typed, expected) => {
    const { driver, answer } = await ask(shell("x"), "shell(x)");
    driver.type(typed);
    expect(await answer).toEqual(expected);
  });

  it("without a rule there is no always", async () => {
    const { driver } = await ask(shell("x"));
    expect(driver.seen).toContain("Answer yes, no, or no: and what to do instead.");
    driver.type("always");
    await driver.until("That is no answer.");
  });

  it("a yes with more behind it is no yes", async () => {
    const { driver } = await ask(shell("x"));
    driver.type("yes: but not that");
    await driver.until("Answer: ");
    expect(driver.seen).toContain("That is no answer.");
  });

  it("what is hidden in a command is shown", async () => {
    const { driver } = await ask(shell("echo \u202ehi\x1b[2J"));
    expect(driver.seen).toContain("It would run: echo <U+202E>hi␛[2J\n");
  });

  it("of a long command the end is shown, and all of it on demand", async () => {
    const lines = Array.from({ length: 60 }, (_, index) => `echo ${index}`);
    const { driver } = await ask(shell(lines.join("\n")));
    expect(driver.seen).toContain("echo 59\n");
    expect(driver.seen).not.toContain("echo 30\n");
    expect(driver.seen).toContain("(40 lines left out)");
    driver.type("all");
    await driver.until("echo 30\n");
    await driver.until("Answer: ");
  });

  it("a change is shown as what comes and what goes", async () => {
    const { driver } = await ask(
      request({
        tool: "write",
        args: { path: "a.txt", content: "one\nzwei\n" },
        access: { kind: "write", targets: ["a.txt"], summary: "Write a.txt", destructive: true },
      }),
    );
    expect(driver.seen).toBe(`It asks for permission: write.
Write a.txt
It would change a.txt: 1 line added, 1 removed.
Removed: two
Added: zwei
Careful: it cannot be undone.
So it is.
Answer yes, no, or no: and what to do instead.
Answer: `);
  });

  it("a question that is withdrawn is answered with no", async () => {
    const stop = new AbortController();
    const { answer } = await ask({ ...shell("x"), signal: stop.signal });
    stop.abort();
    expect(await answer).toEqual({ allow: false, reason: "interrupted" });
  });
});

describe("asking whether to keep what a command did", () => {
  const ran: ApprovalRequest = {
    ...shell("make"),
    effects: {
      exitCode: 0,
      timedOut: false,
      durationMs: 800,
      isHarmless: false,
      effects: [
        {
          id: 5,
          path: "mine",
          kind: "modify",
          type: "file",
          conflict: "was changed meanwhile",
          notes: [],
        },
        {
          id: 6,
          path: "new",
          kind: "create",
          type: "file",
          notes: [],
          texts: { before: "", after: "tea\n" },
        },
        { id: 7, path: "old", kind: "delete", type: "folder", below: 2, notes: [] },
      ],
    },
  };

  it("says what it did, in words", async () => {
    const { driver } = await ask(ran);
    for (const line of [
      "It ran shell, and asks whether to keep what it did.",
      "It ran: make",
      "1: mine: changed. Conflict: mine was changed meanwhile.",
      "2: new: new.",
      "Added: tea",
      "3: old/: deleted, with 2 entries in it.",
      "Ran in a layer (0.8 s, exit 0): 1 new, 1 changed, 1 deleted (2 entries in folders).",
    ]) {
      expect(driver.seen).toContain(line);
    }
  });

  it.each<[string, ApprovalAnswer]>([
    ["keep", { allow: true, fingerprint: "print", keep: [6, 7] }],
    ["yes", { allow: true, fingerprint: "print", keep: [6, 7] }],
    ["pick 3", { allow: true, fingerprint: "print", keep: [7] }],
    ["discard", { allow: false }],
    ["discard: use git mv", { allow: false, reason: "use git mv" }],
    ["directly", { allow: true, fingerprint: "print", direct: true }],
  ])("%j is an answer", async (typed, expected) => {
    const { driver, answer } = await ask(ran);
    driver.type(typed);
    expect(await answer).toEqual(expected);
  });

  it("what cannot be kept cannot be picked", async () => {
    const { driver } = await ask(ran);
    driver.type("pick 1 2");
    await driver.until("That is no answer.");
    expect(driver.seen).toContain("pick and numbers");
  });
});
