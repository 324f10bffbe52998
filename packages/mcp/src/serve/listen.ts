import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { errorMessage } from "@gyre/ai";
import { MAX_MESSAGE_BYTES } from "@gyre/ai/programs";
import { createMcpHandler, type McpHandler, type McpHandlerOptions } from "./http.ts";

export interface ListenMcpOptions extends McpHandlerOptions {
  /** Default: one that is free. */
  port?: number;
  /** Default: 127.0.0.1, which other machines do not reach. */
  host?: string;
  /** Default: "/mcp". */
  path?: string;
  /**
   * Looks at each request, whatever its path: a response, such as one with the status 401, is sent in
   * place of an answer. Without it, all who reach the port may ask.
   */
  check?: (request: Request) => Response | undefined | Promise<Response | undefined>;
}

/** A server that listens. */
export interface McpListener extends Omit<McpHandler, "fetch"> {
  /** Where it is asked. */
  readonly url: string;
}

const STATUS = { notFound: 404, tooLong: 413, failed: 500 } as const;

/** Offers tools, resources and prompts over streamable HTTP. Rejects where the port is taken. */
export async function listenMcp(options: ListenMcpOptions): Promise<McpListener> {
  const { port = 0, host = "127.0.0.1", path = "/mcp", check, warn } = options;
  const handler = await createMcpHandler(options);
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const asked = await toRequest(request, response);
    if (!asked) return void response.writeHead(STATUS.tooLong).end();
    const isHere = new URL(asked.url).pathname === path;
    const answered = await check?.(asked);
    const other = isHere ? undefined : new Response(null, { status: STATUS.notFound });
    await send(answered ?? other ?? (await handler.fetch(asked)), response);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      // A client that is gone needs no answer.
      if (!response.destroyed) warn?.(errorMessage(error));
      if (!response.headersSent) response.writeHead(STATUS.failed);
      response.end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { port: open, address, family } = server.address() as AddressInfo;
  const name = family === "IPv6" ? `[${address}]` : address;
  return {
    url: `http://${name}:${open}${path}`,
    changed: (list) => handler.changed(list),
    updated: (uri) => handler.updated(uri),
    async close() {
      await handler.close();
      server.closeAllConnections();
      await new Promise((done) => {
        server.close(done);
      });
    },
  };
}

/** The same request as the web has it; undefined where its body is too long. Its signal aborts when the client is gone. */
async function toRequest(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Request | undefined> {
  const gone = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) gone.abort();
  });
  const headers = new Headers();
  for (const [name, value = ""] of Object.entries(request.headers)) {
    for (const one of [value].flat()) headers.append(name, one);
  }
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_MESSAGE_BYTES) return undefined;
    pieces.push(piece);
  }
  // The host is looked at by the handler, as the header has it.
  const url = new URL(request.url ?? "/", "http://localhost");
  const { method = "GET" } = request;
  const { signal } = gone;
  const body = Buffer.concat(pieces);
  return new Request(url, { method, headers, signal, ...(bytes > 0 && { body }) });
}

async function send(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  const reader = answer.body?.getReader();
  if (!reader) return void response.end();
  // Headers go out before the first event of a stream.
  response.flushHeaders();
  response.once("close", () => {
    reader.cancel().catch(() => {
      // It has ended by itself.
    });
  });
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (!response.write(part.value)) await once(response, "drain");
  }
  response.end();
}
