import { writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { buildProgram, type Program } from "../../testing/program.ts";
import {
  type Script,
  type ScriptedService,
  scriptedService,
} from "../../testing/scripted-service.ts";

// `--output claude`: the lines that programs around Claude Code read.

let program: Program;
const services: ScriptedService[] = [];
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()));
});

type Line = Record<string, unknown>;

async function lines(script: Script, args: readonly string[] = []): Promise<Line[]> {
  const service = await scriptedService(script);
  services.push(service);
  const home = await program.makeHome();
  mkdirSync(join(home, "work"), { recursive: true });
  writeFileSync(join(home, "work", "tea.txt"), "black\ngreen");
  const { stdout } = await program.gyre(["-p", "Which tea?", "--output", "claude", ...args], {
    service,
    home,
  });
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

it("has an init, each message with its calls and results, and a result", async () => {
  const [init, call, result, answer, end, ...more] = await lines(
    [
      { say: [{ text: "I look." }, { call: "read", arguments: { path: "tea.txt" } }] },
      { say: "Black." },
    ],
    ["--mode", "ask"],
  );
  expect(more).toEqual([]);
  expect(init).toMatchObject({
    type: "system",
    subtype: "init",
    tools: expect.arrayContaining(["read", "shell"]),
    mcp_servers: [],
    model: "claude-sonnet-5-5",
    permissionMode: "default",
    slash_commands: ["init", "review"],
    apiKeySource: "ANTHROPIC_API_KEY",
  });
  const id = expect.stringMatching(/^toolu_/);
  expect(call).toMatchObject({
    type: "assistant",
    message: {
      type: "message",
      role: "assistant",
      content: [
        { type: "text", text: "I look." },
        { type: "tool_use", id, name: "read", input: { path: "tea.txt" } },
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
    },
    parent_tool_use_id: null,
  });
  expect(result).toMatchObject({
    type: "user",
    message: {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: id, is_error: false }],
    },
  });
  expect(JSON.stringify(result)).toContain("black\\ngreen");
  expect(answer).toMatchObject({
    message: { content: [{ type: "text", text: "Black." }], stop_reason: "end_turn" },
  });
  expect(end).toMatchObject({
    type: "result",
    subtype: "success",
    is_error: false,
    num_turns: 2,
    result: "Black.",
    total_cost_usd: expect.any(Number),
    permission_denials: [],
  });
  const ids = new Set([init, call, result, answer, end].map((line) => line?.["session_id"]));
  expect(ids.size).toBe(1);
});

it("names what was denied with its arguments, and a limit by its subtype", async () => {
  const write = { call: "write", arguments: { path: "new.txt", content: "x" } };
  const all = await lines([{ say: [write] }, { say: "No." }], ["--mode", "ask"]);
  expect(all.at(-1)).toMatchObject({
    subtype: "success",
    permission_denials: [{ tool_name: "write", tool_input: write.arguments }],
  });
  const limited = await lines(
    [{ say: [{ call: "read", arguments: { path: "tea.txt" } }] }, { say: "No." }],
    ["--max-turns", "1"],
  );
  expect(limited.at(-1)).toMatchObject({ subtype: "error_max_turns", is_error: true });
});

it("ends with a result where nothing could be asked", async () => {
  const [only, ...more] = await lines([], ["--model", "nothing-like-it"]);
  expect(more).toEqual([]);
  expect(only).toMatchObject({
    type: "result",
    subtype: "error_during_execution",
    is_error: true,
    num_turns: 0,
    errors: [expect.stringContaining("nothing-like-it")],
  });
});

it("has a line break between the parts of the answer in its result", async () => {
  const all = await lines([{ say: [{ text: "One." }, { text: "Two." }] }]);
  expect(all.at(-1)).toMatchObject({ type: "result", result: "One.\nTwo." });
});
