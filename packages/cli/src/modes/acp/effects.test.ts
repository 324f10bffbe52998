import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { methods, type RequestPermissionRequest } from "@agentclientprotocol/sdk";
import type { EffectsReport, ShownEffect } from "@gyre/tools";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createAcpHost } from "./host.ts";
import { effectOptions, effectsContent } from "./effects.ts";
import { type Answer, startEditor, type TestEditor } from "../../testing/acp-client.ts";
import { textIo } from "../../testing/command-io.ts";
import { scriptedService, type ScriptedService } from "../../testing/scripted-service.ts";

let home: string;
let work: string;
let service: ScriptedService;
let editor: TestEditor | undefined;

beforeEach(async () => {
  home = await mkdtemp(join(await realpath(tmpdir()), "gyre-acp-effects-"));
  work = join(home, "work");
  await mkdir(work);
  await writeFile(join(work, "tea.txt"), "green\n");
});

afterEach(async () => {
  await editor?.end();
  editor = undefined;
  await service.close();
  await rm(home, { recursive: true, force: true });
});

/** An editor whose user answers so, and an agent that runs a command. Gives what was asked. */
async function run(command: string, answer: Answer): Promise<RequestPermissionRequest[]> {
  service = await scriptedService([
    { say: [{ call: "shell", arguments: { command } }] },
    { say: "Done." },
  ]);
  const io = textIo({
    cwd: home,
    env: {
      HOME: home,
      PATH: process.env["PATH"] ?? "",
      XDG_CONFIG_HOME: join(home, "config"),
      XDG_STATE_HOME: join(home, "state"),
      ANTHROPIC_API_KEY: "sk-ant-test",
      ANTHROPIC_BASE_URL: service.url,
    },
  });
  editor = await startEditor({
    load: () => Promise.resolve(createAcpHost({ mode: "ask" }, io)),
    answer,
  });
  const { agent } = editor;
  const { sessionId } = await agent.request(methods.agent.session.new, {
    cwd: work,
    mcpServers: [],
  });
  const prompt = [{ type: "text" as const, text: "Go." }];
  await agent.request(methods.agent.session.prompt, { sessionId, prompt });
  return editor.asked;
}

/** Chooses the options of these ids, one after the other. */
function choose(...ids: readonly string[]): Answer {
  const left = [...ids];
  return () => ({ outcome: { outcome: "selected", optionId: left.shift() ?? "none" } });
}

const read = (name: string): Promise<string> => readFile(join(work, name), "utf8");
const COMMAND = "echo black >> tea.txt; echo new > cup; printf x > saucer";

