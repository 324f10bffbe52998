import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, join } from "node:path";
import type { AgentToolResult } from "@gyre/agent";
import type { FileContent } from "@gyre/ai";
import { limitPage, type ToolEnv } from "../../contract/env.ts";
import {
  decodeText,
  TEXT_HEAD_BYTES,
  textEncoding,
  type TextEncoding,
} from "../../text/encoding.ts";
import {
  binaryKind,
  fromSource,
  humanSize,
  type ImageType,
  imageType,
  mediaType,
} from "@gyre/ai/text";
import { BYTE_ORDER_MARK } from "../../text/line-ends.ts";
import { counted, grouped, textResult } from "../../text/text.ts";
import { LineWindow, listedName, type ShownLines } from "../../text/truncate.ts";
import { type FileInfo, PathError } from "../../workspace/workspace.ts";
import { KEPT_PREFIX, keptKey, spooledName } from "./kept-results.ts";
import {
  READ_MAX_BYTES,
  READ_MAX_COUNTED_BYTES,
  READ_MAX_FILE_BYTES,
  READ_MAX_IMAGE_BYTES,
  READ_MAX_LINE_CHARS,
  READ_MAX_SEEN_BYTES,
  type ReadDetails,
  type ReadToolOptions,
} from "./tool.ts";

const PIECE_BYTES = 256 * 1024;

interface Request extends ReadToolOptions {
  offset: number;
  limit: number;
  signal: AbortSignal;
}

/** Reads a file of the workspace, or a result that the agent keeps. */
export async function runRead(
  env: ToolEnv,
  path: string,
  request: Request,
): Promise<AgentToolResult> {
  const kept = keptKey(env, path);
  if (kept !== undefined) return readKept(env, kept, request);
  const opened = await openFile(env, path);
  try {
    return await readOpened(env, opened, request);
  } finally {
    await opened.handle.close();
  }
}

/** What is read: a file of the workspace, or one of our own. */
interface ReadFile {
  handle: FileHandle;
  info: Pick<FileInfo, "path" | "size">;
}

async function openSpooled(env: ToolEnv, name: string, path: string): Promise<ReadFile> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(join(env.spoolFolder, name), flags).catch((error: unknown) => {
    const isGone = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw isGone ? new Error(`${name} is gone. Run the command again.`, { cause: error }) : error;
  });
  const { size } = await handle.stat();
  return { handle, info: { path, size } };
}

async function readKept(env: ToolEnv, key: string, request: Request): Promise<AgentToolResult> {
  const text = await env.kept?.(key);
  if (text === undefined) throw new Error(`No result is kept under ${JSON.stringify(key)}.`);
  const window = openWindow(env, request);
  window.feed(text);
  const info = { path: `${KEPT_PREFIX}${key}`, size: Buffer.byteLength(text) };
  return textPage(info, request.offset, window.end(), true, [], false);
}

function openWindow(env: ToolEnv, { offset, limit }: Request): LineWindow {
  return new LineWindow(offset, {
    maxLines: limit,
    ...limitPage(env, READ_MAX_BYTES),
    maxLineChars: READ_MAX_LINE_CHARS,
  });
}

async function openFile(env: ToolEnv, path: string): Promise<ReadFile> {
  const spooled = spooledName(env, path);
  if (spooled !== undefined) return openSpooled(env, spooled, path);
  try {
    return await env.workspace.open(path);
  } catch (error) {
    if (!(error instanceof PathError) || error.fault !== "not_a_file") throw error;
    const { kind } = await env.workspace.stat(path);
    const advice =
      kind === "folder" ? "a folder. Use ls or find to see what is in it." : "no regular file.";
    throw new PathError(error.fault, path, `${JSON.stringify(path)} is ${advice}`);
  }
}

async function readOpened(
  env: ToolEnv,
  { handle, info }: ReadFile,
  request: Request,
): Promise<AgentToolResult> {
  const head = await readBytes(handle, TEXT_HEAD_BYTES);
  const image = imageType(head);
  if (image) return readImage(handle, info, image);
  const name = listedName(info.path);
  const encoding = textEncoding(head);
  const type = mediaType(head, info.path);
  if (type !== undefined) return readMedia(env, { handle, info }, type, head);
  if (!encoding) throw notText(name, head, info);
  return readText(env, { handle, info }, encoding, request);
}

async function readImage(
  handle: FileHandle,
  info: ReadFile["info"],
  mimeType: ImageType,
): Promise<AgentToolResult> {
  const bytes = await readBytes(handle, READ_MAX_IMAGE_BYTES + 1);
  const name = listedName(info.path);
  if (bytes.length > READ_MAX_IMAGE_BYTES) {
    throw new Error(
      `${name} is an image (${mimeType}) of ${humanSize(info.size)}; images are shown up to ` +
        `${humanSize(READ_MAX_IMAGE_BYTES)}. Make a smaller one of it with a program first.`,
    );
  }
  const details: ReadDetails = { path: info.path, bytes: bytes.length, mimeType };
  return {
    content: [
      { type: "text", text: `${name}: ${mimeType}, ${humanSize(bytes.length)}` },
      { type: "image", data: bytes.toString("base64"), mimeType },
    ],
    details,
  };
}

