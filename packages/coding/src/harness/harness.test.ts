import { execFileSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Context, type Model, textOf } from "@gyre/ai";
import { call, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { createSession, openSession } from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Harness, openHarness } from "./harness.ts";
import type { HarnessOptions } from "./types.ts";

let folder = "";
let harness: Harness | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-harness-"));
});
afterEach(async () => {
  await harness?.close();
  harness = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function open(
  settings: HarnessOptions["settings"] = {},
  script: ScriptStep[] = ["Hello."],
  more: Partial<HarnessOptions> = {},
  seen: (context: Context) => void = () => {},
): Promise<Harness> {
  const client = scriptedModel(
    script.map((step): ScriptStep => (context, options, index) => {
      seen(context);
      return typeof step === "function" ? step(context, options, index) : step;
    }),
  );
  const model = { ...client.model, contextWindow: 16_000, price: { input: 1, output: 1 } };
  harness = await openHarness({
    settings: { tools: ["read"], sandbox: "none", facts: false, ...settings },
    cwd: folder,
    env: { XDG_STATE_HOME: folder, HOME: folder },
    approvals: "deny",
    warn: () => {},
    models: {
      client,
      fallbacks: [],
      current: () => Promise.resolve(model),
      find: () => Promise.resolve(model),
      list: () => Promise.resolve([model]),
    },
    ...more,
  });
  return harness;
}

it("keeps no events of a run for a reader that never comes", async () => {
  const opened = await open();
  const run = vi.spyOn(opened.agent, "run");
  const { end } = await opened.prompt({ text: "Hi" });
  expect(end.stop).toBe("done");
  expect(run.mock.results).toMatchObject([{ value: { detached: true } }]);
});

it("says where a rule that is wrong was written", async () => {
  await expect(open({ allow: ["shel(git*)"] })).rejects.toThrow(
    'A rule of "allow" in the settings, "shel(git*)", is wrong: there is no tool "shel". Did you mean shell?',
  );
});

const PRICED = { input: 1000, output: 10, cost: { total: 1 } };

it("counts what was paid in a session once, after going back and opening it again", async () => {
  const path = join(folder, "a.jsonl");
  const session = await createSession(path, { cwd: folder });
  const answer = (text: string): ScriptStep => ({ parts: [text], usage: PRICED });
  const first = await open({}, ["one", "two", "a side", "three"].map(answer), { session });
  await first.prompt({ text: "First" });
  const { leaf } = session;
  await first.prompt({ text: "Second" });
  await first.ask("Beside?", new AbortController().signal);
  expect(first.spending.session.cost?.total).toBe(3);
  await first.close();
  await session.branch(leaf);
  await session.close();

  const again = await openSession(path);
  const second = await open({}, ["four"].map(answer), { session: again });
  expect(second.agent.state.messages).toHaveLength(2);
  expect(second.spending.session.cost?.total).toBe(3);
  expect(second.spending.purposes.get("sideQuestions")?.cost?.total).toBe(1);
  await second.prompt({ text: "Third" });
  expect(second.spending.session.cost?.total).toBe(4);
  await second.close();
  await again.close();
});

it("counts a summary of a result in the run that needed it, for its limit too", async () => {
  const { end, usage, spending } = await (
    await open({ tools: ["shell"], mode: "full", maxCost: 2 }, [
      { parts: [call("shell", { command: "seq 1 40000" })], usage: PRICED },
      { parts: ["Numbers."], usage: { ...PRICED, cost: { total: 5 } } },
      { parts: ["Done."], usage: PRICED },
    ])
  ).prompt({ text: "Count" });
  expect(end).toMatchObject({ stop: "limit", limit: "maxCostUsd" });
  expect(usage.cost?.total).toBe(6);
  expect(spending).toMatchObject({
    answers: { cost: { total: 1 } },
    summaries: { cost: { total: 5 } },
  });
});

it.each([
  ["the cheapest of the same service", {}, "small"],
  ["the one in the settings", { smallModel: "chosen" }, "chosen"],
])("asks %s for the summary of a long result", async (_, settings, summarizer) => {
  const client = scriptedModel([call("shell", { command: "seq 1 40000" }), "Numbers.", "Done."]);
  const makeModel = (id: string, input: number): Model => {
    return { ...client.model, id, contextWindow: 200_000, price: { input, output: input } };
  };
  // In a short window that result is a long one.
  const model = { ...makeModel("large", 10), contextWindow: 16_000 };
  const opened = await open({ tools: ["shell"], mode: "full", ...settings }, [], {
    models: {
      client,
      fallbacks: [],
      current: () => Promise.resolve(model),
      find: (name) => Promise.resolve(makeModel(name, 5)),
      list: () => Promise.resolve([model, makeModel("small", 1)]),
    },
  });
  expect((await opened.prompt({ text: "Count" })).end.stop).toBe("done");
  expect(client.calls.map(({ model: { id } }) => id)).toEqual(["large", summarizer, "large"]);
});

it("shows a long file page by page, and what was summarized as it is", async () => {
  const lines = Array.from({ length: 9_000 }, (_, index) => `no. ${index}`);
  await writeFile(join(folder, "long.txt"), lines.join("\n"));
  const opened = await open({ tools: ["read", "shell"], mode: "full" }, [
    call("read", { path: "long.txt" }),
    call("shell", { command: "seq 1 40000" }, "c2"),
    "Numbers.",
    call("read", { path: "kept:c2", offset: 1_000, limit: 100 }),
    "Done.",
  ]);
  expect((await opened.prompt({ text: "Look" })).end.stop).toBe("done");
  const [file, command, kept] = opened.agent.state.messages.flatMap((message) =>
    message.role === "toolResult" ? [JSON.stringify(message.content)] : [],
  );
  expect(file).toMatch(
    /no\. 0\\nno\. 1\\n.+\[Lines 1-\d+ of 9,000\. Use offset=\d+ to continue\.\]/,
  );
  expect(command).toMatch(
    /"Exit code 0\.\\n1\\n2\\n.+Summary of the whole:\]\\nNumbers\..+\\n40000\\n/,
  );
  expect(kept).toMatch(
    /\d+\\n\d+\\n.+\[Lines 1000-1099 of [\d,]+\. Use offset=1100 to continue\.\]/,
  );
});

it(
  "keeps commands in the sandbox from what the settings hide",
  { tags: "bubblewrap" },
  async () => {
    await mkdir(join(folder, "private"));
    await writeFile(join(folder, "private/key"), "hunter22");
    const hidden = [join(folder, "private")];
    const tried = async (settings: HarnessOptions["settings"]): Promise<string> => {
      const command = call("shell", { command: "cat private/key" });
      const opened = await open({ tools: ["shell"], mode: "full", sandbox: "auto", ...settings }, [
        command,
        "Done.",
      ]);
      await opened.prompt({ text: "Look" });
      await opened.close();
      return JSON.stringify(opened.agent.state.messages);
    };
    expect(await tried({})).toContain("hunter22");
    expect(await tried({ hidden })).not.toContain("hunter22");
  },
);

it(
  "begins in mode auto in a sandbox, unless other processes continue it",
  { tags: "bubblewrap" },
  async () => {
    const script = [call("shell", { command: "echo tea > tea.txt" }), "Done."];
    const opened = await open({ tools: ["shell"], sandbox: "auto" }, script);
    await opened.prompt({ text: "Go" });
    expect(opened.mode).toBe("auto");
    expect(await readFile(join(folder, "tea.txt"), "utf8")).toBe("tea\n");
    await opened.close();
    const later = await open({ sandbox: "auto" }, script, { approvals: "suspend" });
    expect(later.mode).toBe("ask");
  },
);

it("counts what a sub-agent has used apart from the answers, and once", async () => {
  const opened = await open({ tools: ["task"], mode: "full" }, [
    { parts: [call("task", { description: "Look", prompt: "Look around." })], usage: PRICED },
    { parts: ["Nothing here."], usage: { ...PRICED, cost: { total: 5 } } },
    { parts: ["Done."], usage: PRICED },
  ]);
  const { usage, spending } = await opened.prompt({ text: "Go" });
  expect(usage.cost?.total).toBe(7);
  expect(spending).toMatchObject({
    answers: { cost: { total: 2 } },
    subAgents: { cost: { total: 5 } },
  });
  expect(opened.spending.session.cost?.total).toBe(7);
  expect(opened.agent.state.usage.cost?.total).toBe(7);
});

it("gives a sub-agent the folder, the guidance of the project, its skills and the caller's rules", async () => {
  await mkdir(join(folder, ".git"));
  await mkdir(join(folder, ".agents/skills/fox"), { recursive: true });
  await writeFile(join(folder, "AGENTS.md"), "Indent with tabs.");
  await writeFile(join(folder, "secret.txt"), "hunter22");
  await writeFile(
    join(folder, ".agents/skills/fox/SKILL.md"),
    "---\nname: fox\ndescription: Makes a fox.\n---\nDo it.\n",
  );
  const prompts: string[] = [];
  const names: string[][] = [];
  const script: ScriptStep[] = [
    call("task", { description: "Look", prompt: "Look around." }),
    call("read", { path: "secret.txt" }),
    call("shell", { command: "touch made" }),
    call("skill", { name: "fox" }),
    "Nothing here.",
    "Done.",
  ];
  const results: string[] = [];
  const opened = await open(
    {
      tools: ["read", "shell", "skill", "task"],
      mode: "full",
      instructions: "Answer in rhymes.",
      deny: ["read(secret.txt)", "shell(touch *)"],
    },
    script,
    {},
    ({ systemPrompt = "", tools = [], messages }) => {
      prompts.push(systemPrompt);
      names.push(tools.map(({ name }) => name));
      const last = messages.at(-1);
      if (last?.role === "toolResult") results.push(JSON.stringify(last.content));
    },
  );
  await opened.prompt({ text: "Go" });
  const [ofAgent = "", ofSubAgent = ""] = prompts;
  for (const text of [
    folder,
    process.platform,
    "Indent with tabs.",
    "- fox: Makes a fox.",
    "Answer in rhymes.",
  ]) {
    expect(ofAgent).toContain(text);
    expect(ofSubAgent).toContain(text);
  }
  expect(ofSubAgent).toContain("You are a sub-agent");
  expect(names[1]).toEqual(["read", "shell", "skill", "task"]);
  const [read, touched, skill] = results;
  expect(read).toContain("forbids it");
  expect(touched).toContain("forbids it");
  expect(skill).toContain("Do it.");
  expect(results.join()).not.toContain("hunter22");
  await expect(readFile(join(folder, "made"))).rejects.toThrow("ENOENT");
});

it("goes on with a session in which the line of a call is damaged, and says what is lost", async () => {
  const path = join(folder, "a.jsonl");
  await writeFile(join(folder, "tea.txt"), "green");
  const session = await createSession(path, { cwd: folder });
  const script = [call("read", { path: "tea.txt" }), "It is green."];
  await (await open({}, script, { session })).prompt({ text: "Read it" });
  await harness?.close();
  await session.close();
  const lines = (await readFile(path, "utf8")).split("\n");
  const damaged = lines.findIndex((line) => line.includes('"toolCall"'));
  await writeFile(path, lines.with(damaged, `#${lines[damaged]?.slice(1)}`).join("\n"));

  const again = await openSession(path);
  expect(again.problems.map(({ kind }) => kind)).toContain("damaged");
  const warnings: string[] = [];
  const warn = (text: string): void => void warnings.push(text);
  const opened = await open({}, ["Yes."], { session: again, warn });
  const { end } = await opened.prompt({ text: "And now?" });
  expect(end.stop).toBe("done");
  expect(warnings).toEqual([
    "The message that called read is lost: the model does not get the result of the call.",
  ]);
  await opened.close();
  await again.close();
});

it("compacts where the settings say, within the window of the model", async () => {
  expect((await open()).compactAt).toBe(12_800);
  await harness?.close();
  expect((await open({ compactAt: 5_000 })).compactAt).toBe(5_000);
  await harness?.close();
  expect((await open({ compactAt: 500_000 })).compactAt).toBe(12_800);
});

it.each([
  ["of the user's own sessions runs what was approved", "gyre/sessions/a.jsonl", "done"],
  ["from elsewhere approves nothing: it is asked about again", "a.jsonl", "suspended"],
])("a file %s", async (_what, name, stop) => {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true });
  const session = await createSession(path, { cwd: folder });
  const tools = { tools: ["write"] };
  const script = [call("write", { path: "made.txt", content: "x" }, "c1")];
  const first = await open(tools, script, { session, approvals: "suspend" });
  const { end } = await first.prompt({ text: "Go" });
  const fingerprint = end.pending[0]?.fingerprint ?? "";
  // As a program that knows how fingerprints are made would write it.
  const decision = { type: "approve", fingerprint } as const;
  await session.append({ type: "decision", toolCallId: "c1", decision });
  await first.close();
  await session.close();
  const again = await openSession(path);
  const second = await open(tools, ["Done."], { session: again, approvals: "suspend" });
  expect((await second.agent.continue()).stop).toBe(stop);
  expect(existsSync(join(folder, "made.txt"))).toBe(stop === "done");
  await again.close();
});

