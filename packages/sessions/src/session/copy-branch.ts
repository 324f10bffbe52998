import type { EntryIndex } from "./entry-index.ts";
import { type Fields, isBeside, isEntryType } from "../format/body.ts";
import type { EntryRow } from "../format/row.ts";
import type { EntryReader } from "./log.ts";

/**
 * Gives the branch that ends at a place (-1: none) to `take`, with what is known of its calls.
 * Entries are numbered from 1, and references to them follow.
 */
export async function copyBranch(
  index: EntryIndex,
  reader: EntryReader,
  at: number,
  take: (row: EntryRow) => void | Promise<void>,
): Promise<void> {
  const branch = index.pathTo(at).filter((place) => index.typeAt(place) !== "leaf");
  const onBranch = new Set(branch.map((place) => index.idAt(place)));
  const places = new Set(branch);
  for (let place = 0; place < index.length; place++) {
    const type = index.typeAt(place);
    // What waits in the queues waits for the agent of the session that is forked, which alone was put away.
    const isKept = isBeside(type) && type !== "queue" && type !== "archive";
    if (isKept && onBranch.has(index.parentAt(place))) places.add(place);
  }
  const renumbered = new Renumbering();
  await reader.each(
    [...places].sort((a, b) => a - b),
    async (fields, place) => {
      const row = renumbered.row(fields, index.idAt(place), index.parentAt(place));
      if (row) await take(row);
    },
  );
}

class Renumbering {
  /** In ascending order, both. */
  readonly #old: number[] = [];
  readonly #new = new Map<number, number>();
  #next = 1;

  /** The entry with new numbers; undefined where it refers to one that is not on the branch. */
  row(fields: Fields, id: number, parentId: number): EntryRow | undefined {
    const { id: _i, parentId: _p, w: _w, crc: _c, type, timestamp, ...rest } = fields;
    const parent = this.#new.get(parentId) ?? null;
    const changes = this.#changes(fields);
    if (!changes) {
      // What follows it follows its parent.
      if (parent !== null) this.#new.set(id, parent);
      return undefined;
    }
    const head = {
      id: this.#next++,
      parentId: parent,
      timestamp: typeof timestamp === "number" ? timestamp : 0,
    };
    this.#old.push(id);
    this.#new.set(id, head.id);
    if (isEntryType(type)) return { ...head, type, data: JSON.stringify({ ...rest, ...changes }) };
    return { ...head, type: "custom", data: JSON.stringify({ kind: type, data: rest }) };
  }

  #changes({ type, resultOf, entry, first, until, entries }: Fields): Fields | undefined {
    if (type === "message" && resultOf !== undefined) return this.#mapped("resultOf", resultOf);
    // The session that is forked may run its open calls: they do not run in the fork as well.
    if (type === "message") return { begins: undefined };
    if (type === "label") return this.#mapped("entry", entry);
    if (type !== "compaction") return {};
    return {
      first: this.#from(first) ?? this.#next,
      until: this.#from(until) ?? null,
      ...(Array.isArray(entries) && {
        entries: entries.map((each) => this.#new.get(Number(each))).filter((each) => each),
      }),
    };
  }

  #mapped(name: string, id: unknown): Fields | undefined {
    const mapped = this.#new.get(Number(id));
    return mapped === undefined ? undefined : { [name]: mapped };
  }

  /** The new number of an entry, or of the first one behind it that is here. */
  #from(id: unknown): number | undefined {
    if (typeof id !== "number") return undefined;
    const old = this.#old.find((each) => each >= id);
    return old === undefined ? undefined : this.#new.get(old);
  }
}