describe("what a command did in a layer", { tags: ["bubblewrap"] }, () => {
  test("is what the editor asks about, with its changes, and is kept", async () => {
    const asked = await run(COMMAND, async (request) => {
      expect(await readdir(work)).toEqual(["tea.txt"]);
      return choose("keep")(request);
    });
    expect(asked).toHaveLength(1);
    expect(asked[0]?.options.map(({ optionId, kind }) => `${optionId} ${kind}`)).toEqual([
      "keep allow_once",
      "pick allow_once",
      "direct allow_once",
      "discard reject_once",
    ]);
    const [summary, ...changes] = asked[0]?.toolCall.content ?? [];
    expect(JSON.stringify(summary)).toMatch(/Ran in a layer \(.*exit 0\): 2 new, 1 changed\./);
    expect(changes).toEqual(
      expect.arrayContaining([
        { type: "diff", path: join(work, "cup"), newText: "new\n" },
        {
          type: "diff",
          path: join(work, "tea.txt"),
          oldText: "green\n",
          newText: "green\nblack\n",
        },
      ]),
    );
    expect([await read("tea.txt"), await read("cup")]).toEqual(["green\nblack\n", "new\n"]);
  });

  test("is discarded, and the model gets to know", async () => {
    await run(COMMAND, choose("discard"));
    expect(await readdir(work)).toEqual(["tea.txt"]);
    expect(await read("tea.txt")).toBe("green\n");
    expect(service.requests.at(-1)?.text).toContain("discarded what it did");
  });

  test("is picked from, one effect after the other", async () => {
    const asked = await run(COMMAND, choose("pick", "keep", "leave", "keep"));
    expect(asked).toHaveLength(4);
    expect(asked[1]?.options.map(({ optionId }) => optionId)).toEqual([
      "keep",
      "leave",
      "keep-rest",
      "leave-rest",
    ]);
    expect(asked[3]?.options.map(({ optionId }) => optionId)).toEqual(["keep", "leave"]);
    expect(asked.slice(1).map(({ toolCall }) => toolCall.content?.[1])).toMatchObject([
      { path: join(work, "cup") },
      { path: join(work, "saucer") },
      { path: join(work, "tea.txt") },
    ]);
    expect((await readdir(work)).toSorted()).toEqual(["cup", "tea.txt"]);
    expect(await read("tea.txt")).toBe("green\nblack\n");
  });

  test("the rest is kept or discarded with one answer", async () => {
    await run(COMMAND, choose("pick", "leave", "keep-rest"));
    expect((await readdir(work)).toSorted()).toEqual(["saucer", "tea.txt"]);
    expect(await read("tea.txt")).toBe("green\nblack\n");
  });

  test.each([
    ["the first question is canceled", []],
    ["a question about one of the effects is canceled", ["pick", "keep"]],
    ["nothing is picked", ["pick", "leave-rest"]],
    ["an answer was not offered", ["allow"]],
  ])("is discarded where %s", async (_how, ids) => {
    const left = [...ids];
    await run(COMMAND, () => {
      const optionId = left.shift();
      return optionId === undefined
        ? { outcome: { outcome: "cancelled" } }
        : { outcome: { outcome: "selected", optionId } };
    });
    expect(await readdir(work)).toEqual(["tea.txt"]);
    expect(await read("tea.txt")).toBe("green\n");
  });

  test("is thrown away, and the command runs directly", async () => {
    await run("echo once >> tea.txt", choose("direct"));
    expect(await read("tea.txt")).toBe("green\nonce\n");
  });
});

const effect = (id: number, more: Partial<ShownEffect> = {}): ShownEffect => ({
  id,
  path: `f${id}`,
  kind: "create",
  type: "file",
  notes: [],
  ...more,
});
const report = (effects: readonly ShownEffect[]): EffectsReport => ({
  exitCode: 0,
  timedOut: false,
  durationMs: 100,
  effects,
  isHarmless: false,
});

describe("options and content", () => {
  beforeEach(async () => {
    service = await scriptedService([]);
  });

  test("what cannot be kept is not offered", () => {
    const conflict = { conflict: "was changed meanwhile" };
    const ids = (effects: readonly ShownEffect[], rule?: string): string[] =>
      effectOptions(report(effects), rule).map(({ optionId }) => optionId);
    expect(ids([effect(1, conflict)], "shell(x)")).toEqual(["direct", "discard"]);
    expect(ids([effect(1), effect(2, conflict)])).toEqual(["keep", "direct", "discard"]);
    expect(ids([effect(1)], "shell(x)")).toEqual(["keep", "always", "direct", "discard"]);
    const [keep] = effectOptions(report([effect(1), effect(2, conflict)]), undefined);
    expect(keep?.name).toBe("Keep what it did that can be kept");
    const [text] = effectsContent(report([effect(2, conflict)]), "/work");
    expect(JSON.stringify(text)).toContain("+ f2: new; not kept: it was changed meanwhile");
  });

  test("a long list is cut", () => {
    const many = Array.from({ length: 300 }, (_, id) =>
      effect(id, { texts: { before: "", after: "x" } }),
    );
    const content = effectsContent(report(many), "/work");
    expect(content).toHaveLength(51);
    expect(JSON.stringify(content[0])).toContain("and 100 more");
  });
});
