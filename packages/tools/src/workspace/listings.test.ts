import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Listings, getListings, UNSETTLED_MS } from "./listings.ts";
import { walk } from "./walk.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

let base: string;
let root: string;
let workspace: Workspace;

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "gyre-listings-"));
  root = join(base, "work");
  mkdirSync(root);
  workspace = await openWorkspace(root, { hidden: [join(root, "secret")] });
});
afterEach(async () => {
  vi.useRealTimers();
  await workspace.close();
  rmSync(base, { recursive: true, force: true });
});

/** As if what is there had been there for long. */
function letSettle(): void {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + UNSETTLED_MS + 1 });
}

async function names(): Promise<string[]> {
  const { signal } = new AbortController();
  const found: string[] = [];
  for await (const entries of walk(workspace, "", { signal })) {
    found.push(...entries.map(({ path }) => path));
  }
  return found;
}

describe("a folder", () => {
  it("is read once, and asked once a walk, for as long as nothing in it comes or goes", async () => {
    for (const folder of ["a", "a/b", "c"]) {
      mkdirSync(join(root, folder));
      writeFileSync(join(root, folder, "file"), "text");
    }
    writeFileSync(join(root, ".gitignore"), "*.log\n");
    letSettle();
    const { counts } = getListings(workspace);
    const first = await names();
    expect(counts).toEqual({ stats: 4, reads: 4 });
    writeFileSync(join(root, "a/file"), "another text");
    expect(await names()).toEqual(first);
    expect(counts).toEqual({ stats: 8, reads: 4 });
    mkdirSync(join(root, "c/d"));
    expect(await names()).toEqual([...first, "c/d"].sort());
    expect(counts.reads).toBe(6);
  });

  it("is read again where it changed just before, whatever its times say", () => {
    const listings = new Listings(root);
    for (let count = 0; count < 50; count++) {
      writeFileSync(join(root, `f${count}`), "");
      utimesSync(root, 1, 1);
      expect(listings.list("", performance.now())?.entries).toHaveLength(count + 1);
    }
  });

  it("that takes the place of another one is read, with its times set back", () => {
    for (const name of ["a", "b"]) {
      mkdirSync(join(root, name));
      writeFileSync(join(root, name, `in-${name}`), "");
      utimesSync(join(root, name), 1, 1);
    }
    letSettle();
    const listings = new Listings(root);
    const list = (): unknown => listings.list("a", performance.now())?.entries;
    expect(list()).toEqual([{ name: "in-a", kind: "file" }]);
    renameSync(join(root, "a"), join(root, "old"));
    renameSync(join(root, "b"), join(root, "a"));
    expect(list()).toEqual([{ name: "in-b", kind: "file" }]);
  });

  it("is not listed through a link, at its end or on the way", () => {
    mkdirSync(join(base, "outside/folder"), { recursive: true });
    writeFileSync(join(base, "outside/folder/file"), "");
    symlinkSync(join(base, "outside"), join(root, "link"));
    const listings = new Listings(root);
    expect(listings.list("link", performance.now())).toBeUndefined();
    expect(listings.list("link/folder", performance.now())).toBeUndefined();
  });
});

describe("a walk", () => {
  it("does not go into what is hidden from tools", async () => {
    mkdirSync(join(root, "secret"));
    writeFileSync(join(root, "secret/key"), "");
    expect(await names()).toEqual(["secret"]);
  });

  it("sees an ignore file that was changed in the same moment, with its length and times kept", async () => {
    writeFileSync(join(root, "a.log"), "");
    writeFileSync(join(root, "b.log"), "");
    const seen: string[] = [];
    for (const name of ["a", "b", "a", "b"]) {
      writeFileSync(join(root, ".gitignore"), `${name}.log\n`);
      utimesSync(join(root, ".gitignore"), 1, 1);
      seen.push((await names()).filter((path) => path !== ".gitignore").join());
    }
    expect(seen).toEqual(["b.log", "a.log", "b.log", "a.log"]);
  });

  it("gives the names in the order of their bytes", async () => {
    // U+FFFD has fewer bytes than U+1F600, and comes after its first half.
    for (const name of ["b", "a", "\u{1f600}", "\ufffd", "é"]) writeFileSync(join(root, name), "");
    const found = await names();
    const bytes = found.map((name) => Buffer.from(name));
    expect(bytes).toEqual([...bytes].sort((a, b) => Buffer.compare(a, b)));
  });
});