it.each([
  ["are added to the result of a change", {}, true],
  ["are not looked for where a setting says so", { diagnostics: false }, false],
])("errors that a language server finds %s", async (_, more, isAdded) => {
  const server = join(import.meta.dirname, "../../../tools/src/testing/language-server.mjs");
  const requests: Context[] = [];
  const change = call("write", { path: "a.txt", content: "this is wrong" });
  const fake = { command: [process.execPath, server, "--pull"], files: { ".txt": "plaintext" } };
  const settings = { tools: ["write"], mode: "full" as const, languageServers: { fake }, ...more };
  const opened = await open(settings, [change, "Done."], {}, (context) => requests.push(context));
  await opened.prompt({ text: "Write." });
  const text = JSON.stringify(requests.at(-1)?.messages);
  expect(text.includes("fake now finds 1 error in a.txt:\\na.txt:1:9 it is wrong")).toBe(isAdded);
});

it("has the list of steps again where a session is resumed, as its branch left it", async () => {
  const path = join(folder, "session.jsonl");
  const todos = [
    { content: "Write it", status: "done" },
    { content: "Test it", status: "in_progress" },
  ];
  const session = await createSession(path, { cwd: folder, id: "steps" });
  const settings = { tools: ["todo"] };
  const script = ["Hello.", call("todo", { todos }), "Done."];
  const first = await open(settings, script, { session });
  await first.prompt({ text: "Hi" });
  const earlier = session.leaf;
  await first.prompt({ text: "Go" });
  await first.close();
  await session.close();
  const again = await openSession(path);
  const second = await open(settings, [], { session: again });
  expect(second.toolset.todos.items).toEqual(todos);
  await second.close();
  await again.branch(earlier);
  const third = await open(settings, [], { session: again });
  expect(third.toolset.todos.items).toEqual([]);
  await third.close();
  await again.close();
});

