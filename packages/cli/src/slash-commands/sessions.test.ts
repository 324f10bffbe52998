import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ScriptedModel, scriptedModel, type ScriptStep, stall } from "@gyre/ai/testing";
import type { Session } from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OLD_OUTPUT } from "../testing/old-prompt.ts";
import { type Harness, openHarness } from "@gyre/coding/internal/harness/harness";
import { openStore } from "../core/setup.ts";
import { FakeView } from "../testing/slash-commands.ts";

let folder = "";
let work = "";
let harness: Harness | undefined;
const open: Session[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-commands-"));
  work = await mkdtemp(join(tmpdir(), "gyre-work-"));
});
afterEach(async () => {
  await harness?.close();
  harness = undefined;
  for (const session of open.splice(0)) await session.close();
  await rm(folder, { recursive: true, force: true });
  await rm(work, { recursive: true, force: true });
});

function listLabels(question: FakeView["questions"][number] | undefined): string[] {
  return (question?.choices ?? []).map(({ label }) => label);
}

async function started(
  script: ScriptedModel,
  options: { session?: Session } = {},
): Promise<FakeView> {
  const store = await openStore({ env: { XDG_STATE_HOME: folder } });
  harness = await openHarness({
    settings: { tools: [], sandbox: "none" },
    cwd: work,
    env: { XDG_STATE_HOME: folder, HOME: folder },
    approvals: "deny",
    warn: () => {},
    newSession: () => store.create({ cwd: work }),
    models: {
      client: script,
      fallbacks: [],
      current: () => Promise.resolve(script.model),
      find: () => Promise.resolve(script.model),
      list: () => Promise.resolve([script.model]),
    },
    ...options,
  });
  return new FakeView({ harness, env: { XDG_STATE_HOME: folder }, cwd: work });
}

/** A harness in which these were asked and answered. */
async function openConversation(
  prompts: readonly string[],
  ...more: ScriptStep[]
): Promise<FakeView> {
  const steps = [...prompts.map((text) => `Re: ${text}`), ...more];
  const view = await started(scriptedModel(steps, { usage: { input: 10, output: 5 } }));
  for (const text of prompts) await view.harness.prompt({ text });
  return view;
}

/** A session of a folder that is there besides. */
async function other(prompt: string, cwd = work): Promise<string> {
  const store = await openStore({ env: { XDG_STATE_HOME: folder } });
  const session = await store.create({ cwd });
  await session.append({
    type: "message",
    message: { role: "user", content: prompt, timestamp: 0 },
  });
  await session.close();
  return session.path;
}

describe("/resume", () => {
  it("finds what a message has, where no title or first prompt does, and lists nothing that was put away", async () => {
    const view = await openConversation(["Hello"]);
    const path = await other("About the parser");
    const away = await other("About the pu-erh");
    const store = await openStore({ env: { XDG_STATE_HOME: folder } });
    for (const [file, body] of [
      [
        path,
        { type: "message", message: { role: "user", content: "I like\nPu-erh tea", timestamp: 0 } },
      ],
      [away, { type: "archive", archived: true }],
    ] as const) {
      const session = await store.open(file);
      await session.append(body);
      await session.close();
    }
    await view.run("resume PU-erh");
    const [question] = view.questions;
    expect(listLabels(question)).toEqual(["About the parser"]);
    expect(question?.choices[0]?.detail).toContain("I like Pu-erh tea");
    await view.run("resume");
    expect(listLabels(view.questions.at(-1)).some((label) => label.includes("pu-erh"))).toBe(false);
  });

  it("names a session by what was written, not by the output of commands", async () => {
    await other(`Why? ${OLD_OUTPUT.replaceAll("\n", " ")}`);
    const view = await openConversation(["Now"]);
    await view.run("resume");
    expect(listLabels(view.questions[0])).toContain("Why?");
  });

  it("lists the other sessions of this folder, and goes on with the chosen one", async () => {
    const path = await other("Fix the parser");
    await other("Elsewhere", "/elsewhere");
    const view = await openConversation(["Hi"]);
    view.answers = ["Fix the parser"];
    await view.run("resume");
    expect(view.questions.map(({ title }) => title)).toEqual(["Sessions of this folder"]);
    expect(listLabels(view.questions[0])).toEqual(["Fix the parser", "Sessions of all folders…"]);
    expect(view.opened).toEqual([{ session: path }]);
  });

  it("goes to those of all folders", async () => {
    await other("Fix the parser");
    const path = await other("Elsewhere", "/elsewhere");
    const view = await openConversation(["Hi"]);
    view.answers = ["Sessions of all folders…", "Elsewhere"];
    await view.run("resume");
    expect(view.opened).toEqual([{ session: path }]);
  });

  it("takes an id, or words that mean one session, without a question", async () => {
    const path = await other("Fix the parser");
    await other("Write docs");
    const view = await openConversation(["Hi"]);
    await view.run("resume the PARSER");
    await view.run(`resume ${path.slice(path.lastIndexOf("_") + 1, -".jsonl".length - 2)}`);
    expect(view.questions).toEqual([]);
    expect(view.opened).toEqual([{ session: path }, { session: path }]);
  });

  it("says so where there is none", async () => {
    const view = await openConversation(["Hi"]);
    await expect(view.run("resume")).rejects.toThrow("no other session");
    await expect(view.run("resume nothing like it")).rejects.toThrow('has "nothing like it"');
  });
});

