import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { HistoryLine } from "./line.ts";
import { computeHash, HistoryStore } from "./store.ts";

let base: string;
let folder: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "gyre-store-"));
  folder = join(base, "one");
});

afterEach(() => rm(base, { recursive: true, force: true }));

function line(entry: number): HistoryLine {
  const after = { kind: "file", hash: "0".repeat(64), bytes: 1, mode: 0o644 } as const;
  const changes = [{ path: "a.txt", before: null, after }];
  return { by: "agent", entry, at: 5, changes, leftOut: [{ path: "b", why: "large" }] };
}

describe("contents", () => {
  it("are given back byte for byte, also by another process", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 10_000 }), async (bytes) => {
        const hash = await (await HistoryStore.open(folder)).put(bytes);
        const other = await HistoryStore.open(folder);
        expect(Buffer.compare(await other.get(hash), bytes)).toBe(0);
      }),
      { numRuns: 30 },
    );
  });

  it("are kept once, packed where that helps, and for the owner's eyes", async () => {
    const store = await HistoryStore.open(folder);
    const text = Buffer.from("the same line\n".repeat(10_000));
    expect(await store.put(text)).toBe(await store.put(text));
    const names = await readdir(join(folder, "contents"));
    expect(names).toEqual([`${computeHash(text)}.z`]);
    const kept = await stat(join(folder, "contents", names[0] ?? ""));
    expect(kept.size).toBeLessThan(text.length / 10);
    expect(kept.mode & 0o777).toBe(0o600);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  });

  it("that are damaged are not given back", async () => {
    const store = await HistoryStore.open(folder);
    const hash = await store.put(Buffer.from("text"));
    await writeFile(join(folder, "contents", hash), "other");
    await expect(store.get(hash)).rejects.toThrow("damaged");
  });

  it("that could not be written leave nothing behind", async () => {
    const store = await HistoryStore.open(folder, {
      write: async (path) => {
        await writeFile(path, "half");
        throw new Error("ENOSPC: no space left on device, write");
      },
      append: () => Promise.resolve(),
    });
    await expect(store.put(Buffer.from("text"))).rejects.toThrow("ENOSPC");
    expect(await readdir(join(folder, "contents"))).toEqual([]);
  });
});

describe("the list of changes", () => {
  it("is there for another process", async () => {
    const store = await HistoryStore.open(folder);
    await store.append(line(1));
    await store.append(line(2));
    expect((await HistoryStore.open(folder)).lines).toEqual([line(1), line(2)]);
  });

  it("loses no other line where a process was killed in the middle of one", async () => {
    const store = await HistoryStore.open(folder);
    await store.append(line(1));
    await appendFile(join(folder, "changes.jsonl"), JSON.stringify(line(2)).slice(0, 40));
    const next = await HistoryStore.open(folder);
    expect(next.lines).toEqual([line(1)]);
    await next.append(line(3));
    expect((await HistoryStore.open(folder)).lines).toEqual([line(1), line(3)]);
  });

  it("loses no other line where the disk was full in the middle of one", async () => {
    let isFull = true;
    const store = await HistoryStore.open(folder, {
      write: () => Promise.resolve(),
      append: async (path, text) => {
        await appendFile(path, isFull ? text.slice(0, 10) : text);
        if (isFull) throw new Error("ENOSPC: no space left on device, write");
      },
    });
    await expect(store.append(line(1))).rejects.toThrow("ENOSPC");
    isFull = false;
    await store.append(line(2));
    expect((await HistoryStore.open(folder)).lines).toEqual([line(2)]);
  });

  it("passes over what is no line of ours", async () => {
    const store = await HistoryStore.open(folder);
    await store.append(line(1));
    const path = join(folder, "changes.jsonl");
    const bad = { ...line(2), changes: [{ path: "a", before: null, after: { hash: "../x" } }] };
    await appendFile(path, `[]\n{}\nnull\n${JSON.stringify(bad)}\n`);
    expect((await HistoryStore.open(folder)).lines).toEqual([line(1)]);
    expect(await readFile(path, "utf8")).toContain("null");
  });
});
