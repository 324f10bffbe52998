const SIGNATURE = "DIRC";
const HEADER_BYTES = 12;
/** Of an entry: times, device, mode, owner and size, before the id of its content. */
const STAT_BYTES = 40;
const MODE_AT = 24;
/** Bytes of an id: SHA-1, SHA-256. The file does not say which. */
const ID_BYTES = [20, 32] as const;
const EXTENDED = 0x4000;
/** A commit of another repository. */
const LINK_MODE = 0o160000;

/**
 * The folders that an index of git has as repositories of their own (submodules). Reads
 * the versions 2 to 4; of a file that is damaged git makes nothing, and neither does this.
 */
export function findLinkedFolders(index: Buffer): string[] {
  if (index.length < HEADER_BYTES || index.toString("latin1", 0, 4) !== SIGNATURE) return [];
  for (const idBytes of ID_BYTES) {
    const found = readEntries(index, idBytes);
    if (found) return found;
  }
  return [];
}

/** Nothing where the ids cannot have this length. */
function readEntries(index: Buffer, idBytes: number): string[] | undefined {
  const version = index.readUInt32BE(4);
  const count = index.readUInt32BE(8);
  const links: string[] = [];
  let at = HEADER_BYTES;
  let last = Buffer.alloc(0);
  for (let entry = 0; entry < count; entry++) {
    const start = at;
    at += STAT_BYTES + idBytes + 2;
    if (at >= index.length) return undefined;
    const isExtended = version > 2 && (index.readUInt16BE(at - 2) & EXTENDED) !== 0;
    if (isExtended) at += 2;
    let kept = Buffer.alloc(0);
    if (version === 4) {
      const dropped = readOffset(index, at);
      at = dropped.end;
      if (dropped.value > last.length) return undefined;
      kept = last.subarray(0, last.length - dropped.value);
    }
    const end = index.indexOf(0, at);
    if (end < 0) return undefined;
    const name = Buffer.concat([kept, index.subarray(at, end)]);
    // Names are sorted: where they are not, the ids are of another length.
    if (Buffer.compare(last, name) > 0 || name.length === 0) return undefined;
    if ((index.readUInt32BE(start + MODE_AT) & 0o170000) === LINK_MODE) links.push(name.toString());
    last = name;
    // Filled up to a multiple of eight, with one zero at least.
    at = version === 4 ? end + 1 : start + Math.floor((end - start + 8) / 8) * 8;
  }
  return links;
}

/** A number of git's packs: seven bits a byte, each further byte counts one more. */
function readOffset(index: Buffer, from: number): { value: number; end: number } {
  let at = from;
  let byte = index[at++] ?? 0;
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = index[at++] ?? 0;
    value = (value + 1) * 128 + (byte & 0x7f);
  }
  return { value, end: at };
}
