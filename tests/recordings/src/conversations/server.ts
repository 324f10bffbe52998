import { createServer } from "node:http";
import type { Json } from "./parts.ts";
import { readBody, type Case, buildHeaders, type Recordings } from "../responses/manifest.ts";
import { listen } from "../responses/serve.ts";

/** A request as it came. */
export interface Sent {
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, unknown>>;
  body: Json;
}

/** A server on loopback that plays one part of a conversation after the other. */
export interface ReplayServer {
  origin: string;
  /** Answers the requests that come from now on with these, one after the other; keeps them. */
  play(cases: readonly Case[]): readonly Sent[];
  close(): Promise<void>;
}

export async function replayServer(recordings: Recordings): Promise<ReplayServer> {
  let cases: readonly Case[] = [];
  let sent: Sent[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Json;
      const one = cases[sent.length];
      sent.push({ path: request.url ?? "", headers: request.headers, body });
      if (one)
        response.writeHead(one.http_status, buildHeaders(one)).end(readBody(recordings, one));
      else response.writeHead(500).end("Nothing more was recorded.");
    });
  });
  const origin = await listen(server);
  return {
    origin,
    play(next) {
      cases = next;
      sent = [];
      return sent;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
