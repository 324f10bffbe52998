import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isLlmMessage } from "@gyre/agent";
import { type Clock, type Message, systemClock, textOf } from "@gyre/ai";
import { SessionStore } from "@gyre/sessions";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import { afterEach, describe, expect, it } from "vitest";
import { FIXED_CODE, PROJECT_FILES, SOURCE_FILE } from "../../demo/project.ts";
import {
  type Harness,
  type HarnessOptions,
  openHarness,
} from "@gyre/coding/internal/harness/harness";
import { openModels } from "@gyre/coding/internal/models/models";
import { createDemoEnvironment, type DemoFolder, createDemoFolder } from "./demo-folder.ts";
import { SCRIPTED_MODEL, createScriptedModels, type ScriptedOptions } from "./scripted.ts";

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), "gyre-scripted-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function demo(): Promise<DemoFolder> {
  const folder = await createDemoFolder();
  cleanups.push(() => folder.remove());
  return folder;
}

interface World {
  harness: Harness;
  folder: DemoFolder;
  asked: ApprovalRequest[];
  env: HarnessOptions["env"];
}

interface WorldOptions extends ScriptedOptions {
  answer?: (request: ApprovalRequest, world: World) => ApprovalAnswer;
  harness?: Partial<HarnessOptions>;
}

/** The real harness around the scripted model, in the folder of the demo. */
async function open({
  answer = allow,
  harness: more,
  ...options
}: WorldOptions = {}): Promise<World> {
  const folder = await demo();
  const asked: ApprovalRequest[] = [];
  const state = temporary();
  const env = createDemoEnvironment({
    ...process.env,
    XDG_STATE_HOME: state,
    XDG_CONFIG_HOME: state,
  });
  const harness = await openHarness({
    settings: { instructionFiles: false, skills: false, facts: false, mode: "ask" },
    cwd: folder.path,
    env,
    models: createScriptedModels({ fast: true, folder: folder.path, ...options }),
    approvals: async (request) => {
      asked.push(request);
      return answer(request, world);
    },
    warn: () => {},
    ...more,
  });
  cleanups.push(() => harness.close());
  const world: World = { harness, folder, asked, env };
  return world;
}

/** Time passes as fast as it can; a test can hold it, and is notified that it stands still. */
function quickClock(holder: { onHeld?: () => void } = {}): Clock {
  return {
    ...systemClock,
    after(_ms, run) {
      const next = setImmediate(holder.onHeld ?? run);
      return () => clearImmediate(next);
    },
  };
}

function allow({ fingerprint }: ApprovalRequest): ApprovalAnswer {
  return { allow: true, fingerprint };
}

function source({ folder }: World): string {
  return readFileSync(join(folder.path, SOURCE_FILE), "utf8");
}

function isAnswer({ role }: Message): boolean {
  return role === "assistant";
}

/** What the model said last. */
function readLastAnswer({ harness }: World): string {
  const last = harness.agent.state.messages.filter(isLlmMessage).findLast(isAnswer);
  return last ? textOf(last) : "";
}

function calls({ harness }: World): string[] {
  return harness.agent.state.messages.flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((block) => (block.type === "toolCall" ? [block.name] : []))
      : [],
  );
}

const WHOLE = ["find", "shell", "read", "read", "edit", "shell"];

