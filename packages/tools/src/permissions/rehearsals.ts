import type { ToolInvocation } from "@gyre/agent";
import type { Rehearsal } from "../contract/rehearsal.ts";

/** A call that ran in a layer. */
export type RanCall = Extract<Rehearsal, { type: "ran" }>;

interface OpenRehearsal {
  call: ToolInvocation;
  tried?: Rehearsal;
  /** Resolves when it is decided. */
  closed: Promise<void>;
  close: () => void;
}

/** A call that ran in a layer, and whose decision comes with another run. */
export interface WaitingCall {
  tried: RanCall;
  /** Of the call, and of what is asked about: the call and all that it did. */
  call: string;
  asked: string;
}

/** Calls whose layers wait for decisions of later runs; of more, the oldest are asked about again. */
const MAX_WAITING = 8;

/**
 * Calls that ran in a layer and are not decided on. One at a time: a call that begins meanwhile waits, so that
 * it sees files as they are after the decision. Those whose run was suspended hold up no others.
 */
export class Rehearsals {
  #open: OpenRehearsal | undefined;
  /** By the ids of calls. */
  readonly #waiting = new Map<string, WaitingCall>();
  /** Layers that are being thrown away. */
  #cleaning: Promise<void> = Promise.resolve();

  /** Resolves when no call is undecided that others have to wait for. */
  async settled(): Promise<void> {
    await this.#cleaning;
    while (this.#open) await this.#open.closed;
  }

  /** Runs a call in a layer, when it is its turn. What it ran before is discarded. */
  async begin(
    call: ToolInvocation,
    run: () => Promise<Rehearsal> | undefined,
  ): Promise<Rehearsal | undefined> {
    const open = await this.#enter(call);
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
      this.#leave(open);
    }
  }

  /** The decision on a call that ran comes with another run. */
  async suspend(call: ToolInvocation, waiting: WaitingCall): Promise<void> {
    if (this.#open?.call === call) this.#leave(this.#open);
    this.#waiting.set(call.toolCall.id, waiting);
    for (const id of this.#waiting.keys()) {
      if (this.#waiting.size <= MAX_WAITING) break;
      await this.discard(id);
    }
  }

  /** The call of this id that waits, if there is one. */
  find(id: string): WaitingCall | undefined {
    return this.#waiting.get(id);
  }

  /** A call that waited is about to be made: its layer counts as that of this call. */
  async resume(call: ToolInvocation, { tried }: WaitingCall): Promise<void> {
    this.#waiting.delete(call.toolCall.id);
    const open = await this.#enter(call);
    open.tried = tried;
  }

  async discard(id: string): Promise<void> {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    await waiting?.tried.discard();
  }

  /** Throws away the layers of calls that do not wait any more. The next call waits for that. */
  retain(ids: ReadonlySet<string>): void {
    const others = [...this.#waiting.keys()].filter((id) => !ids.has(id));
    if (others.length === 0) return;
    const cleaning = Promise.all(others.map((id) => this.discard(id)));
    this.#cleaning = this.#cleaning.then(() => cleaning).then(() => undefined);
    // What fails is reported by the next call.
    this.#cleaning.catch(() => {});
  }

  async #enter(call: ToolInvocation): Promise<OpenRehearsal> {
    await this.end(call);
    await this.settled();
    let close = (): void => {};
    const closed = new Promise<void>((resolve) => {
      close = resolve;
    });
    const open: OpenRehearsal = { call, closed, close };
    this.#open = open;
    return open;
  }

  #leave(open: OpenRehearsal): void {
    this.#open = undefined;
    open.close();
  }
}
