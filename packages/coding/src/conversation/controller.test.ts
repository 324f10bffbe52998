import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "@gyre/agent";
import { fail, say, scriptedModel, type ScriptStep, stall } from "@gyre/ai/testing";
import { type ApprovalAnswer, type ApprovalRequest, openToolset } from "@gyre/tools";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Command, CommandContext, OpenRequest } from "./command.ts";
import { ConversationController } from "./controller.ts";
import { createAgentQueue } from "./queue.ts";
import type { ConversationAgent } from "./types.ts";
import type { ConversationItem, ConversationView } from "./view.ts";

let folder = "";
const closing: (() => Promise<void>)[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-conversation-"));
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await rm(folder, { recursive: true, force: true });
});

/** A view that notes what it is given. */
class FakeView implements ConversationView {
  readonly stopKey = "Esc";
  readonly items: ConversationItem[] = [];
  readonly edited: string[] = [];
  readonly givenBack: string[][] = [];
  readys = 0;
  answer: ApprovalAnswer | undefined;
  #waiting: { type: string; settle: () => void }[] = [];

  show(item: ConversationItem): void {
    this.items.push(item);
    const type = item.type === "event" ? item.event.type : item.type;
    for (const each of this.#waiting) if (each.type === type) each.settle();
  }

  /** Settles with the next item or event of this type. */
  next(type: ConversationItem["type"] | "message_update" | "agent_start"): Promise<void> {
    return new Promise((settle) => this.#waiting.push({ type, settle }));
  }

  ask(): Promise<ApprovalAnswer | undefined> {
    return Promise.resolve(this.answer);
  }

  edit(text: string): void {
    this.edited.push(text);
  }

  giveBack(texts: readonly string[]): void {
    this.givenBack.push([...texts]);
  }

  update(): void {}

  ready(): void {
    this.readys++;
  }

  /** Items of a type, in order. */
  of<T extends ConversationItem["type"]>(type: T): Extract<ConversationItem, { type: T }>[] {
    return this.items.filter(
      (item): item is Extract<ConversationItem, { type: T }> => item.type === type,
    );
  }
}

interface SetUp {
  view: FakeView;
  controller: ConversationController;
  agent: Agent;
  opened: OpenRequest[];
  quits: () => number;
  /** Texts of the user that the model has seen. */
  sent: () => string[];
}

async function setUp(
  script: ScriptStep[],
  commands: readonly Command[] = [],
  more: Partial<ConversationAgent> = {},
): Promise<SetUp> {
  const model = scriptedModel(script);
  const toolset = await openToolset({
    root: folder,
    tools: [],
    sandbox: "none",
    stateFolder: join(folder, "state"),
  });
  const agent = new Agent({ protocol: model, model: model.model });
  const view = new FakeView();
  const opened: OpenRequest[] = [];
  let quits = 0;
  const harness: ConversationAgent = {
    agent,
    toolset,
    session: undefined,
    isCutOff: false,
    async prompt({ text, userCommands = [] }) {
      const message = { role: "user", content: text, timestamp: 0 } as const;
      const end = await agent.prompt([...userCommands, message]);
      return { end, turns: end.turns, usage: end.usage };
    },
    queue: createAgentQueue(agent, async () => {}),
    async resume() {
      const end = await agent.continue();
      return { end, turns: end.turns, usage: end.usage };
    },
    async close() {
      agent.abort();
      await agent.waitForIdle();
      await toolset.close();
    },
    ...more,
  };
  const controller = new ConversationController({
    view,
    clock: { now: () => 0 },
    env: { SHELL: "/bin/sh", PATH: process.env["PATH"] },
    commands: () => commands,
    commandContext: (_harness, signal): CommandContext => ({
      signal,
      choose: () => Promise.resolve(undefined),
      show: (...parts) => view.show({ type: "parts", parts }),
    }),
    reopen: (request) => Promise.resolve(void opened.push(request)),
    quit: () => void quits++,
  });
  controller.use(Promise.resolve(harness));
  closing.push(() => controller.close());
  const sent = (): string[] =>
    agent.state.messages.flatMap((message) =>
      message.role === "user" && typeof message.content === "string" ? [message.content] : [],
    );
  return { view, controller, agent, opened, quits: () => quits, sent };
}

const forever: ScriptStep = [say("Working."), stall()];

describe("a prompt", () => {
  it("is sent, shown to its end, and counted", async () => {
    const { controller, view, sent } = await setUp(["Hello."]);
    await controller.submit("Hi");
    expect(sent()).toEqual(["Hi"]);
    expect(view.of("prompt")).toEqual([{ type: "prompt", text: "Hi", isTyped: true }]);
    expect(view.of("end")).toMatchObject([{ outcome: { end: { stop: "done" } } }]);
    expect(view.readys).toBe(1);
    expect(controller.isBusy).toBe(false);
  });

  it("waits for the agent to be open", async () => {
    const { controller, agent, sent } = await setUp(["Hello."]);
    const harness = controller.harness;
    controller.use(new Promise((open) => setImmediate(() => open(harness as ConversationAgent))));
    await controller.submit("Hi");
    expect(agent.isRunning).toBe(false);
    expect(sent()).toEqual(["Hi"]);
  });

  it("that is interrupted before the agent is open goes back to the user", async () => {
    const { controller, view } = await setUp([]);
    controller.use(new Promise(() => {}));
    const end = controller.submit("Hi");
    expect(controller.interrupt()).toBe(true);
    await end;
    expect(view.givenBack).toEqual([["Hi"]]);
    controller.use(Promise.reject(new Error("over")));
  });

  it("that is rejected before the run starts goes back to the user, with what waits", async () => {
    const gate: { fail?: (error: Error) => void } = {};
    const { controller, view } = await setUp([], [], {
      prompt: () => new Promise((_settle, reject) => (gate.fail = reject)),
    });
    const end = controller.submit("Hi");
    await new Promise(setImmediate);
    await controller.submit("More");
    gate.fail?.(new Error("A hook says no."));
    await end;
    expect(view.givenBack).toEqual([["Hi", "More"]]);
    expect(view.of("error")).toEqual([{ type: "error", text: "A hook says no." }]);
  });
});

describe("while the agent works", () => {
  it("a prompt waits, is listed, and is given back by an interruption", async () => {
    const { controller, view } = await setUp([forever]);
    const end = controller.submit("Go");
    await view.next("message_update");
    await controller.submit("use tabs");
    await controller.submit("then test", true);
    expect(controller.waiting).toMatchObject([
      { queue: "steering", text: "use tabs" },
      { queue: "followUp", text: "then test" },
    ]);
    expect(controller.interrupt()).toBe(true);
    await end;
    expect(view.givenBack).toEqual([["use tabs", "then test"]]);
    expect(view.of("end")).toMatchObject([{ outcome: { end: { stop: "aborted" } } }]);
    expect(controller.interrupt()).toBe(false);
  });

  it("a command has to wait, unless it may run beside", async () => {
    const { controller, view } = await setUp(
      [forever],
      [
        { name: "new", about: "", run: () => ({ open: { new: true } }) },
        { name: "cost", about: "", allowWhileRunning: true, run: () => "Nothing." },
      ],
    );
    const end = controller.submit("Go");
    await view.next("message_update");
    await controller.submit("/new");
    await controller.submit("/cost");
    await controller.submit("!ls");
    expect(view.of("rejected")).toEqual([
      {
        type: "rejected",
        text: "/new",
        reason: "/new has to wait until the agent is done. Esc interrupts.",
      },
      {
        type: "rejected",
        text: "!ls",
        reason: "A command has to wait until the agent is done. Esc interrupts.",
      },
    ]);
    expect(view.of("parts")).toEqual([
      { type: "parts", parts: [{ type: "text", markdown: "Nothing." }] },
    ]);
    controller.interrupt();
    await end;
  });
});

describe("a slash command", () => {
  it("has its result done in order: open, show, edit, then the prompt", async () => {
    const { controller, view, opened, sent } = await setUp(
      ["Hello."],
      [
        {
          name: "new",
          about: "",
          run: (rest) => ({
            open: { new: true },
            show: [{ type: "text", markdown: "New." }],
            edit: "text",
            prompt: rest,
          }),
        },
      ],
    );
    await controller.submit("/new  do this ");
    expect(opened).toEqual([{ new: true }]);
    expect(view.edited).toEqual(["text"]);
    expect(sent()).toEqual(["do this"]);
    expect(view.of("prompt")).toEqual([{ type: "prompt", text: "do this", isTyped: false }]);
  });

  it("that is stopped shows so, and none of its result is done", async () => {
    const { controller, view, opened } = await setUp(
      [],
      [
        {
          name: "slow",
          about: "",
          run: async (_rest, { signal }) => {
            await new Promise((settle) => signal.addEventListener("abort", settle));
            return { open: { new: true } };
          },
        },
      ],
    );
    const end = controller.submit("/slow");
    await new Promise(setImmediate);
    expect(controller.isBusy).toBe(true);
    expect(controller.isWorking).toBe(false);
    await controller.submit("Hi");
    controller.interrupt();
    await end;
    expect(view.of("rejected")).toMatchObject([{ reason: "/slow is not done yet. Esc stops it." }]);
    expect(view.of("note")).toEqual([{ type: "note", text: "Stopped." }]);
    expect(opened).toEqual([]);
  });

  it("that ends itself is stopped when the conversation is closed", async () => {
    const seen: string[] = [];
    const run: Command["run"] = async (_rest, { signal }) => {
      await new Promise((settle) => signal.addEventListener("abort", settle));
      seen.push("stopped");
    };
    const { controller } = await setUp([], [{ name: "race", about: "", endsItself: true, run }]);
    const end = controller.submit("/race");
    await new Promise(setImmediate);
    await controller.close();
    await end;
    expect(seen).toEqual(["stopped"]);
  });

  it("that interrupts the others does not stop itself", async () => {
    const found: { controller?: ConversationController } = {};
    const { controller, view } = await setUp(
      [forever],
      [
        {
          name: "stop",
          about: "",
          allowWhileRunning: true,
          run: (_rest, { signal }) =>
            found.controller?.interrupt(signal) ? "Stopping." : "Nothing runs.",
        },
      ],
    );
    found.controller = controller;
    await controller.submit("/stop");
    const end = controller.submit("Go");
    await view.next("message_update");
    await controller.submit("/stop");
    await end;
    const texts = view.of("parts").flatMap(({ parts }) => parts);
    expect(texts).toMatchObject([{ markdown: "Nothing runs." }, { markdown: "Stopping." }]);
  });

  it("that fails is an error, and one that is not there is rejected", async () => {
    const { controller, view } = await setUp(
      [],
      [{ name: "bad", about: "", run: () => Promise.reject(new Error("No.")) }],
    );
    await controller.submit("/bad");
    await controller.submit("/nothing");
    expect(view.of("error")).toEqual([{ type: "error", text: "No." }]);
    expect(view.of("rejected")).toMatchObject([
      { reason: 'There is no command "/nothing". /help lists the commands.' },
    ]);
    expect(view.readys).toBe(2);
  });

  it("has other names, unless another command is called so", async () => {
    const ran: string[] = [];
    const named = (name: string, aliases: string[] = []): Command => ({
      name,
      aliases,
      about: "",
      run: () => void ran.push(name),
    });
    const { controller } = await setUp([], [named("new", ["clear", "reset"]), named("reset")]);
    await controller.submit("/clear");
    await controller.submit("/reset");
    expect(ran).toEqual(["new", "reset"]);
  });

  it("that is mistyped is rejected with what may be meant", async () => {
    const { controller, view } = await setUp(
      [],
      [{ name: "new", aliases: ["clear"], about: "", run: () => {} }],
    );
    await controller.submit("/claer");
    expect(view.of("rejected")).toMatchObject([
      {
        text: "/claer",
        reason: 'There is no command "/claer". Did you mean /clear? /help lists the commands.',
      },
    ]);
  });

  it("is no command where a folder of the root is meant", async () => {
    const { controller, sent } = await setUp(["I see."]);
    await controller.submit("/tmp is full");
    expect(sent()).toEqual(["/tmp is full"]);
  });

  it("can end the program", async () => {
    const { controller, quits } = await setUp(
      [],
      [{ name: "quit", about: "", run: () => ({ quit: true }) }],
    );
    await controller.runNamed("quit");
    await controller.runNamed("nothing");
    expect(quits()).toBe(1);
  });
});

describe("a command of the user's own", () => {
  it("is shown as it runs, and sent before the next prompt; with two marks it is aside", async () => {
    const { agent, controller, view } = await setUp(["I see.", "Yes."]);
    await controller.submit("!echo shown; exit 3");
    await controller.submit("!!echo hidden");
    expect(view.of("user_command_start")).toMatchObject([
      { command: "echo shown; exit 3", aside: false },
      { command: "echo hidden", aside: true },
    ]);
    expect(view.of("user_command_output").map(({ output }) => output)).toEqual([
      "shown\n",
      "hidden\n",
    ]);
    expect(agent.state.messages).toEqual([]);
    await controller.submit("Why?");
    expect(agent.state.messages).toMatchObject([
      { role: "userCommand", output: "shown\n", exitCode: 3, aside: false },
      { role: "userCommand", output: "hidden\n", exitCode: 0, aside: true },
      { role: "user", content: "Why?" },
      { role: "assistant" },
    ]);
    await controller.submit("Again");
    expect(agent.state.messages.filter(({ role }) => role === "userCommand")).toHaveLength(2);
  });

  it("is kept for the next prompt where the prompt was rejected", async () => {
    let isRejected = true;
    const sent: number[] = [];
    const { controller } = await setUp([], [], {
      prompt: ({ userCommands = [] }) => {
        sent.push(userCommands.length);
        return Promise.reject(new Error(isRejected ? "A hook says no." : "No model."));
      },
    });
    await controller.submit("!echo shown");
    await controller.submit("Why?");
    isRejected = false;
    await controller.submit("Why?");
    expect(sent).toEqual([1, 1]);
  });
});

describe("approvals", () => {
  const request = { callId: "1", tool: "shell", args: {} } as ApprovalRequest;

  it("a question that is left interrupts the run, and is a no", async () => {
    const { controller, view } = await setUp([forever]);
    const end = controller.submit("Go");
    await view.next("message_update");
    expect(await controller.approve(request)).toEqual({ allow: false, reason: "interrupted" });
    await end;
    expect(view.of("end")).toMatchObject([{ outcome: { end: { stop: "aborted" } } }]);
  });

  it("one whose call was stopped meanwhile interrupts nothing", async () => {
    const { controller, view } = await setUp([forever]);
    const end = controller.submit("Go");
    await view.next("message_update");
    await controller.approve({ ...request, signal: AbortSignal.abort() });
    expect(controller.canInterrupt).toBe(true);
    controller.interrupt();
    await end;
  });

  it("an answer is passed on", async () => {
    const { controller, view } = await setUp([]);
    view.answer = { allow: false, reason: "use the other file" };
    expect(await controller.approve(request)).toEqual(view.answer);
  });
});

describe("R22: a command that retries", () => {
  const retry: Command = { name: "retry", about: "", run: () => ({ retry: true }) };

  it("R22: asks again without repeating the prompt", async () => {
    const refused = fail("Bad key", { kind: "auth", status: 401 });
    const { controller, agent, sent, view } = await setUp([refused, "Here I am."], [retry]);
    await controller.submit("Hi");
    expect(agent.state.error).toBe("Bad key");
    await controller.submit("/retry");
    expect(sent()).toEqual(["Hi"]);
    expect(agent.state.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "assistant",
    ]);
    expect([agent.state.error, view.of("end").length]).toEqual([undefined, 3]);
  });
});

describe("resume", () => {
  it("continues what was cut off, and says so", async () => {
    const { controller, view, agent } = await setUp(["Here I am."], [], { isCutOff: true });
    agent.appendMessage({ role: "user", content: "Hi", timestamp: 0 });
    await controller.resume();
    expect(view.of("resumed")).toHaveLength(1);
    expect(agent.state.messages).toHaveLength(2);
  });

  it("sends what waits, also where the last answer is whole", async () => {
    const { controller, agent, sent } = await setUp(["Hi.", "Here I am."]);
    await controller.submit("Hello");
    agent.followUp("And then?");
    await controller.resume();
    expect(sent()).toEqual(["Hello", "And then?"]);
  });

  it("does nothing where nothing was cut off", async () => {
    const { controller, view } = await setUp([]);
    await controller.resume();
    expect(view.items).toEqual([]);
    expect(view.readys).toBe(1);
  });
});
