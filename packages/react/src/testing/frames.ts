import type { Schedule } from "../store/frames.ts";

/** Frames that a test draws. */
export interface ManualFrames {
  readonly schedule: Schedule;
  /** Draws the next frame; false where nothing waited for one. */
  draw: () => boolean;
  /** How many frames were drawn that something waited for. */
  readonly count: number;
}

export function createManualFrames(): ManualFrames {
  let waiting: (() => void)[] = [];
  let count = 0;
  return {
    schedule: (flush) => {
      waiting.push(flush);
      return () => {
        waiting = waiting.filter((other) => other !== flush);
      };
    },
    draw: () => {
      const due = waiting;
      waiting = [];
      if (due.length > 0) count++;
      for (const flush of due) flush();
      return due.length > 0;
    },
    get count() {
      return count;
    },
  };
}
