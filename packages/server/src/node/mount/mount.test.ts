import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect as connectSocket, type Socket } from "node:net";
import { Agent } from "@gyre/agent";
import { manualClock, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { connectUrl, listenOn, LOOPBACK } from "@gyre/protocol/node";
import { afterEach, describe, expect, it } from "vitest";
import { RemoteAgent } from "../../client/index.ts";
import { authorizeByToken } from "../../handler/authorize.ts";
import { createHandler, type Handler, type HandlerOptions } from "../../handler/handler.ts";
import { toNodeListener, toUpgradeListener, type UpgradeListenerOptions } from "./index.ts";

const ADA = "ada-token-of-16-chars";

const open: { server: Server; handler: Handler; sockets: Set<Socket> }[] = [];

afterEach(async () => {
  for (const { handler, server, sockets } of open.splice(0)) {
    await handler.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});

interface MountOptions extends Partial<HandlerOptions> {
  script?: readonly ScriptStep[];
  /** What stands before the handler, as middleware of Express does. */
  before?: (request: IncomingMessage, next: () => void) => void;
  upgrade?: UpgradeListenerOptions;
}

/** A handler in a server of `node:http`; gives the address without its scheme. */
async function mount({ script = ["Green."], before, upgrade, ...more }: MountOptions = {}) {
  const handler = createHandler({
    agents: ({ stored }) => {
      const model = scriptedModel(script);
      return new Agent({ ...stored, model: model.model, protocol: model });
    },
    authorize: authorizeByToken({ [ADA]: { user: "ada" } }),
    ...more,
  });
  const listener = toNodeListener(handler);
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const next = (): void => listener(request, response);
    if (before) before(request, next);
    else next();
  });
  server.on("upgrade", toUpgradeListener(handler, upgrade));
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  const port = await listenOn(server, { host: LOOPBACK, port: 0 });
  open.push({ server, handler, sockets });
  return { place: `${LOOPBACK}:${port}`, port, handler };
}

async function promptAt(url: string): Promise<string> {
  const agent = await RemoteAgent.create({ connect: connectUrl(url, { token: ADA }) });
  const { text } = await agent.prompt("Which tea?");
  await agent.close();
  return text;
}

