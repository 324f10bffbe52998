import type { FileHandle } from "node:fs/promises";
import type { EntryIndex } from "../session/entry-index.ts";
import type { EntryReader } from "../session/log.ts";
import { type Fields, parseFields } from "../format/body.ts";
import { SessionError } from "../format/types.ts";

/** Lines that stand near each other are read together, up to this much. */
const MAX_READ_BYTES = 4 * 1024 * 1024;
/** What may stand between two lines that are read together. */
const MAX_GAP_BYTES = 64 * 1024;

/** Reads whole lines where the index says that they are. */
export class LineReader implements EntryReader {
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #index: EntryIndex;

  constructor(path: string, handle: FileHandle, index: EntryIndex) {
    this.#path = path;
    this.#handle = handle;
    this.#index = index;
  }

  async one(at: number): Promise<Fields> {
    const bytes = await this.#bytes(this.#index.offsetAt(at), this.#index.bytesAt(at));
    return this.#parse(bytes, at);
  }

  /** Many lines, by their places in ascending order; each is given to `take`. */
  async each(
    places: readonly number[],
    take: (fields: Fields, at: number) => void | Promise<void>,
  ): Promise<void> {
    const index = this.#index;
    for (let next = 0; next < places.length;) {
      const first = next;
      const start = index.offsetAt(places[first] ?? 0);
      let end = start + index.bytesAt(places[first] ?? 0);
      for (next++; next < places.length; next++) {
        const at = places[next] ?? 0;
        const offset = index.offsetAt(at);
        const after = offset + index.bytesAt(at);
        const isNear = offset >= end && offset - end <= MAX_GAP_BYTES;
        if (!isNear || after - start > MAX_READ_BYTES) break;
        end = after;
      }
      const bytes = await this.#bytes(start, end - start);
      for (const at of places.slice(first, next)) {
        const from = index.offsetAt(at) - start;
        await take(this.#parse(bytes.subarray(from, from + index.bytesAt(at)), at), at);
      }
    }
  }

  async #bytes(offset: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length);
    for (let got = 0; got < length;) {
      const { bytesRead } = await this.#handle.read(bytes, got, length - got, offset + got);
      if (bytesRead === 0) throw this.#changed(offset);
      got += bytesRead;
    }
    return bytes;
  }

  #parse(bytes: Buffer, at: number): Fields {
    const fields = parseFields(bytes);
    if (!fields) throw this.#changed(this.#index.offsetAt(at));
    return fields;
  }

  #changed(offset: number): SessionError {
    const message = `${this.#path} has changed since it was opened: at byte ${offset} there is no entry any more. Open it again.`;
    return new SessionError("unreadable", message, { path: this.#path });
  }
}
