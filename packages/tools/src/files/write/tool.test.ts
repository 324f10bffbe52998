import { chmod, readFile, stat, symlink, writeFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { AgentToolResult } from "@gyre/agent";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ToolEnv } from "../../contract/env.ts";
import { READ_MAX_SEEN_BYTES, readTool } from "../read/tool.ts";
import { WRITE_MAX_OLD_TEXT_CHARS, writeTool } from "./tool.ts";
import { type TemporaryEnv, temporaryEnv } from "../../testing/temporary-env.ts";

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
const textAt = (path: string): Promise<string> => readFile(join(root, path), "utf8");
const host = { call: () => Promise.reject(new Error("no")) };

async function write(path: string, content: string): Promise<AgentToolResult> {
  const { signal } = new AbortController();
  const result = await writeTool(env).execute(
    { path, content },
    { id: "1", signal, update: () => {}, host, messages: [] },
  );
  if (typeof result === "string") throw new TypeError("a plain string");
  return result;
}

const readContent = (result: AgentToolResult): unknown => result.content;

async function read(path: string): Promise<void> {
  await readTool(env).execute(
    { path },
    { id: "1", signal: new AbortController().signal, update: () => {}, host, messages: [] },
  );
}

describe("a new file", () => {
  it("is made, with the folders on its way, and is known from then on", async () => {
    const result = await write("src/deep/a.ts", "one\ntwo\n");
    expect(readContent(result)).toEqual([
      { type: "text", text: "Made src/deep/a.ts: 2 lines, 8 bytes." },
    ]);
    expect(result.details).toEqual({
      path: "src/deep/a.ts",
      created: true,
      bytes: 8,
      newText: "one\ntwo\n",
    });
    expect(await textAt("src/deep/a.ts")).toBe("one\ntwo\n");
    await write("src/deep/a.ts", "three");
    expect(await textAt("src/deep/a.ts")).toBe("three");
  });

  it("may be empty", async () => {
    expect(readContent(await write("e", ""))).toEqual([
      { type: "text", text: "Made e: 0 lines, 0 bytes." },
    ]);
  });
});

describe("a file that is there", () => {
  it("is not replaced unless it was read", async () => {
    await put("a.txt", "precious\n");
    await expect(write("a.txt", "x")).rejects.toThrow(
      "a.txt is there already and was not read. Read it first",
    );
    expect(await textAt("a.txt")).toBe("precious\n");
  });

  it("is replaced once it was read; mode kept, old text reported", async () => {
    await put("run.sh", "#!/bin/sh\necho 1\n");
    await chmod(join(root, "run.sh"), 0o755);
    await read("run.sh");
    const result = await write("run.sh", "#!/bin/sh\necho 2\necho 3\n");
    expect(readContent(result)).toEqual([
      { type: "text", text: "Replaced run.sh: 3 lines (was 2 lines), 24 bytes." },
    ]);
    expect(result.details).toMatchObject({ created: false, oldText: "#!/bin/sh\necho 1\n" });
    expect((await stat(join(root, "run.sh"))).mode & 0o777).toBe(0o755);
  });

  it("is not replaced when it changed since it was read", async () => {
    await put("a.txt", "one\n");
    await read("a.txt");
    await put("a.txt", "another's\n");
    await expect(write("a.txt", "x")).rejects.toThrow("a.txt has changed since it was read.");
    expect(await textAt("a.txt")).toBe("another's\n");
  });

  it("counts as read through any link to it, and the link stays", async () => {
    await put("real.txt", "one\n");
    await symlink("real.txt", join(root, "link.txt"));
    await read("link.txt");
    const result = await write("link.txt", "two\n");
    expect(result.details).toMatchObject({ path: "real.txt", created: false });
    expect(await textAt("real.txt")).toBe("two\n");
  });

  it("is filled without having been read if it is empty", async () => {
    await put("empty", "");
    expect((await write("empty", "x")).details).toMatchObject({ created: false, oldText: "" });
  });

  it("is compared with its byte order mark and line ends", async () => {
    await put("crlf", "\ufeffone\r\ntwo\r\n");
    await read("crlf");
    await write("crlf", "three\r\n");
    expect(await textAt("crlf")).toBe("three\r\n");
  });

  it("is left alone if it is no text, too large or a folder", async () => {
    await put("a.bin", Buffer.from([0, 1, 2]));
    await put("large", "x".repeat(READ_MAX_SEEN_BYTES + 1));
    await mkdir(join(root, "src"));
    await put("wide", Buffer.from("\ufeffHi", "utf16le"));
    await read("wide");
    await expect(write("wide", "x")).rejects.toThrow("in UTF-16");
    await expect(write("a.bin", "x")).rejects.toThrow("is not text");
    await expect(write("large", "x")).rejects.toThrow("too large (5.0 MB)");
    await expect(write("src", "x")).rejects.toThrow("folder");
  });

  it("is not reported in full where that is too much", async () => {
    await put("a.txt", "x".repeat(WRITE_MAX_OLD_TEXT_CHARS + 1));
    await read("a.txt");
    expect((await write("a.txt", "y")).details).not.toHaveProperty("oldText");
  });
});

describe("access", () => {
  it("reports what would be written, links followed", async () => {
    await put("real.txt", "x");
    await symlink("real.txt", join(root, "link.txt"));
    const tool = writeTool(env);
    expect(await tool.access({ path: "link.txt", content: "" })).toEqual({
      kind: "write",
      targets: ["real.txt"],
      summary: 'Replace "real.txt"',
    });
    expect(await tool.access({ path: "new/x", content: "" })).toMatchObject({
      targets: ["new/x"],
      summary: 'Make "new/x"',
    });
  });

  it("denies what is outside or read-only to tools", async () => {
    await mkdir(join(root, ".git"));
    await symlink("/tmp", join(root, "out"));
    const tool = writeTool(env);
    await expect(tool.access({ path: "out/x", content: "" })).rejects.toThrow("leads out");
    await expect(tool.access({ path: ".git/config", content: "" })).rejects.toThrow("read-only");
    await expect(write(".git/config", "x")).rejects.toThrow("read-only");
    await expect(write("out/x", "x")).rejects.toThrow("leads out");
  });
});
