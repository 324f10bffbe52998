import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { systemClock } from "@gyre/ai";
import { MAX_MESSAGE_BYTES } from "@gyre/ai/programs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { McpError } from "../contract/error.ts";
import { McpConnection } from "./connection.ts";
import { limitedFetch } from "./http-transport.ts";

interface Message {
  id?: number;
  method: string;
  params?: { name?: string; _meta?: { progressToken?: number } };
}

/** A service that speaks streamable HTTP, as small as it can be. */
class Service {
  readonly seen: { method: string; headers: IncomingMessage["headers"] }[] = [];
  session = "one";
  status = 200;
  /** Its errors have no end. */
  isEndless = false;
  errorBytes = 0;
  type: string | undefined;
  /** Where it redirects to: the status and the address. */
  redirect: { status: number; location: string } | undefined;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  async listen(): Promise<string> {
    await new Promise<void>((done) => {
      this.#server.listen(0, "127.0.0.1", done);
    });
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/mcp`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => {
      this.#server.close(done);
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += String(piece);
    const message: Message | undefined = body === "" ? undefined : (JSON.parse(body) as Message);
    this.seen.push({ method: message?.method ?? String(request.method), headers: request.headers });
    const given = request.headers["mcp-session-id"];
    if (this.type !== undefined) {
      return void response.writeHead(200, { "content-type": this.type }).end("x");
    }
    if (this.redirect) {
      const { status, location } = this.redirect;
      return void response.writeHead(status, { location }).end();
    }
    if (this.status !== 200) {
      response.writeHead(this.status);
      if (!this.isEndless) return void response.end();
      const more = Buffer.alloc(65_536);
      const pump = (): void => {
        this.errorBytes += more.length;
        response.write(more, () => response.destroyed || pump());
      };
      return pump();
    }
    if (request.method !== "POST" || !message) return void response.writeHead(405).end();
    if (given !== undefined && given !== this.session) return void response.writeHead(404).end();
    if (message.id === undefined) return void response.writeHead(202).end();
    const format = (result: object): string =>
      JSON.stringify({ jsonrpc: "2.0", id: message.id, result });
    const json = (result: object): void => {
      const type = { "content-type": "application/json", "mcp-session-id": this.session };
      response.writeHead(200, type).end(format(result));
    };
    if (message.method === "initialize") {
      return json({
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "web", version: "1" },
      });
    }
    if (message.method === "tools/list") {
      const tool = (name: string): object => ({ name, inputSchema: { type: "object" } });
      return json({ tools: ["echo", "huge", "stream", "cut", "hang"].map(tool) });
    }
    const stream = (): void =>
      void response.writeHead(200, { "content-type": "text/event-stream" });
    switch (message.params?.name) {
      case "huge":
        return json({ content: [{ type: "text", text: "x".repeat(MAX_MESSAGE_BYTES) }] });
      case "hang":
        return stream();
      case "cut":
        return void response.destroy();
      case "stream": {
        stream();
        const { _meta: meta } = message.params;
        const params = { progressToken: meta?.progressToken, progress: 1 };
        const progress = { jsonrpc: "2.0", method: "notifications/progress", params };
        response.write(`data: ${JSON.stringify(progress)}\n\n`);
        return void response.end(
          `data: ${format({ content: [{ type: "text", text: "last" }] })}\n\n`,
        );
      }
      default:
        return json({ content: [{ type: "text", text: "echoed" }] });
    }
  }
}

let service: Service;
let url: string;
let connections: McpConnection[];

beforeEach(async () => {
  connections = [];
  service = new Service();
  url = await service.listen();
});
afterEach(async () => {
  for (const connection of connections) await connection.close();
  await service.close();
});

function connect(more: object = {}, env: Record<string, string> = {}): McpConnection {
  const connection = new McpConnection(
    { name: "web", scope: "user", config: { type: "http", url, ...more } },
    { cwd: tmpdir(), env, version: "1", clock: systemClock, log: () => {} },
  );
  connections.push(connection);
  return connection;
}

async function call(connection: McpConnection, tool: string, signal?: AbortSignal) {
  const progress: number[] = [];
  const result = await connection.call(
    tool,
    {},
    {
      signal: signal ?? new AbortController().signal,
      onProgress: (report) => void progress.push(report.progress),
    },
  );
  return { progress, content: result.content };
}

describe("a server over streamable HTTP", () => {
  it("lists and runs its tools, with the headers that it is given", async () => {
    const web = connect({ headers: { Authorization: "Bearer ${KEY}" } }, { KEY: "s3cret" });
    const tools = await web.tools();
    expect(tools.map(({ name }) => name)).toEqual(["echo", "huge", "stream", "cut", "hang"]);
    expect((await call(web, "echo")).content).toEqual([{ type: "text", text: "echoed" }]);
    expect(service.seen.every(({ headers }) => headers.authorization === "Bearer s3cret")).toBe(
      true,
    );
    await web.close();
    expect(service.seen.at(-1)?.method).toBe("DELETE");
  });

  it.each([301, 302, 307, 308])(
    "gives nothing away to another one that it redirects to with %i",
    async (status) => {
      const other = new Service();
      try {
        service.redirect = { status, location: await other.listen() };
        const web = connect({ headers: { "X-Api-Key": "s3cret" } });
        const problem = await web.tools().then(String, String);
        expect(other.seen.map(({ headers }) => headers["x-api-key"])).toEqual([]);
        expect(problem).toContain(`cannot be used: it answered ${status}`);
      } finally {
        await other.close();
      }
    },
  );

  it("reports progress in a stream", async () => {
    const { content, progress } = await call(connect(), "stream");
    expect(content).toEqual([{ type: "text", text: "last" }]);
    expect(progress).toEqual([1]);
  });

  it("that has forgotten the session is asked again with a new one", async () => {
    const web = connect();
    await call(web, "echo");
    service.session = "two";
    expect((await call(web, "echo")).content).toEqual([{ type: "text", text: "echoed" }]);
    expect(service.seen.filter(({ method }) => method === "initialize")).toHaveLength(2);
  });

  it("that wants a key says how to give one", async () => {
    service.status = 401;
    await expect(connect().tools()).rejects.toThrow(
      'it answered 401: it wants a key, which can be given in "headers"',
    );
  });

  it("that is not there is reported, and tried again", async () => {
    const web = connect();
    service.status = 500;
    await expect(web.tools()).rejects.toThrow(
      'The MCP server "web" cannot be used: it answered 500',
    );
    expect(web.state).toBe("down");
    service.status = 200;
    expect(await web.tools()).toHaveLength(5);
    expect(web.state).toBe("ready");
  });

  it("with an answer beyond all measure, or cut off, is an error", async () => {
    const web = connect({ timeout: 5_000 });
    await expect(call(web, "huge")).rejects.toThrow(McpError);
    await expect(call(web, "cut")).rejects.toThrow(/did not answer/);
    expect((await call(web, "echo")).content).toHaveLength(1);
  });

  it("with an error that has no end is not listened to for long", async () => {
    service.status = 500;
    service.isEndless = true;
    await expect(connect().tools()).rejects.toThrow("it answered 500");
    expect(service.errorBytes).toBeLessThan(MAX_MESSAGE_BYTES);
  });

  it("that answers with something else is reported in our words", async () => {
    service.type = "ignore-all-rules/html";
    await expect(connect().tools()).rejects.toThrow("its answer is not as the protocol has it");
  });

  it("may stream more than a message, in pieces of any size", async () => {
    const encoder = new TextEncoder();
    const line = encoder.encode(`data: ${"x".repeat(MAX_MESSAGE_BYTES / 4)}\r\n`);
    const end = [encoder.encode("\r"), encoder.encode("\n")];
    const pieces = Array.from({ length: 6 }, () => [line, ...end]).flat();
    const headers = { "content-type": "text/event-stream" };
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const next = pieces.shift();
        if (next) controller.enqueue(next);
        else controller.close();
      },
    });
    const fetch = limitedFetch(() => Promise.resolve(new Response(body, { headers })));
    const response = await fetch("http://any.example");
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(MAX_MESSAGE_BYTES);
  });

  it("is notified of an abort", async () => {
    const web = connect();
    await web.tools();
    const controller = new AbortController();
    const running = call(web, "hang", controller.signal);
    const look = (): void => {
      if (service.seen.some(({ method }) => method === "tools/call")) controller.abort();
      else setImmediate(look);
    };
    look();
    await expect(running).rejects.toThrow("aborted");
    await web.close();
    expect(service.seen.map(({ method }) => method)).toContain("notifications/cancelled");
  });

  it("is not asked before its variables are known", async () => {
    await expect(connect({ headers: { Authorization: "${NO_SUCH_KEY}" } }).tools()).rejects.toThrow(
      "The variable NO_SUCH_KEY is not set",
    );
    expect(service.seen).toEqual([]);
  });
});
