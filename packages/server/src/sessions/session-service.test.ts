import { PassThrough } from "node:stream";
import { type AgentEvent, type AgentTool, userMessage } from "@gyre/agent";
import {
  call,
  manualClock,
  say,
  type ScriptFunction,
  type ScriptStep,
  stall,
  think,
} from "@gyre/ai/testing";
import {
  type Envelope,
  ProtocolError,
  type Transport,
  createTransportPair,
  WireServer,
  type WireServerOptions,
} from "@gyre/protocol";
import { openStdio } from "@gyre/protocol/stdio";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { SessionService, type SessionServiceOptions } from "./session-service.ts";
import { ScriptedHost, type ScriptedHostOptions } from "../testing/scripted-host.ts";
import { CheckingClient } from "../testing/checking-client.ts";
import { WireEventReader } from "../events/wire-event-reader.ts";

const tool = (name: string, execute: AgentTool["execute"] = () => name): AgentTool => ({
  name,
  description: name,
  parameters: { type: "object" },
  execute,
});

interface World {
  host: ScriptedHost;
  service: WireServer;
  client: CheckingClient;
  errors: unknown[];
  /** Another client of the same service. */
  another: (name: string) => CheckingClient;
}

function serve(
  options: ScriptedHostOptions = {},
  more: SessionServiceOptions & WireServerOptions = {},
): World {
  const host = new ScriptedHost(options);
  const errors: unknown[] = [];
  const all = { onError: (error: unknown) => void errors.push(error), ...more };
  const service = new WireServer([new SessionService(host, all)], all);
  const another = (name: string): CheckingClient => {
    const [near, far] = createTransportPair();
    service.serve(far);
    return new CheckingClient(near, name);
  };
  return { host, service, errors, another, client: another("m") };
}

const ends = (frame: Envelope): boolean => frame.type === "agent_end";

async function refused(answer: Promise<Envelope>): Promise<unknown> {
  const { type, payload } = await answer;
  return type === "nack" ? payload["code"] : type;
}

/** When they were sent may differ. */
function strip(frames: readonly Envelope[]): unknown[] {
  return frames.map((frame) => ({ ...frame, ts: 0 }));
}

/** Events as an application at the other end has them. */
function rebuilt(frames: readonly Envelope[]): AgentEvent[] {
  const reader = new WireEventReader();
  return frames.flatMap((frame) => reader.read(frame).map((event) => structuredClone(event)));
}

/** The message so far is live: it is compared where it is whole. */
function withoutPartials(events: readonly AgentEvent[]): unknown[] {
  return events.map((event) => {
    if (event.type === "message_start") return { ...event, message: event.message.role };
    if (event.type !== "message_update") return event;
    const { partial: _, ...rest } = { partial: undefined, ...event.assistantMessageEvent };
    return rest;
  });
}

const script: ScriptStep[] = [
  [think("Hm", { signature: "x" }), say("I look"), call("look", { path: "a" }), call("look")],
  [say("Done: \u2028 ä😀")],
];

function overPair(service: WireServer): Transport {
  const [near, far] = createTransportPair();
  service.serve(far);
  return near;
}

function overStdio(service: WireServer): Transport {
  const [there, back] = [new PassThrough(), new PassThrough()];
  service.serve(openStdio({ input: there, output: back }));
  return openStdio({ input: back, output: there });
}

describe("a session over a wire gives the events that it gives in process", () => {
  it.each([
    ["in process", overPair],
    ["on stdio", overStdio],
  ])("%s", async (_, connect) => {
    const host = new ScriptedHost({ script, tools: [tool("look")] });
    const client = new CheckingClient(connect(new WireServer([new SessionService(host)])));
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    await client.next(ends);
    expect(client.faults).toEqual([]);
    const wire = rebuilt(client.events(id));
    const own = host.events[0] ?? [];
    expect(withoutPartials(wire)).toEqual(JSON.parse(JSON.stringify(withoutPartials(own))));
    expect(own.at(-1)).toMatchObject({ type: "agent_end", stop: "done", turns: 2 });
  });
});