describe("the scripted model in a harness", () => {
  it("fixes the project on the first prompt, with real tools that are asked about", async () => {
    const world = await open();
    const { end } = await world.harness.prompt({ text: "hello there" });
    expect(end.stop).toBe("done");
    expect(calls(world)).toEqual(WHOLE);
    expect(world.asked.map(({ tool }) => tool)).toContain("edit");
    expect(source(world)).toContain(FIXED_CODE);
    expect(readLastAnswer(world)).toContain("All 3 tests pass.");
    expect(readLastAnswer(world)).toContain("| 1000 | 3 |");
    expect(readLastAnswer(world)).toContain("```js\nconst left = cents % people;");
  });

  it("says at once what it is, and what it was asked", async () => {
    const world = await open({ answer: () => ({ allow: false }) });
    await world.harness.prompt({ text: "rename all files" });
    const first = world.harness.agent.state.messages.filter(isLlmMessage).find(isAnswer);
    const answer = first ? textOf(first) : "";
    expect(answer).toContain("I am a scripted model");
    expect(answer).toContain("> rename all files");
  });

  it("says to any other prompt what it is and how to get a real one", async () => {
    const world = await open({ answer: () => ({ allow: false }) });
    await world.harness.prompt({ text: "demo" });
    const before = calls(world).length;
    await world.harness.prompt({ text: "What is\nthis?" });
    expect(calls(world)).toHaveLength(before);
    const answer = readLastAnswer(world);
    expect(answer).toContain("> What is\n> this?");
    expect(answer).toContain("gyre login");
    expect(answer).toContain("ollama");
    expect(answer).toContain("Say `demo`");
  });

  it("plays the demo again, with the bug put back", async () => {
    const world = await open();
    await world.harness.prompt({ text: "demo" });
    await world.harness.prompt({ text: "The demo again, please" });
    expect(calls(world)).toEqual([...WHOLE, ...WHOLE]);
    expect(source(world)).toContain(FIXED_CODE);
    const texts = world.harness.agent.state.messages.filter(isLlmMessage).map(textOf);
    expect(texts.filter((text) => text.includes("put the bug back"))).toHaveLength(1);
  });

  it("claims nothing where a call was denied", async () => {
    const world = await open({
      answer: (request) => (request.tool === "edit" ? { allow: false } : allow(request)),
    });
    await world.harness.prompt({ text: "demo" });
    expect(source(world)).toBe(PROJECT_FILES[SOURCE_FILE]);
    expect(readLastAnswer(world)).toContain("The edit failed, so the bug is still there.");
  });

  it("goes on with its part when it is steered", async () => {
    const world = await open({
      answer(request, { asked, harness }) {
        if (asked.length === 1) harness.agent.steer(user("Use tabs"));
        return allow(request);
      },
    });
    await world.harness.prompt({ text: "demo" });
    expect(calls(world)).toEqual(WHOLE);
    const texts = world.harness.agent.state.messages.filter(isLlmMessage).map(textOf);
    expect(texts.filter((text) => text.includes("> Use tabs"))).toHaveLength(1);
    expect(source(world)).toContain(FIXED_CODE);
  });

  it("stops when the user says so", async () => {
    const world = await open({
      answer(request, { harness }) {
        harness.agent.steer(user("stop it"));
        return allow(request);
      },
    });
    await world.harness.prompt({ text: "demo" });
    expect(readLastAnswer(world)).toContain("Stopped, as you said.");
    expect(source(world)).toBe(PROJECT_FILES[SOURCE_FILE]);
  });

  it("treats a message after an abort as a new prompt, and can begin again", async () => {
    let isAborted = false;
    const world = await open({
      answer(request, { harness }) {
        if (!isAborted) harness.agent.abort();
        isAborted = true;
        return allow(request);
      },
    });
    const { end } = await world.harness.prompt({ text: "demo" });
    expect(end.stop).toBe("aborted");
    await world.harness.prompt({ text: "hello" });
    expect(readLastAnswer(world)).toContain("> hello");
    await world.harness.prompt({ text: "demo" });
    expect(source(world)).toContain(FIXED_CODE);
  });

  it("is cut off at once while it writes", async () => {
    const world = await open({ fast: false, clock: quickClock() });
    const { agent } = world.harness;
    agent.subscribe(({ type }) => {
      if (type === "message_update") agent.abort();
    });
    const { end } = await world.harness.prompt({ text: "demo" });
    expect(end.stop).toBe("aborted");
    expect(calls(world)).toEqual([]);
  });

  it("takes what follows an abort before its first word for a new prompt", async () => {
    const holder: { onHeld?: () => void } = {};
    const world = await open({ fast: false, clock: quickClock(holder) });
    const { agent } = world.harness;
    const stop = agent.subscribe(({ type }) => {
      if (type === "turn_end") holder.onHeld = () => agent.abort();
    });
    const { end } = await world.harness.prompt({ text: "demo" });
    expect(end.stop).toBe("aborted");
    stop();
    delete holder.onHeld;
    const before = calls(world).length;
    expect(before).toBeGreaterThan(0);
    await world.harness.prompt({ text: "hello" });
    expect(readLastAnswer(world)).toContain("I am a scripted model");
    expect(calls(world)).toHaveLength(before);
  });

  it("is written to a session that a real model can go on with", async () => {
    const store = new SessionStore(temporary());
    const world = await open({
      answer: () => ({ allow: false }),
      harness: { newSession: () => store.create({ cwd: tmpdir() }) },
    });
    await world.harness.prompt({ text: "demo" });
    const id = world.harness.session?.header.id ?? "";
    await world.harness.close();
    const session = await store.open(id);
    const resumed = await openHarness({
      settings: { model: "ollama/llama3.1", instructionFiles: false, skills: false },
      cwd: world.folder.path,
      env: world.env,
      approvals: "deny",
      session,
      warn: () => {},
    });
    cleanups.push(async () => {
      await resumed.close();
      await session.close();
    });
    expect(resumed.model).toMatchObject({ provider: "ollama", id: "llama3.1" });
    expect(resumed.agent.state.messages.length).toBeGreaterThan(2);
  });

  it("does not play the demo in another folder", async () => {
    const elsewhere = temporary();
    writeFileSync(join(elsewhere, SOURCE_FILE), "mine");
    const world = await open({ harness: { cwd: elsewhere } });
    await world.harness.prompt({ text: "hello" });
    expect(readLastAnswer(world)).toContain("I am a scripted model");
    await world.harness.prompt({ text: "demo" });
    expect(readLastAnswer(world)).toContain("this is another one");
    expect(calls(world)).toEqual([]);
    expect(readFileSync(join(elsewhere, SOURCE_FILE), "utf8")).toBe("mine");
  });

  it("names the tools that the demo lacks", async () => {
    const settings = { tools: ["read"], instructionFiles: false, skills: false };
    const world = await open({ harness: { settings } });
    await world.harness.prompt({ text: "demo" });
    expect(readLastAnswer(world)).toContain("tools that are not there: edit, shell.");
  });
});

