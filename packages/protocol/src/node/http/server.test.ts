import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { manualClock } from "@gyre/ai/testing";
import { afterEach, describe, expect, it } from "vitest";
import { openHttp } from "../../transports/http.ts";
import { ProtocolError } from "../../frames/protocol-error.ts";
import { WireServer } from "../../server/service.ts";
import type { Transport } from "../../transports/base/transport.ts";
import { type HttpListener, listenHttp, type ListenHttpOptions, type LogEntry } from "./server.ts";
import { listenTcp } from "../tcp.ts";
import { connectWebSocket } from "../websocket-client.ts";

const TOKEN = "t".repeat(32);
const BEARER = { authorization: `Bearer ${TOKEN}` };
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function listen(options: Partial<ListenHttpOptions> = {}): Promise<HttpListener> {
  const wire = new WireServer([]);
  const listener = await listenHttp({
    token: TOKEN,
    serve: (each) => wire.serve(each),
    ...options,
  });
  ends.push(() => listener.close({ graceMs: 0 }));
  return listener;
}

interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
}

/** A request with any header at all, which fetch would not send. */
function ask(
  { port }: HttpListener,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = "",
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, host: "127.0.0.1", method, path, headers, agent: false });
    request.on("error", reject);
    request.on("upgrade", ({ statusCode: status = 0, headers: given }, socket) => {
      socket.destroy();
      resolve({ status, headers: given, body: "" });
    });
    request.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      );
    });
    request.end(body);
  });
}

const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

const subprotocols = (token: string): string =>
  `gyre.v1, gyre.token.${Buffer.from(token).toString("base64url")}`;

describe("who may come in: a token always", () => {
  const PATHS = [
    ["GET", "/metrics"],
    ["POST", "/api/connect"],
    ["GET", "/api/connections/x/events"],
    ["GET", "/api/ws"],
    ["GET", "/nothing"],
  ] as const;

  it.each(PATHS)(
    "unauthorized: %s %s without a token, or with a wrong one",
    async (method, path) => {
      const listener = await listen();
      for (const headers of [{}, { authorization: `Bearer ${"w".repeat(32)}` }]) {
        const more = path === "/api/ws" ? UPGRADE : {};
        const { status, body } = await ask(listener, method, path, { ...headers, ...more });
        expect(status).toBe(401);
        expect(JSON.parse(body)).toMatchObject({ error: { code: "unauthorized" } });
      }
      expect(listener.metrics.format()).toContain('gyre_refused_total{reason="token"} 2');
    },
  );

  it("never takes it from the URL", async () => {
    const listener = await listen();
    expect((await ask(listener, "GET", `/metrics?token=${TOKEN}`)).status).toBe(401);
  });

  it("takes it from a WebSocket's subprotocols, and does not send that back", async () => {
    const listener = await listen();
    const headers = { ...UPGRADE, "sec-websocket-protocol": subprotocols(TOKEN) };
    const { status, headers: given } = await ask(listener, "GET", "/api/ws", headers);
    expect([status, given["sec-websocket-protocol"]]).toEqual([101, "gyre.v1"]);
    const wrong = { ...UPGRADE, "sec-websocket-protocol": subprotocols("w".repeat(32)) };
    expect((await ask(listener, "GET", "/api/ws", wrong)).status).toBe(401);
  });

  it("refuses to start with none", async () => {
    await expect(listen({ token: "" })).rejects.toThrow(/token/);
  });

  it("says to the clients why they were refused", async () => {
    const { url } = await listen();
    const token = "w".repeat(32);
    const wanted = { name: "ProtocolError", code: "unauthorized" };
    await expect(openHttp(url, { token })).rejects.toMatchObject(wanted);
    const ws = `${url.replace("http", "ws")}/api/ws`;
    await expect(connectWebSocket(ws, { token })).rejects.toMatchObject(wanted);
  });
});

