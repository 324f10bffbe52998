import type { Activate } from "../contract/engine.ts";
import { DurableError } from "../contract/errors.ts";

/** Workers of one process that share what an engine gives to it. */
export class EngineMembers<T extends { readonly activate: Activate }> {
  readonly #members: (T | undefined)[] = [];

  get size(): number {
    return this.list().length;
  }

  list(): T[] {
    return this.#members.filter((member) => member !== undefined);
  }

  add(member: T): void {
    const free = this.#members.indexOf(undefined);
    this.#members[free < 0 ? this.#members.length : free] = member;
  }

  delete(member: T): void {
    const at = this.#members.indexOf(member);
    if (at >= 0) this.#members[at] = undefined;
  }

  /**
   * Each of them looks whether the session is one of its store's. An activation has its own name with
   * each, so that none takes the session from another. Rejects where none could look.
   */
  async activate(is: (member: T) => boolean, session: string, activation: string): Promise<void> {
    const work = this.#members.flatMap((member, index) =>
      member && is(member) ? [member.activate(session, `${activation}-${index}`)] : [],
    );
    const outcomes = await Promise.allSettled(work);
    if (outcomes.some(({ status }) => status === "fulfilled")) return;
    throw new DurableError("closed", "The worker stops: another one goes on.");
  }
}

/** The name of a pool's queue beside that of all others: letters, digits, ".", "_" and "-". */
export function nameQueue(queue: string, pool: string): string {
  if (pool === "") return queue;
  const encoded = pool.replace(/[^\w-]/g, (one) => `.${one.codePointAt(0)?.toString(16)}.`);
  return `${queue}-${encoded}`;
}
