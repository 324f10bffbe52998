import { Agent as HttpAgent, type AgentOptions, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";

/** How long a proxy may take to open a connection to a service. */
const CONNECT_MS = 30_000;

/** An agent whose connections go through a proxy, by `CONNECT`. */
export function createProxyAgent(proxy: URL, isSecure: boolean): HttpAgent | HttpsAgent {
  const options = { keepAlive: true };
  return isSecure ? new SecureTunnelAgent(proxy, options) : new TunnelAgent(proxy, options);
}

type Created = (error: Error | null, socket: Duplex) => void;
interface Target {
  host?: string | null | undefined;
  port?: number | string | null | undefined;
  servername?: string | undefined;
}

class TunnelAgent extends HttpAgent {
  readonly #proxy: URL;
  constructor(proxy: URL, options: AgentOptions) {
    super(options);
    this.#proxy = proxy;
  }
  override createConnection(target: Target, created?: Created): undefined {
    openTunnel(this.#proxy, target).then(
      (socket) => created?.(null, socket),
      (error: Error) => (created as ((error: Error) => void) | undefined)?.(error),
    );
  }
}

class SecureTunnelAgent extends HttpsAgent {
  readonly #proxy: URL;
  constructor(proxy: URL, options: AgentOptions) {
    super(options);
    this.#proxy = proxy;
  }
  override createConnection(target: Target, created?: Created): undefined {
    openTunnel(this.#proxy, target).then(
      (socket) => {
        const { host, servername } = target;
        const name = servername ?? host ?? "";
        created?.(
          null,
          connectTls({
            ...target,
            host: name,
            port: undefined,
            path: undefined,
            socket,
            servername: name,
          }),
        );
      },
      (error: Error) => (created as ((error: Error) => void) | undefined)?.(error),
    );
  }
}

/** A connection to `target` through a proxy. The errors name the proxy without its password. */
function openTunnel(proxy: URL, { host, port }: Target): Promise<Socket> {
  const place = `${(host ?? "").includes(":") ? `[${host}]` : host}:${port}`;
  const shown = `${proxy.protocol}//${proxy.host}`;
  return new Promise((resolve, reject) => {
    const { username, password } = proxy;
    const user = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
    const send = proxy.protocol === "https:" ? httpsRequest : httpRequest;
    const request = send(proxy, {
      method: "CONNECT",
      path: place,
      agent: false,
      headers: {
        host: place,
        ...(username !== "" && { "proxy-authorization": `Basic ${user.toString("base64")}` }),
      },
      timeout: CONNECT_MS,
    });
    request.once("connect", ({ statusCode }, socket) => {
      if (statusCode === 200) {
        socket.setTimeout(0);
        resolve(socket);
      } else {
        socket.destroy();
        const hint = statusCode === 407 ? " It wants a user name and a password." : "";
        reject(
          new Error(
            `The proxy ${shown} refused a connection to ${place} with status ${statusCode}.${hint}`,
          ),
        );
      }
    });
    request.once("response", (response) => {
      response.resume();
      reject(new Error(`The proxy ${shown} answered ${response.statusCode} to CONNECT ${place}.`));
    });
    request.once("timeout", () => {
      request.destroy(
        new Error(`The proxy ${shown} did not answer within ${CONNECT_MS / 1000} s.`),
      );
    });
    request.once("error", (error) => {
      reject(
        error.message.includes("proxy")
          ? error
          : new Error(`The proxy ${shown} cannot be reached: ${error.message}`, { cause: error }),
      );
    });
    request.end();
  });
}