describe("who may come in: Host is checked, so that no name of a stranger leads here", () => {
  it.each([
    "evil.example",
    "evil.example:PORT",
    "localhost.evil.example:PORT",
    "127.0.0.1:1",
    "0.0.0.0:PORT",
  ])("refuses %s with 403, on HTTP and on WebSocket", async (name) => {
    const listener = await listen();
    const host = name.replace("PORT", String(listener.port));
    for (const [path, more] of [
      ["/metrics", {}],
      ["/api/ws", UPGRADE],
    ] as const) {
      const { status, body } = await ask(listener, "GET", path, { ...BEARER, host, ...more });
      expect(status).toBe(403);
      expect(JSON.parse(body)).toMatchObject({ error: { code: "unauthorized" } });
    }
    expect(listener.metrics.format()).toContain('gyre_refused_total{reason="host"} 2');
  });

  it.each([
    "localhost:PORT",
    "LOCALHOST:PORT",
    "127.0.0.1:PORT",
    "[::1]:PORT",
    "proxy.example",
    "box.example:8080",
  ])("takes %s", async (name) => {
    const listener = await listen({ hosts: ["proxy.example", "box.example:8080"] });
    const host = name.replace("PORT", String(listener.port));
    expect((await ask(listener, "GET", "/metrics", { ...BEARER, host })).status).toBe(200);
  });
});

it("who may come in: Host may not be empty", async () => {
  const { port } = await listen();
  const socket = connect({ port, host: "127.0.0.1" });
  let answer = "";
  socket.on("data", (chunk) => (answer += String(chunk)));
  socket.write(`GET /metrics HTTP/1.1\r\nHost:\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`);
  await new Promise((resolve) => socket.on("close", resolve));
  expect(answer).toContain("403 Forbidden");
});

describe("who may come in: Origin is checked, so that no page of another site comes", () => {
  it.each(["https://evil.example", "null", "http://localhost:1", "file://"])(
    "refuses %s with 403, on HTTP and on WebSocket, and gives no CORS headers",
    async (origin) => {
      const listener = await listen({ origins: ["https://good.example"] });
      for (const [method, path, more] of [
        ["POST", "/api/connect", {}],
        ["OPTIONS", "/api/connect", {}],
        ["GET", "/api/ws", UPGRADE],
      ] as const) {
        const answer = await ask(listener, method, path, { ...BEARER, origin, ...more });
        expect(answer.status).toBe(403);
        expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
      }
      expect(listener.metrics.format()).toContain('gyre_refused_total{reason="origin"} 3');
    },
  );

  it("takes pages of its own, which need no CORS headers", async () => {
    const listener = await listen();
    const origin = `http://127.0.0.1:${listener.port}`;
    const { status, headers } = await ask(listener, "GET", "/metrics", { ...BEARER, origin });
    expect([status, headers["access-control-allow-origin"]]).toEqual([200, undefined]);
  });

  it("takes pages that are allowed, after a preflight without a token, refusals too", async () => {
    const origin = "https://good.example";
    const listener = await listen({ origins: [origin] });
    const preflight = await ask(listener, "OPTIONS", "/api/connect", { origin });
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-headers": expect.stringContaining("authorization"),
      vary: "origin",
    });
    const answer = await ask(listener, "GET", "/metrics", { ...BEARER, origin });
    expect([answer.status, answer.headers["access-control-allow-origin"]]).toEqual([200, origin]);
    const refused = await ask(listener, "GET", "/metrics", { origin });
    expect([refused.status, refused.headers["access-control-allow-origin"]]).toEqual([401, origin]);
    const upgrade = await ask(listener, "GET", "/api/ws", { ...BEARER, ...UPGRADE, origin });
    expect(upgrade.status).toBe(101);
  });
});

