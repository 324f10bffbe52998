import { mkdir, open, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AgentToolResult } from "@gyre/agent";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ToolEnv } from "../../contract/env.ts";
import {
  READ_MAX_BYTES,
  READ_MAX_COUNTED_BYTES,
  READ_MAX_FILE_BYTES,
  READ_MAX_IMAGE_BYTES,
  READ_MAX_SEEN_BYTES,
  readTool,
} from "./tool.ts";
import { type TemporaryEnv, temporaryEnv } from "../../testing/temporary-env.ts";
import { modelText } from "../../testing/model-text.ts";

let temporary: TemporaryEnv;
let root: string;
let env: ToolEnv;

beforeEach(async () => {
  temporary = await temporaryEnv();
  ({ env, root } = temporary);
});

afterEach(() => temporary.remove());

const put = (path: string, data: string | Uint8Array): Promise<void> =>
  writeFile(join(root, path), data);

async function read(args: Record<string, unknown>, lineNumbers = false): Promise<AgentToolResult> {
  const { signal } = new AbortController();
  const host = { call: () => Promise.reject(new Error("no")) };
  const result = await readTool(env, { lineNumbers }).execute(args, {
    id: "1",
    signal,
    update: () => {},
    host,
    messages: [],
  });
  if (typeof result === "string") throw new TypeError("a plain string");
  return result;
}

function joinText(result: AgentToolResult): string {
  return modelText(result);
}

/** The content of the page, and the notes after it. */
async function page(args: Record<string, unknown>): Promise<{ text: string; notes: string }> {
  const [, text = "", notes = ""] =
    /^<source kind="file"[^\n]*>\n([^]*)\n<\/source mark="\w+">\n?([^]*)$/.exec(
      joinText(await read(args)),
    ) ?? [];
  return { text, notes };
}

