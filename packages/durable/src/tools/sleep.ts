import { type AgentTool, defineTool } from "@gyre/agent";
import { waitFor } from "./wait.ts";

/** A year: what is longer is a mistake. */
const MAX_SECONDS = 366 * 24 * 3600;

export interface SleepToolOptions {
  /** Default "sleep". */
  name?: string;
}

/**
 * A tool that waits for a time, without a process: the run is parked, and a worker goes on with it
 * when the time has come. Never early; late where no worker is there.
 */
export function sleepTool({ name = "sleep" }: SleepToolOptions = {}): AgentTool {
  return defineTool({
    name,
    description:
      "Waits, then returns. Give seconds, or a time as an ISO date. Use it in place of polling in a loop.",
    parameters: {
      type: "object",
      properties: {
        seconds: { type: "number", minimum: 0, maximum: MAX_SECONDS },
        until: { type: "string", description: "Such as 2030-01-31T08:00:00Z" },
      },
    },
    // Nothing happens before the run is parked.
    idempotent: true,
    execute({ seconds, until }) {
      if (until === undefined) {
        if (seconds === undefined) throw new Error("Give seconds, or until.");
        const text = `${seconds} s have passed.`;
        throw waitFor(`Waits for ${seconds} s.`, { for: "timer", inMs: seconds * 1000, text });
      }
      const at = Date.parse(until);
      if (Number.isNaN(at)) throw new Error(`"${until}" is no date: write 2030-01-31T08:00:00Z.`);
      throw waitFor(`Waits until ${until}.`, { for: "timer", at, text: `It is past ${until}.` });
    },
  });
}
