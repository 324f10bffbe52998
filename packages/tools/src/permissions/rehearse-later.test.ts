import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  Agent,
  type AgentEnd,
  type AgentOptions,
  type Decision,
  type PendingCall,
} from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { callAll, scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EffectsReport } from "../contract/rehearsal.ts";
import { permissions } from "../permissions.ts";
import { openToolset, type Toolset } from "../toolset.ts";
import type { PermissionMode } from "./permissions.ts";

let folder: string;
let root: string;
let toolset: Toolset | undefined;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-later-")));
  root = join(folder, "ws");
  mkdirSync(root);
  mkdirSync(join(root, "cups"));
  writeFileSync(join(root, "tea.txt"), "green\n");
});

afterEach(async () => {
  await toolset?.close();
  toolset = undefined;
  rmSync(folder, { recursive: true, force: true });
});

/** An agent whose runs are suspended for questions, and whose model runs these commands at once. */
async function openAgent(
  commands: readonly string[],
  mode: PermissionMode = "ask",
  stored: Pick<AgentOptions, "messages" | "pending"> = {},
): Promise<Agent> {
  toolset ??= await openToolset({
    root,
    stateFolder: join(folder, "state"),
    sandbox: "bubblewrap",
  });
  const guard = permissions({
    mode,
    sandboxed: true,
    workspace: toolset.env.workspace,
    rehearse: true,
  });
  const calls = callAll(commands.map((command) => ["shell", { command }]));
  const model = scriptedModel([calls, "Done.", "Done again."]);
  return new Agent({
    ...stored,
    protocol: model,
    model: model.model,
    tools: toolset.registry.list(),
    middleware: [guard],
  });
}

function readEffects({ access }: PendingCall): EffectsReport | undefined {
  const question = access?.["question"];
  return typeof question === "object" && question !== null && "effects" in question
    ? (question.effects as EffectsReport)
    : undefined;
}

function results({ messages }: AgentEnd): string[] {
  return messages.filter((message) => message.role === "toolResult").map(textOf);
}

const read = (name: string): string => readFileSync(join(root, name), "utf8");

/** What is left of layers. */
function listLayers(): string[] {
  const home = join(folder, "state/layers");
  return existsSync(home) ? readdirSync(home).flatMap((name) => readdirSync(join(home, name))) : [];
}

const decide = (
  pending: readonly PendingCall[],
  decision: (call: PendingCall) => Decision,
): Record<string, Decision> =>
  Object.fromEntries(pending.map((call) => [call.toolCall.id, decision(call)]));

const COMMAND = "echo black >> tea.txt; echo new > cup";