describe("ack comes before the first event", () => {
  it("numbers the events of a session from 1, after the ack", async () => {
    const { client } = serve({ script: ["Hello"] });
    const id = await client.create();
    const from = client.frames.length;
    await client.ask("prompt", { text: "Go" }, id);
    await client.next(ends);
    const [first, second] = client.frames.slice(from);
    expect(first).toMatchObject({ type: "ack", stream: id });
    expect(first).not.toHaveProperty("seq");
    expect(second).toMatchObject({ type: "agent_start", stream: id, seq: 1, id: "e_1", v: 1 });
    expect(client.faults).toEqual([]);
  });

  it("for an event the envelope's type is the event's name", async () => {
    const { client } = serve({ script: ["Hello"] });
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    await client.next(ends);
    expect([...new Set(client.events(id).map(({ type }) => type))]).toEqual([
      "agent_start",
      "turn_start",
      "message_start",
      "message_end",
      "message_update",
      "turn_end",
      "agent_end",
    ]);
  });

  it("nacks a prompt that cannot start, and goes on", async () => {
    const { client } = serve({ script: ["Hello"] });
    const id = await client.create();
    expect(await refused(client.request("prompt", {}, id))).toBe("invalid_request");
    expect(await refused(client.request("prompt", { text: 1 }, id))).toBe("invalid_request");
    expect(await refused(client.request("prompt", { text: "x", images: [1] }, id))).toBe(
      "invalid_request",
    );
    expect(await refused(client.request("prompt", { text: "x", output: {} }, id))).toBe(
      "not_implemented",
    );
    expect(await refused(client.request("continue", {}, id))).toBe("invalid_request");
    expect(await refused(client.request("prompt", { text: "Go" }, id))).toBe("ack");
  });

  it("nacks what a host's prompt throws at once, and reports what it throws later", async () => {
    let n = 0;
    const { client, errors } = serve({
      session: {
        prompt: () => {
          if (n++ === 0) throw new ProtocolError("unauthorized", "no key");
          return Promise.resolve();
        },
      },
    });
    const id = await client.create();
    expect(await refused(client.request("prompt", { text: "Go" }, id))).toBe("unauthorized");
    expect(await refused(client.request("prompt", { text: "Go" }, id))).toBe("ack");
    expect(errors).toEqual([]);
  });
});

