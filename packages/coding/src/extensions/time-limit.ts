import type { Clock } from "@gyre/ai";

const MS = 1000;

/** What `work` comes to; rejects where that takes longer. The work itself goes on. */
export function within<T>(ms: number, work: Promise<T>, clock: Clock): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () =>
      reject(new Error(`it had not settled after ${ms / MS} s`)),
    );
    work.then(resolve, reject).finally(cancel);
  });
}
