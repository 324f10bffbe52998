/** How often the clock of the machine is compared with one that only goes forward. */
const LOOK_MS = 500;
/** A clock that is set back by less delays nothing for longer than that. */
const MAX_SETBACK_MS = 500;

/** Calls back when the clock of the machine was set back. Returns what ends the watch. */
export function watchClock(onSetback: () => void): () => void {
  let { atLeast } = readOffset();
  const timer = setInterval(() => {
    const offset = readOffset();
    const isSetBack = offset.atMost < atLeast - MAX_SETBACK_MS;
    ({ atLeast } = offset);
    if (isSetBack) onSetback();
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** By how much the clock is ahead of the steady one. The process may be stopped between two looks. */
function readOffset(): { atLeast: number; atMost: number } {
  const before = performance.now();
  const now = Date.now();
  return { atLeast: now - performance.now(), atMost: now - before };
}