describe("commands of a session", () => {
  it("session_busy: one run at a time; abort ends it", async () => {
    const { client } = serve({ script: [[say("Well"), stall()], "Second"] });
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    for (const [type, payload] of [
      ["prompt", { text: "More" }],
      ["continue", {}],
      ["approve", { decisions: {} }],
      ["reset", {}],
      ["messages_replace", { messages: [] }],
    ] as const) {
      expect(await refused(client.request(type, payload, id))).toBe("session_busy");
    }
    await client.ask("abort", {}, id);
    const end = await client.next(ends);
    expect(end.payload).toMatchObject({ stop: "aborted" });
    await client.ask("abort", {}, id);
  });

  it("who hears of the end may go on at once", async () => {
    const { client, host } = serve({ script: () => "Hello" });
    const id = await client.create();
    const prompted: Promise<Envelope>[] = [];
    const again = (frame: Envelope): boolean => {
      if (ends(frame) && prompted.length < 3) {
        prompted.push(client.request("prompt", { text: "More" }, id));
      }
      return prompted.length === 3;
    };
    const third = client.next(again);
    await client.ask("prompt", { text: "Go" }, id);
    await third;
    expect((await Promise.all(prompted)).map(({ type }) => type)).toEqual(["ack", "ack", "ack"]);
    // Also after a run that the host started by itself.
    const from = client.frames.length;
    await client.next(ends, from);
    const [agent] = host.agents;
    const before = client.frames.length;
    await agent?.prompt("By myself");
    await client.next(ends, before);
    expect(await refused(client.request("prompt", { text: "Last" }, id))).toBe("ack");
    expect(client.faults).toEqual([]);
  });

  it("steer and follow_up: an ack comes after they are saved; what cannot be saved does not wait", async () => {
    let save: (error?: Error) => void = () => {};
    const saved = vi.fn<() => Promise<void>>(
      () => new Promise((settle, fail) => (save = (error) => (error ? fail(error) : settle()))),
    );
    const { client, host } = serve({ session: { saved } });
    const id = await client.create();
    let isAnswered = false;
    const steering = client.ask("steer", { text: "Left" }, id).finally(() => (isAnswered = true));
    await vi.waitFor(() => expect(saved).toHaveBeenCalledTimes(1));
    expect(isAnswered).toBe(false);
    save();
    expect(await steering).toEqual({ queued: "steering-1" });
    const refusal = refused(client.request("follow_up", { text: "One" }, id));
    await vi.waitFor(() => expect(saved).toHaveBeenCalledTimes(2));
    save(new Error("The disk is full."));
    expect(await refusal).toBe("invalid_request");
    expect(host.agents[0]?.queued("followUp")).toEqual([]);
  });

  it("approve: the decisions are saved before the run starts; what cannot be saved starts none", async () => {
    const events: string[] = [];
    const decide = vi.fn<() => Promise<void>>(async () => {
      events.push("decided");
      if (decide.mock.calls.length === 1) throw new Error("The disk is full.");
    });
    const script = [call("asks", {}, "c1"), "Done"];
    const { client, host } = serve({ script, tools: [tool("asks")], session: { decide } });
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    await client.next(ends);
    host.agents[0]?.subscribe(({ type }) => void events.push(type));
    const payload = { decisions: { c1: { type: "approve" } } };
    expect(await refused(client.request("approve", payload, id))).toBe("invalid_request");
    expect(events).toEqual(["decided"]);
    const from = client.frames.length;
    await client.ask("approve", payload, id);
    await client.next(ends, from);
    expect(events.slice(1, 3)).toEqual(["decided", "agent_start"]);
  });

  it("steer, follow_up and queue_edit", async () => {
    const { client, host } = serve({ script: [[say("Well"), stall()]] });
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    const { queued: steering } = await client.ask("steer", { text: "Left" }, id);
    expect(steering).toBe("steering-1");
    await client.ask("follow_up", { text: "One" }, id);
    await client.ask("follow_up", { text: "Two" }, id);
    const edit = (payload: object): Promise<unknown> =>
      client.ask("queue_edit", { queue: "followUp", ...payload }, id);
    expect(await edit({ op: "edit", id: "followUp-2", text: "Three" })).toMatchObject({
      isDone: true,
    });
    expect(await edit({ op: "move", id: "followUp-2", place: 0 })).toMatchObject({
      queued: [{ message: { content: "Three" } }, { message: { content: "One" } }],
    });
    expect(await edit({ op: "remove", id: "followUp-1" })).toMatchObject({ isDone: true });
    expect(await edit({ op: "remove", id: "followUp-1" })).toMatchObject({ isDone: false });
    expect(await edit({ op: "list" })).toMatchObject({ queued: [{ id: "followUp-2" }] });
    await edit({ op: "clear" });
    await client.ask("queue_edit", { queue: "steering", op: "clear" }, id);
    expect(host.agents[0]?.hasQueuedMessages()).toBe(false);
    for (const wrong of [{ op: "fly" }, { op: "move", id: "x" }, { op: "edit", id: "x" }, {}]) {
      const answer = client.request("queue_edit", { queue: "followUp", ...wrong }, id);
      expect(await refused(answer)).toBe("invalid_request");
    }
    expect(await refused(client.request("queue_edit", { queue: "x", op: "list" }, id))).toBe(
      "invalid_request",
    );
  });

  it("approve {decisions}: a suspended run goes on", async () => {
    const { client } = serve({
      script: [[call("asks", {}, "c1"), call("asks", {}, "c2")], "Done"],
      tools: [tool("asks")],
    });
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    const { payload } = await client.next(ends);
    expect(payload).toMatchObject({
      stop: "suspended",
      pending: [{ toolCall: { id: "c1" } }, { toolCall: { id: "c2" } }],
    });
    const approve = (decisions: unknown): Promise<unknown> =>
      refused(client.request("approve", { decisions }, id));
    expect(await approve({ nosuch: { type: "approve" } })).toBe("invalid_request");
    expect(await approve({ c1: { type: "maybe" } })).toBe("invalid_request");
    expect(await approve({ c1: { type: "result", result: { content: 1 } } })).toBe(
      "invalid_request",
    );
    expect(await approve([])).toBe("invalid_request");
    const from = client.frames.length;
    expect(await approve({ c1: { type: "approve" }, c2: { type: "deny", reason: "no" } })).toBe(
      "ack",
    );
    const end = await client.next(ends, from);
    expect(end.payload).toMatchObject({ stop: "done" });
    const results = client.events(id).filter(({ type }) => type === "tool_execution_end");
    expect(results.map(({ payload: { isError } }) => isError)).toEqual([false, true]);
    expect(withoutPartials(rebuilt(client.events(id))).length).toBeGreaterThan(0);
  });

  it("approve {args}: the call runs with what was approved, and with nothing else", async () => {
    const { client } = serve({
      script: [[call("asks", { path: "all" }, "c1")], "Done"],
      tools: [tool("asks")],
    });
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    await client.next(ends);
    const approve = (decision: object): Promise<unknown> =>
      refused(
        client.request("approve", { decisions: { c1: { type: "approve", ...decision } } }, id),
      );
    expect(await approve({ args: ["one"] })).toBe("invalid_request");
    expect(await approve({ args: null })).toBe("invalid_request");
    expect(await approve({ fingerprint: 1 })).toBe("invalid_request");
    const from = client.frames.length;
    expect(await approve({ args: { path: "one" } })).toBe("ack");
    await client.next(ends, from);
    const [end] = client.events(id).filter(({ type }) => type === "tool_execution_end");
    expect(JSON.stringify(end?.payload)).toContain('{\\"path\\":\\"one\\"}');
  });

  it("session_update {model, thinkingLevel, systemPrompt, tools, modes}", async () => {
    const { client, host } = serve({ tools: [tool("a"), tool("b")] });
    const id = await client.create();
    const update = (payload: object): Promise<Envelope> =>
      client.request("session_update", { ...payload }, id);
    expect(
      (
        await update({
          thinkingLevel: "high",
          systemPrompt: "Be kind",
          tools: ["b"],
          modes: { steering: "all", followUp: "all" },
        })
      ).payload,
    ).toMatchObject({
      thinkingLevel: "high",
      systemPrompt: "Be kind",
      tools: ["b"],
      modes: { steering: "all", followUp: "all" },
    });
    expect(host.agents[0]?.state.thinkingLevel).toBe("high");
    expect(await refused(update({ model: "other" }))).toBe("model_not_found");
    expect(await refused(update({ thinkingLevel: "off", tools: ["nosuch"] }))).toBe(
      "tool_not_found",
    );
    expect(host.agents[0]?.state.thinkingLevel).toBe("high");
    for (const wrong of [
      { model: 1 },
      { thinkingLevel: "huge" },
      { systemPrompt: 1 },
      { tools: "a" },
      { modes: 1 },
      { modes: { steering: "x" } },
      { modes: { followUp: 1 } },
      { modes: { permission: 1 } },
      { modes: { permission: "full" } },
      { modes: { other: 1 } },
      { other: 1 },
    ]) {
      expect(await refused(update(wrong))).toBe("invalid_request");
    }
  });

  it("messages_replace and reset: all who watch get the new state", async () => {
    const { client, host } = serve({ script: ["Hello"] });
    const id = await client.create();
    const messages = [userMessage("Earlier", 1)];
    await client.ask("messages_replace", { messages }, id);
    const snapshot = await client.next(({ type }) => type === "snapshot");
    expect(snapshot).toMatchObject({ stream: id, seq: 1, payload: { seq: 1, messages } });
    await client.ask("continue", {}, id);
    await client.next(ends);
    expect(host.agents[0]?.state.messages).toHaveLength(2);
    await client.ask("reset", {}, id);
    expect(host.agents[0]?.state.messages).toEqual([]);
    expect(client.faults).toEqual([]);
    for (const wrong of [
      1,
      [1],
      [{ role: "user", content: 5, timestamp: 1 }],
      [{ role: "assistant", content: 5, timestamp: 1 }],
      [{ role: "toolResult", content: [], timestamp: 1 }],
      [{ role: "user", content: [{ type: "text" }], timestamp: 1 }],
      [{ role: "wizard", content: "x", timestamp: 1 }],
    ]) {
      const answer = client.request("messages_replace", { messages: wrong }, id);
      expect(await refused(answer)).toBe("invalid_request");
    }
  });

  it("session_not_found, session_list, session_close", async () => {
    const { client, host } = serve({ script: [[say("Well"), stall()]] });
    const id = await client.create();
    expect(await refused(client.request("prompt", { text: "Go" }, "nosuch"))).toBe(
      "session_not_found",
    );
    expect(await refused(client.request("session_attach", {}, "nosuch"))).toBe("session_not_found");
    expect(await client.ask("session_list")).toEqual({
      sessions: [
        { id: "kept", title: "An old one", isOpen: false, isRunning: false, state: "idle" },
        { id, isOpen: true, isRunning: false, state: "idle" },
      ],
    });
    await client.ask("prompt", { text: "Go" }, id);
    await client.ask("session_close", {}, id);
    await client.next(({ type }) => type === "done");
    // A run that went on is aborted, with all of its events; one terminal event ends the stream.
    const types = client.events(id).map(({ type }) => type);
    expect(types.slice(-2)).toEqual(["agent_end", "done"]);
    expect(host.closed).toEqual([id]);
    client.forget(id);
    expect(await refused(client.request("prompt", { text: "Go" }, id))).toBe("session_not_found");
  });

  it("session_list {order: live}: those that wait for an answer come first, then those that run", async () => {
    // What the model does depends on what it is asked.
    const script: ScriptFunction = ({ messages }) =>
      JSON.stringify(messages).includes("Ask") ? [call("asks", {}, "c1")] : [say("Well"), stall()];
    const { client } = serve({ script, tools: [tool("asks")] });
    const open = await client.create();
    const create = async (): Promise<string> =>
      String((await client.ask("session_create"))["session"]);
    const [runs, waits] = [await create(), await create()];
    await client.ask("prompt", { text: "Go" }, runs);
    await client.ask("prompt", { text: "Ask" }, waits);
    await client.next(ends);
    const { sessions, next } = await client.ask("session_list", { limit: 3, order: "live" });
    expect(sessions).toMatchObject([
      { id: waits, state: "waiting", isRunning: false },
      { id: runs, state: "running", isRunning: true },
      { id: open, state: "idle", isOpen: true },
    ]);
    const rest = await client.ask("session_list", { limit: 3, order: "live", cursor: next });
    expect(rest).toMatchObject({ sessions: [{ id: "kept", state: "idle", isOpen: false }] });
    for (const payload of [
      { limit: 3, order: "live", cursor: "s_1" },
      { limit: 3, cwd: "/tea", allFolders: true },
      { limit: 3, allFolders: "yes" },
    ]) {
      expect(await refused(client.request("session_list", payload))).toBe("invalid_request");
    }
  });

  it("session_list {limit, cursor}: comes in pages, of a host that knows none as well", async () => {
    const { client } = serve();
    await client.create();
    await client.ask("session_create");
    const first = await client.ask("session_list", { limit: 2 });
    expect(first).toMatchObject({ sessions: [{ id: "kept" }, { id: "s_1" }], next: "s_1" });
    const second = await client.ask("session_list", { limit: 2, cursor: "s_1" });
    expect(second).toEqual({
      sessions: [{ id: "s_2", isOpen: true, isRunning: false, state: "idle" }],
    });
    for (const payload of [
      { limit: 0 },
      { limit: 1001 },
      { limit: 1.5 },
      { limit: "2" },
      { cursor: "s_1" },
      { limit: 2, cursor: 1 },
      { limit: 2, cursor: "" },
      { limit: 2, cursor: "gone" },
    ]) {
      expect(await refused(client.request("session_list", payload))).toBe("invalid_request");
    }
  });

  it("session_list {query, cwd, archived, order}: finds sessions, of a host that cannot as well", async () => {
    const { client, host } = serve({ session: { info: () => ({ cwd: "/tea", updatedAt: 3 }) } });
    host.stored.set("b", { id: "b", title: "Tea", cwd: "/tea", createdAt: 1, updatedAt: 9 });
    host.stored.set("c", {
      id: "c",
      firstPrompt: "Old TEA?",
      createdAt: 2,
      updatedAt: 2,
      archived: true,
    });
    await client.create();
    const list = async (payload: Record<string, unknown>): Promise<unknown> => {
      const { sessions } = await client.ask("session_list", { limit: 9, ...payload });
      return (sessions as { id: string }[]).map(({ id }) => id);
    };
    expect(await list({ query: "tea" })).toEqual(["b", "c"]);
    expect(await list({ query: " tea  OLD " })).toEqual(["c"]);
    expect(await list({ query: "" })).toEqual(["kept", "b", "c", "s_1"]);
    expect(await list({ archived: true })).toEqual(["c"]);
    expect(await list({ archived: false, cwd: "/tea" })).toEqual(["b", "s_1"]);
    expect(await list({ order: "updated" })).toEqual(["b", "s_1", "c", "kept"]);
    expect(await list({ order: "created", limit: 1 })).toEqual(["c"]);
    for (const payload of [
      { limit: 1, query: 5 },
      { limit: 1, query: "x".repeat(1001) },
      { limit: 1, cwd: [] },
      { limit: 1, archived: "yes" },
      { limit: 1, order: "size" },
      { query: "tea" },
    ]) {
      expect(await refused(client.request("session_list", payload))).toBe("invalid_request");
    }
  });

  it("session_rename, session_archive, session_fork: change what is stored, and open nothing", async () => {
    const { client, host } = serve();
    await client.create();
    expect(await client.ask("session_rename", { session: "kept", title: " Tea " })).toEqual({});
    expect(await client.ask("session_archive", { session: "kept" })).toEqual({});
    expect(host.stored.get("kept")).toEqual({ id: "kept", title: "Tea", archived: true });
    await client.ask("session_archive", { session: "kept", archived: false });
    expect(host.stored.get("kept")).toMatchObject({ archived: false });
    expect(await client.ask("session_fork", { session: "kept", at: 3 })).toEqual({
      session: "f_1",
    });
    expect(host.stored.get("f_1")).toEqual({ id: "f_1", from: "kept", at: 3 });
    expect(host.agents).toHaveLength(1);
    for (const [type, payload] of [
      ["session_rename", { session: "kept" }],
      ["session_rename", { session: "kept", title: "  " }],
      ["session_rename", { session: "kept", title: "x".repeat(201) }],
      ["session_rename", { title: "x" }],
      ["session_archive", { session: "kept", archived: 1 }],
      ["session_archive", { session: "" }],
      ["session_fork", { session: 5 }],
      ["session_fork", { session: "kept", at: 0 }],
      ["session_fork", { session: "kept", at: "1" }],
    ] as const) {
      expect(await refused(client.request(type, payload))).toBe("invalid_request");
    }
    for (const type of ["session_rename", "session_archive", "session_fork"]) {
      const answer = client.request(type, { session: "nosuch", title: "x" });
      expect(await refused(answer)).toBe("session_not_found");
    }
  });

  it("session_fork: sent again, on whichever connection, it makes no second session", async () => {
    const { client, another, host } = serve();
    await client.create();
    const frame = { type: "session_fork", id: "key", payload: { session: "kept" } };
    client.send(frame);
    await client.next(({ re }) => re === "key");
    const other = another("n");
    await other.ask("hello", { versions: [1] });
    other.send(frame);
    const again = await other.next(({ re }) => re === "key");
    expect(again.payload).toEqual({ session: "f_1" });
    expect([...host.stored.keys()]).toEqual(["kept", "f_1"]);
  });

  it("session_rename: of an open session, by that; a client that attaches meanwhile waits", async () => {
    const amended: unknown[] = [];
    let goOn = (): void => {};
    const waiting = new Promise<void>((settle) => (goOn = settle));
    const order: string[] = [];
    const { client, host } = serve({
      session: { amend: async (changes) => void amended.push(changes) },
      onAmend: async () => {
        await waiting;
        order.push("amended");
      },
      onOpen: () => void order.push("opened"),
    });
    const id = await client.create();
    await client.ask("session_rename", { session: id, title: "Tea" });
    expect(amended).toEqual([{ title: "Tea" }]);
    const answers = [
      client.request("session_rename", { session: "kept", title: "One" }),
      client.request("session_archive", { session: "kept" }),
      client.request("session_attach", {}, "kept"),
    ];
    goOn();
    for (const answer of answers) expect((await answer).type).toBe("ack");
    expect(order).toEqual(["amended", "amended", "opened"]);
    expect(host.stored.get("kept")).toEqual({ id: "kept", title: "One", archived: true });
  });

  it("session_rename, session_fork: not_implemented where the host cannot", async () => {
    const host = new ScriptedHost();
    const plain = {
      create: () => host.create(),
      open: host.open.bind(host),
      list: host.list.bind(host),
    };
    const client = new CheckingClient(overPair(new WireServer([new SessionService(plain)])));
    await client.create();
    const payload = { session: "kept", title: "x" };
    for (const type of ["session_rename", "session_archive", "session_fork"]) {
      expect(await refused(client.request(type, payload))).toBe("not_implemented");
    }
    const search = { text: "x", limit: 1 };
    expect(await refused(client.request("session_search", search))).toBe("not_implemented");
  });

  it("session_search {text, limit, cursor}: asks the host, with what it may ask", async () => {
    const { client, host } = serve();
    await client.create();
    const asked: unknown[] = [];
    host.search = async (request) => {
      asked.push(request);
      const match = { session: { id: "kept" }, entry: 3, role: "user", excerpt: "Green tea" };
      return { matches: [match], next: "CURSOR" };
    };
    expect(
      await client.ask("session_search", { text: "tea", limit: 2, cursor: "C", archived: false }),
    ).toEqual({
      matches: [{ session: { id: "kept" }, entry: 3, role: "user", excerpt: "Green tea" }],
      next: "CURSOR",
    });
    expect(asked).toEqual([{ text: "tea", limit: 2, after: "C", archived: false }]);
    for (const payload of [
      { text: "tea" },
      { limit: 1 },
      { text: " ", limit: 1 },
      { text: 5, limit: 1 },
      { text: "x".repeat(1001), limit: 1 },
      { text: "x", limit: 0 },
      { text: "x", limit: 1, cwd: 5 },
    ]) {
      expect(await refused(client.request("session_search", payload))).toBe("invalid_request");
    }
  });

  it("sent again, a message gets the first answer, on whichever connection", async () => {
    const { client, another, host } = serve({ script: ["One", "Two"] });
    const id = await client.create();
    const frame = { type: "prompt", id: "key", stream: id, payload: { text: "Go" } };
    client.send({ ...frame, seq: 1 });
    await client.next(ends);
    const other = another("n");
    await other.ask("hello", { versions: [1] });
    other.send({ type: "session_attach", id: "n_a", stream: id, seq: 1 });
    await other.next(({ re }) => re === "n_a");
    other.send({ ...frame, seq: 2 });
    expect(await other.next(({ re }) => re === "key")).toMatchObject({ type: "ack" });
    const made = client.send({ type: "session_create", id: "make" });
    const first = await client.next(({ re }) => re === made);
    other.send({ type: "session_create", id: "make" });
    const second = await other.next(({ re }) => re === "make");
    expect(second.payload["session"]).toBe(first.payload["session"]);
    expect(host.agents).toHaveLength(2);
    expect(host.events[0]?.filter(({ type }) => type === "agent_start")).toHaveLength(1);
  });
});

