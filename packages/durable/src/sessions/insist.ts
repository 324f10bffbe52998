import { isUnavailable } from "../contract/errors.ts";

const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;
/** How long a write waits for a store that does not answer. */
const MAX_AWAY_MS = 30_000;

/** Calls again while the store does not answer: for a while, or until the signal is aborted. */
export async function insist<T>(commit: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const since = performance.now();
  for (let pause = MIN_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
    try {
      return await commit();
    } catch (error) {
      const isOver = signal ? signal.aborted : performance.now() - since > MAX_AWAY_MS;
      if (!isUnavailable(error) || isOver) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