describe("limits", () => {
  it("connections: one too many gets 429, on HTTP and on WebSocket, until one leaves", async () => {
    const listener = await listen({ maxConnections: 1 });
    const first = await openHttp(listener.url, { token: TOKEN });
    for (const [method, path, more] of [
      ["POST", "/api/connect", {}],
      ["GET", "/api/ws", UPGRADE],
    ] as const) {
      const { status, headers, body } = await ask(listener, method, path, { ...BEARER, ...more });
      expect([status, headers["retry-after"]]).toEqual([429, "5"]);
      expect(JSON.parse(body)).toMatchObject({ error: { code: "rate_limited" } });
    }
    expect(listener.metrics.format()).toContain('gyre_refused_total{reason="connections"} 2');
    await first.close();
    while (listener.metrics.format().includes('gyre_connections{transport="http"} 1')) {
      await manualClock().turn();
    }
    const next = await openHttp(listener.url, { token: TOKEN });
    await next.close();
  });

  it("slow headers: a socket that does not finish them is closed", async () => {
    const { port } = await listen({ headersTimeoutMs: 1 });
    const socket = connect({ port, host: "127.0.0.1" });
    let answer = "";
    socket.on("data", (chunk) => (answer += String(chunk)));
    socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n");
    await new Promise((resolve) => socket.on("close", resolve));
    expect(answer).toContain("408");
  });

  it("slow bodies: a request that does not finish is closed, and its connection with it", async () => {
    const listener = await listen({ headersTimeoutMs: 1, bodyTimeoutMs: 1 });
    const { connection } = await open(listener);
    const socket = connect({ port: listener.port, host: "127.0.0.1" });
    socket.write(
      `POST /api/connections/${connection}/frames HTTP/1.1\r\nHost: 127.0.0.1:${listener.port}\r\n` +
        `Authorization: Bearer ${TOKEN}\r\nContent-Length: 100\r\n\r\n{"v":1`,
    );
    socket.resume();
    await new Promise((resolve) => socket.on("close", resolve));
    expect(listener.metrics.format()).toContain('gyre_connections{transport="http"} 0');
  });

  it("too_large: a body above the limit gets 413, and its connection ends", async () => {
    const listener = await listen({ maxBodyBytes: 1000 });
    const { connection } = await open(listener);
    const path = `/api/connections/${connection}/frames`;
    const { status, body } = await ask(listener, "POST", path, BEARER, "x".repeat(1001));
    expect([status, JSON.parse(body).error.code]).toEqual([413, "too_large"]);
    expect((await ask(listener, "POST", path, BEARER)).status).toBe(404);
  });
});

async function open(listener: HttpListener): Promise<{ connection: string }> {
  const { status, body } = await ask(listener, "POST", "/api/connect", BEARER);
  expect(status).toBe(201);
  return JSON.parse(body);
}

describe("GET /healthz, GET /metrics and further routes", () => {
  it("healthz: says that it is there to everybody", async () => {
    const listener = await listen();
    const { status, body } = await ask(listener, "GET", "/healthz", { host: "10.0.0.1" });
    expect([status, body]).toEqual([200, '{"ok":true}']);
  });

  it("metrics: lists in Prometheus text what went through, and what services add", async () => {
    const clock = manualClock();
    const listener = await listen({ clock });
    listener.metrics.add({ name: "gyre_streams", help: "Streams that run.", read: () => 3 });
    const transport = await connectWebSocket(`${listener.url.replace("http", "ws")}/api/ws`, {
      token: TOKEN,
    });
    const answer = new Promise((resolve) =>
      transport.receive({ onFrame: resolve, onFault: resolve, onClose: resolve }),
    );
    await transport.send({ v: 1, type: "hello", id: "c_1", payload: { versions: [1] } });
    await answer;
    await clock.advance(2500);
    const { body, headers } = await ask(listener, "GET", "/metrics", BEARER);
    expect(headers["content-type"]).toContain("text/plain");
    for (const line of [
      "# TYPE gyre_frames_total counter",
      "gyre_uptime_seconds 2.5",
      'gyre_connections{transport="websocket"} 1',
      'gyre_frames_total{direction="in"} 1',
      'gyre_frames_total{direction="out"} 1',
      "gyre_streams 3",
    ]) {
      expect(body.split("\n")).toContain(line);
    }
    expect(body).toMatch(/gyre_bytes_total{direction="in"} [1-9]/);
    await transport.close();
  });

  it("routes: are asked with what their pattern found, and what they throw is answered", async () => {
    const errors: unknown[] = [];
    const listener = await listen({
      onError: (error) => errors.push(error),
      routes: [
        {
          method: "GET",
          path: /\/tea\/(\w+)/,
          handle: (_, reply, [kind]) => reply.end(kind),
        },
        {
          method: "POST",
          path: "/echo",
          handle: () => {
            throw new ProtocolError("model_not_found", "No.");
          },
        },
        {
          method: "POST",
          path: "/ours",
          handle: async () => {
            throw new Error("a secret");
          },
        },
      ],
    });
    expect((await ask(listener, "GET", "/tea/green?x=1", BEARER)).body).toBe("green");
    expect((await ask(listener, "POST", "/echo", BEARER)).status).toBe(404);
    const ours = await ask(listener, "POST", "/ours", BEARER);
    expect([ours.status, ours.body.includes("secret")]).toEqual([500, false]);
    expect(errors).toEqual([new Error("a secret")]);
    const wrong = await ask(listener, "PUT", "/echo", BEARER);
    expect([wrong.status, wrong.headers["allow"]]).toEqual([405, "POST"]);
    expect((await ask(listener, "GET", "/none", BEARER)).status).toBe(404);
    expect((await ask(listener, "GET", "/none", { ...BEARER, ...UPGRADE })).status).toBe(404);
  });

  it("log: has requests and refusals, and never a token", async () => {
    const entries: LogEntry[] = [];
    const listener = await listen({ log: (entry) => entries.push(entry) });
    await ask(listener, "GET", `/metrics?token=${TOKEN}`, BEARER);
    await ask(listener, "GET", "/metrics");
    expect(entries.map(({ type }) => type)).toContain("refused");
    expect(entries).toContainEqual(
      expect.objectContaining({ type: "request", path: "/metrics", status: 200 }),
    );
    expect(JSON.stringify(entries)).not.toContain(TOKEN);
  });
});