describe("any number of clients may watch one session; a disconnect is not a cancel", () => {
  it("goes on without its client, and is there for the next one", async () => {
    let goOn: () => void = () => {};
    const waits = new Promise<string>((resolve) => (goOn = () => resolve("waited")));
    const { client, another, host } = serve({
      script: [[call("wait")], "Done"],
      tools: [tool("wait", () => waits)],
    });
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    await client.next(({ type }) => type === "tool_execution_start");
    await client.close();
    const other = another("n");
    await other.ask("hello", { versions: [1] });
    await other.ask("session_attach", {}, id);
    const snapshot = await other.next(({ type }) => type === "snapshot");
    expect(snapshot.payload).toMatchObject({ isRunning: true, session: id });
    expect(snapshot).not.toHaveProperty("seq");
    goOn();
    await other.next(ends);
    expect(other.faults).toEqual([]);
    // What follows the snapshot can be rebuilt to the end.
    const { messages, state } = JSON.parse(JSON.stringify(snapshot.payload));
    const reader = new WireEventReader({ messages, state });
    const got = other.events(id).flatMap((frame) => reader.read(frame));
    const own = host.events[0] ?? [];
    expect(got.at(-1)).toEqual(JSON.parse(JSON.stringify(own.at(-1))));
  });

  it("sends each of them the same events", async () => {
    const { client, another } = serve({ script: ["Hello"] });
    const id = await client.create();
    const other = another("n");
    await other.ask("hello", { versions: [1] });
    await other.ask("session_attach", {}, id);
    await client.ask("prompt", { text: "Go" }, id);
    await other.next(ends);
    expect(strip(other.events(id))).toEqual(strip(client.events(id)));
    await other.ask("session_close", {}, id);
    expect(await client.next(({ type }) => type === "done")).toMatchObject({ stream: id });
  });
});

