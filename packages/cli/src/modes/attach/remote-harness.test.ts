import type { AgentEvent } from "@gyre/agent";
import { systemClock } from "@gyre/ai";
import { call, say, type ScriptStep, stall, think } from "@gyre/ai/testing";
import { type Payload, ProtocolError } from "@gyre/protocol";
import { RemoteAgent } from "@gyre/server/client";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import {
  createRemoteWorld,
  createTestTool,
  type CutClient,
  type RemoteWorld,
} from "../../../../server/src/testing/remote-world.ts";
import { countCases } from "../../../../../tests/support/cases.ts";
import { COLORS } from "../tui/terminal/theme.ts";
import { replay } from "../tui/transcript/replay.ts";
import { Transcript } from "../tui/transcript/transcript.ts";
import { RemoteHarness, type RemoteHarnessOptions } from "./remote-harness.ts";

const COLUMNS = 80;

/** What a terminal shows of a session, and what it was asked. */
class Screen {
  readonly warnings: string[] = [];
  readonly asked: ApprovalRequest[] = [];
  readonly events: AgentEvent[] = [];
  /** Answers in order; without one a question stays open. */
  answers: ApprovalAnswer[] = [];
  readonly transcript = new Transcript({
    theme: COLORS,
    cwd: "/",
    now: () => 0,
    changed: () => {},
  });
  harness!: RemoteHarness;

  async open(client: CutClient, session: { id: string } | { create: Payload }): Promise<void> {
    const options: RemoteHarnessOptions = {
      client: client.client,
      clock: systemClock,
      pictureFolder: "/",
      connection: () => ({ type: "connected" }),
      approve: (request) => this.#ask(request),
      answerServer: () => Promise.resolve({ action: "decline" }),
      warn: (text) => void this.warnings.push(text),
      update: () => {},
      replay: () => this.#begin(),
      lost: (error) => void this.warnings.push(`lost: ${error.message}`),
    };
    this.harness = await RemoteHarness.open(options, session);
    this.harness.agent.subscribe((event) => {
      this.events.push(event);
      this.transcript.handle(event);
    });
    this.#begin();
  }

  #begin(): void {
    const { messages, pendingToolCalls } = this.harness.agent.state;
    replay(messages, this.transcript, Infinity, pendingToolCalls);
    this.harness.beginEvents();
  }

  #ask(request: ApprovalRequest): Promise<ApprovalAnswer> {
    this.asked.push(request);
    const answer = this.answers.shift();
    if (answer) return Promise.resolve(answer);
    return new Promise((settle) => {
      const withdrawn = (): void => settle({ allow: false, reason: "interrupted" });
      request.signal?.addEventListener("abort", withdrawn, { once: true });
    });
  }

  rows(): string[] {
    return this.transcript
      .rows(COLUMNS)
      .rows.map((row) =>
        row
          .map(({ text }) => text)
          .join("")
          .trimEnd(),
      )
      .filter((row) => row !== "");
  }
}

const yes = (): ApprovalAnswer => ({ allow: true, fingerprint: "" });

async function openScreen(
  world: RemoteWorld,
  session: { id: string } | { create: Payload } = { create: {} },
  { cuts, answers = [] }: { cuts?: readonly number[]; answers?: ApprovalAnswer[] } = {},
): Promise<{ screen: Screen; client: CutClient }> {
  const screen = new Screen();
  screen.answers = answers;
  const client = world.client(cuts);
  await screen.open(client, session);
  return { screen, client };
}

const chatty = createTestTool("chatty", (_args, { update }) => {
  for (const text of ["a", "ab"]) update({ content: [{ type: "text", text }] });
  return { content: [{ type: "text", text: "abc" }] };
});
const TOOLS = [chatty, createTestTool("look"), createTestTool("asks")];
const SCRIPT: ScriptStep[] = [
  [think("Hm", { signature: "x" }), say("I look around.\n\nAnd then some more."), call("chatty")],
  [say("Then I ask"), call("asks", { n: 1 }), call("look"), call("asks", { n: 2 })],
  [say("Done: \u2028 ä😀")],
  [say("And again.")],
];

