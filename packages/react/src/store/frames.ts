/** Calls `flush` once, soon. The returned function takes that back. */
export type Schedule = (flush: () => void) => () => void;

/** Between two updates where there are no frames. */
export const FRAME_MS = 16;
/** A page in the background has no frames: it is updated by then. */
export const HIDDEN_FRAME_MS = 250;

/**
 * With the next frame of the browser, before it is painted. A timer stands in for frames where there are none: outside of
 * a browser, and in a page that is not visible.
 */
export const scheduleFrame: Schedule = (flush) => {
  const hasFrames = typeof requestAnimationFrame === "function";
  const frame = hasFrames ? requestAnimationFrame(() => run()) : undefined;
  const timer = setTimeout(() => run(), frame === undefined ? FRAME_MS : HIDDEN_FRAME_MS);
  const stop = (): void => {
    clearTimeout(timer);
    if (frame !== undefined) cancelAnimationFrame(frame);
  };
  const run = (): void => {
    stop();
    flush();
  };
  return stop;
};