describe("session_attach {after}: what is missing, or a snapshot", () => {
  async function ran(options: SessionServiceOptions = {}): Promise<World & { id: string }> {
    const world = serve({ script: ["Hello", "Again"] }, options);
    const id = await world.client.create();
    await world.client.ask("prompt", { text: "Go" }, id);
    await world.client.next(ends);
    return { ...world, id };
  }

  it("nothing is lost or doubled, wherever a client comes back", async () => {
    const { client, another, id } = await ran();
    const all = client.events(id);
    for (let after = 1; after <= all.length; after++) {
      const other = another(`n${after}`);
      await other.ask("hello", { versions: [1] });
      const { epoch, seq } = await other.ask("session_attach", { after }, id);
      expect(seq).toBe(all.length);
      expect(typeof epoch).toBe("string");
      await other.request("ping");
      expect(strip(other.events(id))).toEqual(strip(all.slice(after)));
      await other.close();
    }
  });

  it.each<[string, object]>([
    ["no number", {}],
    ["zero", { after: 0 }],
    ["a number that has not been", { after: 1000 }],
    ["no whole number", { after: 1.5 }],
    ["a number of another life", { after: 1, epoch: "another" }],
  ])("gives a snapshot for %s", async (_, payload) => {
    const { another, id } = await ran();
    const other = another("n");
    await other.ask("hello", { versions: [1] });
    await other.ask("session_attach", { ...payload }, id);
    const snapshot = await other.next(({ type }) => type === "snapshot");
    expect(snapshot.payload).toMatchObject({
      messages: [{ role: "user" }, { role: "assistant" }],
      isRunning: false,
      omitted: 0,
    });
  });

  it("keeps 4,096 events or 4 MiB, whichever is less: what is gone is a snapshot", async () => {
    for (const limits of [{ tailEvents: 3 }, { tailBytes: 300 }]) {
      const { client, another, id } = await ran({ limits });
      const last = client.events(id).at(-1)?.seq ?? 0;
      const other = another("n");
      await other.ask("hello", { versions: [1] });
      await other.ask("session_attach", { after: last - 1 }, id);
      await other.ask("session_attach", { after: 1 }, id);
      await other.next(({ type }) => type === "snapshot");
      expect(other.frames.filter(({ seq }) => seq !== undefined)).toHaveLength(1);
    }
  });

  it("leaves the oldest messages out of a snapshot that would not fit a frame", async () => {
    const { client, another, id } = await ran({ limits: { frameBytes: 600 } });
    await client.ask("prompt", { text: "x".repeat(100) }, id);
    await client.next(({ type, seq }) => type === "agent_end" && (seq ?? 0) > 12);
    const other = another("n");
    await other.ask("hello", { versions: [1] });
    await other.ask("session_attach", {}, id);
    const { payload } = await other.next(({ type }) => type === "snapshot");
    expect(payload["omitted"]).toBeGreaterThan(0);
    expect((payload["messages"] as unknown[]).length + Number(payload["omitted"])).toBe(4);
  });

  it("opens a session that is not open, once for all who ask", async () => {
    const { client, another, host } = serve();
    const other = another("n");
    await client.ask("hello", { versions: [1] });
    await other.ask("hello", { versions: [1] });
    await Promise.all([
      client.ask("session_attach", {}, "kept"),
      other.ask("session_attach", {}, "kept"),
    ]);
    expect(host.agents).toHaveLength(1);
  });
});

