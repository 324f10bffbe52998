import { statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import type { AgentMessage } from "@gyre/agent";
import type { Model } from "@gyre/ai";
import { SERVICES } from "@gyre/ai/providers";
import { createRemoteClient, decode, encode, type Envelope, WireClient } from "@gyre/protocol";
import { httpTransport } from "@gyre/protocol/http-transport";
import { connectTcp } from "@gyre/protocol/node";
import { streamProxy } from "@gyre/protocol/proxy";
import { RemoteAgent } from "@gyre/server/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import {
  buildProgram,
  jsonLines,
  type Program,
  type Run,
  type RunOptions,
  TEST_KEY,
} from "../testing/program.ts";
import { type ScriptedService, scriptedService } from "../testing/scripted-service.ts";
import { type ServedProgram, startServer, usualTokenFile } from "../testing/served-program.ts";

const MODEL: Model = {
  id: "claude-sonnet-5-5",
  name: "Sonnet",
  provider: "anthropic",
  api: "anthropic-messages",
};

const PATIENCE = { timeout: 20_000, interval: 50 };

let program: Program;
let service: ScriptedService;
/** What is closed after each test, the newest first. */
let open: (() => unknown)[] = [];

beforeAll(async () => {
  program = await buildProgram();
});

afterAll(() => program.remove());

beforeEach(async () => {
  service = await scriptedService();
});

afterEach(async () => {
  for (const close of open.toReversed()) await close();
  open = [];
  await service.close();
});

async function serve(args: readonly string[] = [], options: RunOptions = {}) {
  const server = await startServer(program, args, { service, ...options });
  open.push(() => ending(server.run));
  return server;
}

/** Nothing is left of it, however the test went. */
async function ending(run: Run): Promise<void> {
  run.kill("SIGKILL");
  await run.end;
}

async function agentOf(server: ServedProgram): Promise<RemoteAgent> {
  const agent = await RemoteAgent.create({ connect: server.webSocket });
  open.push(() => agent.close());
  return agent;
}

function textOf(message: AgentMessage | undefined): string {
  if (message?.role !== "assistant") return "";
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** An answer that waits to be let go. */
function held(): { answer: () => Promise<{ say: string }>; release: () => void } {
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  const answer = async (): Promise<{ say: string }> => {
    await gate;
    return { say: "At last." };
  };
  return { answer, release };
}

async function modelOf(server: ServedProgram): Promise<Model> {
  const client = createRemoteClient({ connect: server.webSocket });
  open.push(() => client.close());
  const [first] = await client.models();
  if (!first) throw new Error("There is no model.");
  return { ...MODEL, id: first.id, provider: first.provider };
}

/** With headers that `fetch` would not send. */
function statusOf(port: number, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ port, path: "/metrics", headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on("error", reject).end();
  });
}

