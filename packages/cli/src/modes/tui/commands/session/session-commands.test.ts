import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ScriptedModel, scriptedModel, type ScriptStep, stall } from "@gyre/ai/testing";
import { openSession, type Session } from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Harness, openHarness } from "../../../../harness/harness.ts";
import { openStore } from "../../../../harness/setup.ts";
import { textIo } from "../../../../testing/command-io.ts";
import { ranText } from "../../../../text/ran-command.ts";
import { NO_COLOURS } from "../../terminal/theme.ts";
import type { Choice, CommandWorld, OpenRequest, Panel, Question } from "../../ui/ui.ts";
import { sessionCommands } from "./session-commands.ts";

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

/** What commands did to the screen and to the program. */
class FakeWorld {
  readonly said: string[] = [];
  readonly edited: string[] = [];
  readonly sent: string[] = [];
  readonly stop = new AbortController();
  readonly controlled: string[] = [];
  readonly reopened: OpenRequest[] = [];
  readonly questions: { title: string; labels: string[] }[] = [];
  readonly panels: Panel<unknown>[] = [];
  readonly #harness: Harness;
  /** The labels to choose, one a question; nothing: the question is left. */
  answers: string[] = [];

  constructor(of: Harness) {
    this.#harness = of;
  }

  get world(): CommandWorld {
    return {
      harness: this.#harness,
      io: textIo({ env: { XDG_STATE_HOME: folder }, cwd: work }),
      setup: { settings: {}, explicit: new Set(), cwd: work, warn: () => {} },
      signal: this.stop.signal,
      reopen: (request) => {
        this.reopened.push(request);
        return Promise.resolve();
      },
      prompt: (text) => void this.sent.push(text),
      quit: () => {},
      ui: {
        columns: 80,
        theme: NO_COLOURS,
        draw: () => {},
        say: (text) => void this.said.push(text),
        warn: (text) => void this.said.push(text),
        show: () => {},
        open: (panel) => {
          this.panels.push(panel);
          return Promise.resolve(undefined);
        },
        choose: (question) => Promise.resolve(this.#choose(question)),
        edit: (text) => void this.edited.push(text),
        suspend: (job) => job(),
        control: (sequence) => this.controlled.push(sequence) > 0,
      },
    };
  }

  async run(line: string): Promise<void> {
    const [name = "", ...rest] = line.split(" ");
    const command = sessionCommands.find((each) => each.name === name);
    if (!command) throw new Error(`There is no command ${name}.`);
    await command.run(rest.join(" "), this.world);
  }

  #choose<T>({ title, choices }: Question<T>): T | undefined {
    this.questions.push({ title, labels: choices.map(({ label }) => label) });
    const wanted = this.answers.shift();
    return choices.find(({ label }: Choice<T>) => label === wanted)?.value;
  }
}

async function started(
  script: ScriptedModel,
  options: { session?: Session } = {},
): Promise<FakeWorld> {
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
  return new FakeWorld(harness);
}

/** A harness in which these were asked and answered. */
async function talked(prompts: readonly string[], ...more: ScriptStep[]): Promise<FakeWorld> {
  const steps = [...prompts.map((text) => `Re: ${text}`), ...more];
  const world = await started(scriptedModel(steps, { usage: { input: 10, output: 5 } }));
  for (const text of prompts) await world.world.harness.prompt({ text });
  return world;
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
  it("names a session by what was written, not by the output of commands", async () => {
    await other(`Why? ${ranText({ command: "ls", ended: "exit code 0", said: "a" })}`);
    const world = await talked(["Now"]);
    await world.run("resume");
    expect(world.questions[0]?.labels).toContain("Why?");
  });

  it("lists the other sessions of this folder, and goes on with the chosen one", async () => {
    const path = await other("Mend the parser");
    await other("Elsewhere", "/elsewhere");
    const world = await talked(["Hi"]);
    world.answers = ["Mend the parser"];
    await world.run("resume");
    expect(world.questions).toEqual([
      { title: "Sessions of this folder", labels: ["Mend the parser", "Sessions of all folders…"] },
    ]);
    expect(world.reopened).toEqual([{ session: path }]);
  });

  it("goes to those of all folders", async () => {
    await other("Mend the parser");
    const path = await other("Elsewhere", "/elsewhere");
    const world = await talked(["Hi"]);
    world.answers = ["Sessions of all folders…", "Elsewhere"];
    await world.run("resume");
    expect(world.reopened).toEqual([{ session: path }]);
  });

  it("takes an id, or words that mean one session, without a question", async () => {
    const path = await other("Mend the parser");
    await other("Write docs");
    const world = await talked(["Hi"]);
    await world.run("resume the PARSER");
    await world.run(`resume ${path.slice(path.lastIndexOf("_") + 1, -".jsonl".length - 2)}`);
    expect(world.questions).toEqual([]);
    expect(world.reopened).toEqual([{ session: path }, { session: path }]);
  });

  it("says so where there is none", async () => {
    const world = await talked(["Hi"]);
    await expect(world.run("resume")).rejects.toThrow("no other session");
    await expect(world.run("resume nothing like it")).rejects.toThrow('has "nothing like it"');
  });
});

describe("/tree", () => {
  it("opens the tree of this session", async () => {
    const world = await talked(["Hi"]);
    await world.run("tree");
    expect(world.panels).toHaveLength(1);
    expect(world.reopened).toEqual([]);
  });

  it("says so where nothing was said", async () => {
    const world = await started(scriptedModel([]));
    await expect(world.run("tree")).rejects.toThrow("Nothing was said");
  });
});

