import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, type AgentTool, type AgentToolResult, type Limits, Suspend } from "@gyre/agent";
import { type Model } from "@gyre/ai";
import {
  call,
  manualClock,
  type ScriptedModel,
  scriptedModel,
  scriptedModelInfo,
  type ScriptStep,
} from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Access, GuardedTool } from "../../contract/access.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { MAX_ORACLE_FILE_BYTES, type OracleOptions, oracleTool } from "./tool.ts";
import { noSandbox } from "../../sandbox/sandbox.ts";
import { SeenFiles } from "../../workspace/seen.ts";
import { MAX_ANSWER_CHARS } from "../sub-agent.ts";
import { openWorkspace } from "../../workspace/workspace.ts";

const priced: Model = {
  ...scriptedModelInfo,
  id: "wise",
  price: { input: 1_000_000, output: 1_000_000 },
};

let folder: string;
let env: ToolEnv;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-oracle-"));
  await mkdir(join(folder, "work"));
  env = {
    workspace: await openWorkspace(join(folder, "work")),
    seen: new SeenFiles(),
    sandbox: () => Promise.resolve(noSandbox),
    spoolFolder: folder,
    environment: {},
    clock: manualClock(),
  };
});

afterEach(async () => {
  await env.workspace.close();
  await rm(folder, { recursive: true, force: true });
});

function guarded(name: string, access: Partial<Access> = {}): GuardedTool {
  return {
    name,
    description: name,
    parameters: { type: "object" },
    execute: () => `${name} ran`,
    access: () => ({ kind: "read", targets: [], summary: name, ...access }),
  };
}