describe("gyre serve", () => {
  it("sessions: works on a prompt over WebSocket, with its own tools", async () => {
    service.play([
      { say: [{ call: "write", arguments: { path: "a.txt", content: "hi\n" } }] },
      { say: "Written." },
    ]);
    const server = await serve(["--mode", "auto-edit"]);
    const agent = await agentOf(server);
    await agent.prompt("Write it.");
    expect(textOf(agent.state.messages.at(-1))).toBe("Written.");
    expect(statSync(`${server.run.cwd}/a.txt`).size).toBe(3);
  });

  it("sessions: are the same over TCP and over HTTP", async () => {
    service.play(() => ({ say: "Yes." }));
    const server = await serve(["--tcp-port", "0"]);
    const agent = await RemoteAgent.create({ connect: server.tcp });
    open.push(() => agent.close());
    await agent.prompt("One?");
    const { url, token } = server;
    const other = await RemoteAgent.attach(
      { connect: (signal) => httpTransport(url, { token, signal }) },
      agent.sessionId,
    );
    open.push(() => other.close());
    await other.prompt("Two?");
    expect(other.state.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
  });

  it("models: lists those of services with a key alone, and asks them", async () => {
    service.play([{ say: "Through the wire." }]);
    const server = await serve();
    const client = createRemoteClient({ connect: server.webSocket });
    open.push(() => client.close());
    const services = new Set((await client.models()).map(({ provider }) => provider));
    const keyless = SERVICES.filter((each) => each.keyless).map(({ id }) => id);
    expect(services).toContain("anthropic");
    const usable = new Set(["anthropic", ...keyless]);
    expect([...services].filter((id) => !usable.has(id))).toEqual([]);
    const message = await client.complete(await modelOf(server), { messages: [] });
    expect(textOf(message)).toBe("Through the wire.");
  });

  it("HTTP: streams to streamProxy, and the key stays in the server", async () => {
    service.play([{ say: "Through the proxy." }]);
    const server = await serve();
    const { url, token } = server;
    const events: string[] = [];
    const stream = streamProxy(await modelOf(server), { messages: [] }, { url, token });
    for await (const event of stream) events.push(JSON.stringify(event));
    expect(textOf(await stream.result())).toBe("Through the proxy.");
    expect(service.requests[0]?.headers["x-api-key"]).toBe(TEST_KEY);
    expect(events.join("\n")).not.toContain(TEST_KEY);
  });

  it("HTTP: tells its health to everybody, and its figures to those with the token", async () => {
    const { url, token } = await serve();
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ ok: true });
    const authorization = `Bearer ${token}`;
    const figures = await (await fetch(`${url}/metrics`, { headers: { authorization } })).text();
    expect(figures).toContain("gyre_sessions_running 0");
    expect(figures).toContain("gyre_streams_running 0");
  });

  it("who may come in: nobody without the token or under a foreign name, and that is logged", async () => {
    const server = await serve();
    const wrong = { authorization: "Bearer no-token-of-this-server" };
    expect((await fetch(`${server.url}/metrics`, { headers: wrong })).status).toBe(401);
    const { port, token } = server;
    const headers = { host: "evil.example", authorization: `Bearer ${token}` };
    expect(await statusOf(port, headers)).toBe(403);
    expect(await server.logged("refused")).toMatchObject({ reason: "token", level: "info" });
  });

  it("who may come in: also by a name and from a page that were allowed", async () => {
    const origin = "https://page.example";
    const server = await serve(["--allow-host", "gyre.example", "--allow-origin", origin]);
    const { port, token } = server;
    const headers = { host: "gyre.example", origin, authorization: `Bearer ${token}` };
    expect(await statusOf(port, headers)).toBe(200);
  });

  it("who may come in: nobody without the token over TCP, and that is logged", async () => {
    const server = await serve(["--tcp-port", "0"]);
    const port = Number(/^TCP at .*port (\d+)$/m.exec(server.run.stdout)?.[1]);
    const peer = new WireClient({
      connect: (signal) => connectTcp({ port, token: "no-token-of-this-server", signal }),
    });
    open.push(() => peer.close());
    await expect(peer.request("session_list", {})).rejects.toThrow("token");
    expect(await server.logged("refused")).toMatchObject({ reason: "token" });
  });

  it("the token: a file that others can read is refused", async () => {
    const home = await program.makeHome();
    const file = join(home, "token");
    writeFileSync(file, "0123456789abcdef0123456789abcdef\n", { mode: 0o644 });
    const args = ["serve", "--port", "0", "--token-file", file];
    const { code, stderr } = await program.gyre(args, { home, service });
    expect(code).toBe(1);
    expect(stderr).toContain(`Others have access to ${file}.`);
  });

  it("the token: is made once, for its owner alone, and shown once", async () => {
    const home = await program.makeHome();
    const first = await serve([], { home });
    expect(first.tokenFile).toBe(usualTokenFile(home));
    expect(statSync(first.tokenFile).mode & 0o777).toBe(0o600);
    expect(first.run.stdout).toContain(`shown this once: ${first.token}\n`);
    const second = await serve([], { home });
    expect(second.token).toBe(first.token);
    expect(second.run.stdout).not.toContain(first.token);
  });

  it("the log: is lines of JSON with neither content, nor key, nor token", async () => {
    service.play([{ say: "A secret answer." }]);
    const server = await serve();
    const agent = await agentOf(server);
    await agent.prompt("A secret question.");
    await expect(agent.setModel("nobody/nothing")).rejects.toThrow("nobody");
    await agent.close();
    await server.logged("disconnect");
    server.run.kill("SIGTERM");
    const { stderr } = await server.run.end;
    expect(jsonLines(stderr).map(({ event }) => event)).toEqual([
      "listen",
      "connect",
      "request_error",
      "disconnect",
      "drain",
      "exit",
    ]);
    for (const secret of ["secret", TEST_KEY, server.token, "nobody"]) {
      expect(stderr).not.toContain(secret);
    }
  });

  it("the log: is empty with --quiet", async () => {
    const server = await serve(["--quiet"]);
    expect((await fetch(`${server.url}/metrics`)).status).toBe(401);
    server.run.kill("SIGTERM");
    expect((await server.run.end).stderr).toBe("");
  });

  it("the log: warns where others can come, as there is no encryption", async () => {
    const server = await serve(["--host", "0.0.0.0"]);
    expect(await server.logged("warning")).toMatchObject({
      level: "warning",
      message: expect.stringContaining("put a proxy with TLS before it"),
    });
  });
});

