import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import type { ProtocolClient } from "../client/client.ts";
import type { Context, FileContent, Message, UserContent } from "../messages/messages.ts";
import { scriptedModel } from "../testing/scripted.ts";
import { countBytes, fromBase64, toBase64 } from "./base64.ts";
import {
  hashFile,
  loadContent,
  loadFiles,
  MAX_INLINE_BYTES,
  MAX_STORED_BYTES,
  MemoryFiles,
  readStoredFile,
  storeContent,
  withStoredFiles,
} from "./stored-files.ts";

function createFile(bytes: number, fill = 7): FileContent {
  const data = toBase64(new Uint8Array(bytes).fill(fill));
  return {
    type: "file",
    mediaType: "application/pdf",
    name: "a.pdf",
    source: { type: "base64", data },
  };
}

function user(...content: UserContent[]): Message {
  return { role: "user", content, timestamp: 0 };
}

const hello: UserContent = { type: "text", text: "Hello" };

describe("base64", () => {
  it("goes there and back, and knows its size", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        const text = toBase64(bytes);
        expect(text).toBe(Buffer.from(bytes).toString("base64"));
        expect([...fromBase64(text)]).toEqual([...bytes]);
        expect(countBytes(text)).toBe(bytes.length);
      }),
    );
  });

  it("is the same where there is nothing native", () => {
    const bytes = new Uint8Array(100_000).map((_, at) => at * 7);
    const text = Buffer.from(bytes).toString("base64");
    vi.stubGlobal("Buffer", undefined);
    try {
      expect(toBase64(bytes) === text).toBe(true);
      expect(fromBase64(text).every((byte, at) => byte === bytes[at])).toBe(true);
    } finally {
      vi.unstubAllGlobals();
    }
  });

  it("takes more bytes than a call has arguments", () => {
    const bytes = new Uint8Array(300_000).map((_, at) => at);
    expect(Buffer.compare(fromBase64(toBase64(bytes)), bytes)).toBe(0);
  });
});

describe("storing", () => {
  it("keeps what has at most 256 KiB where it is, and refers to what is larger", async () => {
    const store = new MemoryFiles();
    const small = createFile(MAX_INLINE_BYTES);
    const large = createFile(MAX_INLINE_BYTES + 1);
    const content = [hello, small];
    expect(await storeContent(content, store)).toBe(content);
    const [, kept, stored] = await storeContent([hello, small, large], store);
    expect(kept).toBe(small);
    const sha256 = await hashFile(new Uint8Array(MAX_INLINE_BYTES + 1).fill(7));
    const source = { type: "stored", sha256, size: MAX_INLINE_BYTES + 1 };
    expect(stored).toEqual({ ...large, source });
    expect((await store.read(sha256))?.length).toBe(MAX_INLINE_BYTES + 1);
  });

  it("makes a file of an image block, with its proof of origin", async () => {
    const data = toBase64(new Uint8Array(MAX_INLINE_BYTES + 1));
    const image = { type: "image", data, mimeType: "image/png", signature: "s" } as const;
    expect(await storeContent([image], new MemoryFiles())).toMatchObject([
      { type: "file", mediaType: "image/png", signature: "s", source: { type: "stored" } },
    ]);
  });

  it("refuses what is too large, and says what to do", async () => {
    const data = "A".repeat(Math.ceil(((MAX_STORED_BYTES + 3) * 4) / 3 / 4) * 4);
    const file: FileContent = { ...createFile(1), source: { type: "base64", data } };
    await expect(storeContent([file], new MemoryFiles())).rejects.toMatchObject({
      code: "too_large",
      message: expect.stringContaining("at most 64 MiB. Give it by URL"),
    });
  });

  it("rejects with what the store rejects with", async () => {
    const full = {
      ...new MemoryFiles(),
      write: () => Promise.reject(new Error("The disk is full.")),
    };
    const store = Object.assign(new MemoryFiles(), full);
    await expect(storeContent([createFile(300_000)], store)).rejects.toThrow("The disk is full.");
  });

  it("takes content of programs without types as it is", async () => {
    const odd = [null, { type: "image" }, { type: "file" }] as unknown as UserContent[];
    expect(await storeContent(odd, new MemoryFiles())).toBe(odd);
    expect(await loadContent(odd, new MemoryFiles())).toBe(odd);
  });
});

describe("loading", () => {
  it("gives back the contents that were stored", async () => {
    const store = new MemoryFiles();
    const content = [hello, createFile(300_000), createFile(300_000, 8)];
    expect(await loadContent(await storeContent(content, store), store)).toEqual(content);
  });

  it("says that contents are missing, or damaged", async () => {
    const store = new MemoryFiles();
    const [file] = await storeContent([createFile(300_000)], store);
    if (file?.type !== "file" || file.source.type !== "stored") throw new Error("It is stored.");
    const { source } = file;
    await expect(readStoredFile(source, new MemoryFiles())).rejects.toMatchObject({
      code: "missing_file",
      message: expect.stringContaining(source.sha256),
    });
    const other = Object.assign(new MemoryFiles(), {
      read: async () => new Uint8Array(source.size),
    });
    await expect(readStoredFile(source, other)).rejects.toMatchObject({ code: "damaged_file" });
    const short = Object.assign(new MemoryFiles(), { read: async () => new Uint8Array(1) });
    await expect(readStoredFile(source, short)).rejects.toMatchObject({ code: "damaged_file" });
  });

  it("of a request puts a text for what is missing, and fails where that was asked about", async () => {
    const store = new MemoryFiles();
    const stored = (await storeContent([createFile(300_000)], store)) as UserContent[];
    const messages = [user(...stored), user(hello)];
    const [first] = await loadFiles(messages, new MemoryFiles());
    expect(first?.content).toEqual([
      {
        type: "text",
        text: "[File left out (a.pdf, application/pdf, 300 KB): its contents are missing from the store of the session]",
      },
    ]);
    await expect(loadFiles([user(...stored)], new MemoryFiles())).rejects.toMatchObject({
      name: "StoredFileError",
      code: "missing_file",
      message: expect.stringContaining("The file (a.pdf, application/pdf, 300 KB) cannot be sent."),
      failure: { kind: "bad_request", retryable: false },
    });
  });
});

describe("a client with a store", () => {
  it("sends the contents, and reads them once for many requests", async () => {
    let reads = 0;
    const memory = new MemoryFiles();
    const store = Object.assign(memory, {
      read: (sha256: string) => {
        reads++;
        return MemoryFiles.prototype.read.call(memory, sha256);
      },
    });
    const file = createFile(300_000);
    const stored = (await storeContent([file], store)) as UserContent[];
    const sent: Context[] = [];
    const script = scriptedModel(["One.", "Two."]);
    const inner: ProtocolClient = {
      stream: (model, context, options) => {
        sent.push(context);
        return script.stream(model, context, options);
      },
    };
    const client = withStoredFiles(inner, store);
    for (let nth = 0; nth < 2; nth++) {
      await (await client.stream(script.model, { messages: [user(...stored)] }, {})).result();
    }
    expect(sent.map(({ messages }) => messages)).toEqual([[user(file)], [user(file)]]);
    expect(reads).toBe(1);
  });

  it("leaves requests without stored files as they are", async () => {
    const script = scriptedModel(["One."]);
    const messages = [user(hello)];
    let sent: readonly Message[] = [];
    const inner: ProtocolClient = {
      stream: (model, context, options) => {
        sent = context.messages;
        return script.stream(model, context, options);
      },
    };
    await withStoredFiles(inner, new MemoryFiles()).stream(script.model, { messages }, {});
    expect(sent).toBe(messages);
  });
});
