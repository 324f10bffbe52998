import type { ToolInvocation } from "@gyre/agent";
import type { Rehearsal } from "../contract/rehearsal.ts";

interface OpenRehearsal {
  call: ToolInvocation;
  tried?: Rehearsal;
  /** Resolves when it is decided. */
  closed: Promise<void>;
  close: () => void;
}

/**
 * Calls that ran in a layer and are not decided on. One at a time: a call that begins meanwhile waits, so that
 * it sees files as they are after the decision.
 */
export class Rehearsals {
  #open: OpenRehearsal | undefined;

  /** Resolves when no call is undecided. */
  async settled(): Promise<void> {
    while (this.#open) await this.#open.closed;
  }

  /** Runs a call in a layer, when it is its turn. What it ran before is discarded. */
  async begin(
    call: ToolInvocation,
    run: () => Promise<Rehearsal> | undefined,
  ): Promise<Rehearsal | undefined> {
    await this.end(call);
    await this.settled();
    let close = (): void => {};
    const closed = new Promise<void>((resolve) => {
      close = resolve;
    });
    const open: OpenRehearsal = { call, closed, close };
    this.#open = open;
    const tried = await run();
    if (tried) open.tried = tried;
    return tried;
  }

  /** To be called when a call has ended: what was not kept is discarded. */
  async end(call: ToolInvocation): Promise<void> {
    const open = this.#open;
    if (open?.call !== call) return;
    try {
      if (open.tried?.type === "ran") await open.tried.discard();
    } finally {
      this.#open = undefined;
      open.close();
    }
  }
}
