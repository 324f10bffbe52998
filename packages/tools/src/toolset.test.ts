import { mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "@gyre/agent";
import { call, scriptedModel, textOf } from "@gyre/ai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isGuarded } from "./access.ts";
import { openToolset, type Toolset } from "./toolset.ts";

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

async function open(root: string): Promise<Toolset> {
  const stateFolder = join(folder, "state");
  return openToolset({
    root,
    sandbox: "none",
    stateFolder,
    environment: { PATH: process.env["PATH"] },
  });
}

describe("openToolset", () => {
  it("has every tool once, and each can say what a call would do", async () => {
    tools = await open(folder);
    expect(tools.registry.list().map(({ name }) => name)).toEqual([
      "read",
      "ls",
      "find",
      "grep",
      "edit",
      "apply_patch",
      "write",
      "shell",
      "jobs",
      "git",
      "todo",
      "fetch",
    ]);
    expect(tools.registry.list().filter((tool) => !isGuarded(tool))).toEqual([]);
    expect(() => tools?.registry.get("raed")).toThrow("Did you mean read?");
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
    await agent.prompt("Mend it.");
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