it("shows a run that waits for answers as one, with each call once", async () => {
  const world = createRemoteWorld({ script: SCRIPT, tools: TOOLS });
  const { screen } = await openScreen(world);
  screen.answers = [yes(), yes()];
  const outcome = await screen.harness.prompt({ text: "Go." });
  expect(outcome.end.stop).toBe("done");
  expect(screen.events.map(({ type }) => type).filter((type) => type.startsWith("agent"))).toEqual([
    "agent_start",
    "agent_end",
  ]);
  const starts = screen.events.filter(({ type }) => type === "tool_execution_start");
  expect(starts).toHaveLength(4);
  expect(screen.asked).toHaveLength(2);
  expect(screen.warnings).toEqual([]);
});

describe("the connection breaks, and what is missing comes as events or as a snapshot", () => {
  it("shows the same, with nothing twice and nothing left out", { tags: "long" }, async () => {
    const play = async (cuts: readonly number[], tailEvents: number): Promise<unknown> => {
      const limits = { tailEvents };
      const world = createRemoteWorld({ script: SCRIPT, tools: TOOLS }, { limits });
      const { screen } = await openScreen(
        world,
        { create: {} },
        {
          cuts: [40, ...cuts],
          answers: [yes(), yes(), yes(), yes()],
        },
      );
      const first = await screen.harness.prompt({ text: "Go." });
      const second = await screen.harness.prompt({ text: "Again." });
      return {
        rows: screen.rows(),
        stops: [first.end.stop, second.end.stop],
        warnings: screen.warnings,
        messages: world.host.agents[0]?.state.messages.length,
      };
    };
    const wanted = await play([], 4096);
    const anyCuts = fc.array(fc.integer({ min: 3, max: 40 }), { maxLength: 6 });
    const tails = fc.constantFrom(1, 3, 10, 4096);
    await fc.assert(
      fc.asyncProperty(anyCuts, tails, async (cuts, tail) => {
        expect(await play(cuts, tail)).toEqual(wanted);
      }),
      { numRuns: countCases(40, 1_000) },
    );
  });
});

describe("several clients", () => {
  it("a run of one is followed by the other, from wherever it is", async () => {
    const world = createRemoteWorld({ script: SCRIPT, tools: TOOLS });
    const { screen: one } = await openScreen(world);
    const ended = one.harness.prompt({ text: "Go." });
    await vi.waitFor(() => expect(one.asked).toHaveLength(2));
    const { screen: other } = await openScreen(world, { id: one.harness.sessionId });
    expect(other.harness.shared.isRunning).toBe(true);
    const followed = other.harness.shared.follow();
    await vi.waitFor(() => expect(other.asked).toHaveLength(2));
    // The first question is answered there, and withdrawn here.
    const { sessionId: id } = one.harness;
    await openScreen(world, { id }, { answers: [yes(), yes()] });
    expect((await ended).end.stop).toBe("done");
    expect((await followed).end.stop).toBe("done");
    expect(one.asked.every(({ signal }) => signal?.aborted)).toBe(true);
    expect(other.rows()).toEqual(one.rows());
  });

  it("what one queues waits in all, and is taken back once", async () => {
    const world = createRemoteWorld({ script: [[say("Well"), stall()]] });
    const { screen: one } = await openScreen(world);
    const { screen: other } = await openScreen(world, { id: one.harness.sessionId });
    const run = one.harness.prompt({ text: "Go." });
    await vi.waitFor(() => expect(other.rows()).toContain("Well"));
    await one.harness.queue.add("steering", "Mind the tests.");
    await vi.waitFor(() =>
      expect(other.harness.queue.list()).toMatchObject([{ text: "Mind the tests." }]),
    );
    const taken = await Promise.all([one.harness.queue.take(), other.harness.queue.take()]);
    expect(taken.flat()).toEqual(["Mind the tests."]);
    other.harness.agent.abort();
    expect((await run).end.stop).toBe("aborted");
  });

  it("a prompt while another one runs waits for its turn in that run", async () => {
    const world = createRemoteWorld({ script: [[call("look")], "One.", "Two."], tools: TOOLS });
    const { screen: one } = await openScreen(world);
    const { screen: other } = await openScreen(world, { id: one.harness.sessionId });
    const [first, second] = await Promise.all([
      one.harness.prompt({ text: "First." }),
      other.harness.prompt({ text: "Second." }),
    ]);
    expect([first.end.stop, second.end.stop]).toEqual(["done", "done"]);
    const { messages } = one.harness.agent.state;
    const asked = messages.filter(({ role }) => role === "user");
    expect(asked).toHaveLength(2);
  });

  it("another one that changes what was said has it shown again", async () => {
    const world = createRemoteWorld({
      script: ["Green.", "Black."],
      session: (agent) => ({
        async request() {
          agent.replaceMessages([]);
          return { payload: {}, isRewritten: true };
        },
      }),
    });
    const { screen: one } = await openScreen(world);
    const { screen: other } = await openScreen(world, { id: one.harness.sessionId });
    await one.harness.prompt({ text: "Which tea?" });
    await one.harness.request("forget");
    await vi.waitFor(() => expect(other.harness.agent.state.messages).toEqual([]));
    await one.harness.prompt({ text: "And now?" });
    await vi.waitFor(() => expect(other.rows()).toContain("Black."));
  });
});

