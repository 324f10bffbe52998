import type { ProtocolClient } from "../client/client.ts";
import { countBytes, fromBase64, toBase64 } from "./base64.ts";
import { describeFile, leaveOut } from "./file-facts.ts";
import { toFile } from "./files.ts";
import type {
  AssistantContent,
  Failure,
  FileContent,
  FileSource,
  ImageContent,
  Message,
  UserContent,
} from "../messages/messages.ts";

/** Contents above this are stored by their hash, and a message refers to them. */
export const MAX_INLINE_BYTES: number = 256 * 1024;
/** Of one file in a store. */
export const MAX_STORED_BYTES: number = 64 * 1024 * 1024;
/** Contents that `withStoredFiles` keeps at hand for the next request. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;

/** Keeps the contents of files by the SHA-256 of their bytes, in hexadecimal. */
export interface FileStore {
  /** Stores contents, which are there for good when the promise settles. Those that are there stay. */
  write(sha256: string, bytes: Uint8Array): Promise<void>;
  /** The contents as they are stored, or undefined where there are none. Callers check the hash. */
  read(sha256: string): Promise<Uint8Array | undefined>;
}

type StoredSource = Extract<FileSource, { type: "stored" }>;

/** The contents of a file are not in the store, are not what they were, or are too large for it. */
export class StoredFileError extends Error {
  readonly code: "missing_file" | "damaged_file" | "too_large";
  readonly failure: Failure = { kind: "bad_request", retryable: false };

  constructor(code: StoredFileError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StoredFileError";
    this.code = code;
  }
}

/**
 * Content whose large files are in a store: each gets there before it is referred to. The same content
 * where there are none. Rejects with what the store rejects with, and with `StoredFileError`.
 */
export async function storeContent<Block extends UserContent | AssistantContent>(
  content: readonly Block[],
  store: FileStore,
): Promise<readonly (Block | FileContent)[]> {
  if (!content.some(isLarge)) return content;
  return Promise.all(
    content.map(async (block): Promise<Block | FileContent> =>
      isLarge(block) ? storeBlock(block, store) : block,
    ),
  );
}

/** Whether a block has contents that belong into a store. */
export function isLarge<Block extends UserContent | AssistantContent>(
  block: Block,
): block is Extract<Block, ImageContent | FileContent> {
  // What programs without types write may be anything.
  if (block?.type === "image") return isAbove(block.data);
  return block?.type === "file" && block.source?.type === "base64" && isAbove(block.source.data);
}

function isAbove(base64: unknown): boolean {
  return typeof base64 === "string" && countBytes(base64) > MAX_INLINE_BYTES;
}

async function storeBlock(
  block: ImageContent | FileContent,
  store: FileStore,
): Promise<FileContent> {
  const file = toFile(block);
  if (file.source.type !== "base64") return file;
  if (countBytes(file.source.data) > MAX_STORED_BYTES) {
    throw new StoredFileError(
      "too_large",
      `The file (${describeFile(file)}) is too large: a store takes at most ${MAX_STORED_BYTES / 1024 / 1024} MiB. Give it by URL, or upload it to the service.`,
    );
  }
  const bytes = fromBase64(file.source.data);
  const sha256 = await hashFile(bytes);
  await store.write(sha256, bytes);
  return { ...file, source: { type: "stored", sha256, size: bytes.length } };
}

/** The contents of a stored file, checked. Rejects with `StoredFileError` where they are not there. */
export async function readStoredFile(
  { sha256, size }: Pick<StoredSource, "sha256" | "size">,
  store: FileStore,
): Promise<Uint8Array> {
  const bytes = await store.read(sha256);
  if (!bytes) {
    throw new StoredFileError(
      "missing_file",
      `The contents of a file (sha256 ${sha256}, ${size} bytes) are missing: they are not in the store of the session. Copy them there, or go on without the file.`,
    );
  }
  if (bytes.length === size && (await hashFile(bytes)) === sha256) return bytes;
  throw new StoredFileError(
    "damaged_file",
    `The contents of a file (sha256 ${sha256}, ${size} bytes) are damaged in the store of the session: ${bytes.length} bytes with another hash are there. Put them right, or go on without the file.`,
  );
}

/**
 * Content with the contents of its stored files; the same content where there are none. What is missing or
 * damaged stays as it is.
 */
export async function loadContent<Block extends UserContent | AssistantContent>(
  content: readonly Block[],
  store: FileStore,
): Promise<readonly (Block | FileContent)[]> {
  if (!content.some(isStored)) return content;
  return Promise.all(
    content.map(async (block): Promise<Block | FileContent> => {
      if (!isStored(block)) return block;
      try {
        return await loadFile(block, store);
      } catch (error) {
        if (error instanceof StoredFileError) return block;
        throw error;
      }
    }),
  );
}

