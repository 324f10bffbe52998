import { statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { SERVICES } from "@gyre/ai/providers";
import { createRemoteClient, decode, encode, type Envelope, WireClient } from "@gyre/protocol";
import { openHttp } from "@gyre/protocol/transports/http";
import { connectTcp } from "@gyre/protocol/node";
import { streamProxy } from "@gyre/protocol/proxy";
import { RemoteAgent } from "@gyre/server/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jsonLines, TEST_KEY } from "../../testing/program.ts";
import { ServeWorld, startServer, readText, usualTokenFile } from "../../testing/served-program.ts";

let world: ServeWorld;

beforeAll(async () => {
  world = await ServeWorld.open();
});

afterAll(() => world.remove());

beforeEach(() => world.begin());

afterEach(() => world.end());

/** With headers that `fetch` would not send. */
function fetchStatus(port: number, headers: Record<string, string>): Promise<number | undefined> {
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
    world.service.play([
      { say: [{ call: "write", arguments: { path: "a.txt", content: "hi\n" } }] },
      { say: "Written." },
    ]);
    const server = await world.serve(["--mode", "auto-edit"]);
    const agent = await world.createAgent(server);
    await agent.prompt("Write it.");
    expect(readText(agent.state.messages.at(-1))).toBe("Written.");
    expect(statSync(`${server.run.cwd}/a.txt`).size).toBe(3);
  });

  it("sessions: are the same over TCP and over HTTP", async () => {
    world.service.play(() => ({ say: "Yes." }));
    const server = await world.serve(["--listen", "tcp://127.0.0.1:0"]);
    const agent = await RemoteAgent.create({ connect: server.tcp });
    world.closes(agent);
    await agent.prompt("One?");
    const { url, token } = server;
    const other = await RemoteAgent.attach(
      { connect: (signal) => openHttp(url, { token, signal }) },
      agent.sessionId,
    );
    world.closes(other);
    await other.prompt("Two?");
    expect(other.state.messages.map(({ role }) => role)).toEqual([
      "notice",
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
  });

  it("models: lists those of services with a key alone, and asks them", async () => {
    world.service.play([{ say: "Through the wire." }]);
    const server = await world.serve();
    const client = createRemoteClient({ connect: server.webSocket });
    world.closes(client);
    const services = new Set((await client.models()).map(({ provider }) => provider));
    const keyless = SERVICES.filter((each) => each.keyless).map(({ id }) => id);
    expect(services).toContain("anthropic");
    const usable = new Set(["anthropic", ...keyless]);
    expect([...services].filter((id) => !usable.has(id))).toEqual([]);
    const message = await client.complete(await world.findModel(server), { messages: [] });
    expect(readText(message)).toBe("Through the wire.");
  });

  it("HTTP: streams to streamProxy, and the key stays in the server", async () => {
    world.service.play([{ say: "Through the proxy." }]);
    const server = await world.serve();
    const { url, token } = server;
    const events: string[] = [];
    const stream = streamProxy(await world.findModel(server), { messages: [] }, { url, token });
    for await (const event of stream) events.push(JSON.stringify(event));
    expect(readText(await stream.result())).toBe("Through the proxy.");
    expect(world.service.requests[0]?.headers["x-api-key"]).toBe(TEST_KEY);
    expect(events.join("\n")).not.toContain(TEST_KEY);
  });

  it("HTTP: gives its health to everybody, and its figures to those with the token", async () => {
    const { url, token } = await world.serve();
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ ok: true });
    const authorization = `Bearer ${token}`;
    const figures = await (await fetch(`${url}/metrics`, { headers: { authorization } })).text();
    expect(figures).toContain("gyre_sessions_running 0");
    expect(figures).toContain("gyre_streams_running 0");
  });

  it("who may come in: no client without the token or under a foreign name, and that is logged", async () => {
    const server = await world.serve();
    const wrong = { authorization: "Bearer no-token-of-this-server" };
    expect((await fetch(`${server.url}/metrics`, { headers: wrong })).status).toBe(401);
    const { port, token } = server;
    const headers = { host: "evil.example", authorization: `Bearer ${token}` };
    expect(await fetchStatus(port, headers)).toBe(403);
    expect(await server.logged("refused")).toMatchObject({ reason: "token", level: "info" });
  });

  it("who may come in: also by a name and from a page that were allowed", async () => {
    const origin = "https://page.example";
    const server = await world.serve(["--allow-host", "gyre.example", "--allow-origin", origin]);
    const { port, token } = server;
    const headers = { host: "gyre.example", origin, authorization: `Bearer ${token}` };
    expect(await fetchStatus(port, headers)).toBe(200);
  });

  it("who may come in: no client without the token over TCP, and that is logged", async () => {
    const server = await world.serve(["--tcp-port", "0"]);
    const port = Number(/^Also at tcp:.*:(\d+)$/m.exec(server.run.stdout)?.[1]);
    const peer = new WireClient({
      connect: (signal) => connectTcp({ port, token: "no-token-of-this-server", signal }),
    });
    world.closes(peer);
    await expect(peer.request("session_list", {})).rejects.toThrow("token");
    expect(await server.logged("refused")).toMatchObject({ reason: "token" });
  });

  it("the token: a file that others can read is refused", async () => {
    const home = await world.program.makeHome();
    const file = join(home, "token");
    writeFileSync(file, "0123456789abcdef0123456789abcdef\n", { mode: 0o644 });
    const args = ["serve", "--port", "0", "--token-file", file];
    const { code, stderr } = await world.program.gyre(args, { home, service: world.service });
    expect(code).toBe(1);
    expect(stderr).toContain(`Others have access to ${file}.`);
  });

  it("the token: is made once, for its owner alone, and shown once", async () => {
    const home = await world.program.makeHome();
    const first = await world.serve([], { home });
    expect(first.tokenFile).toBe(usualTokenFile(home));
    expect(statSync(first.tokenFile).mode & 0o777).toBe(0o600);
    expect(first.run.stdout).toContain(`shown this once: ${first.token}\n`);
    const second = await world.serve([], { home });
    expect(second.token).toBe(first.token);
    expect(second.run.stdout).not.toContain(first.token);
  });

  it("the log: is lines of JSON with neither content, nor key, nor token", async () => {
    world.service.play([{ say: "A secret answer." }]);
    const server = await world.serve();
    const agent = await world.createAgent(server);
    await agent.prompt("A secret question.");
    await expect(agent.setModel("absent/nothing")).rejects.toThrow("absent");
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
    for (const secret of ["secret", TEST_KEY, server.token, "absent"]) {
      expect(stderr).not.toContain(secret);
    }
  });

  it("the log: is empty with --quiet", async () => {
    const server = await world.serve(["--quiet"]);
    expect((await fetch(`${server.url}/metrics`)).status).toBe(401);
    server.run.kill("SIGTERM");
    expect((await server.run.end).stderr).toBe("");
  });

  it("the log: warns where others can come, as there is no encryption", async () => {
    const server = await world.serve(["--host", "0.0.0.0"]);
    expect(await server.logged("warning")).toMatchObject({
      level: "warning",
      message: expect.stringContaining("put a proxy with TLS before it"),
    });
  });
});

