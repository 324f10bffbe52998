import { type Limits, type PendingCall, Suspend } from "@gyre/agent";
import { isRecord } from "@gyre/ai";

/** What a call of a durable tool waits for, as the `access` of its question says. */
export type Wait =
  | {
      for: "timer";
      /** From the moment on in which the run is parked. */
      inMs?: number;
      /** Milliseconds since 1970. */
      at?: number;
      /** The result. */
      text: string;
    }
  | {
      for: "child";
      agent: string;
      prompt: string;
      pool?: string;
      limits?: Limits;
    };

/** Leaves a call waiting: the worker stores what answers it, in the commit that parks the run. */
export function waitFor(reason: string, wait: Wait): Suspend {
  return new Suspend(reason, { access: { wait } });
}

export function readWait({ access }: Pick<PendingCall, "access">): Wait | undefined {
  const wait = access?.["wait"];
  return isRecord(wait) && typeof wait["for"] === "string" ? (wait as unknown as Wait) : undefined;
}