function user(content: string): Message {
  return { role: "user", content, timestamp: 0 };
}

describe("the models of the scripted one", () => {
  const named = `${SCRIPTED_MODEL.provider}/${SCRIPTED_MODEL.id}`;

  it("are itself alone, and another name is refused with what to do", async () => {
    const models = createScriptedModels();
    expect(await models.current()).toBe(SCRIPTED_MODEL);
    expect(await models.find(named)).toBe(SCRIPTED_MODEL);
    expect(await models.list()).toEqual([SCRIPTED_MODEL]);
    await expect(models.find("sonnet")).rejects.toThrow(/only the scripted model.*gyre login/);
  });

  it("are those of services too where they are given, and are asked there", async () => {
    const others = await openModels({ settings: {}, env: {} });
    const reached: string[] = [];
    const models = createScriptedModels({
      others: {
        ...others,
        client: {
          stream(model, context, options) {
            reached.push(model.provider);
            return others.client.stream(model, context, options);
          },
        },
      },
    });
    const model = await models.find("anthropic/sonnet");
    expect(model.provider).toBe("anthropic");
    const stream = await models.client.stream(model, { messages: [user("Hi")] }, {});
    expect((await stream.result()).failure?.kind).toBe("auth");
    expect(reached).toEqual(["anthropic"]);
  });

  it("sum up what they are given beside a conversation", async () => {
    const { client } = createScriptedModels({ fast: true });
    const stream = await client.stream(SCRIPTED_MODEL, { messages: [user("A long talk")] }, {});
    expect(textOf(await stream.result())).toContain("> A long talk");
  });
});

describe("the folder of the demo", () => {
  it("has the project with its bug, and is removed on request", async () => {
    const folder = await createDemoFolder();
    const { path } = folder;
    for (const [name, text] of Object.entries(PROJECT_FILES)) {
      expect(readFileSync(join(path, name), "utf8")).toBe(text);
    }
    await folder.remove();
    expect(existsSync(path)).toBe(false);
  });

  it("leaves no listener behind", async () => {
    const before = process.listenerCount("exit");
    const folder = await createDemoFolder();
    expect(process.listenerCount("exit")).toBe(before + 1);
    await folder.remove();
    expect(process.listenerCount("exit")).toBe(before);
  });
});
