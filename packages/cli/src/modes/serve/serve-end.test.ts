import { WireClient } from "@gyre/protocol";
import { streamProxy } from "@gyre/protocol/proxy";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { PATIENCE, ServeWorld, readText } from "../../testing/served-program.ts";

let world: ServeWorld;

beforeAll(async () => {
  world = await ServeWorld.open();
});

afterAll(() => world.remove());

beforeEach(() => world.begin());

afterEach(() => world.end());

/** An answer that waits to be released. */
function held(): { answer: () => Promise<{ say: string }>; release: () => void } {
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  const answer = async (): Promise<{ say: string }> => {
    await gate;
    return { say: "At last." };
  };
  return { answer, release };
}

describe("gyre serve, asked to end", () => {
  it.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
    ["SIGHUP", 129],
  ] as const)("on %s ends with %i, also with clients that stay", async (signal, code) => {
    const server = await world.serve();
    const peer = new WireClient({ connect: server.webSocket });
    world.closes(peer);
    await peer.request("session_list", {});
    server.run.kill(signal);
    expect((await server.run.end).code).toBe(code);
    expect(await server.logged("exit")).toMatchObject({ code });
  });

  it("drain: lets a run come to its end, and begins nothing new", async () => {
    const { answer, release } = held();
    world.service.play(answer);
    const server = await world.serve(["--drain", "60"]);
    const agent = await world.createAgent(server);
    const idle = await world.createAgent(server);
    const run = agent.prompt("Take your time.");
    await world.service.asked(0);
    server.run.kill("SIGTERM");
    expect(await server.logged("drain")).toMatchObject({ sessions: 1, drainMs: 60_000 });
    await expect(idle.prompt("One more.")).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("about to stop"),
    });
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow("fetch failed");
    release();
    expect((await run).stop).toBe("done");
    expect(readText(agent.state.messages.at(-1))).toBe("At last.");
    expect((await server.run.end).code).toBe(143);
    expect(world.service.requests).toHaveLength(1);
  });

  it("drain: a run can be aborted meanwhile", async () => {
    world.service.play([{ silent: true }]);
    const server = await world.serve(["--drain", "600"]);
    const agent = await world.createAgent(server);
    const run = agent.prompt("For ever.");
    await world.service.asked(0);
    server.run.kill("SIGTERM");
    await server.logged("drain");
    await agent.abort();
    expect((await run).stop).toBe("aborted");
    expect((await server.run.end).code).toBe(143);
  });

  it("drain: lets a stream come to its end", async () => {
    const { answer, release } = held();
    world.service.play(answer);
    const server = await world.serve(["--drain", "60"]);
    const { url, token } = server;
    const stream = streamProxy(await world.findModel(server), { messages: [] }, { url, token });
    await world.service.asked(0);
    server.run.kill("SIGTERM");
    expect(await server.logged("drain")).toMatchObject({ streams: 1 });
    release();
    expect(readText(await stream.result())).toBe("At last.");
    expect((await server.run.end).code).toBe(143);
  });

  it("drain: aborts what runs on, reports it, and has it written down", async () => {
    world.service.play([{ silent: true }]);
    const home = await world.program.makeHome();
    const server = await world.serve(["--drain", "0"], { home });
    const agent = await world.createAgent(server);
    const run = agent.prompt("For ever.");
    await world.service.asked(0);
    server.run.kill("SIGTERM");
    expect((await run).stop).toBe("aborted");
    expect((await server.run.end).code).toBe(143);
    expect(await server.logged("abort")).toMatchObject({ sessions: 1 });
    const { stdout } = await world.program.gyre(["sessions", "show", agent.sessionId], { home });
    expect(stdout).toContain("For ever.");
  });

  it("drain: a second signal waits for nothing", async () => {
    world.service.play([{ silent: true }]);
    const server = await world.serve(["--drain", "600"]);
    const agent = await world.createAgent(server);
    // The server leaves without a word: the run is lost to this client.
    agent.prompt("For ever.").catch(() => {});
    await world.service.asked(0);
    server.run.kill("SIGTERM");
    await server.logged("drain");
    let isOver = false;
    void server.run.end.finally(() => (isOver = true));
    // What comes right after the first signal is taken for the same key press.
    await vi.waitFor(() => {
      if (!isOver) server.run.kill("SIGTERM");
      expect(isOver).toBe(true);
    }, PATIENCE);
    expect(await server.run.end).toMatchObject({ code: 143 });
    expect(server.run.stderr).not.toContain('"event":"exit"');
  });
});

describe("gyre serve, killed", () => {
  it("resume: a session goes on in the next server, with the same client", async () => {
    world.service.play([{ say: "Before." }, { say: "After." }]);
    const home = await world.program.makeHome();
    const first = await world.serve([], { home });
    const agent = await world.createAgent(first);
    await agent.prompt("One.");
    first.run.kill("SIGKILL");
    await first.run.end;
    await world.serve(["--port", String(first.port)], { home });
    await agent.prompt("Two.");
    expect(agent.state.messages.filter(({ role }) => role === "assistant").map(readText)).toEqual([
      "Before.",
      "After.",
    ]);
    expect(world.service.requests[1]?.text).toContain("Before.");
  });

  it("resume: a run that went on is over, and its session goes on in the next server", async () => {
    world.service.play([{ silent: true }, { say: "After." }]);
    const home = await world.program.makeHome();
    const first = await world.serve([], { home });
    const agent = await world.createAgent(first);
    const run = agent.prompt("One.").catch(String);
    await world.service.asked(0);
    first.run.kill("SIGKILL");
    await first.run.end;
    await world.serve(["--port", String(first.port)], { home });
    expect(await run).toContain("opened again");
    await agent.prompt("Two.");
    expect(readText(agent.state.messages.at(-1))).toBe("After.");
    const [prompt] = agent.state.messages.filter(({ role }) => role === "user");
    expect(prompt).toMatchObject({ content: "One." });
  });
});