describe("gyre serve, asked to end", () => {
  it.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
    ["SIGHUP", 129],
  ] as const)("on %s ends with %i, also with clients that stay", async (signal, code) => {
    const server = await serve();
    const peer = new WireClient({ connect: server.webSocket });
    open.push(() => peer.close());
    await peer.request("session_list", {});
    server.run.kill(signal);
    expect((await server.run.end).code).toBe(code);
    expect(await server.logged("exit")).toMatchObject({ code });
  });

  it("drain: lets a run come to its end, and begins nothing new", async () => {
    const { answer, release } = held();
    service.play(answer);
    const server = await serve(["--drain", "60"]);
    const agent = await agentOf(server);
    const idle = await agentOf(server);
    const run = agent.prompt("Take your time.");
    await service.asked(0);
    server.run.kill("SIGTERM");
    expect(await server.logged("drain")).toMatchObject({ sessions: 1, drainMs: 60_000 });
    await expect(idle.prompt("One more.")).rejects.toThrow("about to stop");
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow("fetch failed");
    release();
    expect((await run).stop).toBe("done");
    expect(textOf(agent.state.messages.at(-1))).toBe("At last.");
    expect((await server.run.end).code).toBe(143);
    expect(service.requests).toHaveLength(1);
  });

  it("drain: a run can be aborted meanwhile", async () => {
    service.play([{ silent: true }]);
    const server = await serve(["--drain", "600"]);
    const agent = await agentOf(server);
    const run = agent.prompt("For ever.");
    await service.asked(0);
    server.run.kill("SIGTERM");
    await server.logged("drain");
    await agent.abort();
    expect((await run).stop).toBe("aborted");
    expect((await server.run.end).code).toBe(143);
  });

  it("drain: lets a stream come to its end", async () => {
    const { answer, release } = held();
    service.play(answer);
    const server = await serve(["--drain", "60"]);
    const { url, token } = server;
    const stream = streamProxy(await modelOf(server), { messages: [] }, { url, token });
    await service.asked(0);
    server.run.kill("SIGTERM");
    expect(await server.logged("drain")).toMatchObject({ streams: 1 });
    release();
    expect(textOf(await stream.result())).toBe("At last.");
    expect((await server.run.end).code).toBe(143);
  });

  it("drain: aborts what runs on, tells of it, and has it written down", async () => {
    service.play([{ silent: true }]);
    const home = await program.makeHome();
    const server = await serve(["--drain", "0"], { home });
    const agent = await agentOf(server);
    const run = agent.prompt("For ever.");
    await service.asked(0);
    server.run.kill("SIGTERM");
    expect((await run).stop).toBe("aborted");
    expect((await server.run.end).code).toBe(143);
    expect(await server.logged("abort")).toMatchObject({ sessions: 1 });
    const { stdout } = await program.gyre(["sessions", "show", agent.sessionId], { home });
    expect(stdout).toContain("For ever.");
  });

  it("drain: a second signal waits for nothing", async () => {
    service.play([{ silent: true }]);
    const server = await serve(["--drain", "600"]);
    const agent = await agentOf(server);
    // The server leaves without a word: the run is lost to this client.
    agent.prompt("For ever.").catch(() => {});
    await service.asked(0);
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
    service.play([{ say: "Before." }, { say: "After." }]);
    const home = await program.makeHome();
    const first = await serve([], { home });
    const agent = await agentOf(first);
    await agent.prompt("One.");
    first.run.kill("SIGKILL");
    await first.run.end;
    await serve(["--port", String(first.port)], { home });
    await agent.prompt("Two.");
    expect(agent.state.messages.filter(({ role }) => role === "assistant").map(textOf)).toEqual([
      "Before.",
      "After.",
    ]);
    expect(service.requests[1]?.text).toContain("Before.");
  });

  it("resume: a run that went on is over, and its session goes on in the next server", async () => {
    service.play([{ silent: true }, { say: "After." }]);
    const home = await program.makeHome();
    const first = await serve([], { home });
    const agent = await agentOf(first);
    const run = expect(agent.prompt("One.")).rejects.toThrow("opened anew");
    await service.asked(0);
    first.run.kill("SIGKILL");
    await first.run.end;
    await serve(["--port", String(first.port)], { home });
    await run;
    await agent.prompt("Two.");
    expect(textOf(agent.state.messages.at(-1))).toBe("After.");
    expect(agent.state.messages[0]).toMatchObject({ role: "user", content: "One." });
  });
});