describe("the facts of the start", () => {
  it("come with the first prompt, unless a setting says no", async () => {
    const seen: string[] = [];
    const answer: ScriptStep = ({ messages }) => {
      seen.push(messages.map((message) => textOf(message)).join("|"));
      return "Yes.";
    };
    const first = await open({ facts: true }, [answer, answer]);
    await first.prompt({ text: "One?" });
    await first.prompt({ text: "Two?" });
    expect(seen[0]).toMatch(/^\[Date: [^|]+\]\|One\?$/);
    expect(seen[1]).toBe(`${seen[0]}|Yes.|Two?`);
    await first.close();
    const other = await open({ facts: false }, [answer]);
    await other.prompt({ text: "One?" });
    expect(seen[2]).toBe("One?");
  });

  it.skipIf(process.platform === "win32")(
    "are no way around an abort: what came meanwhile ends the run before a model is asked",
    async () => {
      execFileSync("git", ["init", "-q", folder]);
      rmSync(join(folder, ".git/config"));
      // git waits for it, and so do the facts.
      execFileSync("mkfifo", [join(folder, ".git/config")]);
      let requests = 0;
      const settings = { facts: true, tools: ["read", "git"] };
      const opened = await open(settings, ["Yes."], {}, () => requests++);
      const running = opened.prompt({ text: "Go" });
      await new Promise((settle) => setImmediate(settle));
      opened.agent.abort();
      const { end } = await running;
      expect(end.stop).toBe("aborted");
      expect(requests).toBe(0);
    },
  );
});
