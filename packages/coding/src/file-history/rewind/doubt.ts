import { isSameState } from "../lines/line.ts";
import type { TracedChange } from "./file-tree.ts";

/** Why what changes have made of a file may not be the agent's doing alone. */
export function findDoubt(changes: readonly TracedChange[]): string | undefined {
  const isBroken = changes.some(({ by, change }, index) => {
    const next = changes[index + 1]?.change;
    return by === "user" || (next !== undefined && !isSameState(change.after, next.before));
  });
  if (isBroken) return "it was changed outside of this session in between";
  return changes.find(({ change }) => change.unsure !== undefined)?.change.unsure;
}
