import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { textOf } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import type { ApprovalRequest } from "@gyre/tools";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Approve, type CodingPermissions, createCodingAgent } from "./index.ts";

let home = "";
let cwd = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "gyre-coding-effects-"));
  cwd = join(home, "project");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "tea.txt"), "green\n");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const COMMAND = "echo black >> tea.txt; mkdir cups; echo new > cups/a; echo new > cups/b";

/** An agent that runs a command; what it was asked about, and what the model got. */
async function run(
  approve: Approve,
  permissions: CodingPermissions = {},
  command = COMMAND,
): Promise<{ asked: ApprovalRequest[]; result: string }> {
  const asked: ApprovalRequest[] = [];
  const model = scriptedModel([call("shell", { command }), "Done."]);
  const agent = await createCodingAgent({
    cwd,
    model: model.model,
    protocol: model,
    session: "none",
    env: {
      PATH: process.env["PATH"],
      HOME: home,
      XDG_STATE_HOME: join(home, "state"),
      XDG_CONFIG_HOME: join(home, "config"),
    },
    permissions: {
      mode: "ask",
      approve(request) {
        asked.push(request);
        return approve(request);
      },
      ...permissions,
    },
  });
  try {
    await agent.prompt("Go.");
    const result = agent.state.messages.find((message) => message.role === "toolResult");
    return { asked, result: result ? textOf(result) : "" };
  } finally {
    await agent.close();
  }
}

const read = (name: string): string => readFileSync(join(cwd, name), "utf8");

describe("approve gets what a command did", { tags: ["bubblewrap"] }, () => {
  it("as data, before any of it is done, and true keeps it", async () => {
    const { asked } = await run(({ effects }) => {
      expect(effects?.effects.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
        "create cups",
        "create cups/a",
        "create cups/b",
        "modify tea.txt",
      ]);
      expect(effects?.effects.at(-1)?.texts?.after).toBe("green\nblack\n");
      expect(readdirSync(cwd)).toEqual(["tea.txt"]);
      return true;
    });
    expect(asked).toHaveLength(1);
    expect([read("tea.txt"), read("cups/b")]).toEqual(["green\nblack\n", "new\n"]);
  });

  it("false discards it", async () => {
    const { result } = await run(() => false);
    expect(readdirSync(cwd)).toEqual(["tea.txt"]);
    expect(result).toContain("discarded what it did");
  });

  it("keeps the paths of an answer, and what is below them", async () => {
    const { result } = await run(() => ({ keep: ["cups/a"] }));
    expect([read("tea.txt"), ...readdirSync(join(cwd, "cups"))]).toEqual(["green\n", "a"]);
    expect(result).toContain("tea.txt");
    rmSync(join(cwd, "cups"), { recursive: true });
    await run(() => ({ keep: ["cups"] }));
    expect(readdirSync(join(cwd, "cups"))).toEqual(["a", "b"]);
  });

  it("keeps nothing where an answer names what the command did not change", async () => {
    const { result } = await run(() => ({ keep: ["cups/a", "saucer"] }));
    expect(result).toContain('The command did nothing to "saucer".');
    expect(readdirSync(cwd)).toEqual(["tea.txt"]);
  });

  it("is called before the command where it cannot run in a layer, or where effects are off", async () => {
    const { asked, result } = await run(() => ({ keep: [] }), {}, "curl example.org");
    expect(asked[0]?.effects).toBeUndefined();
    expect(result).toContain("There is nothing to keep");
    const off = await run(() => true, { effects: false });
    expect(off.asked[0]?.effects).toBeUndefined();
    expect(read("tea.txt")).toBe("green\nblack\n");
  });
});
