import type { EntryType } from "../format/entry.ts";
import { ENTRY_TYPES, isBeside } from "../format/body.ts";
import type { EntryInfo } from "../format/types.ts";

const FIRST_CAPACITY = 256;

/**
 * Where each entry stands in the file, and which one it follows. Ids only go up. Held in
 * arrays of numbers: 25 bytes an entry, so that a million of them are no burden.
 */
export class EntryIndex {
  length = 0;
  #offsets = new Float64Array(FIRST_CAPACITY);
  #lengths = new Uint32Array(FIRST_CAPACITY);
  #lines = new Uint32Array(FIRST_CAPACITY);
  #ids = new Uint32Array(FIRST_CAPACITY);
  /** 0: none. */
  #parents = new Uint32Array(FIRST_CAPACITY);
  #types = new Uint8Array(FIRST_CAPACITY);

  /** `id` is above all that are there; `parent` is one of them, or 0. */
  add(id: number, parent: number, type: number, offset: number, bytes: number, line: number): void {
    if (this.length === this.#ids.length) this.#grow();
    const at = this.length++;
    this.#ids[at] = id;
    this.#parents[at] = parent;
    this.#types[at] = type;
    this.#offsets[at] = offset;
    this.#lengths[at] = bytes;
    this.#lines[at] = line;
  }

  get lastId(): number {
    return this.length === 0 ? 0 : this.idAt(this.length - 1);
  }

  /** The place of the entry with this id, or -1. */
  find(id: number): number {
    const at = this.floor(id);
    return at >= 0 && this.#ids[at] === id ? at : -1;
  }

  /** The place of the entry with the highest id up to this one, or -1. */
  floor(id: number): number {
    let low = 0;
    let high = this.length - 1;
    if (high < 0 || this.idAt(high) <= id) return high;
    // Without gaps an entry stands where its id says; with some, before that.
    high = Math.min(high, id - 1);
    if (high >= 0 && this.#ids[high] === id) return high;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      if (this.idAt(middle) <= id) low = middle + 1;
      else high = middle - 1;
    }
    return high;
  }

  copyTo(other: EntryIndex, at: number): void {
    const type = this.#types[at] ?? 0;
    const [id, parent] = [this.idAt(at), this.parentAt(at)];
    other.add(id, parent, type, this.offsetAt(at), this.bytesAt(at), this.lineAt(at));
  }

  setParent(at: number, parent: number): void {
    this.#parents[at] = parent;
  }

  /** Forgets all from a place on. */
  truncate(length: number): void {
    this.length = length;
  }

  idAt(at: number): number {
    return this.#ids[at] ?? 0;
  }

  /** 0: none. */
  parentAt(at: number): number {
    return this.#parents[at] ?? 0;
  }

  typeAt(at: number): EntryType {
    return ENTRY_TYPES[this.#types[at] ?? 0] ?? "custom";
  }

  offsetAt(at: number): number {
    return this.#offsets[at] ?? 0;
  }

  /** Without the LF. */
  bytesAt(at: number): number {
    return this.#lengths[at] ?? 0;
  }

  lineAt(at: number): number {
    return this.#lines[at] ?? 0;
  }

  /**
   * The entry that the next one followed when the one at this place was the last: itself, unless
   * it stands beside the branch. 0: none.
   */
  leafAt(at: number): number {
    if (at < 0) return 0;
    const type = this.typeAt(at);
    return isBeside(type) || type === "leaf" ? this.parentAt(at) : this.idAt(at);
  }

  findIds(types: readonly EntryType[]): number[] {
    const wanted = new Set(types.map((type) => ENTRY_TYPES.indexOf(type)));
    const ids: number[] = [];
    for (let at = 0; at < this.length; at++) {
      if (wanted.has(this.#types[at] ?? 0)) ids.push(this.idAt(at));
    }
    return ids;
  }

  infoAt(at: number): EntryInfo {
    return {
      id: this.idAt(at),
      parentId: this.parentAt(at) || null,
      type: this.typeAt(at),
      bytes: this.bytesAt(at),
    };
  }

  /** Places from the root to an entry. */
  pathTo(at: number): number[] {
    const path: number[] = [];
    for (let next = at; next >= 0;) {
      path.push(next);
      const parent = this.parentAt(next);
      if (parent === 0) break;
      // Usually the neighbor.
      next = this.#ids[next - 1] === parent ? next - 1 : this.find(parent);
    }
    return path.reverse();
  }

  #grow(): void {
    const capacity = this.#ids.length * 2;
    const grown = <T extends Float64Array | Uint32Array | Uint8Array>(from: T, to: T): T => {
      to.set(from);
      return to;
    };
    this.#offsets = grown(this.#offsets, new Float64Array(capacity));
    this.#lengths = grown(this.#lengths, new Uint32Array(capacity));
    this.#lines = grown(this.#lines, new Uint32Array(capacity));
    this.#ids = grown(this.#ids, new Uint32Array(capacity));
    this.#parents = grown(this.#parents, new Uint32Array(capacity));
    this.#types = grown(this.#types, new Uint8Array(capacity));
  }
}
