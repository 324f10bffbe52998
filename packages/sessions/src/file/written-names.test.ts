import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FileLock } from "./lock.ts";
import { INDEX_FOLDER, noteWritten, WrittenNames } from "./written-names.ts";

let root = "";
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "gyre-written-"));
  await mkdir(join(root, "tea"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const path = (name: string): string => join(root, "tea", name);

describe("the names of session files that were written", () => {
  it("are noted where there is an index, and read once by each reader", async () => {
    const names = new WrittenNames(root, "tea");
    noteWritten(path("early.jsonl"));
    expect(await names.take()).toBeUndefined();
    expect(names.place).toBeUndefined();
    await mkdir(join(root, INDEX_FOLDER));
    expect(await names.take()).toBeUndefined();
    expect(await names.take()).toEqual([]);
    noteWritten(path("a.jsonl"));
    new FileLock(path("b.jsonl"), 1).release();
    expect(await names.take()).toEqual(["a.jsonl", "b.jsonl"]);
    expect(await names.take()).toEqual([]);
    const later = new WrittenNames(root, "tea");
    later.resume(names.place);
    noteWritten(path("c.jsonl"));
    for (const each of [names, later]) expect(await each.take()).toEqual(["c.jsonl"]);
  });

  it("have one that is not whole yet in the next call", async () => {
    await mkdir(join(root, INDEX_FOLDER));
    const names = new WrittenNames(root, "tea");
    await names.take();
    await appendFile(join(root, INDEX_FOLDER, "tea.written"), "a.jsonl\nb.js");
    expect(await names.take()).toEqual(["a.jsonl"]);
    await appendFile(join(root, INDEX_FOLDER, "tea.written"), "onl\n");
    expect(await names.take()).toEqual(["b.jsonl"]);
  });

  it("are not known where they were begun again, deleted, or cannot be read", async () => {
    await mkdir(join(root, INDEX_FOLDER));
    const file = join(root, INDEX_FOLDER, "tea.written");
    const names = new WrittenNames(root, "tea");
    noteWritten(path("a.jsonl"));
    expect(await names.take()).toBeUndefined();
    await writeFile(file, "x".repeat(1024 * 1024 + 1));
    noteWritten(path("b.jsonl"));
    expect(await names.take()).toBeUndefined();
    noteWritten(path("c.jsonl"));
    expect(await names.take()).toEqual(["c.jsonl"]);
    await rm(join(root, INDEX_FOLDER), { recursive: true });
    expect(await names.take()).toBeUndefined();
    expect(names.place).toBeUndefined();
    await writeFile(join(root, INDEX_FOLDER), "in the way");
    noteWritten(path("d.jsonl"));
    expect(await names.take()).toBeUndefined();
  });
});