describe("a session that is opened again", () => {
  it("gets a prompt that it does not have, and not one that it has", async () => {
    const world = createRemoteWorld({ script: ["Green."] });
    const { screen, client } = await openScreen(world, { id: "kept" });
    client.hold();
    client.cut();
    const prompt = screen.harness.prompt({ text: "Which tea?" });
    const ending = await RemoteAgent.attach(world.client().client, "kept");
    await ending.closeSession();
    client.release();
    expect((await prompt).end.stop).toBe("done");
    const asked = world.host.events.flat().filter(({ type }) => type === "agent_start");
    expect(asked).toHaveLength(1);
  });

  it("is attached to again where it was closed, and a run that was going on is over", async () => {
    const world = createRemoteWorld({
      script: ({ messages }) =>
        messages.at(-1)?.content === "Go." ? [say("Well"), stall()] : "Again.",
    });
    const { screen } = await openScreen(world, { id: "kept" });
    const run = screen.harness.prompt({ text: "Go." });
    await vi.waitFor(() => expect(screen.rows()).toContain("Well"));
    const ending = await RemoteAgent.attach(world.client().client, "kept");
    await ending.closeSession();
    expect(["aborted", "error"]).toContain((await run).end.stop);
    await vi.waitFor(() => expect(world.host.agents.length).toBeGreaterThan(1));
    // The scripted host forgets what was said.
    expect((await screen.harness.prompt({ text: "Still there?" })).end.stop).toBe("done");
  });

  it("that is gone is reported", async () => {
    let isGone = false;
    const world = createRemoteWorld({
      onOpen: () => {
        if (isGone) throw new ProtocolError("session_not_found", "It is gone.");
      },
    });
    const { screen } = await openScreen(world, { id: "kept" });
    isGone = true;
    const ending = await RemoteAgent.attach(world.client().client, "kept");
    await ending.closeSession();
    await vi.waitFor(() => expect(screen.warnings.join("\n")).toBe("lost: It is gone."));
  });
});

it("Esc at a question denies what waits, and ends the run", async () => {
  const world = createRemoteWorld({ script: SCRIPT, tools: TOOLS });
  const { screen } = await openScreen(world);
  const run = screen.harness.prompt({ text: "Go." });
  await vi.waitFor(() => expect(screen.asked).toHaveLength(2));
  screen.harness.agent.abort();
  const { end } = await run;
  expect(end.stop).toBe("aborted");
  const results = world.host.agents[0]?.state.messages.filter(({ role }) => role === "toolResult");
  expect(results?.filter((message) => "isError" in message && message.isError)).toHaveLength(2);
  expect(screen.warnings).toEqual([]);
});