describe("the service", () => {
  it("closes every session and says goodbye", async () => {
    const { client, host, service } = serve({ script: [[say("Well"), stall()]] });
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    await service.close();
    await client.next(({ type }) => type === "goodbye");
    expect(
      client
        .events(id)
        .slice(-2)
        .map(({ type }) => type),
    ).toEqual(["agent_end", "done"]);
    expect(host.closed).toEqual([id]);
  });

  it("sends what JSON cannot say without that part", async () => {
    const circle: Record<string, unknown> = { big: 10n, fine: 1 };
    circle["self"] = circle;
    const { client } = serve({
      script: [[call("odd")], "Done"],
      tools: [tool("odd", () => ({ content: [{ type: "text", text: "x" }], details: circle }))],
    });
    const id = await client.create();
    await client.ask("prompt", { text: "Go" }, id);
    await client.next(ends);
    const end = client.events(id).find(({ type }) => type === "tool_execution_end");
    expect(end?.payload["result"]).toMatchObject({ details: { big: "10", fine: 1 } });
  });

  it("hostile frames never throw and never stop it", async () => {
    const type = fc.constantFrom(
      "session_create",
      "session_list",
      "session_attach",
      "session_close",
      "session_rename",
      "session_archive",
      "session_fork",
      "session_search",
      "prompt",
      "continue",
      "steer",
      "follow_up",
      "queue_edit",
      "abort",
      "approve",
      "session_update",
      "messages_replace",
      "reset",
      "tool_register",
      "nosuch",
    );
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom("s_1", "kept", "steering", "x"),
    );
    const key = fc.constantFrom(
      ...["text", "images", "decisions", "messages", "tools", "modes", "op"],
      ...["session", "title", "archived", "at", "limit", "query", "order", "cwd"],
    );
    const hostile = fc.record(
      {
        type,
        id: fc.string({ minLength: 1, maxLength: 2 }),
        stream: fc.constantFrom("s_1", "s_2", "kept", "__proto__"),
        seq: fc.integer({ min: -1, max: 12 }),
        payload: fc.dictionary(fc.oneof(key, fc.string()), value),
      },
      { requiredKeys: ["type", "payload"] },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(hostile, { maxLength: 25 }), async (frames) => {
        const { client, another, service } = serve({ script: () => "Hello" });
        await client.create();
        for (const frame of frames) client.send(frame);
        client.send({ type: "ping", id: "the last" });
        await client.next(({ re }) => re === "the last");
        const other = another("other");
        const id = await other.create();
        const from = other.frames.length;
        await other.ask("prompt", { text: "Go" }, id);
        await other.next(ends, from);
        await service.close();
      }),
      { numRuns: 60 },
    );
  });
});

