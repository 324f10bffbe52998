import { connect, createServer, type Server, type Socket } from "node:net";

/** What a step carries, which is a transaction of one statement: JSON of its entries. */
const STEP = /"toolCallId|"role|"stop/;
const BEGIN = /^Q....begin\0/s;
const COMMIT = /^Q....commit\0/s;

/** A TCP proxy before a database, which loses what passes through it when it is asked to. */
export class DatabaseProxy {
  readonly #server: Server;
  readonly #pairs = new Set<{ client: Socket; upstream: Socket }>();
  #isHeld = false;
  #cuts = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(port: number, host = "127.0.0.1"): Promise<DatabaseProxy> {
    const server = createServer();
    const proxy = new DatabaseProxy(server);
    server.on("connection", (client) => proxy.#join(client, connect(port, host)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (typeof address === "object" && address) return address.port;
    throw new Error("The proxy is closed.");
  }

  /** The same address, by way of the proxy. */
  wrap(url: string): string {
    const wrapped = new URL(url);
    wrapped.hostname = "127.0.0.1";
    wrapped.port = String(this.port);
    return wrapped.href;
  }

  /** Nothing passes until `release`; connections stay open. */
  hold(): void {
    this.#isHeld = true;
    this.strand();
  }

  /** Nothing passes on the connections of this moment, which stay open; later ones work. */
  strand(): void {
    for (const { client, upstream } of this.#pairs) {
      client.pause();
      upstream.pause();
    }
  }

  release(): void {
    this.#isHeld = false;
    for (const { client, upstream } of this.#pairs) {
      client.resume();
      upstream.resume();
    }
  }

  /** Breaks all connections. */
  reset(): void {
    for (const { client, upstream } of this.#pairs) {
      client.resetAndDestroy();
      upstream.destroy();
    }
  }

  /** The answers to the next commits are lost: the connection breaks after the commit. */
  cutAfterCommit(count: number): void {
    this.#cuts += count;
  }

  async close(): Promise<void> {
    this.reset();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, upstream: Socket): void {
    const pair = { client, upstream };
    this.#pairs.add(pair);
    let isCut = false;
    let isInTransaction = false;
    client.on("data", (chunk) => {
      const text = chunk.toString("latin1");
      const isCommit = COMMIT.test(text) || (!isInTransaction && STEP.test(text));
      isInTransaction = BEGIN.test(text) || (isInTransaction && !COMMIT.test(text));
      if (this.#cuts > 0 && !isCut && isCommit) {
        this.#cuts--;
        isCut = true;
      }
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (isCut) client.resetAndDestroy();
      else client.write(chunk);
    });
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      // What broke is seen by both sides as a closed connection.
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        other.destroy();
        this.#pairs.delete(pair);
      });
    }
    if (!this.#isHeld) return;
    client.pause();
    upstream.pause();
  }
}
