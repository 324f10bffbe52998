import { contain } from "../contract/contain.ts";
import type { AgentLoopConfig } from "../contract/types.ts";
import type { Hooks } from "./hooks.ts";

/**
 * Watches for a steering message that is to cut off the response (R15), from the first response
 * to the end of the run. A poll for steering, or a response that was cut off, resets it.
 */
export class Redirect {
  /** A message has arrived since the last reset. */
  arrived = false;
  /** Called when a message arrives. */
  onArrival: (() => void) | undefined;
  readonly #hooks: Hooks;
  readonly #unsubscribe: (() => void) | undefined;

  constructor({ onSteering, steering }: AgentLoopConfig, hooks: Hooks) {
    this.#hooks = hooks;
    if (steering !== "redirect") return;
    this.#unsubscribe = onSteering?.(() => {
      this.arrived = true;
      this.onArrival?.();
    });
  }

  /** Waits. Resolves to false when the run is canceled, or when a message arrives meanwhile. */
  waitOrRedirect(ms: number): Promise<boolean> {
    return this.#hooks.wait(ms, (cut) => {
      this.onArrival = cut;
      if (this.arrived) cut();
    });
  }

  stop(): void {
    contain("What onSteering gave threw", () => this.#unsubscribe?.());
  }
}
