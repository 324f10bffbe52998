import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type * as Restate from "@restatedev/restate-sdk";
import { errorMessage } from "@gyre/ai";
import type { Activate } from "../contract/engine.ts";
import { DurableError } from "../contract/errors.ts";
import { EngineMembers } from "../engines/members.ts";

export const ACTIVATE = "activate";

/** On earlier ones the SDK of Restate gets no request to its end. */
const OLDEST_NODE = 22;
const SECOND_MS = 1_000;
/** So long do the last answers take to be sent. */
const LAST_ANSWERS_MS = 200;
const DAY_MS = 24 * 60 * 60 * SECOND_MS;

/** An activation lasts as long as it lasts. What Restate forgets, the workers find. */
const OPTIONS: Restate.ServiceOptions = {
  inactivityTimeout: 365 * DAY_MS,
  abortTimeout: DAY_MS,
  journalRetention: 0,
  idempotencyRetention: 60 * SECOND_MS,
  retryPolicy: {
    initialInterval: 50,
    maxInterval: SECOND_MS,
    exponentiationFactor: 2,
    maxAttempts: 60,
    onMaxAttempts: "kill",
  },
};

export interface Member {
  readonly activate: Activate;
  readonly services: readonly string[];
  readonly concurrency: number;
}

/** `version` and `load`: for tests. */
export async function loadRestate(
  version: string = process.versions.node,
  load: () => Promise<typeof Restate> = () => import("@restatedev/restate-sdk"),
): Promise<typeof Restate> {
  if (Number.parseInt(version, 10) < OLDEST_NODE) {
    throw new DurableError(
      "no_driver",
      `The engine Restate needs Node ${OLDEST_NODE} or newer, and this is ${version}: run the worker with a newer Node, or use another engine.`,
    );
  }
  try {
    return await load();
  } catch (error) {
    throw new DurableError(
      "no_driver",
      "The engine Restate needs the package @restatedev/restate-sdk: run `npm install @restatedev/restate-sdk`.",
      { cause: error },
    );
  }
}

/** The server that Restate calls, and the workers behind it. */
export class RestateEndpoint {
  readonly #members = new EngineMembers<Member>();
  readonly #waiting: (() => void)[] = [];
  #active = 0;
  #most = 0;
  #onIdle: () => void = () => {};
  #server: Server | undefined;
  #handle: RequestListener = (_, response) => response.writeHead(503).end();
  /** Members come and go one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  get port(): number {
    const address = this.#server?.address();
    if (typeof address === "object" && address) return address.port;
    throw new DurableError("closed", "The endpoint for Restate is closed.");
  }

  add(member: Member, place: { port: number; host?: string }): Promise<void> {
    return this.#inTurn(async () => {
      const restate = await loadRestate();
      this.#server ??= await this.#listen(place);
      this.#members.add(member);
      this.#most = Math.max(this.#most, member.concurrency);
      const endpoint = restate.endpoint().setLogger(() => {});
      for (const name of new Set(this.#members.list().flatMap(({ services }) => services))) {
        const activate = (context: Restate.Context, session: string): Promise<void> =>
          this.#activate(name, session, context.request().id);
        const handlers = { [ACTIVATE]: activate };
        endpoint.bind(restate.service({ name, handlers, options: OPTIONS }));
      }
      this.#handle = endpoint.http1Handler();
    });
  }

  remove(member: Member): Promise<void> {
    this.#members.delete(member);
    return this.#inTurn(async () => {
      const server = this.#server;
      if (this.#members.size > 0 || !server) return;
      this.#server = undefined;
      const closed = once(server, "close");
      server.close();
      if (this.#active > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
      server.closeIdleConnections();
      // Restate keeps connections that it has sent nothing on: they are not idle for Node.
      const timer = setTimeout(() => server.closeAllConnections(), LAST_ANSWERS_MS);
      await closed;
      clearTimeout(timer);
    });
  }

  async #activate(service: string, session: string, id: string): Promise<void> {
    await this.#enter();
    try {
      await this.#members.activate(({ services }) => services.includes(service), session, id);
    } finally {
      this.#leave();
    }
  }

  /** Waits for a place: Restate calls as often as it has something. */
  async #enter(): Promise<void> {
    if (this.#active >= this.#most)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#active++;
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else if (--this.#active === 0) this.#onIdle();
  }

  async #listen({ port, host }: { port: number; host?: string }): Promise<Server> {
    // An activation lasts longer than a request usually does.
    const server = createServer({ requestTimeout: 0 }, (...args) => this.#handle(...args));
    try {
      server.listen(port, host);
      await once(server, "listening");
      return server;
    } catch (error) {
      throw new DurableError(
        "unavailable",
        `The worker cannot listen for Restate on port ${port}: ${errorMessage(error)}. Give another \`port\` to restateEngine().`,
        { cause: error },
      );
    }
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(act);
    this.#last = turn.catch(() => {});
    return turn;
  }
}
