import type { AgentEvent } from "@gyre/agent";
import type { RunEvent } from "../contract/types.ts";

type LiveListener = (event: RunEvent) => void;

/** Passes events that are not stored to those that watch in the same process. */
export class LiveHub {
  readonly #listeners = new Map<string, Set<LiveListener>>();

  /** Whether a run of a session is watched here. */
  isWatched(session: string): boolean {
    return this.#listeners.has(session);
  }

  publish(session: string, event: RunEvent): void {
    for (const listener of [...(this.#listeners.get(session) ?? [])]) listener(event);
  }

  listen(session: string, listener: LiveListener): () => void {
    const listeners = this.#listeners.get(session) ?? new Set();
    this.#listeners.set(session, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(session) === listeners) {
        this.#listeners.delete(session);
      }
    };
  }
}

/** Whether an event is passed on live: those that the log has are read from it. */
export function isLive(event: AgentEvent): boolean {
  switch (event.type) {
    case "message_update":
    case "tool_execution_update":
    case "retry":
    case "waiting":
    case "fallback":
      return true;
    default:
      return false;
  }
}