describe("a run that is suspended for a command", { tags: ["bubblewrap"] }, () => {
  it("has what it did in a layer in its question, and keeps it when it is approved", async () => {
    const agent = await openAgent([COMMAND]);
    const first = await agent.prompt("Go.");
    expect(first.stop).toBe("suspended");
    const [call] = first.pending;
    if (!call) throw new Error("Nothing waits.");
    expect(readEffects(call)).toMatchObject({
      exitCode: 0,
      effects: [
        {
          id: expect.any(Number),
          path: "cup",
          kind: "create",
          texts: { before: "", after: "new\n" },
        },
        { path: "tea.txt", kind: "modify" },
      ],
    });
    expect(readdirSync(root)).toEqual(["cups", "tea.txt"]);
    // It is plain data.
    const sent: PendingCall[] = JSON.parse(JSON.stringify(first.pending));
    const end = await agent.continue({
      decisions: decide(sent, ({ fingerprint = "" }) => ({ type: "approve", fingerprint })),
    });
    expect(end.stop).toBe("done");
    expect([read("tea.txt"), read("cup")]).toEqual(["green\nblack\n", "new\n"]);
    expect(results(end)).toHaveLength(1);
  });

  it("keeps the effects that an approval names", async () => {
    const agent = await openAgent([COMMAND]);
    const { pending } = await agent.prompt("Go.");
    await agent.continue({
      decisions: decide(pending, (call) => ({
        type: "approve",
        keep: (readEffects(call)?.effects ?? [])
          .filter(({ path }) => path === "cup")
          .map(({ id }) => id),
      })),
    });
    expect([read("tea.txt"), read("cup")]).toEqual(["green\n", "new\n"]);
  });

  it("runs it again without a layer where an approval says so", async () => {
    const agent = await openAgent(["echo $PPID >> tea.txt"]);
    const { pending } = await agent.prompt("Go.");
    const end = await agent.continue({
      decisions: decide(pending, () => ({ type: "approve", direct: true })),
    });
    expect(end.stop).toBe("done");
    expect(read("tea.txt").split("\n")).toHaveLength(3);
    expect(listLayers()).toEqual([]);
  });

  it("leaves nothing where it is denied", async () => {
    const agent = await openAgent([COMMAND]);
    const { pending } = await agent.prompt("Go.");
    const end = await agent.continue({
      decisions: decide(pending, () => ({ type: "deny", reason: "No cups." })),
    });
    expect(results(end)[0]).toContain("No cups.");
    // The next call waits for what is thrown away.
    await agent.prompt("Go on.");
    await expect.poll(listLayers).toEqual([]);
    expect(readdirSync(root)).toEqual(["cups", "tea.txt"]);
  });

  it("asks again where what it did is gone, as after a restart, or where something else was approved", async () => {
    const agent = await openAgent([COMMAND]);
    const { pending, messages } = await agent.prompt("Go.");
    const approvals = decide(pending, ({ fingerprint = "" }) => ({ type: "approve", fingerprint }));
    // Another process knows the call and the approval, and has no layer.
    const other = await openAgent([], "ask", { messages, pending });
    const second = await other.continue({ decisions: approvals });
    expect(second.stop).toBe("suspended");
    expect(second.pending[0]?.reason).toContain("has changed since it was approved");
    expect(second.pending.map((call) => readEffects(call)?.effects.length)).toEqual([2]);
    const wrong = decide(pending, (): Decision => ({ type: "approve", fingerprint: "x" }));
    expect((await agent.continue({ decisions: wrong })).stop).toBe("suspended");
    expect(readdirSync(root)).toEqual(["cups", "tea.txt"]);
  });

  it("several calls wait at the same time; one that conflicts with what was kept before is refused", async () => {
    const agent = await openAgent([
      "echo black >> tea.txt",
      "echo white >> tea.txt",
      "echo new > cups/a",
    ]);
    const { pending } = await agent.prompt("Go.");
    expect(pending).toHaveLength(3);
    const end = await agent.continue({ decisions: decide(pending, () => ({ type: "approve" })) });
    expect(end.stop).toBe("done");
    expect(read("tea.txt")).toBe("green\nblack\n");
    expect(read("cups/a")).toBe("new\n");
    expect(results(end)[1]).toContain("tea.txt");
  });

  it("a decision on one of them leaves the others as they are", async () => {
    const agent = await openAgent(["echo black >> tea.txt", "echo new > cups/a"]);
    const { pending } = await agent.prompt("Go.");
    const [first, second] = pending;
    const half = await agent.continue({
      decisions: decide(
        [first].flatMap((each) => each ?? []),
        () => ({ type: "approve" }),
      ),
    });
    expect(half.stop).toBe("suspended");
    expect(half.pending.map(({ toolCall }) => toolCall.id)).toEqual([second?.toolCall.id]);
    await agent.continue({ decisions: decide(half.pending, () => ({ type: "approve" })) });
    expect([read("tea.txt"), read("cups/a")]).toEqual(["green\nblack\n", "new\n"]);
  });

  it("is not suspended in mode auto-edit where all that it did is harmless", async () => {
    const agent = await openAgent([COMMAND], "auto-edit");
    expect((await agent.prompt("Go.")).stop).toBe("done");
    expect(read("cup")).toBe("new\n");
  });

  it("leaves no layer behind where the toolset is closed before a decision", async () => {
    const agent = await openAgent([COMMAND]);
    await agent.prompt("Go.");
    expect(listLayers()).toHaveLength(1);
    await toolset?.close();
    toolset = undefined;
    expect(listLayers()).toEqual([]);
  });

  it("lists so many effects, and counts the others, which are kept as well", async () => {
    const agent = await openAgent(["for i in $(seq 300); do echo $i > f$i; done"]);
    const { pending } = await agent.prompt("Go.");
    const report = pending[0] && readEffects(pending[0]);
    expect(report?.effects).toHaveLength(200);
    expect(report?.omitted).toBe(100);
    await agent.continue({ decisions: decide(pending, () => ({ type: "approve" })) });
    expect(readdirSync(root)).toHaveLength(302);
  });
});