const numbered = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}`).join("\n");

describe("text", () => {
  it("comes as it is, marked with where it came from, and is remembered", async () => {
    await put("a.txt", "one\r\n\ttwo  \nthree");
    const result = await read({ path: "a.txt" });
    expect(joinText(result)).toMatch(/^<source kind="file" name="a.txt" mark="\w+">\n/);
    expect(await page({ path: "a.txt" })).toEqual({ text: "one\r\n\ttwo  \nthree", notes: "" });
    expect(env.seen.get("a.txt")?.text).toBe("one\r\n\ttwo  \nthree");
    expect(result.details).toEqual({
      path: "a.txt",
      bytes: 17,
      firstLine: 1,
      shownLines: 3,
      totalLines: 3,
    });
  });

  it("shows 2,000 lines and says how to go on", async () => {
    await put("long.txt", `${numbered(1, 4500)}\n`);
    const { text, notes } = await page({ path: "long.txt" });
    expect(text).toBe(numbered(1, 2000));
    expect(notes).toBe("[Lines 1-2000 of 4,500. Use offset=2001 to continue.]");
    const last = await page({ path: "long.txt", offset: 4001 });
    expect(last.text).toBe(numbered(4001, 4500));
    expect(last.notes).toBe("[Lines 4001-4500 of 4,500: the end of the file.]");
    expect(env.seen.get("long.txt")?.text).toBe(`${numbered(1, 4500)}\n`);
  });

  it("shows as many lines as asked for, and never more than 2,000", async () => {
    await put("long.txt", numbered(1, 3000));
    const { text, notes } = await page({ path: "long.txt", offset: 10, limit: 2 });
    expect(text).toBe(numbered(10, 11));
    expect(notes).toBe("[Lines 10-11 of 3,000. Use offset=12 to continue.]");
    expect((await page({ path: "long.txt", limit: 9999 })).notes).toContain("offset=2001");
  });

  it("shows at most 50 KB, and every page together is the file", async () => {
    const lines = Array.from({ length: 900 }, (_, index) => `${index} ${"ä".repeat(100)}`);
    await put("wide.txt", `${lines.join("\n")}\n`);
    const seen: string[] = [];
    for (let offset: number | undefined = 1; offset !== undefined;) {
      const { text, notes } = await page({ path: "wide.txt", offset });
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(READ_MAX_BYTES);
      seen.push(...text.split("\n"));
      const next = /offset=(\d+)/.exec(notes)?.[1];
      offset = next === undefined ? undefined : Number(next);
    }
    expect(seen).toEqual(lines);
  });

  it("cuts a long line and says what shows the rest", async () => {
    await put("min.js", `${"x".repeat(5000)}\nshort\n`);
    const { text, notes } = await page({ path: "min.js" });
    expect(text).toBe(`${"x".repeat(2000)} [cut: 5,000 characters]\nshort`);
    expect(notes).toBe("[1 line cut at 2000 characters: grep shows a long line around a match.]");
  });

  it("puts numbers before lines if asked to", async () => {
    await put("a.txt", "one\ntwo\n");
    expect(joinText(await read({ path: "a.txt", offset: 2 }, true))).toContain("\n2\ttwo\n");
  });

  it("says that a file is empty, and that an offset is past the end", async () => {
    await put("empty", "");
    await put("two", "1\n2\n");
    expect(joinText(await read({ path: "empty" }))).toBe("empty is empty.");
    expect(env.seen.get("empty")?.text).toBe("");
    await expect(read({ path: "two", offset: 3 })).rejects.toThrow(
      "offset 3 is past the end: two has 2 lines.",
    );
  });

  it("reads UTF-16 and a byte order mark", async () => {
    const text = "grüße\nzwei 😀\n";
    await put("le", Buffer.from(`\ufeff${text}`, "utf16le"));
    await put("be", Buffer.from(`\ufeff${text}`, "utf16le").swap16());
    await put("mark", `\ufeff${text}`);
    expect((await page({ path: "le" })).text).toBe("grüße\nzwei 😀");
    expect(await page({ path: "be" })).toEqual({
      text: "grüße\nzwei 😀",
      notes: "[It is written in UTF-16BE.]",
    });
    expect((await page({ path: "mark" })).text).toBe("grüße\nzwei 😀");
    expect(env.seen.get("mark")?.text).toBe(`\ufeff${text}`);
  });

  it("shows a text with a few bytes that are no UTF-8, and says so", async () => {
    await put("latin", Buffer.from("caf\xe9 au lait, s'il vous pla\xeet", "latin1"));
    const { text, notes } = await page({ path: "latin" });
    expect(text).toBe("caf\ufffd au lait, s'il vous pla\ufffdt");
    expect(notes).toBe("[Bytes of it that are not UTF-8 are shown as \ufffd.]");
  });

  it("does not take a character that goes over the edge of the first look for broken", async () => {
    await put("edge", "€".repeat(5000));
    expect((await page({ path: "edge" })).notes).not.toContain("UTF-8");
  });
});

describe("large files", () => {
  it("are read piece by piece, to where they are shown, and not remembered", async () => {
    const line = `${"y".repeat(99)}\n`;
    const lines = Math.ceil(READ_MAX_SEEN_BYTES / line.length) + 10;
    await put("large", line.repeat(lines));
    env.seen.note("large", "what it was");
    const { text, notes } = await page({ path: "large", offset: lines, limit: 5 });
    expect(text).toBe("y".repeat(99));
    expect(notes).toContain(`Lines ${lines}-${lines} of ${lines.toLocaleString("en-US")}`);
    expect(env.seen.get("large")).toBeUndefined();
  });

  it("of 10 GB are not read whole", async () => {
    const file = await open(join(root, "huge"), "w");
    await file.write(`${numbered(1, 3000)}\n`);
    await file.truncate(10 * 1024 ** 3);
    await file.close();
    const { workspace } = env;
    let bytes = 0;
    vi.spyOn(workspace, "open").mockImplementationOnce(async (path) => {
      const opened = await workspace.open(path);
      const read = opened.handle.read.bind(opened.handle);
      const counting = async (buffer: Buffer, ...where: [number, number, number]) => {
        const result = await read(buffer, ...where);
        bytes += result.bytesRead;
        return result;
      };
      Object.assign(opened.handle, { read: counting });
      return opened;
    });
    const { text, notes } = await page({ path: "huge", limit: 3 });
    expect(text).toBe(numbered(1, 3));
    expect(notes).toContain("of at least 3,001. Use offset=4 to continue.");
    expect(bytes).toBeGreaterThan(READ_MAX_COUNTED_BYTES);
    expect(bytes).toBeLessThan(READ_MAX_COUNTED_BYTES + 1024 ** 2);
  });

  it("stop when the call is aborted", async () => {
    await put("large", "y\n".repeat(READ_MAX_SEEN_BYTES));
    const abort = new AbortController();
    abort.abort(new Error("enough"));
    const host = { call: () => Promise.reject(new Error("no")) };
    const run = readTool(env).execute(
      { path: "large" },
      { id: "1", signal: abort.signal, update: () => {}, host, messages: [] },
    );
    await expect(run).rejects.toThrow("enough");
  });
});

describe("what is no text", () => {
  it("images come inline, whatever their name says", async () => {
    const png = Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(100)]);
    await put("picture.txt", png);
    const result = await read({ path: "picture.txt" });
    expect(result.content).toEqual([
      { type: "text", text: "picture.txt: image/png, 108 B" },
      { type: "image", data: png.toString("base64"), mimeType: "image/png" },
    ]);
    expect(env.seen.get("picture.txt")).toBeUndefined();
  });

  it("images that are too large are reported, not sent", async () => {
    await put(
      "big.gif",
      Buffer.concat([Buffer.from("GIF89a"), Buffer.alloc(READ_MAX_IMAGE_BYTES)]),
    );
    await expect(read({ path: "big.gif" })).rejects.toThrow(
      "big.gif is an image (image/gif) of 5.0 MB; images are shown up to 5.0 MB.",
    );
  });

  it("binary files are reported with kind and size", async () => {
    await put("a.zip", Buffer.concat([Buffer.from("PK\x03\x04"), Buffer.alloc(2000)]));
    await put("noise", Buffer.from(Array.from({ length: 999 }, (_, index) => 128 + (index % 64))));
    await put("doc.pdf", "%PDF-1.7\nall of it is text at first");
    await expect(read({ path: "a.zip" })).rejects.toThrow("a.zip is not text: ZIP archive, 2.0 KB");
    await expect(read({ path: "noise" })).rejects.toThrow("not text: binary file, 999 B");
    await expect(read({ path: "doc.pdf" })).rejects.toThrow("PDF document");
  });

  it.each<[string, string, string]>([
    ["doc.pdf", "%PDF-1.7\nall of it is text at first", "application/pdf"],
    ["a.wav", "RIFF\0\0\0\0WAVEfmt ", "audio/wav"],
    ["a.mp3", "ID3\x04", "audio/mpeg"],
    ["b.mp3", "\xff\xfb\x90\x64", "audio/mpeg"],
    ["a.m4a", "\0\0\0 ftypM4A ", "audio/mp4"],
    ["a.flac", "fLaC\0", "audio/flac"],
    ["a.mp4", "\0\0\0 ftypisom", "video/mp4"],
    ["a.mov", "\0\0\0 ftypqt  ", "video/quicktime"],
    ["a.webm", "\x1aE\xdf\xa3\0", "video/webm"],
    ["a.mkv", "\x1aE\xdf\xa3\0", "video/x-matroska"],
  ])("%s is a file for a model that takes it", async (name, head, mediaType) => {
    const bytes = Buffer.from(head, "latin1");
    await put(name, bytes);
    const asked: unknown[] = [];
    env.explainFile = async (file) => {
      asked.push(file);
      return undefined;
    };
    const { content, details } = await read({ path: name });
    expect(content).toEqual([
      { type: "text", text: `${name}: ${mediaType}, ${bytes.length} B` },
      {
        type: "file",
        mediaType,
        name,
        source: { type: "base64", data: bytes.toString("base64") },
      },
    ]);
    expect(details).toMatchObject({ mimeType: mediaType, bytes: bytes.length });
    expect(asked).toMatchObject([{ mediaType, source: { size: bytes.length } }]);
  });

  it("a file that the model does not take is an error that says why", async () => {
    await put("doc.pdf", "%PDF-1.7");
    env.explainFile = async () => "this model reads no PDF";
    await expect(read({ path: "doc.pdf" })).rejects.toThrow(
      "doc.pdf is not text: PDF document, 8 B. It is not sent: this model reads no PDF. Use a program that understands it.",
    );
  });

  it("a file that is too large for every service is refused", async () => {
    const handle = await open(join(root, "doc.pdf"), "w");
    await handle.write("%PDF-1.7");
    await handle.truncate(READ_MAX_FILE_BYTES + 1);
    await handle.close();
    env.explainFile = async () => undefined;
    await expect(read({ path: "doc.pdf" })).rejects.toThrow("Files are sent up to 20 MB.");
  });

  it("folders send to ls", async () => {
    await mkdir(join(root, "src"));
    await expect(read({ path: "src" })).rejects.toThrow('"src" is a folder. Use ls or find');
  });

  it("a missing file comes with near names", async () => {
    await put("config.json", "{}");
    await expect(read({ path: "confg.json" })).rejects.toThrow(/config\.json/);
  });
});

describe("access", () => {
  it("reports where a link leads, also outside, which is refused before it is allowed", async () => {
    await put("real.txt", "x");
    await symlink("real.txt", join(root, "link.txt"));
    await symlink("/etc/passwd", join(root, "out"));
    const tool = readTool(env);
    expect(await tool.access({ path: "link.txt" })).toEqual({
      kind: "read",
      targets: ["real.txt"],
      summary: 'Read "real.txt"',
    });
    expect(await tool.access({ path: "out" })).toEqual({
      kind: "read",
      targets: ["/etc/passwd"],
      outside: ["/etc/passwd"],
      summary: 'Read "/etc/passwd", outside of the workspace',
    });
    await expect(read({ path: "out" })).rejects.toThrow("leads out of the workspace");
    await expect(read({ path: "../x" })).rejects.toThrow("leads out of the workspace");
  });

  it("a file that is read through a link is remembered by its own name", async () => {
    await put("real.txt", "x");
    await symlink("real.txt", join(root, "link.txt"));
    await read({ path: "link.txt" });
    expect(env.seen.get("real.txt")?.text).toBe("x");
  });
});

it("says which numbers of a call make no sense", async () => {
  await put("a", "one\ntwo\n");
  await expect(read({ path: "a", offset: 0 })).rejects.toThrow(
    "offset has to be at least 1; it is 0.",
  );
  await expect(read({ path: "a", limit: -5 })).rejects.toThrow("limit has to be at least 1");
  expect((await page({ path: "a", limit: 1_000_000 })).text).toBe("one\ntwo");
});

describe("a result that is kept", () => {
  beforeEach(() => {
    env = {
      ...env,
      kept: (key) => Promise.resolve(key === "call_1" ? "one\ntwo\nthree\n" : undefined),
    };
  });

  it("is read by its key, a page at a time", async () => {
    const text = joinText(await read({ path: "kept:call_1", offset: 2, limit: 1 }));
    expect(text).toContain("two");
    expect(text).not.toContain("one");
    expect(text).toContain("Lines 2-2 of 3. Use offset=3 to continue.");
    expect(await readTool(env).access({ path: "kept:call_1" })).toMatchObject({ kind: "none" });
  });

  it("and is not there is a clear error", async () => {
    await expect(read({ path: "kept:x" })).rejects.toThrow('No result is kept under "x".');
  });
});

describe("long output of a command", () => {
  const name = `output-${"0".repeat(8)}.txt`;

  it("is read where it was saved, in pages, without an approval", async () => {
    const path = join(env.spoolFolder, name);
    await writeFile(path, "one\ntwo\nthree\n");
    const text = joinText(await read({ path, offset: 2, limit: 1 }));
    expect(text).toContain("two");
    expect(text).toContain("Use offset=3 to continue.");
    expect(await readTool(env).access({ path })).toMatchObject({ kind: "none" });
  });

  it("is not what a link of its name leads to", async () => {
    await symlink("/etc/passwd", join(env.spoolFolder, name));
    await expect(read({ path: join(env.spoolFolder, name) })).rejects.toThrow(/ELOOP/);
  });

  it("that is gone is a clear error", async () => {
    await expect(read({ path: join(env.spoolFolder, name) })).rejects.toThrow(/is gone/);
  });
});
