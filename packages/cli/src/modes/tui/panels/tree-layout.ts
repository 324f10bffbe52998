import type { EntryInfo } from "@gyre/sessions";

/** The guides of a branch: before its first row, and before the others. */
export interface Branch {
  readonly first: string;
  readonly rest: string;
}

/** A message of the tree. */
export interface TreeRow {
  readonly id: number;
  /** The entry before it, of whatever type. */
  readonly parentId: number | null;
  readonly branch: Branch;
  /** It begins its branch. */
  readonly isHead: boolean;
  /** How many messages of a folded branch are not shown. */
  readonly hidden: number;
}

/** The messages of a session as a tree. */
export interface MessageTree {
  /** The last message of the current branch. */
  readonly current: number | undefined;
  /** In drawing order; `folded` has the first messages of folded branches, which alone are shown. */
  rows(folded: ReadonlySet<number>): TreeRow[];
}

const TRUNK: Branch = { first: "", rest: "" };
/** Stands for the place before the first message. */
const ROOT = 0;

/**
 * Builds the tree of a session without reading its messages. The current branch stays at the left; the others hang
 * off the message where they were left.
 */
export function buildMessageTree(entries: readonly EntryInfo[], leaf: number | null): MessageTree {
  /** The message that each entry is or follows. */
  const nearest = new Map<number, number>();
  const parents = new Map<number, number | null>();
  const above = new Map<number, number>();
  const children = new Map<number, number[]>();
  for (const { id, parentId, type } of entries) {
    const before = parentId === null ? ROOT : (nearest.get(parentId) ?? ROOT);
    nearest.set(id, type === "message" ? id : before);
    if (type !== "message") continue;
    parents.set(id, parentId);
    above.set(id, before);
    children.set(before, [...(children.get(before) ?? []), id]);
  }
  const current = leaf === null ? ROOT : (nearest.get(leaf) ?? ROOT);
  const path = new Set<number>();
  for (let id = current; id !== ROOT; id = above.get(id) ?? ROOT) path.add(id);
  const sizes = countMessages(above);

  const rows = (folded: ReadonlySet<number>): TreeRow[] => {
    const found: TreeRow[] = [];
    const waiting = [{ id: ROOT, branch: TRUNK, isHead: false }];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const { id, branch, isHead } = next;
      const isFolded = isHead && folded.has(id);
      if (id !== ROOT) {
        const hidden = isFolded ? (sizes.get(id) ?? 1) - 1 : 0;
        found.push({ id, parentId: parents.get(id) ?? null, branch, isHead, hidden });
      }
      if (isFolded) continue;
      const kids = children.get(id) ?? [];
      const trunk = kids.find((kid) => path.has(kid)) ?? kids.at(-1);
      if (trunk === undefined) continue;
      // A stack: the side branches come first, in their order, then the trunk.
      waiting.push({ id: trunk, branch, isHead: false });
      const sides = kids.filter((kid) => kid !== trunk).reverse();
      sides.forEach((side, index) => {
        const [first, rest] = index === 0 ? ["└ ", "  "] : ["├ ", "│ "];
        const hanging = { first: branch.rest + first, rest: branch.rest + rest };
        waiting.push({ id: side, branch: hanging, isHead: true });
      });
    }
    return found;
  };
  return { current: current === ROOT ? undefined : current, rows };
}

/** Counts each message with all that follow it. */
function countMessages(above: ReadonlyMap<number, number>): Map<number, number> {
  const sizes = new Map<number, number>();
  // Ids increase: the messages that follow one come after it.
  for (const [id, before] of [...above].reverse()) {
    const size = (sizes.get(id) ?? 0) + 1;
    sizes.set(id, size);
    sizes.set(before, (sizes.get(before) ?? 0) + size);
  }
  return sizes;
}
