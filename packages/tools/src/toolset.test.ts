import { mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import { call, scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_TOOLS, findPresentation, TOOLS } from "./catalog.ts";
import { isGuarded } from "./contract/access.ts";
import { createSandbox } from "./sandbox/sandbox.ts";
import { openToolset, type Toolset, type ToolsetOptions } from "./toolset.ts";

let folder: string;
let tools: Toolset | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(await realpath(tmpdir()), "gyre-toolset-"));
});
afterEach(async () => {
  await tools?.close();
  tools = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function open(root: string, options: Partial<ToolsetOptions> = {}): Promise<Toolset> {
  const stateFolder = join(folder, "state");
  return openToolset({
    root,
    sandbox: "none",
    stateFolder,
    environment: { PATH: process.env["PATH"] },
    ...options,
  });
}

describe("openToolset", () => {
  it("has every tool once, and each can say what a call would do", async () => {
    tools = await open(folder);
    const names = tools.registry.list().map(({ name }) => name);
    const offered = TOOLS.filter(({ needsOptions }) => !needsOptions);
    expect(names).toEqual(offered.map(({ name }) => name));
    expect(names.slice(0, DEFAULT_TOOLS.length)).toEqual(DEFAULT_TOOLS);
    for (const tool of tools.registry.list()) {
      expect(isGuarded(tool), tool.name).toBe(true);
      expect(tool.presentation, tool.name).toBe(findPresentation(tool.name));
    }
    expect(() => tools?.registry.get("raed")).toThrow("Did you mean read?");
  });

  it("has only what is asked for, in that order, and no jobs without the tool for them", async () => {
    tools = await open(folder, { tools: ["shell", "read", "shell"] });
    expect(tools.registry.list().map(({ name }) => name)).toEqual(["shell", "read"]);
    const { signal } = new AbortController();
    const host = { call: () => Promise.reject(new Error("no")) };
    const args = { command: "sleep 1000", background: true };
    const shell = tools.registry.get("shell");
    await expect(
      (async () =>
        shell.execute(args, { id: "1", signal, update: () => {}, host, messages: [] }))(),
    ).rejects.toThrow("There are no background jobs here.");
  });

  it.each([
    ["raed", 'There is no tool "raed". Did you mean read?'],
    ["oracle", 'There is no tool "oracle".'],
    ["fetch", 'There is no tool "fetch".'],
  ])("says that there is no %s, before it opens anything", async (name, words) => {
    const opening = open(join(folder, "missing"), { tools: ["read", name], fetch: false });
    await expect(opening).rejects.toThrow(words);
    expect(await readdir(folder)).toEqual([]);
  });

  it("gives those that ask models the tools that are there", async () => {
    const model = scriptedModel([]);
    const oracle = { client: model, model: model.model };
    const names = ["task", "oracle", "grep", "notes"];
    tools = await open(folder, { tools: names, oracle, task: oracle });
    expect(tools.registry.list().map(({ name }) => name)).toEqual(names);
    const { description } = tools.registry.get("task");
    expect(description).toContain("grep, oracle");
    // Those are the agent's own.
    expect(description).not.toContain("notes");
  });

  it("tries out any sandbox when it is asked for, once", async () => {
    tools = await open(folder, { sandbox: "any" });
    const sandbox = tools.env.sandbox();
    expect(tools.env.sandbox()).toBe(sandbox);
    const { kind } = await createSandbox({ kind: "any" });
    expect(await sandbox).toMatchObject({ kind });
  });

  it("lets an agent read, edit and run", async () => {
    const root = await mkdtemp(join(folder, "work-"));
    await writeFile(join(root, "greeting.txt"), "Hello wrold\n");
    tools = await open(root);
    const edits = [{ oldText: "wrold", newText: "world" }];
    const model = scriptedModel([
      call("read", { path: "greeting.txt" }),
      call("edit", { path: "greeting.txt", edits }),
      call("shell", { command: "cat greeting.txt" }),
      "Done.",
    ]);
    const agent = new Agent({
      protocol: model,
      initialState: { model: model.model, tools: tools.registry.list() },
    });
    await agent.prompt("Fix it.");
    const results = agent.state.messages.filter((message) => message.role === "toolResult");
    expect(results.map(({ isError }) => isError)).toEqual([false, false, false]);
    expect(textOf(results[2] ?? { content: "" })).toContain("Hello world");
    expect(await readFile(join(root, "greeting.txt"), "utf8")).toBe("Hello world\n");
  });

  it("keeps what is its own to its owner, and leaves nothing behind", async () => {
    tools = await open(folder);
    const { spoolFolder } = tools.env;
    expect((await stat(spoolFolder)).mode & 0o077).toBe(0);
    await tools.close();
    tools = undefined;
    expect(await readdir(join(folder, "state"))).toEqual([]);
  });
});