describe("/tree", () => {
  it("opens the tree of this session", async () => {
    const view = await openConversation(["Hi"]);
    await view.run("tree");
    expect(view.trees).toHaveLength(1);
    expect(view.opened).toEqual([]);
  });

  it("says so where nothing was said", async () => {
    const view = await started(scriptedModel([]));
    await expect(view.run("tree")).rejects.toThrow("Nothing was said");
  });
});

describe("/fork", () => {
  it("copies up to a prompt, goes on in the copy, and puts the prompt into the editor", async () => {
    const view = await openConversation(["One", "Two"]);
    const { session } = view.harness;
    const before = await readFile(session?.path ?? "", "utf8");
    view.answers = ["Two"];
    await view.run("fork");
    expect(listLabels(view.questions[0])).toEqual(["Two", "One"]);
    expect(view.edited).toEqual(["Two"]);
    const [request] = view.opened;
    const store = await openStore({ env: { XDG_STATE_HOME: folder } });
    const copy = await store.open(request && "session" in request ? request.session : "");
    open.push(copy);
    expect(copy.header.from).toMatchObject({ session: session?.header.id });
    expect((await copy.context()).messages).toMatchObject([
      { role: "notice" },
      { role: "user", content: "One" },
      { role: "assistant" },
    ]);
    expect(await readFile(session?.path ?? "", "utf8")).toBe(before);
  });

  it("gives a prompt back without the output of commands that was sent with it", async () => {
    const view = await openConversation(["One", `Why?\n\n${OLD_OUTPUT}`]);
    view.answers = ["Why?"];
    await view.run("fork");
    expect(listLabels(view.questions[0])).toEqual(["Why?", "One"]);
    expect(view.edited).toEqual(["Why?"]);
  });

  it("does nothing where the question is left", async () => {
    const view = await openConversation(["One"]);
    await view.run("fork");
    expect(view.opened).toEqual([]);
    await expect((await started(scriptedModel([]))).run("fork")).rejects.toThrow("nothing to copy");
  });
});

