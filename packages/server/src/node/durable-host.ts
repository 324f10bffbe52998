import { createHash } from "node:crypto";
import type { Runs } from "@gyre/durable";
import type { SessionHost, SessionInfo, SessionOptions } from "../sessions/session-host.ts";
import { DurableSession } from "./durable-session.ts";

export interface DurableHostOptions {
  /** Where sessions are kept. */
  readonly runs: Runs;
  /** The name of the agent that works on them. */
  readonly agent: string;
  readonly tenant?: string;
  /** Workers of this pool alone work on them. */
  readonly pool?: string;
  /** Errors that no client gets. */
  readonly onError?: (error: unknown, where: string) => void;
}

/**
 * Sessions of a durable store, for any number of servers: each of them answers every client, and a
 * run goes on when the server that a client came by is gone.
 */
export class DurableHost implements SessionHost {
  readonly #options: DurableHostOptions;

  constructor(options: DurableHostOptions) {
    this.#options = options;
  }

  create(_options: SessionOptions, key: string): Promise<DurableSession> {
    // The same request, sent to another server, makes no second session.
    const id = `s-${createHash("sha256").update(key).digest("hex").slice(0, 32)}`;
    return this.#open(id);
  }

  async open(id: string): Promise<DurableSession | undefined> {
    const session = await this.#open(id);
    return session.isStored ? session : undefined;
  }

  async list(): Promise<readonly SessionInfo[]> {
    const { runs, agent, tenant = "" } = this.#options;
    const found = await runs.list({ agent, tenant });
    const sessions = new Map(found.runs.map((run) => [run.session, run]));
    return [...sessions].map(([id, { startedAt }]) => ({ id, updatedAt: startedAt.getTime() }));
  }

  #open(id: string): Promise<DurableSession> {
    const { runs, agent, tenant = "", pool = "", onError } = this.#options;
    return DurableSession.open({
      ...{ runs, id, agent, tenant, pool },
      onError: onError ?? ((error, where) => runs.report(error, where)),
    });
  }
}