describe("a prompt that a host works on in several runs", () => {
  it("has one start and one end, which counts all of them", async () => {
    const { client, host }: World = serve({
      script: [say("One."), say("Two.")],
      session: {
        async prompt({ text }) {
          await host.agents[0]?.prompt(text);
          await host.agents[0]?.prompt("Go on.");
        },
      },
    });
    const id = await client.create();
    await client.ask("prompt", { text: "Begin." }, id);
    const end = await client.next(ends);
    expect(end.payload).toMatchObject({ stop: "done", turns: 2 });
    const types = client.events(id).map(({ type }) => type);
    expect(types.filter((type) => type === "agent_start")).toHaveLength(1);
    expect(types.filter((type) => type === "agent_end")).toHaveLength(1);
  });
});

describe("a session that cannot be saved", () => {
  it("says why, to clients and to the log", async () => {
    const full = "ENOSPC: no space left on device, write";
    const sink = (event: AgentEvent): void => {
      if (event.type === "message_end" && event.message.role === "assistant") throw new Error(full);
    };
    const { client, errors } = serve({ script: [say("Paid for.")], agent: { sink } });
    const id = await client.create();
    await client.ask("prompt", { text: "Begin." }, id);
    const { payload } = await client.next(ends);
    expect(payload).toMatchObject({ stop: "sink", errorMessage: expect.stringContaining(full) });
    expect(errors.map(String)).toEqual([expect.stringContaining(full)]);
    await client.ask("session_attach", {}, id);
    const snapshot = await client.next(({ type }) => type === "snapshot");
    expect(snapshot.payload["error"]).toContain(full);
  });
});