function notText(name: string, head: Buffer, { size }: ReadFile["info"], why = ""): Error {
  return new Error(
    `${name} is not text: ${binaryKind(head)}, ${humanSize(size)}. ` +
      `${why}Use a program that understands it.`,
  );
}

/** A document, sound or film, where the model takes it. */
async function readMedia(
  env: ToolEnv,
  { handle, info }: ReadFile,
  type: string,
  head: Buffer,
): Promise<AgentToolResult> {
  const name = listedName(info.path);
  const file: FileContent = {
    type: "file",
    mediaType: type,
    name: basename(info.path),
    source: { type: "stored", sha256: "", size: info.size },
  };
  const why = env.explainFile ? await env.explainFile(file) : "this model gets images alone";
  if (why !== undefined) throw notText(name, head, info, `It is not sent: ${why}. `);
  const bytes = await readBytes(handle, READ_MAX_FILE_BYTES + 1);
  if (bytes.length > READ_MAX_FILE_BYTES) {
    const most = humanSize(READ_MAX_FILE_BYTES);
    throw notText(name, head, info, `Files are sent up to ${most}. `);
  }
  const details: ReadDetails = { path: info.path, bytes: bytes.length, mimeType: type };
  const source = { type: "base64", data: bytes.toString("base64") } as const;
  return {
    content: [
      { type: "text", text: `${name}: ${type}, ${humanSize(bytes.length)}` },
      { ...file, source },
    ],
    details,
  };
}

async function readText(
  env: ToolEnv,
  { handle, info }: ReadFile,
  encoding: TextEncoding,
  request: Request,
): Promise<AgentToolResult> {
  const first = request.offset;
  const window = openWindow(env, request);
  const notes: string[] = [];
  let allCounted = true;
  const whole =
    info.size > READ_MAX_SEEN_BYTES ? undefined : await readBytes(handle, READ_MAX_SEEN_BYTES + 1);
  if (whole && whole.length <= READ_MAX_SEEN_BYTES) {
    const text = decodeText(whole) ?? "";
    window.feed(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);
    env.seen.note(info.path, text);
    if (encoding !== "utf-8") notes.push(`It is written in ${encoding.toUpperCase()}.`);
    else if (!isUtf8(whole)) notes.push("Bytes of it that are not UTF-8 are shown as \ufffd.");
  } else {
    env.seen.forget(info.path);
    allCounted = await feedAll(handle, encoding, window, request.signal);
  }
  const shown = window.end();
  return textPage(info, first, shown, allCounted, notes, request.lineNumbers ?? false);
}

function textPage(
  info: ReadFile["info"],
  first: number,
  { lines, total, cut, next }: ShownLines,
  allCounted: boolean,
  notes: readonly string[],
  lineNumbers: boolean,
): AgentToolResult {
  const name = listedName(info.path);
  if (total === 0) return textResult(`${name} is empty.`, { path: info.path, bytes: info.size });
  if (lines.length === 0) {
    throw new Error(`offset ${first} is past the end: ${name} has ${counted(total, "line")}.`);
  }
  const footer: string[] = [];
  const all = `${allCounted ? "" : "at least "}${grouped(total)}`;
  const last = first + lines.length - 1;
  if (next !== undefined) {
    footer.push(`Lines ${first}-${last} of ${all}. Use offset=${next} to continue.`);
  } else if (first > 1) {
    footer.push(`Lines ${first}-${last} of ${all}: the end of the file.`);
  }
  if (cut > 0) {
    footer.push(
      `${counted(cut, "line")} cut at ${READ_MAX_LINE_CHARS} characters: ` +
        "grep shows a long line around a match.",
    );
  }
  footer.push(...notes);
  const text = lineNumbers ? lines.map((line, index) => `${first + index}\t${line}`) : lines;
  const details: ReadDetails = {
    path: info.path,
    bytes: info.size,
    firstLine: first,
    shownLines: lines.length,
    totalLines: total,
  };
  const page = fromSource({ kind: "file", name: info.path }, text.join("\n"));
  return textResult([page, ...(footer.length > 0 ? [`[${footer.join(" ")}]`] : [])], details);
}

/** Feeds the file to the window, piece by piece. False where it stopped before the end. */
async function feedAll(
  handle: FileHandle,
  encoding: TextEncoding,
  window: LineWindow,
  signal: AbortSignal,
): Promise<boolean> {
  const decoder = new TextDecoder(encoding);
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  let unseen = 0;
  for (let position = 0; ;) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(piece, 0, PIECE_BYTES, position);
    position += bytesRead;
    window.feed(decoder.decode(piece.subarray(0, bytesRead), { stream: bytesRead > 0 }));
    if (bytesRead === 0) return true;
    if (window.full) unseen += bytesRead;
    if (unseen >= READ_MAX_COUNTED_BYTES) return false;
  }
}

/** The first bytes of a file, at most `maxBytes`. */
async function readBytes(handle: FileHandle, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  while (length < maxBytes) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, maxBytes - length));
    const { bytesRead } = await handle.read(piece, 0, piece.length, length);
    if (bytesRead === 0) break;
    pieces.push(piece.subarray(0, bytesRead));
    length += bytesRead;
  }
  return Buffer.concat(pieces);
}