function textOfResult(result: AgentToolResult | undefined): string {
  return (result?.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
}

interface Asked {
  result: AgentToolResult;
  model: ScriptedModel;
  agent: Agent;
}

/** Lets an agent ask the oracle once. */
async function ask(
  script: readonly ScriptStep[],
  args: Record<string, unknown>,
  options: Partial<OracleOptions> = {},
  limits: Limits = {},
): Promise<Asked> {
  const model = scriptedModel(script);
  const oracle = oracleTool(env, { client: model, model: priced, ...options });
  const asker = scriptedModel([
    { parts: [call("oracle", args)], usage: { input: 1, output: 1 } },
    { parts: ["Done"], usage: { input: 1, output: 1 } },
  ]);
  const agent = new Agent({
    protocol: asker,
    model: priced,
    tools: [oracle],
    clock: env.clock,
    limits,
  });
  let result: AgentToolResult | undefined;
  agent.subscribe((event) => {
    if (event.type === "tool_execution_end") result = event.result;
  });
  await agent.prompt("Go");
  if (!result) throw new Error("The oracle was not asked.");
  return { result, model, agent };
}

describe("oracle", () => {
  it("asks another model, with a context of its own, and gives its answer", async () => {
    const { result, model } = await ask(["It is the cache."], { question: "Why?" });
    expect(textOfResult(result)).toBe("It is the cache.");
    expect(result.isError).toBeUndefined();
    expect(model.calls).toHaveLength(1);
    expect(model.calls[0]?.model.id).toBe("wise");
    expect(model.calls[0]?.messages).toHaveLength(1);
    expect(model.calls[0]?.systemPrompt).toMatch(/asked for advice/);
  });

  it("is asked at its own thinking level", async () => {
    const { model } = await ask(["Yes."], { question: "Why?" }, { thinkingLevel: "high" });
    expect(model.calls[0]?.options.thinkingLevel).toBe("high");
  });

  it("gets the text of the files, marked with where it came from", async () => {
    await writeFile(join(folder, "work", "a.md"), "one\ntwo");
    const { model } = await ask(["Yes."], { question: "Why?", files: ["./a.md"] });
    expect(model.calls[0]?.messages[0]?.content).toEqual([
      { type: "text", text: "Why?" },
      {
        type: "text",
        text: expect.stringMatching(
          /^<source kind="file" name="a.md" mark="(\w+)">\none\ntwo\n<\/source mark="\1">$/,
        ),
      },
    ]);
  });

  it("gets a note about files that are binary or too large", async () => {
    await writeFile(join(folder, "work", "b"), new Uint8Array([1, 0, 2]));
    await writeFile(join(folder, "work", "c"), "x".repeat(MAX_ORACLE_FILE_BYTES + 1));
    const { model } = await ask(["Yes."], { question: "Why?", files: ["b", "c"] });
    expect(model.calls[0]?.messages[0]?.content).toEqual(
      [
        "Why?",
        "File b is binary (3 B); it is not given.",
        "File c is larger than 100 KB and is not given: read it in pieces.",
      ].map((text) => ({ type: "text", text })),
    );
  });

  it("is not asked about a file outside of the workspace", async () => {
    await writeFile(join(folder, "secret"), "key");
    const { result, model } = await ask([], { question: "Why?", files: ["../secret"] });
    expect(result.isError).toBe(true);
    expect(model.calls).toHaveLength(0);
  });

  it("uses tools that read", async () => {
    const { result } = await ask(
      [call("look"), "Seen."],
      { question: "Why?" },
      { tools: [guarded("look")] },
    );
    expect(textOfResult(result)).toBe("Seen.");
  });

  it("cannot be given a tool without access", () => {
    const blind: AgentTool = {
      name: "blind",
      description: "blind",
      parameters: { type: "object" },
      execute: () => "ran",
    };
    expect(() =>
      oracleTool(env, { client: scriptedModel([]), model: priced, tools: [blind] }),
    ).toThrow(/"blind".*does not declare what a call would do/);
  });

  it.each<Partial<Access>>([
    { kind: "write" },
    { kind: "run" },
    { kind: "network" },
    { kind: "agent" },
    { kind: "read", destructive: true },
  ])("refuses a call that would do more than read: %j", async (access) => {
    let ran = false;
    const tool: AgentTool = { ...guarded("act", access), execute: () => ((ran = true), "ran") };
    const { model } = await ask([call("act"), "Well."], { question: "Why?" }, { tools: [tool] });
    expect(ran).toBe(false);
    expect(model.calls[1]?.messages.at(-1)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/only reading is allowed here/) }],
    });
  });

  it("costs what the run then counts", async () => {
    const { agent, result } = await ask([{ parts: ["Yes."], usage: { input: 10, output: 5 } }], {
      question: "Why?",
    });
    expect(result.usage?.cost?.total).toBe(15);
    expect(agent.state.usage.totalTokens).toBe(19);
    expect(agent.state.usage.cost?.total).toBe(19);
  });

  it("keeps to its budget, says so, and keeps the text so far", async () => {
    const { result } = await ask(
      [["First thought.", call("look", { n: 1 })], call("look", { n: 2 })],
      { question: "Why?" },
      { tools: [guarded("look")], budget: { maxTurns: 2 } },
    );
    expect(result.isError).toBe(true);
    expect(textOfResult(result)).toMatch(
      /oracle was stopped after 2 turns.*maxTurns[^]*First thought\./,
    );
    expect(result.details).toMatchObject({ stop: "limit", limit: "maxTurns", turns: 2 });
  });

  it("keeps to what is left of the run's limits", async () => {
    const { result, model } = await ask(
      [
        { parts: [call("look", { n: 1 })], usage: { input: 50 } },
        { parts: [call("look", { n: 2 })], usage: { input: 50 } },
      ],
      { question: "Why?" },
      { tools: [guarded("look")], budget: { maxTokens: 1000 } },
      { maxTotalTokens: 100 },
    );
    expect(result.details).toMatchObject({ stop: "limit", limit: "maxTotalTokens" });
    expect(model.requests).toBe(2);
  });

  it("reports a failure of the model", async () => {
    const { result } = await ask(
      [{ error: { message: "No such model", failure: { kind: "bad_request", retryable: false } } }],
      { question: "Why?" },
    );
    expect(result.isError).toBe(true);
    expect(textOfResult(result)).toBe(
      "The oracle failed after 1 turn: No such model\nIt had said nothing.",
    );
  });

  it("cuts an answer that is too long, and says how to get the rest", async () => {
    const { result } = await ask(["x".repeat(MAX_ANSWER_CHARS + 1)], { question: "Why?" });
    expect(textOfResult(result)).toMatch(/x\n\[Cut after 50,000 of 50,001 characters\. Ask again/);
  });

  it("passes its calls through the middleware with the id of the call that asked", async () => {
    const seen: unknown[] = [];
    await ask(
      [call("look", {}, "inner"), "Seen."],
      { question: "Why?" },
      {
        tools: [guarded("look")],
        middleware: [
          {
            tool(invocation, next) {
              seen.push([invocation.toolCall.id, invocation.parentId]);
              return next();
            },
          },
        ],
      },
    );
    expect(seen).toEqual([["inner", "call_1"]]);
  });

  it("fails clearly where a call of its own would wait for a person", async () => {
    const { result } = await ask(
      [call("look")],
      { question: "Why?" },
      {
        tools: [guarded("look")],
        middleware: [{ tool: () => Promise.reject(new Suspend("ask a person")) }],
      },
    );
    expect(textOfResult(result)).toMatch(/"look" \(ask a person\) waits for a person/);
    expect(result.isError).toBe(true);
  });

  it("reports what a call would do", async () => {
    const oracle = oracleTool(env, { client: scriptedModel([]), model: priced });
    await writeFile(join(folder, "work", "a"), "");
    expect(await oracle.access({ question: "Why?", files: ["./a"] })).toEqual({
      kind: "agent",
      targets: ["scripted/wise", "a"],
      reads: ["a"],
      summary: "Ask scripted/wise: Why?",
    });
    await expect(oracle.access({ question: "Why?", files: ["../b"] })).rejects.toThrow(/b/);
  });
});