describe("gyre serve --stdio", () => {
  it("serves sessions and models on stdin and stdout, with frames alone", async () => {
    world.service.play([{ say: "Here." }]);
    const run = await world.program.start(["serve", "--stdio", "--sandbox", "none"], {
      service: world.service,
      stdin: "open",
    });
    world.ends(run);
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
    const server = await startServer(world.program, [], {});
    world.ends(server.run);
    const { message } = await server.logged("warning");
    expect(message).toContain("no service has a key");
  });
});

describe("gyre serve, refused", () => {
  it("says in one line that an address of --listen is in use, and ends with 1", async () => {
    const { port } = await world.serve();
    const { code, stderr, stdout } = await world.program.gyre(
      ["serve", "--quiet", "--port", "0", "--listen", `tcp://127.0.0.1:${port}`],
      { service: world.service },
    );
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(
      `gyre: Port ${port} of 127.0.0.1 is in use. Choose another with --listen, or 0 for a free one.\n`,
    );
  });

  it("says in one line that a port is in use, and ends with 1", async () => {
    const { port } = await world.serve();
    const { code, stderr, stdout } = await world.program.gyre(
      ["serve", "--quiet", "--port", String(port)],
      { service: world.service },
    );
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toBe(
      `gyre: Port ${port} of 127.0.0.1 is in use. Choose another with --port, or 0 for a free one.\n`,
    );
  });

  it.each([
    [["--port", "70000"], '--port "70000" must be a number'],
    [["--drain", "soon"], '--drain "soon" must be seconds'],
    [["--port", "0", "--listen", "ftp://x"], '--listen "ftp://x" does not begin with ws:'],
    [["--port", "0", "--listen", "ws://x"], '--listen "ws://x" cannot be listened on'],
    [["--stdio", "--port", "1"], "--stdio has no port: --port means nothing there."],
    [["--allow-origin", "page.example"], "--allow-origin"],
    [["--allow-host", "https://page.example"], "--allow-host"],
    [["--host", ""], '--host "" must be an address'],
    [["--model", "absent"], "absent"],
    [["--cwd", "nowhere"], "there is no such folder"],
  ])("refuses %j", async (args, why) => {
    const { code, stderr, stdout } = await world.program.gyre(["serve", ...args], {
      service: world.service,
    });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(why);
  });
});
