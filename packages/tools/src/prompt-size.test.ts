import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentTool } from "@gyre/agent";
import { toJsonSchema } from "@gyre/ai";
import { scriptedModel } from "@gyre/ai/testing";
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PROVENANCE_NOTE } from "@gyre/ai/text";
import { openToolset, type Toolset, type ToolsetOptions } from "./toolset.ts";

/** What every request of an agent with these tools begins with, in tokens. */
const CODING_TOOLS = ["read", "edit", "write", "shell", "jobs", "grep", "find"];
const MAX_CODING_TOKENS = 850;
const MAX_GIT_TOKENS = 280;
const MAX_ORACLE_TOKENS = 90;
const MAX_NOTE_TOKENS = 60;

let folder: string;
let tools: Toolset | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-size-"));
});
afterEach(async () => {
  await tools?.close();
  tools = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function open(options: Partial<ToolsetOptions>): Promise<readonly AgentTool[]> {
  const stateFolder = join(folder, "state");
  // With a sandbox, which is described; it is tried out when a program is started.
  tools = await openToolset({ root: folder, sandbox: "any", stateFolder, ...options });
  return tools.registry.list();
}

/** A tool as services get it. */
function describeTool({ name, description, parameters }: AgentTool): string {
  return JSON.stringify({ name, description, input_schema: toJsonSchema(parameters) });
}

function expectAtMost(limit: number, shown: readonly AgentTool[]): void {
  const sizes = shown.map((tool) => ({
    name: tool.name,
    tokens: encode(describeTool(tool)).length,
  }));
  const sum = sizes.reduce((all, { tokens }) => all + tokens, 0);
  const each = sizes.map(({ name, tokens }) => `${name} ${tokens}`).join(", ");
  expect(sum, each).toBeLessThanOrEqual(limit);
}

describe("what a model gets", () => {
  it(`of the tools for coding is at most ${MAX_CODING_TOKENS} tokens`, async () => {
    expectAtMost(MAX_CODING_TOKENS, await open({ tools: CODING_TOOLS }));
  });

  it(`of git is at most ${MAX_GIT_TOKENS} tokens`, async () => {
    expectAtMost(MAX_GIT_TOKENS, await open({ tools: ["git"] }));
  });

  it(`of the oracle is at most ${MAX_ORACLE_TOKENS} tokens`, async () => {
    const model = scriptedModel([]);
    const oracle = { client: model, model: model.model };
    expectAtMost(MAX_ORACLE_TOKENS, await open({ tools: ["oracle"], oracle }));
  });

  it(`of where texts come from is at most ${MAX_NOTE_TOKENS} tokens`, () => {
    expect(encode(PROVENANCE_NOTE).length).toBeLessThanOrEqual(MAX_NOTE_TOKENS);
  });

  it("has jobs in it only where there are some", async () => {
    const [shell] = await open({ tools: ["shell"] });
    expect(shell && describeTool(shell)).not.toMatch(/background|job/i);
    await tools?.close();
    const [withJobs] = await open({ tools: ["shell", "jobs"] });
    expect(withJobs && describeTool(withJobs)).toMatch(/"background".*see jobs/);
  });
});
