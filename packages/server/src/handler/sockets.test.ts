import { Agent } from "@gyre/agent";
import { scriptedModel } from "@gyre/ai/testing";
import type { Connect } from "@gyre/protocol";
import { createSocketTransport, type WebSocketLike } from "@gyre/protocol/http";
import { MemorySessions } from "@gyre/sessions/memory";
import { describe, expect, it } from "vitest";
import { RemoteAgent } from "../client/index.ts";
import { authorizeByToken } from "./authorize.ts";
import { type BunServer, type BunSocket, BunSocketEnd, toBunServer } from "./bun.ts";
import { createHandler, type Handler, type HandlerOptions } from "./handler.ts";
import { detectMemory } from "./memory.ts";
import { acceptPair, type PairRuntime, type UpgradeWebSocket } from "./sockets.ts";

const ADA = "ada-token-of-16-chars";
const URL = "http://shop.example/api/gyre/api/ws";
const HEADERS = { upgrade: "websocket", "sec-websocket-protocol": "gyre.v1, gyre.token.x" };
const BEARER = { ...HEADERS, authorization: `Bearer ${ADA}` };

function make(more: Partial<HandlerOptions> = {}): Handler {
  return createHandler({
    agents: ({ stored }) => {
      const model = scriptedModel(["Green."]);
      return new Agent({ ...stored, model: model.model, protocol: model });
    },
    authorize: authorizeByToken({ [ADA]: { user: "ada" } }),
    ...more,
  });
}

/** One end of a socket: what is sent here arrives at the other, each in a turn of its own. */
class SocketEnd implements WebSocketLike {
  other: SocketEnd | undefined;
  readyState: number;
  readonly #listeners: { type: string; listener: (event: never) => void }[] = [];

  constructor(readyState = 1) {
    this.readyState = readyState;
  }

  addEventListener(type: string, listener: (event: never) => void): void {
    this.#listeners.push({ type, listener });
  }

  send(data: string): void {
    if (this.readyState !== 1) throw new Error("InvalidStateError");
    this.other?.later("message", { data });
  }

  close(code = 1000, reason = ""): void {
    for (const end of [this, this.other]) {
      if (!end || end.readyState === 3) continue;
      end.readyState = 3;
      end.later("close", { code, reason });
    }
  }

  open(): void {
    this.readyState = 1;
    this.later("open", {});
  }

  later(type: string, event: object): void {
    queueMicrotask(() => {
      for (const each of this.#listeners) if (each.type === type) each.listener(event as never);
    });
  }
}

function createPair(readyState?: number): [SocketEnd, SocketEnd] {
  const [near, far] = [new SocketEnd(), new SocketEnd(readyState)];
  near.other = far;
  far.other = near;
  return [near, far];
}

/** As Deno has it: the socket opens after the response is returned. */
class FakeDeno {
  client: SocketEnd | undefined;
  readonly protocols: unknown[] = [];

  readonly upgradeWebSocket = (
    request: Request,
    { protocol }: { protocol?: string; idleTimeout?: number } = {},
  ): { socket: SocketEnd; response: Response } => {
    if (request.headers.get("upgrade") !== "websocket") throw new Error("no upgrade");
    const [near, far] = createPair(0);
    this.client = near;
    this.protocols.push(protocol);
    setTimeout(() => far.open());
    return { socket: far, response: new Response(null) };
  };