describe("/fork", () => {
  it("copies up to a prompt, goes on in the copy, and puts the prompt into the editor", async () => {
    const world = await talked(["One", "Two"]);
    const { session } = world.world.harness;
    const before = await readFile(session?.path ?? "", "utf8");
    world.answers = ["Two"];
    await world.run("fork");
    expect(world.questions[0]?.labels).toEqual(["Two", "One"]);
    expect(world.edited).toEqual(["Two"]);
    const [request] = world.reopened;
    const copy = await openSession(request && "session" in request ? request.session : "");
    open.push(copy);
    expect(copy.header.from).toMatchObject({ session: session?.header.id });
    expect((await copy.context()).messages).toMatchObject([
      { role: "user", content: "One" },
      { role: "assistant" },
    ]);
    expect(await readFile(session?.path ?? "", "utf8")).toBe(before);
  });

  it("gives a prompt back without the output of commands that was sent with it", async () => {
    const ran = ranText({ command: "npm test", ended: "exit code 1", said: "1 failed" });
    const world = await talked(["One", `Why?\n\n${ran}`]);
    world.answers = ["Why?"];
    await world.run("fork");
    expect(world.questions[0]?.labels).toEqual(["Why?", "One"]);
    expect(world.edited).toEqual(["Why?"]);
  });

  it("does nothing where the question is left", async () => {
    const world = await talked(["One"]);
    await world.run("fork");
    expect(world.reopened).toEqual([]);
    await expect((await started(scriptedModel([]))).run("fork")).rejects.toThrow("nothing to copy");
  });
});

describe("/handoff", () => {
  it("has the model write the first prompt of a new session, and counts what that used", async () => {
    let asked = "";
    const world = await talked(
      ["Use a trie, not a map"],
      (context) => {
        asked = JSON.stringify(context.messages);
        return "Goal: tests. Decided: a trie.";
      },
      "ok",
    );
    const { agent } = world.world.harness;
    const { length } = agent.state.messages;
    await world.run("handoff write the tests");
    expect(asked).toContain("write the tests");
    expect(asked).toContain("Use a trie, not a map");
    expect(world.reopened).toEqual([{ new: true, prompt: "Goal: tests. Decided: a trie." }]);
    expect(agent.state.messages).toHaveLength(length);
    const { usage } = await world.world.harness.prompt({ text: "on" });
    expect(usage).toMatchObject({ input: 20, output: 10 });
  });

  it("needs a goal, and something to hand on", async () => {
    const world = await started(scriptedModel([]));
    await expect(world.run("handoff")).rejects.toThrow("needs the goal");
    await expect(world.run("handoff x")).rejects.toThrow("nothing to hand on");
  });

  it("asks no longer when it is stopped", async () => {
    const world = await talked(["One"], [stall()]);
    const end = world.run("handoff x");
    world.stop.abort();
    await expect(end).rejects.toThrow(/./);
    expect(world.reopened).toEqual([]);
  });

  it("opens nothing where the model fails", async () => {
    const world = await talked(["One"], "");
    await expect(world.run("handoff x")).rejects.toThrow(/./);
    expect(world.reopened).toEqual([]);
  });
});

describe("/copy", () => {
  it("copies the last answer as the model wrote it, or the nth last", async () => {
    const world = await talked(["**One**", "Two"]);
    await world.run("copy");
    await world.run("copy 2");
    const texts = world.controlled.map((sequence) => {
      const [, data = ""] = /52;c;([\w+/=]*)/.exec(sequence) ?? [];
      return Buffer.from(data, "base64").toString();
    });
    expect(texts).toEqual(["Re: Two", "Re: **One**"]);
    expect(world.said[0]).toContain("Copied 7 characters");
  });

  it("says what there is where it is asked for more", async () => {
    const world = await talked(["One"]);
    await expect(world.run("copy 2")).rejects.toThrow("There is one answer");
    await expect(world.run("copy x")).rejects.toThrow("takes a number");
    await expect((await started(scriptedModel([]))).run("copy")).rejects.toThrow("no answer");
  });
});

describe("the others", () => {
  it("/new begins a new session, and sends it a prompt where one is given", async () => {
    const world = await started(scriptedModel([]));
    await world.run("new");
    expect(world.sent).toEqual([]);
    await world.run("new do this");
    expect(world.reopened).toEqual([{ new: true }, { new: true }]);
    expect(world.sent).toEqual(["do this"]);
  });

  it("/title gives a name, by which the session is listed", async () => {
    const world = await talked(["One"]);
    await world.run("title The parser");
    const store = await openStore({ env: { XDG_STATE_HOME: folder } });
    expect(await store.list({ cwd: work })).toMatchObject([{ title: "The parser" }]);
    await expect(world.run("title")).rejects.toThrow("needs a name");
  });

  it("/session tells id, file, messages and tokens", async () => {
    const world = await talked(["One"]);
    const { session } = world.world.harness;
    await world.run("session");
    expect(world.said[0]).toContain(`- id: \`${session?.header.id}\``);
    expect(world.said[0]).toContain(`\`${session?.path}\``);
    expect(world.said[0]).toContain("- messages: 2\n");
    expect(world.said[0]).toContain("- tokens: 10 in · 5 out");
  });

  it("/export writes a page named after the session into the folder", async () => {
    const world = await talked(["One"]);
    await world.run("export");
    const name = `gyre-${world.world.harness.session?.header.id.slice(0, 8)}.html`;
    expect(await readFile(join(work, name), "utf8")).toContain("Re: One");
    expect(world.said[0]).toContain(name);
  });
});
