import { call, say, stall } from "@gyre/ai/testing";
import { type Payload, ProtocolError } from "@gyre/protocol";
import { describe, expect, it, vi } from "vitest";
import type { HostAnswer } from "../sessions/session-host.ts";
import { createRemoteWorld, createTestTool } from "../testing/remote-world.ts";
import { RemoteAgent } from "./remote-agent.ts";

/** Collects what a client gets to know beside the conversation. */
function watching(): { seen: Payload[]; onStatus: (status: Payload) => void } {
  const seen: Payload[] = [];
  return { seen, onStatus: (status) => void seen.push(status) };
}

const waiting = (status: Payload | undefined): unknown[] => {
  const list = status?.["waiting"];
  return Array.isArray(list) ? list.map(({ queue, text }) => `${queue}: ${text}`) : [];
};

describe("session_status", () => {
  it("goes to clients that ask for it, at once and after each change", async () => {
    const world = createRemoteWorld({ script: [[say("Well"), stall()]] });
    const one = watching();
    const other = watching();
    const { client } = world.client();
    const agent = await RemoteAgent.create(client, {}, one);
    await vi.waitFor(() => expect(one.seen).toEqual([{ waiting: [] }]));
    const second = await RemoteAgent.attach(world.client().client, agent.sessionId, other);
    const plain = await RemoteAgent.attach(world.client().client, agent.sessionId);
    const run = agent.prompt("Go.").catch(() => {});
    await vi.waitFor(() => expect(plain.state.streamMessage).toBeDefined());
    await plain.steer("Mind the tests.");
    await second.followUp("Then write it down.");
    const both = ["steering: Mind the tests.", "followUp: Then write it down."];
    await vi.waitFor(() => expect(waiting(one.seen.at(-1))).toEqual(both));
    await vi.waitFor(() => expect(waiting(other.seen.at(-1))).toEqual(both));
    await agent.clearAllQueues();
    await vi.waitFor(() => expect(waiting(other.seen.at(-1))).toEqual([]));
    await agent.abort();
    await run;
    expect(world.errors).toEqual([]);
  });

  it("follows messages that the run has read", async () => {
    const look = createTestTool("look");
    const world = createRemoteWorld({ script: [[call("look")], "Done."], tools: [look] });
    const { seen, onStatus } = watching();
    const agent = await RemoteAgent.create(world.client().client, {}, { onStatus });
    await agent.followUp("And then?");
    await vi.waitFor(() => expect(waiting(seen.at(-1))).toEqual(["followUp: And then?"]));
    await agent.prompt("Go.");
    await vi.waitFor(() => expect(waiting(seen.at(-1))).toEqual([]));
  });

  it("has what the host adds, and comes again on a new connection", async () => {
    let jobs = 0;
    let changed = (): void => {};
    const world = createRemoteWorld({
      session: {
        status: () => ({ jobs }),
        onStatusChange: (listener) => {
          changed = listener;
          return () => {};
        },
      },
    });
    const { seen, onStatus } = watching();
    const cut = world.client();
    await RemoteAgent.create(cut.client, {}, { onStatus });
    await vi.waitFor(() => expect(seen).toEqual([{ waiting: [], jobs: 0 }]));
    jobs = 1;
    changed();
    // The same again is not sent.
    changed();
    await vi.waitFor(() => expect(seen.at(-1)).toEqual({ waiting: [], jobs: 1 }));
    expect(seen).toHaveLength(2);
    cut.hold();
    cut.cut();
    jobs = 2;
    changed();
    cut.release();
    await vi.waitFor(() => expect(seen.at(-1)).toEqual({ waiting: [], jobs: 2 }));
  });

  it("a host whose status fails is reported, and the session goes on", async () => {
    const world = createRemoteWorld({
      script: ["Green."],
      session: {
        status: () => {
          throw new Error("no status today");
        },
      },
    });
    const agent = await RemoteAgent.create(world.client().client, {}, watching());
    expect((await agent.prompt("Which tea?")).text).toBe("Green.");
    expect(String(world.errors[0])).toContain("no status today");
  });
});

