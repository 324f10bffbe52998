import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentToolResult, type ToolHost, toResult } from "@gyre/agent";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type DemoTools, openDemoTools } from "./tools.ts";

let home: string;
let folder: string;
let state: string;
let demo: DemoTools;

beforeEach(async () => {
  home = await mkdtemp(join(await realpath(tmpdir()), "gyre-tools-"));
  folder = join(home, "project");
  state = join(home, "state");
  await mkdir(folder);
  await mkdir(state, { mode: 0o700 });
  await writeFile(join(home, "secret.txt"), "secret");
  await writeFile(join(folder, "bill.js"), "one\ntwo\n");
  vi.stubEnv("NODE_TEST_CONTEXT", "child-v8");
  vi.stubEnv("NODE_OPTIONS", "--no-warnings");
  vi.stubEnv("SERVICE_API_KEY", "only-for-this-test");
  demo = await openDemoTools(folder, state);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await demo.close();
  await rm(home, { recursive: true, force: true });
});

const host: ToolHost = { call: () => Promise.reject(new Error("not here")) };

async function run(name: string, args: Record<string, unknown>): Promise<AgentToolResult> {
  const tool = demo.tools.find((each) => each.name === name);
  const { signal } = new AbortController();
  const result = await tool?.execute(args, {
    id: "1",
    signal,
    update: () => {},
    host,
    messages: [],
  });
  if (result === undefined || typeof result === "string") throw new Error(`No result of ${name}.`);
  return toResult(name, result);
}

it("has what it takes to fix a project, and nothing else", () => {
  expect(demo.tools.map(({ name }) => name)).toEqual(["ls", "read", "edit", "shell"]);
});

it("works in the folder and not outside of it", async () => {
  await run("edit", { path: "bill.js", edits: [{ oldText: "two", newText: "three" }] });
  expect(await readFile(join(folder, "bill.js"), "utf8")).toBe("one\nthree\n");
  const secret = { path: "../secret.txt" };
  const edits = [{ oldText: "secret", newText: "changed" }];
  await expect(run("read", secret)).rejects.toThrow("secret.txt");
  await expect(run("edit", { ...secret, edits })).rejects.toThrow("secret.txt");
  expect(await readFile(join(home, "secret.txt"), "utf8")).toBe("secret");
});

it("runs commands in the folder, with this very Node, and with no key or setting of ours", async () => {
  const command = `node -p "process.execPath + ' ' + process.cwd()"; env`;
  const { details, isError } = await run("shell", { command });
  expect(isError).toBe(false);
  expect(details).toMatchObject({
    stdout: expect.stringContaining(`${process.execPath} ${folder}\n`),
  });
  expect(details).not.toMatchObject({
    stdout: expect.stringMatching(/NODE_TEST_CONTEXT|NODE_OPTIONS|SERVICE_API_KEY/),
  });
});

it("leaves nothing in its folders when it is closed", async () => {
  const command = `node -e "process.stdout.write('x'.repeat(1_000_000))"`;
  await run("shell", { command });
  expect(await readdir(state)).not.toEqual([]);
  await demo.close();
  expect(await readdir(state)).toEqual([]);
  expect(await readdir(folder)).toEqual(["bill.js"]);
});
