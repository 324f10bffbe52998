import { timingSafeEqual } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

const HOST = "127.0.0.1";
const STATUS = { ok: 200, failed: 400, notFound: 404 } as const;

/** A place on this machine that a browser is sent back to after a login. */
export interface LoginCallback {
  readonly url: string;
  /**
   * The address with this state that the browser came back to, also where it has an error in place of a code. One wait
   * at a time. Rejects with the reason of the signal.
   */
  wait(state: string, signal?: AbortSignal): Promise<URL>;
  /** Resolves when the port is free again. */
  close(): Promise<void>;
}

export interface LoginCallbackOptions {
  /** Default: one that is free. */
  port?: number;
  /** Default `/callback`. */
  path?: string;
  /** What the person logs in to, for the page that says so. */
  name?: string;
}

/** Listens for the end of a login, on the loopback alone. Rejects where the port is taken. */
export async function listenForLogin({
  name,
  path = "/callback",
  port = 0,
}: LoginCallbackOptions = {}): Promise<LoginCallback> {
  /** Any page can send a browser here: what has not the state of a wait is not ours. */
  let arrive: ((url: URL) => boolean) | undefined;
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", base);
    const isOurs = request.method === "GET" && url.pathname === path && arrive?.(url) === true;
    const hasCode = !!url.searchParams.get("code") && !url.searchParams.has("error");
    const status = isOurs ? STATUS[hasCode ? "ok" : "failed"] : STATUS.notFound;
    const headers = { "content-type": "text/plain; charset=utf-8", connection: "close" };
    response.writeHead(status, headers).end(describe(status, name));
  });
  const base = `http://${HOST}:${await listen(server, port)}`;
  return {
    url: `${base}${path}`,
    wait(state, signal) {
      return new Promise<URL>((resolve, reject) => {
        signal?.throwIfAborted();
        const abort = (): void => settle(() => reject(signal?.reason));
        const settle = (end: () => void): void => {
          arrive = undefined;
          signal?.removeEventListener("abort", abort);
          end();
        };
        signal?.addEventListener("abort", abort, { once: true });
        arrive = (url) => {
          const isOurs = state !== "" && isEqual(url.searchParams.get("state") ?? "", state);
          if (isOurs) settle(() => resolve(url));
          return isOurs;
        };
      });
    },
    async close() {
      server.closeAllConnections();
      await new Promise((done) => {
        server.close(done);
      });
    },
  };
}

function describe(status: number, name: string | undefined): string {
  if (status === STATUS.notFound) return "Nothing here.";
  if (status === STATUS.failed) return "The login has failed. You can close this page.";
  return `You are logged in${name === undefined ? "" : ` at ${name}`}. You can close this page.`;
}

function isEqual(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, HOST, () => resolve((server.address() as AddressInfo).port));
  });
}
