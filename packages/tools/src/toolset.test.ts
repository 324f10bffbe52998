import { spawnSync } from "node:child_process";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, toResult } from "@gyre/agent";
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

describe("the /tmp of sandboxed commands", { tags: "bubblewrap" }, () => {
  const sandbox = "bubblewrap";

  async function run(command: string): Promise<string> {
    const { signal } = new AbortController();
    const host = { call: () => Promise.reject(new Error("no")) };
    const shell = tools?.registry.get("shell");
    const context = { id: "1", signal, update: () => {}, host, messages: [] };
    const result = await shell?.execute({ command }, context);
    return result === undefined ? "" : textOf(toResult("shell", result));
  }

  async function agentFolders(): Promise<string[]> {
    return (await readdir(join(folder, "state"))).filter((name) => name.startsWith("agent-"));
  }

  it("is kept from one command to the next, and gone when the toolset is closed", async () => {
    const root = join(folder, "work");
    await mkdir(root);
    tools = await open(root, { sandbox });
    await run(
      "echo 'echo kept' > /tmp/script; mkdir /tmp/closed; touch /tmp/closed/a; chmod 0 /tmp/closed",
    );
    expect(await run("sh /tmp/script")).toContain("kept");
    expect(tools.registry.get("shell").description).toContain("/tmp");
    await tools.close();
    expect(await agentFolders()).toEqual([]);
    // A session that is resumed opens another one.
    tools = await open(root, { sandbox });
    expect(await run("ls -A /tmp | grep -v gyre-toolset; echo end")).toMatch(/^Exit code 0\.end$/);
    // What others have in the machine's own /tmp is not in it.
    expect(await run(`ls ${folder}`)).not.toContain("state.txt");
  });

  it("is emptied, and the result says so, where a command leaves too much in it", async () => {
    tools = await open(folder, { sandbox, temporaryBytes: 100_000 });
    expect(await run("head -c 90000 /dev/zero > /tmp/a")).not.toContain("emptied");
    expect(
      await run(
        "head -c 90000 /dev/zero > /tmp/.b; ln -s / /tmp/root; mkdir /tmp/c; chmod 0 /tmp/c",
      ),
    ).toContain("/tmp held more than 98 KB, and was emptied.");
    expect(await run("ls -A /tmp | grep -v gyre-toolset; echo end")).toMatch(/^Exit code 0\.end$/);
  });

  it("is swept after a crash, and not while its host lives", async () => {
    tools = await open(folder, { sandbox });
    await run("true");
    const [name = ""] = await agentFolders();
    const note = join(folder, "state", name, "host.json");
    const host: Record<string, unknown> = JSON.parse(await readFile(note, "utf8"));
    const fake = async (id: string, changes: object): Promise<string> => {
      const temporary = join(folder, "state", `agent-${id}`, "tmp");
      await mkdir(temporary, { recursive: true, mode: 0o700 });
      await writeFile(join(temporary, "a"), "");
      await writeFile(
        join(folder, "state", `agent-${id}`, "host.json"),
        JSON.stringify({ ...host, ...changes }),
      );
      return temporary;
    };
    const living = await fake("living", {});
    const dead = await fake("dead", { start: 1 });
    const restarted = await fake("restarted", { boot: "another" });
    const elsewhere = await fake("elsewhere", { boot: "another", machine: "another" });
    const contained = await fake("contained", { namespace: "pid:[1]" });
    await tools.close();
    tools = await open(folder, { sandbox });
    for (const path of [living, elsewhere, contained])
      expect((await stat(path)).isDirectory()).toBe(true);
    for (const path of [dead, restarted]) await expect(stat(path)).rejects.toThrow("ENOENT");
  });
});

describe("files that are read-only", () => {
  const script = "(a)/[x]{1}*.mjs";

  async function openWith(sandbox: "none" | "bubblewrap"): Promise<string> {
    const root = join(folder, "work");
    await mkdir(join(root, "(a)"), { recursive: true });
    await writeFile(join(root, script), "old");
    await writeFile(join(root, "real.sh"), "old");
    await symlink("real.sh", join(root, "link.sh"));
    const readOnlyFiles = [script, "link.sh", "missing.sh"].map((name) => join(root, name));
    tools = await open(root, { sandbox, readOnlyFiles: [...readOnlyFiles, "/etc/hostname"] });
    return root;
  }

  it("are so for tools, by their names and behind links, there or not", async () => {
    await openWith("none");
    const held = [script, "link.sh", "real.sh", "missing.sh"];
    for (const path of [...held, "(a)/x1.mjs", "other.sh"]) {
      const resolved = await tools?.env.workspace.resolve(path);
      expect([path, resolved?.readOnly]).toEqual([path, held.includes(path)]);
    }
  });

  it("are so for sandboxed commands", { tags: "bubblewrap" }, async () => {
    const root = await openWith("bubblewrap");
    const sandbox = await tools?.env.sandbox();
    const command = `for f in '${script}' link.sh real.sh; do echo new > "$f"; rm -f "$f"; done; mv '(a)' b; echo new > free`;
    const argv = ["sh", "-c", command];
    const policy = { writable: [root], readOnly: [], hidden: [], network: false };
    const spec = sandbox?.wrap({ argv, cwd: root, env: { PATH: "/usr/bin:/bin" } }, policy);
    const [program = "", ...args] = spec?.argv ?? [];
    spawnSync(program, args, { cwd: root });
    expect(await readFile(join(root, "free"), "utf8")).toBe("new\n");
    for (const name of [script, "real.sh"]) {
      expect(await readFile(join(root, name), "utf8")).toBe("old");
    }
  });
});

describe("openToolset", () => {
  it("has every tool once, and each can say what a call would do", async () => {
    const model = scriptedModel([]);
    const oracle = { client: model, model: model.model };
    tools = await open(folder, { oracle, task: oracle, web_search: oracle });
    const names = tools.registry.list().map(({ name }) => name);
    expect(names).toEqual(TOOLS.map(({ name }) => name));
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

  it("makes one more when it is asked for", async () => {
    tools = await open(folder, { tools: ["read"], fetch: false });
    await tools.add("git");
    await tools.add("read");
    expect(tools.registry.list().map(({ name }) => name)).toEqual(["read", "git"]);
    await expect(tools.add("gti")).rejects.toThrow("Did you mean git?");
    await expect(tools.add("fetch")).rejects.toThrow('There is no tool "fetch".');
    await expect(tools.add("task")).rejects.toThrow('There is no tool "task".');
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
      model: model.model,
      tools: tools.registry.list(),
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

describe("folders that may be read", () => {
  it("are read without a question, and not written to", async () => {
    const [root, pages] = [join(folder, "work"), join(folder, "pages")];
    await mkdir(root);
    await mkdir(pages);
    await writeFile(join(pages, "tea.md"), "green");
    await writeFile(join(root, "own.md"), "own");
    tools = await open(root, { readable: [pages, root] });
    const path = join(pages, "tea.md");
    const access = async (name: string, args: Record<string, unknown>): Promise<unknown> => {
      const tool = tools?.registry.get(name);
      return tool && isGuarded(tool) ? tool.access(args) : undefined;
    };
    expect(await access("read", { path })).toMatchObject({ kind: "read" });
    expect(await access("read", { path })).not.toHaveProperty("outside");
    await expect(access("write", { path, content: "black" })).rejects.toThrow("leads out");
    // The workspace itself stays what it is.
    expect(await access("write", { path: "own.md", content: "x" })).toMatchObject({
      kind: "write",
    });
  });
});