describe("close: goodbye, and then the end", () => {
  it("lets the WireServer say goodbye on every transport", async () => {
    const wire = new WireServer([]);
    const listener = await listen({ serve: (each) => wire.serve(each) });
    const transports = [
      await openHttp(listener.url, { token: TOKEN }),
      await connectWebSocket(`${listener.url.replace("http", "ws")}/api/ws`, { token: TOKEN }),
    ];
    const heard = transports.map(hear);
    await Promise.all([listener.close(), wire.close()]);
    for (const each of heard) expect(await each).toEqual(["goodbye", "closed"]);
    await expect(openHttp(listener.url, { token: TOKEN })).rejects.toThrow("fetch failed");
  });

  it("cuts off who stays beyond the grace", async () => {
    const clock = manualClock();
    const listener = await listen({ clock });
    const transport = await openHttp(listener.url, { token: TOKEN });
    const heard = hear(transport);
    const closed = listener.close({ graceMs: 1000 });
    await clock.advance(1000);
    await closed;
    expect((await heard).at(-1)).toBe("closed");
  });
});

function hear(transport: Transport): Promise<string[]> {
  const heard: string[] = [];
  return new Promise((resolve) =>
    transport.receive({
      onFrame: ({ type }) => heard.push(type),
      onFault: () => heard.push("fault"),
      onClose: () => resolve([...heard, "closed"]),
    }),
  );
}

it("a host that is refused is answered with the option that allows it", async () => {
  const listener = await listen();
  const { body } = await ask(listener, "GET", "/metrics", { ...BEARER, host: "tea.example" });
  const { message } = JSON.parse(body).error;
  expect(message).toBe(
    'This server is not called "tea.example". Allow that host: hosts: ["tea.example"] of listenHttp, or gyre serve --allow-host. Or call the server by another name.',
  );
  const allowed = await listen({ hosts: ["tea.example"] });
  const { status } = await ask(allowed, "GET", "/metrics", { ...BEARER, host: "tea.example" });
  expect(status).toBe(200);
});

it.each([
  ["nothing", undefined, "The token is missing: write token: makeToken()"],
  ["no token", { serve: () => {} }, "The token is missing: write token: makeToken()"],
  ["no server", { token: TOKEN }, "write serve: (transport) => void server.serve(transport)"],
])("listenHttp with %s is answered with what to write", async (_what, given, words) => {
  await expect(listenHttp(given as never)).rejects.toThrow(words);
  await expect((async () => listenTcp(given as never))()).rejects.toThrow(words);
});