describe("/handoff", () => {
  it("has the model write the first prompt of a new session, and counts what that used", async () => {
    let asked = "";
    const view = await openConversation(
      ["Use a trie, not a map"],
      (context) => {
        asked = JSON.stringify(context.messages);
        return "Goal: tests. Decided: a trie.";
      },
      "ok",
    );
    const { agent } = view.harness;
    const { length } = agent.state.messages;
    await view.run("handoff write the tests");
    expect(asked).toContain("write the tests");
    expect(asked).toContain("Use a trie, not a map");
    expect(view.opened).toEqual([{ new: true, prompt: "Goal: tests. Decided: a trie." }]);
    expect(agent.state.messages).toHaveLength(length);
    const { usage } = await view.harness.prompt({ text: "on" });
    expect(usage).toMatchObject({ input: 20, output: 10 });
  });

  it("needs a goal, and something to hand on", async () => {
    const view = await started(scriptedModel([]));
    await expect(view.run("handoff")).rejects.toThrow("needs the goal");
    await expect(view.run("handoff x")).rejects.toThrow("nothing to hand on");
  });

  it("asks no longer when it is stopped", async () => {
    const view = await openConversation(["One"], [stall()]);
    const end = view.run("handoff x");
    view.stop.abort();
    await expect(end).rejects.toThrow(/./);
    expect(view.opened).toEqual([]);
  });

  it("opens nothing where the model fails", async () => {
    const view = await openConversation(["One"], "");
    await expect(view.run("handoff x")).rejects.toThrow(/./);
    expect(view.opened).toEqual([]);
  });
});

describe("/copy", () => {
  it("copies the last answer as the model wrote it, or the nth last", async () => {
    const view = await openConversation(["**One**", "Two"]);
    await view.run("copy");
    await view.run("copy 2");
    expect(view.copied).toEqual(["Re: Two", "Re: **One**"]);
    expect(view.output[0]).toContain("Copied 7 characters");
  });

  it("says what there is where it is asked for more", async () => {
    const view = await openConversation(["One"]);
    await expect(view.run("copy 2")).rejects.toThrow("There is one answer");
    await expect(view.run("copy x")).rejects.toThrow("takes a number");
    await expect((await started(scriptedModel([]))).run("copy")).rejects.toThrow("no answer");
  });
});

describe("the others", () => {
  it("/new begins a new session, and sends it a prompt where one is given", async () => {
    const view = await started(scriptedModel([]));
    await view.run("new");
    expect(view.sent).toEqual([]);
    await view.run("new do this");
    expect(view.opened).toEqual([{ new: true }, { new: true }]);
    expect(view.sent).toEqual(["do this"]);
  });

  it("/title gives a name, by which the session is listed", async () => {
    const view = await openConversation(["One"]);
    await view.run("title The parser");
    const store = await openStore({ env: { XDG_STATE_HOME: folder } });
    expect(await store.list({ cwd: work })).toMatchObject([{ title: "The parser" }]);
    await expect(view.run("title")).rejects.toThrow("needs a name");
  });

  it("/session shows id, file, messages and tokens", async () => {
    const view = await openConversation(["One"]);
    const { session } = view.harness;
    await view.run("session");
    expect(view.output[0]).toContain(`- id: \`${session?.header.id}\``);
    expect(view.output[0]).toContain(`\`${session?.path}\``);
    // The facts that the model got at the start are not one.
    expect(view.output[0]).toContain("- messages: 2\n");
    expect(view.output[0]).toContain("- tokens: 10 in · 5 out");
  });

  it("/export writes a page named after the session into the folder", async () => {
    const view = await openConversation(["One"]);
    await view.run("export");
    const name = `gyre-${view.harness.session?.header.id.slice(0, 8)}.html`;
    expect(await readFile(join(work, name), "utf8")).toContain("Re: One");
    expect(view.output[0]).toContain(name);
  });
});

describe("/btw", () => {
  it("answers from the conversation, of which it is no part", async () => {
    const view = await openConversation(["Make tea."], "Green.");
    const { agent, session } = view.harness;
    const messages = [...agent.state.messages];
    await view.run("btw which tea?");
    expect(view.output).toEqual(["Green."]);
    expect(agent.state.messages).toEqual(messages);
    expect((await session?.context())?.messages).toHaveLength(messages.length);
    expect(view.harness.spending.purposes.get("sideQuestions")).toMatchObject({ output: 5 });
  });

  it("needs a question", async () => {
    const view = await started(scriptedModel([]));
    await expect(view.run("btw")).rejects.toThrow("/btw needs a question");
  });
});