  connectTo(handler: Handler): Connect {
    return async () => {
      const request = new Request(URL, { headers: BEARER });
      const response = await handler(request, { upgrade: this.upgradeWebSocket });
      if (!this.client) throw new Error(await response.text());
      return createSocketTransport(this.client);
    };
  }
}

async function promptOver(connect: Connect): Promise<string> {
  const agent = await RemoteAgent.create({ connect });
  const { text } = await agent.prompt("Which tea?");
  await agent.close();
  return text;
}

describe("WebSockets by the runtime's own upgrade", () => {
  it("Deno: upgradeWebSocket is passed as it is; the subprotocol with the token is not answered", async () => {
    const deno = new FakeDeno();
    const handler = make();
    expect(await promptOver(deno.connectTo(handler))).toBe("Green.");
    expect(deno.protocols).toEqual(["gyre.v1"]);
    await handler.close();
  });

  it("Workers: one end of a WebSocketPair is accepted, the other goes with a response of 101", async () => {
    const accepted: SocketEnd[] = [];
    class Pair {
      readonly 0: SocketEnd;
      readonly 1: SocketEnd & { accept(): void };
      constructor() {
        const [near, far] = createPair(0);
        this[0] = near;
        this[1] = Object.assign(far, {
          accept: () => {
            far.readyState = 1;
            accepted.push(far);
          },
        });
      }
    }
    /** Node's own takes no status below 200. */
    class PairResponse {
      readonly init: { status?: number; webSocket: object; headers?: unknown };
      constructor(_body: null, init: PairResponse["init"]) {
        this.init = init;
      }
    }
    const runtime = { WebSocketPair: Pair, Response: PairResponse } as unknown as PairRuntime;
    const handler = make();
    const connect: Connect = async () => {
      const upgrade: UpgradeWebSocket = (_, options) => acceptPair(options, runtime);
      const response: unknown = await handler(new Request(URL, { headers: BEARER }), { upgrade });
      const { init } = response as PairResponse;
      expect(init).toMatchObject({
        status: 101,
        headers: { "sec-websocket-protocol": "gyre.v1" },
      });
      return createSocketTransport(init.webSocket as SocketEnd);
    };
    expect(await promptOver(connect)).toBe("Green.");
    expect(accepted).toHaveLength(1);
    expect(() => acceptPair({}, { Response: PairResponse } as never)).toThrow("no WebSocketPair");
    await handler.close();
  });

  it("Bun: events come to functions of the server, and fetch returns nothing after an upgrade", async () => {
    const handler = make();
    const bun = toBunServer(handler);
    const { websocket } = bun;
    let client: SocketEnd | undefined;
    const server: BunServer = {
      upgrade(_request, { data, headers }) {
        expect(data).toBeInstanceOf(BunSocketEnd);
        expect(headers).toEqual({ "sec-websocket-protocol": "gyre.v1" });
        const [near, far] = createPair();
        client = near;
        const socket: BunSocket = {
          data,
          get readyState() {
            return far.readyState;
          },
          getBufferedAmount: () => 0,
          send: (text) => {
            far.send(text);
            return text.length;
          },
          close: (code, reason) => far.close(code, reason),
        };
        far.addEventListener("message", (event: { data: string }) =>
          websocket.message(socket, event.data),
        );
        far.addEventListener("close", (event: { code: number; reason: string }) =>
          websocket.close(socket, event.code, event.reason),
        );
        setTimeout(() => websocket.open(socket));
        return true;
      },
    };
    const connect: Connect = async () => {
      const response = await bun.fetch(new Request(URL, { headers: BEARER }), server);
      expect(response).toBeUndefined();
      if (!client) throw new Error("There is no socket.");
      return createSocketTransport(client);
    };
    expect(await promptOver(connect)).toBe("Green.");
    const other = await bun.fetch(
      new Request(URL.replace("ws", "connect"), { method: "POST" }),
      server,
    );
    expect(other?.status).toBe(401);
    const refusing: BunServer = { upgrade: () => false };
    const errors: unknown[] = [];
    const failing = toBunServer(make({ onError: (error) => void errors.push(error) }));
    const failed = await failing.fetch(new Request(URL, { headers: BEARER }), refusing);
    expect([failed?.status, String(errors)]).toEqual([
      500,
      "Error: Bun did not accept the WebSocket.",
    ]);
    await handler.close();
  });

  it("is authorized before it is accepted, and a page of another site is refused", async () => {
    const handler = make({ origins: ["https://page.example"] });
    const upgrade = (): never => {
      throw new Error("accepted");
    };
    for (const [headers, status] of [
      [HEADERS, 401],
      [{ ...BEARER, origin: "https://evil.example" }, 403],
    ] as const) {
      const response = await handler(new Request(URL, { headers }), { upgrade });
      expect(response.status).toBe(status);
    }
    const late = await handler(new Request(URL, { headers: BEARER }));
    expect([late.status, await late.text()]).toEqual([
      426,
      expect.stringContaining("pass upgrade"),
    ]);
    await handler.close();
    const closed = await handler(new Request(URL, { headers: BEARER }), { upgrade });
    expect(closed.status).toBe(503);
  });

  it("what authorize throws is a 500 without details, and no socket is accepted", async () => {
    const errors: unknown[] = [];
    const handler = make({
      authorize: () => {
        throw new Error("the key is k-1");
      },
      onError: (error) => void errors.push(error),
    });
    const deno = new FakeDeno();
    await expect(deno.connectTo(handler)(new AbortController().signal)).rejects.toThrow(
      /^(?!.*k-1).*internal_error/s,
    );
    expect(errors).toEqual([new Error("the key is k-1")]);
  });
});

describe("isolates: requests that share no memory", () => {
  const memory = "isolated";

  it("are known by what the runtime is", () => {
    expect(detectMemory({ navigator: { userAgent: "Cloudflare-Workers" } })).toBe("isolated");
    expect(detectMemory({ EdgeRuntime: "edge-runtime" })).toBe("isolated");
    expect(detectMemory({ process: { env: { AWS_LAMBDA_FUNCTION_NAME: "f" } } })).toBe("isolated");
    expect(detectMemory({ navigator: { userAgent: "Node.js/24" }, process: { env: {} } })).toBe(
      "shared",
    );
    expect(detectMemory()).toBe("shared");
  });

  it.each([
    ["no storage", {}],
    ["a storage in memory", { storage: new MemorySessions() }],
  ])("with %s every route refuses with a sentence", async (_, more) => {
    const handler = make({ memory, ...more });
    const { authorization } = BEARER;
    for (const request of [
      new Request(URL.replace("/ws", "/connect"), { method: "POST", headers: { authorization } }),
      new Request(URL, { headers: BEARER }),
    ]) {
      const response = await handler(request, { upgrade: new FakeDeno().upgradeWebSocket });
      expect([response.status, await response.text()]).toEqual([
        501,
        expect.stringContaining("a storage that they share"),
      ]);
    }
    // Strangers do not get to know.
    const stranger = new Request(URL.replace("/ws", "/connect"), { method: "POST" });
    expect((await handler(stranger)).status).toBe(401);
  });

  it("with a storage a session lives in its WebSocket, and the next isolate goes on with it", async () => {
    const storage = new SharedStorage();
    const first = make({ memory, storage });
    const deno = new FakeDeno();
    const agent = await RemoteAgent.create({ connect: deno.connectTo(first) });
    await agent.prompt("Which tea?");
    const http = new Request(URL.replace("/ws", "/connect"), {
      method: "POST",
      headers: { authorization: BEARER.authorization },
    });
    expect(await (await first(http)).text()).toContain("connect with a WebSocket");
    await agent.close();
    const second = make({ memory, storage });
    const connect = new FakeDeno().connectTo(second);
    // The first one releases the session when its socket is over.
    let again: RemoteAgent | undefined;
    while (!again) {
      again = await RemoteAgent.attach({ connect }, agent.sessionId).catch((error: unknown) => {
        expect(error).toMatchObject({ code: "session_busy" });
        return undefined;
      });
    }
    expect(again.state.messages).toHaveLength(2);
    expect((await again.prompt("And now?")).text).toBe("Green.");
    await again.close();
    await Promise.all([first.close(), second.close()]);
  });
});

/** Stands for one outside of the isolates: it is not known as one in memory. */
class SharedStorage {
  readonly #kept = new MemorySessions();
  readonly create: MemorySessions["create"] = (header) => this.#kept.create(header);
  readonly open: MemorySessions["open"] = (id, options) => this.#kept.open(id, options);
  readonly locate: MemorySessions["locate"] = (id) => this.#kept.locate(id);
  readonly find: MemorySessions["find"] = (id) => this.#kept.find(id);
  readonly list: MemorySessions["list"] = (options) => this.#kept.list(options);
  readonly listPage: MemorySessions["listPage"] = (options) => this.#kept.listPage(options);
  readonly fork: MemorySessions["fork"] = (id, options) => this.#kept.fork(id, options);
  readonly remove: MemorySessions["remove"] = (id) => this.#kept.remove(id);
}
