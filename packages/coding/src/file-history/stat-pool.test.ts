import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  type PathLike,
  renameSync,
  rmSync,
  type Stats,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { StatPool } from "./stat-pool.ts";
import { createStatShard, type FileGroup } from "./stat-shard.ts";

let root: string;
const pools: StatPool[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "gyre-stats-"));
});
afterEach(async () => {
  vi.useRealTimers();
  for (const pool of pools.splice(0)) await pool.close();
  rmSync(root, { recursive: true, force: true });
});

function put(path: string, text: string): void {
  writeFileSync(join(root, path), text);
}

/** `folder` with files a, b and c, long ago. */
function makeGroup(folder: string): FileGroup {
  mkdirSync(join(root, folder));
  for (const name of ["a", "b", "c"]) put(`${folder}/${name}`, name);
  return { key: folder, prefix: `${folder}/`, names: ["a", "b", "c"] };
}

/** Files that were just made count as such for a moment: here it is over. */
async function waitForTick(path: string): Promise<void> {
  const { ctimeMs } = lstatSync(join(root, path));
  await vi.waitUntil(() => Date.now() > ctimeMs + 25, { interval: 1 });
}

describe.each([
  ["in this thread", 1_000],
  ["in workers", 0],
])("a look %s", (_where, maxOwnFiles) => {
  function makePool(): StatPool {
    const pool = new StatPool(root, maxOwnFiles);
    pools.push(pool);
    return pool;
  }

  it("reports what is new, then what changed, is gone, or was replaced", async () => {
    const pool = makePool();
    pool.set([makeGroup("one"), makeGroup("two")]);
    await waitForTick("two/c");
    expect(pool.hasWorkers).toBe(maxOwnFiles === 0);
    expect((await pool.look()).sort()).toEqual([
      "one/a",
      "one/b",
      "one/c",
      "two/a",
      "two/b",
      "two/c",
    ]);
    expect(await pool.look()).toEqual([]);
    put("one/a", "longer");
    rmSync(join(root, "one/b"));
    renameSync(join(root, "two/a"), join(root, "two/b"));
    expect((await pool.look()).sort()).toEqual(["one/a", "one/b", "two/a", "two/b"]);
  });

  it("reports a change that keeps the length and sets the time back", async () => {
    const pool = makePool();
    pool.set([makeGroup("one")]);
    await waitForTick("one/c");
    await pool.look();
    const { atime, mtime } = lstatSync(join(root, "one/a"));
    put("one/a", "x");
    utimesSync(join(root, "one/a"), atime, mtime);
    expect(await pool.look()).toEqual(["one/a"]);
  });

  it("keeps what it noted where a group gets other names, and looks at some groups alone", async () => {
    const pool = makePool();
    pool.set([makeGroup("one"), makeGroup("two")]);
    await waitForTick("two/c");
    await pool.look();
    put("one/d", "d");
    put("two/a", "changed");
    await waitForTick("two/a");
    pool.set([{ key: "one", prefix: "one/", names: ["b", "c", "d"] }]);
    expect(await pool.look(["one"])).toEqual(["one/d"]);
    pool.drop(["two"]);
    expect(await pool.look()).toEqual([]);
  });
});

describe("a shard", () => {
  it("asks the system once for each file", () => {
    let count = 0;
    const ask = (path: PathLike): Stats => {
      count += 1;
      return lstatSync(path);
    };
    const shard = createStatShard(ask, root);
    shard.set([makeGroup("one"), makeGroup("two")]);
    shard.look();
    expect(count).toBe(6);
  });

  it("reports again what changed within a tick before the last look", () => {
    const shard = createStatShard(lstatSync, root);
    shard.set([makeGroup("one")]);
    const { ctimeMs } = lstatSync(join(root, "one/c"));
    vi.useFakeTimers({ toFake: ["Date"], now: ctimeMs + 5 });
    shard.look();
    vi.useFakeTimers({ toFake: ["Date"], now: ctimeMs + 1_000 });
    expect(shard.look()).toContain("one/c");
    expect(shard.look()).toEqual([]);
  });

  it("waits longer for a second change where times have no fractions of seconds", () => {
    makeGroup("one");
    const ask = (path: PathLike): Stats => {
      const stats = lstatSync(path);
      return Object.assign(stats, { ctimeMs: Math.floor(stats.ctimeMs / 1000) * 1000 });
    };
    const shard = createStatShard(ask, root);
    shard.set([{ key: "one", prefix: "one/", names: ["a"] }]);
    shard.look();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 1_000 });
    expect(shard.look()).toEqual(["one/a"]);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_000 });
    expect(shard.look()).toEqual(["one/a"]);
    expect(shard.look()).toEqual([]);
  });
});