describe("toNodeListener and toUpgradeListener: a handler in node:http", () => {
  it.each(["", "/api/gyre"])("HTTP and WebSocket, mounted at %j", async (path) => {
    const { place } = await mount();
    expect(await promptAt(`http://${place}${path}`)).toBe("Green.");
    expect(await promptAt(`ws://${place}${path}/api/ws`)).toBe("Green.");
  });

  it("Express cuts the path of the mount off, and keeps the whole address: authorize gets that", async () => {
    const seen: string[] = [];
    const { place } = await mount({
      before(request, next) {
        const { url = "" } = request;
        Object.assign(request, { originalUrl: url, url: url.replace("/api/gyre", "") });
        next();
      },
      authorize: ({ url, headers, method }) => {
        seen.push(`${method} ${new URL(url).pathname} ${headers.get("x-forwarded-for")}`);
        return { user: "ada" };
      },
    });
    const headers = { "x-forwarded-for": "10.0.0.1" };
    const address = `http://${place}/api/gyre/api/connect?x=1`;
    expect((await fetch(address, { method: "POST", headers })).status).toBe(201);
    expect(seen).toEqual(["POST /api/gyre/api/connect 10.0.0.1"]);
  });

  it("a body that a parser has taken is answered with what to do", async () => {
    const errors: unknown[] = [];
    const { place } = await mount({
      before: (request, next) => request.resume().once("end", next),
      onError: (error) => void errors.push(error),
    });
    const url = `http://${place}`;
    const authorization = `Bearer ${ADA}`;
    const opened = await fetch(`${url}/api/connect`, {
      method: "POST",
      headers: { authorization },
    });
    const { connection } = (await opened.json()) as { connection: string };
    const response = await fetch(`${url}/api/connections/${connection}/frames`, {
      method: "POST",
      headers: { authorization },
      body: '{"v":1}\n',
    });
    expect([response.status, await response.text()]).toEqual([
      500,
      expect.stringContaining("mount the handler before whatever parses bodies"),
    ]);
  });

  it("a WebSocket is authorized before it is accepted: the Response gets to the client as it is", async () => {
    const { place, port } = await mount();
    const connect = connectUrl(`ws://${place}/api/ws`, { token: "wrong-token-of-16-chars" });
    await expect(RemoteAgent.create({ connect })).rejects.toMatchObject({ code: "unauthorized" });
    const answer = await upgradeRaw(port, "/api/gyre/api/ws");
    expect(answer).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n/);
    expect(answer).not.toContain("101");
  });

  it("cookies and the body of a refusal stay", async () => {
    const { port } = await mount({
      authorize: () => {
        const headers = new Headers({ "www-authenticate": "Bearer" });
        headers.append("set-cookie", "a=1");
        headers.append("set-cookie", "b=2");
        return new Response("Log in first.", { status: 401, headers });
      },
    });
    const answer = await upgradeRaw(port, "/api/ws");
    expect(answer).toContain("\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n");
    expect(answer).toMatch(/\r\n\r\nLog in first\.$/);
  });

  it("other WebSockets of the server are not ours: 404, or what the application does with them", async () => {
    const { port } = await mount();
    const none = await upgradeRaw(port, "/live", `Authorization: Bearer ${ADA}\r\n`);
    expect(none).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
    const others = await mount({
      upgrade: {
        otherwise: (request, socket) => {
          socket.end(`HTTP/1.1 200 OK\r\n\r\n${request.url}`);
        },
      },
    });
    expect(await upgradeRaw(others.port, "/live")).toContain("/live");
    expect(await promptAt(`ws://${others.place}/api/ws`)).toBe("Green.");
  });

  it("an invalid address, and a client that leaves while it is authorized, do no harm", async () => {
    const errors: unknown[] = [];
    let letIn = (): void => {};
    const asked = new Promise<void>((resolve) => {
      letIn = resolve;
    });
    const { place, port } = await mount({
      onError: (error) => void errors.push(error),
      authorize: async (request) => {
        if (request.headers.has("x-wait")) await asked;
        return { user: "ada" };
      },
    });
    const raw = connectSocket({ port, host: LOOPBACK });
    raw.write(`GET http://[/api/ws HTTP/1.1\r\nHost: ${place}\r\nX-Wait: 1\r\n`);
    raw.write("Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    await new Promise((resolve) => raw.once("connect", resolve));
    raw.resetAndDestroy();
    letIn();
    expect(await promptAt(`ws://${place}/api/ws`)).toBe("Green.");
    expect(errors).toEqual([]);
  });
});

function createGate(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve: () => resolve() };
}

it("a reader that leaves while it is authorized is no reader: its connection does not wait for it", async () => {
  const gate = createGate();
  const waiting = createGate();
  const left = createGate();
  const { place, handler } = await mount({
    // The time stands still: nothing ends by a timeout.
    clock: manualClock(),
    before(request, next) {
      request.once("close", () => request.url?.endsWith("/events") && left.resolve());
      next();
    },
    async authorize({ url }) {
      if (!url.endsWith("/events")) return { user: "ada" };
      waiting.resolve();
      await gate.promise;
      return { user: "ada" };
    },
  });
  const opened = await fetch(`http://${place}/api/connect`, { method: "POST" });
  const { connection } = (await opened.json()) as { connection: string };
  const control = new AbortController();
  const events = fetch(`http://${place}/api/connections/${connection}/events`, control);
  await waiting.promise;
  control.abort();
  await expect(events).rejects.toThrow("aborted");
  await left.promise;
  gate.resolve();
  await handler.close();
});

/** What a server answers to a request for a WebSocket. */
function upgradeRaw(port: number, path: string, headers = ""): Promise<string> {
  const socket = connectSocket({ port, host: LOOPBACK });
  let answer = "";
  socket.on("data", (chunk) => (answer += String(chunk)));
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${LOOPBACK}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`,
  );
  return new Promise((resolve) => socket.on("close", () => resolve(answer)));
}
