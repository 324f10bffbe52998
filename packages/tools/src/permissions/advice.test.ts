import { Agent, defineTool } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import type { Access, GuardedTool } from "../contract/access.ts";
import { type PermissionOptions, permissions } from "../permissions.ts";
import { type Advice, type PermissionMode } from "./permissions.ts";
import type { RuleList } from "./rules.ts";

interface Case {
  command?: string;
  access?: Partial<Access>;
  rules?: RuleList;
  mode?: PermissionMode;
  advice?: Advice | undefined;
  more?: Partial<PermissionOptions>;
}

/** The outcome of a command that a hook has given advice on, without a person to ask. */
async function outcome({ command = "make", access, rules = {}, mode = "ask", advice, more }: Case) {
  const shell: GuardedTool = {
    ...defineTool({
      name: "shell",
      description: "Says that it ran a command.",
      parameters: { type: "object", properties: { command: { type: "string" } } },
      execute: () => "ran",
    }),
    access: () => ({ kind: "run", targets: [command], summary: "Run it", ...access }),
  };
  const guard = permissions({
    ...{ mode, rules, headless: true, sandboxed: true, advice: () => advice },
    ...more,
  });
  const script = scriptedModel([call("shell", { command }), "Done."]);
  const agent = new Agent({
    protocol: script,
    model: script.model,
    tools: [shell],
    middleware: [guard],
  });
  const { messages } = await agent.prompt("Go.");
  const result = messages.find((message) => message.role === "toolResult");
  return result ? textOf(result) : "";
}

const ALLOW: Advice = { effect: "allow", reason: "It is known." };

describe("advice", () => {
  it("that allows counts as a rule that does", async () => {
    expect(await outcome({})).toContain("no person can be asked");
    expect(await outcome({ advice: ALLOW })).toBe("ran");
    expect(await outcome({ advice: ALLOW, command: "make > log.txt" })).toBe("ran");
  });

  it.each<[string, Case, string]>([
    ["a rule that denies", { rules: { deny: ["shell(make*)"] } }, "forbids it"],
    ["a rule that asks", { rules: { ask: ["shell"] } }, "wants it asked about"],
    ["what cannot be undone", { access: { destructive: true } }, "It cannot be undone."],
    ["what leaves the sandbox", { access: { unsandboxed: true } }, "outside of the sandbox"],
    ["a plan", { mode: "plan" }, 'In mode "plan" nothing is changed'],
    [
      "a command that may be one that is forbidden",
      { command: 'eval "$X"', rules: { deny: ["shell(rm *)"] } },
      "no person can be asked",
    ],
  ])("that allows does not go past %s", async (_what, given, words) => {
    expect(await outcome({ ...given, advice: ALLOW })).toContain(words);
  });

  it("that asks or denies takes precedence over rules that allow, and over the mode", async () => {
    const rules = { allow: ["shell"] };
    expect(await outcome({ rules })).toBe("ran");
    const ask: Advice = { effect: "ask", reason: "Look at it." };
    expect(await outcome({ rules, mode: "full", advice: ask })).toContain("Look at it.");
    const deny: Advice = { effect: "deny", reason: "Never." };
    expect(await outcome({ rules, mode: "full", advice: deny })).toContain("Denied: Never.");
  });
});

describe("what is above all rules", () => {
  const FREE: Case = { mode: "full", rules: { allow: ["shell", "shell(make)"] }, advice: ALLOW };
  const ask = async ({ fingerprint }: { fingerprint: string }) => {
    throw new Error(`A person was asked about ${fingerprint}.`);
  };

  it("denies by what a call would do, before a person is asked", async () => {
    const forbids: PermissionOptions["forbids"] = (tool, access) =>
      access?.targets.includes("make") ? `No ${tool.name} here.` : undefined;
    const more = { forbids, headless: false, ask };
    expect(await outcome({ ...FREE, more })).toContain("Denied: No shell here.");
    expect(await outcome({ ...FREE, command: "ls", more })).toBe("ran");
    expect(await outcome({ ...FREE, mode: "ask", more })).toContain("Denied: No shell here.");
  });

  it("denies commands without a sandbox, with the reason that is given", async () => {
    for (const sandboxed of [false, "waived"] as const) {
      const more = { confinedOnly: "Only in a sandbox.", sandboxed, headless: false, ask };
      expect(await outcome({ ...FREE, more })).toContain("Denied: Only in a sandbox.");
    }
    const leaves = { confinedOnly: "Only in a sandbox.", headless: false, ask };
    const access = { unsandboxed: true };
    expect(await outcome({ ...FREE, access, more: leaves })).toContain("Only in a sandbox.");
    expect(await outcome({ ...FREE, more: leaves })).toBe("ran");
  });
});