describe("gyre serve --stdio", () => {
  it("serves sessions and models on stdin and stdout, with frames alone", async () => {
    service.play([{ say: "Here." }]);
    const run = await program.start(["serve", "--stdio", "--sandbox", "none"], {
      service,
      stdin: "open",
    });
    open.push(() => ending(run));
    const ask = (frame: Partial<Envelope> & Pick<Envelope, "type" | "id">): unknown =>
      run.stdin?.write(`${encode({ v: 1, ts: 0, payload: {}, ...frame })}\n`);
    ask({ type: "hello", id: "m_1", payload: { versions: [1] } });
    ask({ type: "models", id: "m_2" });
    ask({ type: "session_create", id: "m_3" });
    await run.shows('"re":"m_3"');
    const frames = (): Envelope[] =>
      run.stdout
        .trimEnd()
        .split("\n")
        .map((line) => decode(line));
    const made = frames().find(({ re }) => re === "m_3");
    const stream = String(made?.payload["session"]);
    ask({ type: "prompt", id: "m_4", stream, seq: 1, payload: { text: "Are you there?" } });
    await run.shows('"agent_end"');
    run.stdin?.end();
    expect((await run.end).code).toBe(0);
    expect(frames().map(({ type }) => type)).toContain("agent_end");
    expect(frames().find(({ re }) => re === "m_2")?.payload["models"]).not.toEqual([]);
    expect(jsonLines(run.stderr).map(({ event }) => event)).toEqual([
      "listen",
      "connect",
      "disconnect",
      "exit",
    ]);
  });
});

describe("gyre serve without a key", () => {
  it("starts, and says in the log that there is no model", async () => {
    const server = await startServer(program, [], {});
    open.push(() => ending(server.run));
    const { message } = await server.logged("warning");
    expect(message).toContain("no service has a key");
  });
});

describe("gyre serve, refused", () => {
  it("tells in one line that a port is in use, and ends with 1", async () => {
    const { port } = await serve();
    const { code, stderr, stdout } = await program.gyre(
      ["serve", "--quiet", "--port", String(port)],
      { service },
    );
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(
      `gyre: Port ${port} of 127.0.0.1 is in use. Choose another with --port, or 0 for a free one.\n`,
    );
  });

  it.each([
    [["--port", "70000"], '--port "70000" must be a number'],
    [["--drain", "soon"], '--drain "soon" must be seconds'],
    [["--stdio", "--port", "1"], "--stdio has no port: --port means nothing there."],
    [["--allow-origin", "page.example"], "--allow-origin"],
    [["--allow-host", "https://page.example"], "--allow-host"],
    [["--host", ""], '--host "" must be an address'],
    [["--model", "nobody"], "nobody"],
    [["--cwd", "nowhere"], "there is no such folder"],
  ])("refuses %j", async (args, why) => {
    const { code, stderr, stdout } = await program.gyre(["serve", ...args], { service });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(why);
  });
});
