import { type Cron, findWallTime, isOnceADay } from "./cron.ts";
import type { Zone } from "./zone.ts";

const MINUTE_MS = 60_000;
/** No clocks are put back by more. */
const MAX_OVERLAP_MS = 86_400_000;

/**
 * The first time of a cron expression after `after`, in milliseconds since 1970. Where clocks are
 * put forward, a job of one time a day whose time is left out runs at the first moment after it.
 * Where they are put back, it runs the first time alone. Jobs of several times a day run whenever
 * the clocks show one of them. Undefined: there is no such time.
 */
export function findNextTime(cron: Cron, zone: Zone, after: number): number | undefined {
  const isOnce = isOnceADay(cron);
  let from = after;
  let wall = after + zone.readOffset(after) + 1;
  if (isOnce) wall = Math.max(wall, findRepeatEnd(zone, after));
  for (;;) {
    const found = findWallTime(cron, wall);
    if (found === undefined) return undefined;
    const time = found - zone.readOffset(from);
    const change = zone.findTransition(from, time);
    if (!change) return time;
    const { at, before, after: offset } = change;
    if (isOnce && found < at + offset) return at;
    // A job of one time a day has run in the hour that comes again.
    wall = at + (isOnce ? Math.max(before, offset) : offset);
    from = at;
  }
}

/** Until when the clocks show times that they have shown before. */
function findRepeatEnd(zone: Zone, after: number): number {
  const from = after - MAX_OVERLAP_MS - MINUTE_MS;
  const change = zone.findTransition(from, after);
  return change ? change.at + change.before : -Infinity;
}