async function loadFile(
  file: FileContent & { source: StoredSource },
  store: FileStore,
): Promise<FileContent> {
  const data = toBase64(await readStoredFile(file.source, store));
  return { ...file, source: { type: "base64", data } };
}

/**
 * Messages with the contents of their stored files. Where those are missing or damaged, a text stands
 * for the file; in the last message, if that is of the user, the error is thrown.
 */
export async function loadFiles(
  messages: readonly Message[],
  store: FileStore,
): Promise<readonly Message[]> {
  if (!messages.some(hasStored)) return messages;
  return Promise.all(
    messages.map(async (message, index): Promise<Message> => {
      if (!hasStored(message) || typeof message.content === "string") return message;
      const isAsked = message.role === "user" && index === messages.length - 1;
      const load = <B extends UserContent | AssistantContent>(block: B) =>
        loadBlock(block, store, isAsked);
      if (message.role === "assistant") {
        return { ...message, content: await Promise.all(message.content.map(load)) };
      }
      return { ...message, content: await Promise.all(message.content.map(load)) };
    }),
  );
}

function hasStored({ content }: Message): boolean {
  if (!Array.isArray(content)) return false;
  return content.some((block: UserContent | AssistantContent) => isStored(block));
}

/** Whether the contents of a block are in a store. */
export function isStored(
  block: UserContent | AssistantContent,
): block is FileContent & { source: StoredSource } {
  return block?.type === "file" && block.source?.type === "stored";
}

async function loadBlock<Block extends UserContent | AssistantContent>(
  block: Block,
  store: FileStore,
  isAsked: boolean,
): Promise<Block | FileContent | ReturnType<typeof leaveOut>> {
  if (!isStored(block)) return block;
  try {
    return await loadFile(block, store);
  } catch (error) {
    if (!(error instanceof StoredFileError)) throw error;
    if (isAsked) throw nameFile(error, block);
    const why = error.code === "missing_file" ? "missing from the store" : "damaged in the store";
    return leaveOut(block, `its contents are ${why} of the session`);
  }
}

function nameFile(error: StoredFileError, file: FileContent): StoredFileError {
  const message = `The file (${describeFile(file)}) cannot be sent. ${error.message}`;
  return new StoredFileError(error.code, message, { cause: error });
}

/** A client whose requests have the contents of the files that are in a store. */
export function withStoredFiles(client: ProtocolClient, store: FileStore): ProtocolClient {
  const cached = new CachedStore(store);
  return {
    stream: (model, context, options) => {
      if (!context.messages.some(hasStored)) return client.stream(model, context, options);
      return loadFiles(context.messages, cached).then((messages) =>
        client.stream(model, { ...context, messages }, options),
      );
    },
  };
}

/** Keeps what was read last: the next request of a conversation has the same files and a few more. */
class CachedStore implements FileStore {
  readonly #store: FileStore;
  readonly #kept = new Map<string, Uint8Array>();
  #size = 0;

  constructor(store: FileStore) {
    this.#store = store;
  }

  write(sha256: string, bytes: Uint8Array): Promise<void> {
    return this.#store.write(sha256, bytes);
  }

  async read(sha256: string): Promise<Uint8Array | undefined> {
    const known = this.#kept.get(sha256);
    const bytes = known ?? (await this.#store.read(sha256));
    if (!bytes) return undefined;
    if (this.#kept.delete(sha256)) this.#size -= bytes.length;
    this.#kept.set(sha256, bytes);
    this.#size += bytes.length;
    for (const [oldest, { length }] of this.#kept) {
      if (this.#size <= MAX_CACHED_BYTES) break;
      this.#kept.delete(oldest);
      this.#size -= length;
    }
    return bytes;
  }
}

/** Files in the memory of this program. */
export class MemoryFiles implements FileStore {
  readonly #files = new Map<string, Uint8Array>();

  async write(sha256: string, bytes: Uint8Array): Promise<void> {
    if (!this.#files.has(sha256)) this.#files.set(sha256, bytes.slice());
  }

  async read(sha256: string): Promise<Uint8Array | undefined> {
    return this.#files.get(sha256);
  }

  remove(sha256: string): void {
    this.#files.delete(sha256);
  }
}

/** The SHA-256 of bytes, in hexadecimal. */
export async function hashFile(bytes: Uint8Array): Promise<string> {
  const digest = await globalThis.crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