describe("an idle session", () => {
  const IDLE_MS = 60_000;

  it("is closed after a while, and opened again by the next client", async () => {
    const clock = manualClock();
    const session = { canReopen: () => true };
    const { host, service, another, client } = serve(
      { script: [say("One.")], session },
      { clock, idleMs: IDLE_MS },
    );
    await client.ask("hello", { versions: [1] });
    await client.ask("session_attach", {}, "kept");
    await clock.advance(10 * IDLE_MS);
    expect(host.closed).toEqual([]);
    await client.close();
    await clock.advance(IDLE_MS - 1);
    expect(host.closed).toEqual([]);
    await clock.advance(2);
    expect(host.closed).toEqual(["kept"]);
    const next = another("n");
    await next.ask("hello", { versions: [1] });
    await next.ask("session_attach", {}, "kept");
    expect(host.agents).toHaveLength(2);
    await next.ask("prompt", { text: "Still there?" }, "kept");
    await next.next(ends);
    await service.close();
  });

  it("stays where it runs, waits for a decision or a message, or cannot be opened again", async () => {
    const clock = manualClock();
    let canReopen = true;
    const { host, another, service } = serve(
      {
        script: [call("asks", {}), stall(), say("Unused.")],
        tools: [tool("asks")],
        session: { canReopen: () => canReopen },
      },
      { clock, idleMs: IDLE_MS },
    );
    const leave = async (act: (client: CheckingClient, id: string) => Promise<unknown>) => {
      const client = another(`c${host.agents.length}`);
      await act(client, await client.create());
      await client.close();
      await clock.advance(3 * IDLE_MS);
    };
    await leave(async (client, id) => {
      await client.ask("prompt", { text: "Ask." }, id);
      await client.next(ends);
    });
    await leave((client, id) => client.ask("follow_up", { text: "Later." }, id));
    canReopen = false;
    await leave(async () => {});
    expect(host.closed).toEqual([]);
    canReopen = true;
    await clock.advance(3 * IDLE_MS);
    expect(host.closed).toEqual(["s_3"]);
    await service.close();
  });
});