describe("session_request", () => {
  const session = {
    async request(name: string, payload: Payload): Promise<HostAnswer> {
      if (name === "double") return { payload: { is: 2 * Number(payload["of"]) } };
      throw new ProtocolError("not_implemented", `There is no "${name}".`);
    },
  };

  it("is answered by the host, and a name that it does not know is not implemented", async () => {
    const world = createRemoteWorld({ session });
    const agent = await RemoteAgent.create(world.client().client);
    expect(await agent.request("double", { of: 21 })).toEqual({ is: 42 });
    await expect(agent.request("halve")).rejects.toMatchObject({ code: "not_implemented" });
  });

  it("is not implemented where the host takes none", async () => {
    const agent = await RemoteAgent.create(createRemoteWorld().client().client);
    await expect(agent.request("double")).rejects.toMatchObject({ code: "not_implemented" });
  });

  it("all clients get a snapshot of a transcript that it has changed, and settings that it has", async () => {
    const world = createRemoteWorld({
      script: ["Green."],
      session: (agent) => ({
        async request(name) {
          if (name === "shorten") {
            agent.replaceMessages(agent.state.messages.slice(0, 2));
            return { payload: {}, isRewritten: true };
          }
          agent.setThinkingLevel("high");
          return { payload: {} };
        },
      }),
    });
    const agent = await RemoteAgent.create(world.client().client);
    const other = await RemoteAgent.attach(world.client().client, agent.sessionId);
    await agent.prompt("Which tea?");
    await agent.prompt("And in the morning?");
    await agent.request("shorten");
    await vi.waitFor(() => expect(other.state.messages).toHaveLength(2));
    expect(agent.state.messages).toHaveLength(2);
    await agent.request("think");
    await vi.waitFor(() => expect(other.state.thinkingLevel).toBe("high"));
  });

  it("keeps no other request waiting, and is done once though the connection breaks", async () => {
    let done = 0;
    let finish = (): void => {};
    const slow = new Promise<void>((resolve) => (finish = resolve));
    const world = createRemoteWorld({
      script: ["Green."],
      session: {
        async request() {
          done++;
          await slow;
          return { payload: { done } };
        },
      },
    });
    const cut = world.client();
    const agent = await RemoteAgent.create(cut.client);
    const answer = agent.request("slow");
    expect((await agent.prompt("Which tea?")).text).toBe("Green.");
    cut.cut();
    await vi.waitFor(() => expect(cut.connections()).toBe(2));
    finish();
    expect(await answer).toEqual({ done: 1 });
  });
});

describe("epoch", () => {
  it("a prompt that was sent to a session before it was opened again is not done twice", async () => {
    const world = createRemoteWorld({ script: ["Green."] });
    const cut = world.client();
    const agent = await RemoteAgent.attach(cut.client, "kept");
    cut.hold();
    const prompt = agent.prompt("Which tea?");
    // The answer is lost: nothing shows here whether it was done.
    cut.cut();
    const other = await RemoteAgent.attach(world.client().client, "kept");
    await other.waitForIdle();
    await other.closeSession();
    cut.release();
    await expect(prompt).rejects.toMatchObject({ code: "stream_not_found" });
    const starts = (): number =>
      world.host.events.flat().filter(({ type }) => type === "agent_start").length;
    expect(starts()).toBe(1);
    // What is sent with the new epoch is done.
    expect((await agent.prompt("And now?")).text).toBe("Green.");
    expect(starts()).toBe(2);
  });

  it("a prompt without a connection is for the session as it is found afterwards", async () => {
    const world = createRemoteWorld({ script: ["Green."] });
    const cut = world.client();
    const agent = await RemoteAgent.attach(cut.client, "kept");
    cut.hold();
    cut.cut();
    const prompt = agent.prompt("Which tea?");
    const other = await RemoteAgent.attach(world.client().client, "kept");
    await other.closeSession();
    cut.release();
    expect((await prompt).text).toBe("Green.");
  });
});

describe("watch", () => {
  it("reports the connection, the status and the end of what an agent follows", async () => {
    const world = createRemoteWorld({ script: [[say("Well"), stall()]] });
    const cut = world.client();
    const agent = await RemoteAgent.create(cut.client);
    const seen: string[] = [];
    const { seen: statuses, onStatus } = watching();
    const stop = agent.watch({
      onConnection: ({ type }) => seen.push(type),
      onStatus,
      onClosed: ({ message }) => seen.push(message),
    });
    const ended = agent.watch({ onConnection: () => seen.push("never") });
    ended();
    await vi.waitFor(() => expect(statuses).toEqual([{ waiting: [] }]));
    await agent.followUp("And then?");
    await vi.waitFor(() => expect(waiting(statuses.at(-1))).toEqual(["followUp: And then?"]));
    cut.cut();
    await vi.waitFor(() => expect(seen).toEqual(["waiting", "connecting", "ready"]));
    expect(agent.connection.type).toBe("ready");
    // It is asked for on the new connection, too.
    await agent.clearAllQueues();
    await vi.waitFor(() => expect(waiting(statuses.at(-1))).toEqual([]));
    await agent.close();
    expect(seen.at(-1)).toBe("The remote agent was closed.");
    stop();
    expect(world.errors).toEqual([]);
  });
});
