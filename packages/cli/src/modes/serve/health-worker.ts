import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** What the worker is started with. */
export interface HealthWorkerData {
  host: string;
  /** 0: a free one. */
  port: number;
  /** An older beat than this is answered with 503. */
  limitMs: number;
  /** The time of the newest beat of the main thread, by `process.hrtime.bigint()`. */
  beat: BigInt64Array<SharedArrayBuffer>;
}

/** What the worker reports, once. */
export type HealthWorkerReport = { port: number } | { error: { code: string; message: string } };

/**
 * The whole worker. It is started from its text, so that it works from the sources, from what is
 * built and from the bundle: it uses nothing but its arguments and the globals of Node.
 */
export function serveHealth(
  { createServer }: Pick<typeof import("node:http"), "createServer">,
  { parentPort, workerData }: typeof import("node:worker_threads"),
): void {
  const { host, port, limitMs, beat }: HealthWorkerData = workerData;
  const report = (result: HealthWorkerReport): void => parentPort?.postMessage(result);
  const limits = { headersTimeout: 2000, requestTimeout: 2000, connectionsCheckingInterval: 500 };

  const answer = ({ method = "", url = "" }: IncomingMessage, response: ServerResponse): void => {
    const send = (status: number, body: object, headers: Record<string, string> = {}): void => {
      const type = { "content-type": "application/json", "cache-control": "no-store" };
      // A probe comes once: nothing of it stays open.
      response.writeHead(status, { ...type, connection: "close", ...headers });
      response.end(method === "HEAD" ? "" : JSON.stringify(body));
    };
    const refuse = (status: number, message: string, headers?: Record<string, string>): void =>
      send(status, { error: { code: "invalid_request", message } }, headers);
    if (url.split("?", 1)[0] !== "/healthz") return refuse(404, "There is /healthz alone here.");
    if (method !== "GET" && method !== "HEAD") {
      return refuse(405, "/healthz is asked with GET, HEAD.", { allow: "GET, HEAD" });
    }
    const age = process.hrtime.bigint() - Atomics.load(beat, 0);
    const loopAgeMs = Math.max(0, Math.round(Number(age) / 1e6));
    const ok = loopAgeMs <= limitMs;
    send(ok ? 200 : 503, { ok, loopAgeMs });
  };

  const server = createServer(limits, answer);
  // One more than this many cuts off the one that has been silent for longest.
  const maxSockets = 1000;
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    const [oldest] = sockets;
    if (sockets.size > maxSockets) oldest?.destroy();
  });
  server.on("error", (error: NodeJS.ErrnoException) =>
    report({ error: { code: error.code ?? "", message: error.message } }),
  );
  server.listen(port, host, () => {
    const address = server.address();
    report({ port: typeof address === "object" && address ? address.port : 0 });
  });
}
