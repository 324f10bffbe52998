import { randomUUID } from "node:crypto";
import { SessionError } from "@gyre/sessions";
import { DurableError } from "../contract/errors.ts";
import type { Claim, SessionHolder, Store } from "../contract/store.ts";

const BEATS_IN_A_LEASE = 4;
/** How often it is looked whether a program that gave no sign of life is back. */
const LOOK_EVERY_MS = 50;

/**
 * What a program is to a store while it has sessions open: a worker without agents, which gives a
 * sign of life. The row of it is there as long as a session is open.
 */
export class Holder {
  readonly #store: Store;
  readonly #leaseMs: number;
  readonly #report: (error: unknown, where: string) => void;
  #id = randomUUID();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #registering: Promise<void> | undefined;

  constructor(store: Store, leaseMs: number, report: (error: unknown, where: string) => void) {
    this.#store = store;
    this.#leaseMs = leaseMs;
    this.#report = report;
  }

  /** Claims a session. Rejects with `locked` while another program or a run has it, and with `not_found`. */
  async hold(session: string): Promise<Claim> {
    this.#count++;
    try {
      return await this.#hold(session);
    } catch (error) {
      await this.release();
      throw error;
    }
  }

  /**
   * Claims a session again that the store took from this program: it was suspended for longer than
   * its lease, say. Undefined where another has it now.
   */
  async regain(session: string): Promise<Claim | undefined> {
    const outcome = await this.#try(session);
    return outcome !== "not found" && "claim" in outcome ? outcome : undefined;
  }

  /** A session is closed. */
  async release(): Promise<void> {
    this.#count--;
    if (this.#count > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#registering = undefined;
    const id = this.#id;
    this.#id = randomUUID();
    await this.#store.unregister(id).catch((error: unknown) => {
      // Its lease ends by itself.
      this.#report(error, "end of a session");
    });
  }

  async #hold(session: string): Promise<Claim> {
    for (let looksLeft = Math.ceil(this.#leaseMs / LOOK_EVERY_MS); ; looksLeft--) {
      const outcome = await this.#try(session);
      if (outcome === "not found") throw notFound(session);
      if ("claim" in outcome) return outcome;
      // The process of a program that died is looked at where that can be seen.
      await this.#store.sweep({ expired: false, maxDeaths: Infinity });
      const again = await this.#try(session);
      if (again === "not found") throw notFound(session);
      if ("claim" in again) return again;
      await this.#waitFor(session, again, looksLeft);
    }
  }

  async #try(session: string): Promise<Claim | SessionHolder | "not found"> {
    for (;;) {
      await (this.#registering ??= this.#register());
      const outcome = await this.#store.sessions.hold(this.#id, session);
      if (outcome !== "gone") return outcome;
      // The store has taken it for dead: what it had open is lost.
      this.#id = randomUUID();
      this.#registering = undefined;
    }
  }

  /**
   * Waits a little for a program whose lease is over: after an outage it may only be late. One that
   * stays away for a whole lease of ours is dead. Rejects with `locked` where it is alive.
   */
  async #waitFor(
    session: string,
    { worker, run }: SessionHolder,
    looksLeft: number,
  ): Promise<void> {
    if (run !== undefined) {
      throw locked(session, `has an open run, "${run}": wait for its end, or abort it`);
    }
    const holder = (await this.#store.listWorkers()).find(({ id }) => id === worker);
    if (holder && holder.leaseMs >= 0) {
      const seconds = Math.ceil(holder.leaseMs / 1_000);
      throw locked(
        session,
        `is open in process ${holder.pid} on ${holder.host}. If that has ended, the session is free in ${seconds} s`,
      );
    }
    if (worker === undefined) throw locked(session, "has a run that waits for a worker");
    if (looksLeft <= 0) return this.#store.unregister(worker);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }

  async #register(): Promise<void> {
    try {
      await this.#store.register({ id: this.#id, agents: [], pools: [], leaseMs: this.#leaseMs });
    } catch (error) {
      this.#registering = undefined;
      throw error;
    }
    this.#timer ??= setInterval(() => this.#beat(), this.#leaseMs / BEATS_IN_A_LEASE).unref();
  }

  #beat(): void {
    const id = this.#id;
    this.#store.heartbeat(id, this.#leaseMs, this.#count).then(
      (isAlive) => {
        if (isAlive || id !== this.#id) return;
        this.#id = randomUUID();
        this.#registering = undefined;
      },
      (error: unknown) => {
        if (error instanceof DurableError && error.code === "closed") clearInterval(this.#timer);
        else this.#report(error, "heartbeat");
      },
    );
  }
}

export function notFound(id: string): SessionError {
  return new SessionError("not_found", `There is no session "${id}".`);
}

function locked(id: string, why: string): SessionError {
  return new SessionError("locked", `The session ${id} ${why}.`);
}
