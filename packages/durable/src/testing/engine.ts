import { createServer, connect, type Server, type Socket } from "node:net";
import type { Engine } from "../contract/engine.ts";
import type { DbosEngineOptions } from "../dbos/index.ts";
import type { RestateEngineOptions } from "../restate/index.ts";

/** An engine, for workers in processes of their own. */
export type EngineSpec =
  | { readonly name: "dbos"; readonly options: DbosEngineOptions }
  | { readonly name: "restate"; readonly options: RestateEngineOptions };

/** Opens an engine; its package has to be there. */
export async function openEngine(spec: EngineSpec): Promise<Engine> {
  switch (spec.name) {
    case "dbos": {
      const { dbosEngine } = await import("../dbos/index.ts");
      return dbosEngine(spec.options);
    }
    case "restate": {
      const { restateEngine } = await import("../restate/index.ts");
      return restateEngine(spec.options);
    }
    default:
      return spec satisfies never;
  }
}

/** What workers of one engine share: an engine that calls its workers reaches them by one address. */
export class EngineSite {
  readonly #spec: EngineSpec | undefined;
  readonly #balancer: Balancer | undefined;

  private constructor(spec: EngineSpec | undefined, balancer: Balancer | undefined) {
    this.#spec = spec;
    this.#balancer = balancer;
  }

  static async open(spec: EngineSpec | undefined): Promise<EngineSite> {
    return new EngineSite(spec, spec?.name === "restate" ? await Balancer.start() : undefined);
  }

  /** The engine as one more worker has it. `wrap`: the way to its database. */
  async place(wrap: (url: string) => string = (url) => url): Promise<EngineSpec | undefined> {
    const spec = this.#spec;
    if (spec?.name === "dbos") {
      return { name: "dbos", options: { ...spec.options, url: wrap(spec.options.url) } };
    }
    if (!spec || !this.#balancer) return undefined;
    const [port, { address }] = [await findPort(), this.#balancer];
    this.#balancer.add(port);
    return { name: "restate", options: { ...spec.options, port, address } };
  }

  async close(): Promise<void> {
    await this.#balancer?.close();
  }
}

/** Spreads connections over the workers that take them. */
class Balancer {
  readonly #server: Server;
  readonly #ports: number[] = [];
  readonly #sockets = new Set<Socket>();
  #next = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<Balancer> {
    const server = createServer();
    const balancer = new Balancer(server);
    server.on("connection", (client) => {
      const { length } = balancer.#ports;
      const first = balancer.#next++;
      const order = balancer.#ports.map((_, index, ports) => ports[(first + index) % length] ?? 0);
      balancer.#join(client, order);
    });
    await listen(server);
    return balancer;
  }

  get address(): string {
    return `http://127.0.0.1:${readPort(this.#server)}`;
  }

  add(port: number): void {
    this.#ports.push(port);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Joins it with the first of these ports that takes it. */
  #join(client: Socket, [port, ...others]: readonly number[]): void {
    if (port === undefined) {
      client.destroy();
      return;
    }
    const upstream = connect(port, "127.0.0.1");
    this.#sockets.add(client).add(upstream);
    const next = (): void => this.#join(client, others);
    upstream.once("error", next);
    upstream.once("connect", () => {
      upstream.off("error", next);
      client.pipe(upstream).pipe(client);
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        // What broke is seen by both sides as a closed connection.
        socket.on("error", () => other.destroy());
        socket.on("close", () => {
          other.destroy();
          this.#sockets.delete(socket);
        });
      }
    });
  }
}

async function findPort(): Promise<number> {
  const server = createServer();
  await listen(server);
  const port = readPort(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
}

function readPort(server: Server): number {
  const address = server.address();
  if (typeof address === "object" && address) return address.port;
  throw new Error("The server is closed.");
}
