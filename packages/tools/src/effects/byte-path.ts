/**
 * A path inside of a folder, byte for byte: each of its characters stands for one byte, so that names in
 * any encoding are kept as they are. "" is the folder itself.
 */
export type BytePath = string;

export function toBytes(path: BytePath): Buffer {
  return Buffer.from(path, "latin1");
}

export function fromBytes(bytes: Buffer): BytePath {
  return bytes.toString("latin1");
}

/** The byte path of a text. */
export function fromText(text: string): BytePath {
  return fromBytes(Buffer.from(text, "utf8"));
}

/** The text that a path is in UTF-8; undefined where it is no text in it. */
export function toText(path: BytePath): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(toBytes(path));
  } catch {
    return undefined;
  }
}

/** A path for people: bytes that are no text are written as `\xNN`. Not yet safe to show. */
export function readable(path: BytePath): string {
  const text = toText(path);
  if (text !== undefined) return text;
  // oxlint-disable-next-line no-control-regex -- the other half of all bytes is what is replaced
  return path.replaceAll(/[^\u0000-\u007F]/g, (char) => `\\x${char.charCodeAt(0).toString(16)}`);
}

export function joinBytes(folder: BytePath, name: BytePath): BytePath {
  return folder === "" ? name : `${folder}/${name}`;
}

/** The folder that a path is in. */
export function findParent(path: BytePath): BytePath {
  const at = path.lastIndexOf("/");
  return at < 0 ? "" : path.slice(0, at);
}

export function getName(path: BytePath): BytePath {
  return path.slice(path.lastIndexOf("/") + 1);
}
