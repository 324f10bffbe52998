import type { AgentEndEvent } from "@gyre/agent";
import { ProtocolError } from "@gyre/protocol";

/** The current or last run, as a snapshot reports it. */
export interface KnownRun {
  /** The number of the event before its first. */
  after: number;
  end?: AgentEndEvent;
}

/** An end or a gap, by the number of the last event that it stands for. */
type Heard =
  | { type: "end"; seq: number; event: AgentEndEvent }
  /** Events up to here did not arrive: a snapshot stands for them. */
  | { type: "gap"; seq: number; run: KnownRun | undefined };

interface Wait {
  /** The run begins after this number; undefined: the server has not granted it yet. */
  after: number | undefined;
  heard: Heard[];
  resolve: (end: AgentEndEvent) => void;
  reject: (error: Error) => void;
}

/**
 * Callers that wait for the end of a run that they requested. The answer with the number where the
 * run begins may arrive after its events, even on another connection.
 */
export class RunWaits {
  readonly #waits = new Set<Wait>();

  get size(): number {
    return this.#waits.size;
  }

  /** Waits for the run that `begin` requests: it settles with the number before its first event. */
  wait(begin: Promise<number | "over">): Promise<AgentEndEvent> {
    return new Promise((resolve, reject) => {
      const wait: Wait = {
        after: undefined,
        heard: [],
        resolve: (end) => {
          this.#waits.delete(wait);
          resolve(end);
        },
        reject: (error) => {
          this.#waits.delete(wait);
          reject(error);
        },
      };
      this.#waits.add(wait);
      begin.then((after) => {
        if (after === "over") return wait.resolve(createEmptyRun());
        wait.after = after;
        settle(wait);
      }, wait.reject);
    });
  }

  onEnd(seq: number, event: AgentEndEvent): void {
    this.#record({ type: "end", seq, event });
  }

  onGap(seq: number, run: KnownRun | undefined): void {
    this.#record({ type: "gap", seq, run });
  }

  /** The session was opened again: numbers count from 1, and its runs are over. */
  onReopened(): void {
    for (const wait of [...this.#waits]) {
      wait.heard = [];
      if (wait.after !== undefined)
        wait.reject(lostError("The session was opened again meanwhile"));
    }
  }

  fail(error: Error): void {
    for (const wait of [...this.#waits]) wait.reject(error);
  }

  #record(heard: Heard): void {
    for (const wait of [...this.#waits]) {
      wait.heard.push(heard);
      settle(wait);
    }
  }
}

function settle(wait: Wait): void {
  const { after } = wait;
  if (after === undefined) return;
  for (const heard of wait.heard.splice(0)) {
    if (heard.seq <= after) continue;
    if (heard.type === "end") return wait.resolve(heard.event);
    const { run } = heard;
    if (run?.after !== after) {
      return wait.reject(lostError("The run ended while the connection was gone"));
    }
    if (run.end) return wait.resolve(run.end);
  }
}

/** The end of a request that the host did without a run. */
function createEmptyRun(): AgentEndEvent {
  return {
    type: "agent_end",
    messages: [],
    stop: "done",
    turns: 0,
    usage: {},
    undelivered: [],
    pending: [],
  };
}

function lostError(why: string): ProtocolError {
  const hint = "what it made is in the messages of the session";
  return new ProtocolError("stream_not_found", `${why}, and its end is not known: ${hint}.`);
}
