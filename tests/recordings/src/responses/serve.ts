import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { readBody, type Case, buildHeaders, type Recordings } from "./manifest.ts";

/** A server on loopback that answers a request below `/<number>` with the recording of that number. */
export interface ReplayServer {
  /** The base URL under which a recording is to be asked for. */
  url(one: Case): string;
  close(): Promise<void>;
}

/** Bodies go out in pieces of this size, as a network would cut them. */
const PIECE_BYTES = 1_000;

export async function serveRecordings(recordings: Recordings): Promise<ReplayServer> {
  const { cases } = recordings;
  const server = createServer((request, response) => {
    const one = cases[Number(request.url?.split("/")[1])];
    request.resume();
    if (!one) {
      response.writeHead(404).end();
      return;
    }
    const body = readBody(recordings, one);
    response.writeHead(one.http_status, buildHeaders(one));
    for (let from = 0; from < body.length; from += PIECE_BYTES) {
      response.write(body.subarray(from, from + PIECE_BYTES));
    }
    response.end();
  });
  const origin = await listen(server);
  return {
    url: (one) => `${origin}/${cases.indexOf(one)}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** Listens on a free port of loopback; answers with the origin. */
export function listen(server: Server): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}
