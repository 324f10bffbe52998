import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@gyre/ai";
import { openWorkspace } from "@gyre/tools";
import { expect, onTestFinished, test } from "vitest";
import { FileFinder, MAX_AGE_MS, MAX_FOUND, createWorkspaceFinder } from "./file-finder.ts";

const { signal } = new AbortController();

/** A finder over lists that a test changes, with a clock in its hands. */
function finderOver(paths: string[]) {
  const world = { now: 0, lists: 0, paths };
  const finder = new FileFinder({
    clock: { now: () => world.now, turn: () => systemClock.turn() },
    async *list() {
      world.lists += 1;
      await systemClock.turn();
      yield world.paths.map((path) => ({
        path: path.replace(/\/$/, ""),
        kind: path.endsWith("/") ? "folder" : "file",
      }));
    },
  });
  return { finder, world };
}

test("lists nothing until it is asked, and then once for all who wait", async () => {
  const { finder, world } = finderOver(["a.ts"]);
  expect(world.lists).toBe(0);
  const both = [finder.find("a", signal), finder.find("ts", signal)];
  expect(await Promise.all(both)).toEqual([["a.ts"], ["a.ts"]]);
  expect(world.lists).toBe(1);
});

test("an old list answers while the next one is made", async () => {
  const { finder, world } = finderOver(["old.ts"]);
  await finder.find("", signal);
  world.now += MAX_AGE_MS + 1;
  world.paths = ["new.ts"];
  expect(await finder.find("ts", signal)).toEqual(["old.ts"]);
  await systemClock.turn();
  await systemClock.turn();
  expect(await finder.find("ts", signal)).toEqual(["new.ts"]);
  expect(world.lists).toBe(2);
});

test("nothing to look for gives what is in the folder, hidden things last", async () => {
  const { finder } = finderOver([".env", "a.ts", "src/", "src/b.ts", "src/in/", "src/in/c.ts"]);
  expect(await finder.find("", signal)).toEqual(["a.ts", "src/", ".env"]);
  expect(await finder.find("src/", signal)).toEqual(["src/b.ts", "src/in/"]);
});

test("an aborted search ends with the reason", async () => {
  const { finder } = finderOver(["a.ts"]);
  const given = AbortSignal.abort(new Error("not needed"));
  await expect(finder.find("a", given)).rejects.toThrow("not needed");
});

test("the best of many thousand names is found, and few are given", async () => {
  const names = Array.from(
    { length: 25_000 },
    (_, index) => `users/archive/child${index}/extra.js`,
  );
  const { finder } = finderOver([...names, "src/index.ts"]);
  const found = await finder.find("srcidx", signal);
  expect([found[0], found.length]).toEqual(["src/index.ts", MAX_FOUND]);
});

test("a list that cannot be made is reported", async () => {
  const finder = new FileFinder({
    clock: systemClock,
    // oxlint-disable-next-line require-yield
    async *list() {
      throw new Error("no such folder");
    },
  });
  await expect(finder.find("a", signal)).rejects.toThrow("no such folder");
});

test("finds what is in a workspace and not ignored", async () => {
  const root = mkdtempSync(join(tmpdir(), "gyre-finder-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, "src"));
  mkdirSync(join(root, "dist"));
  for (const path of ["src/index.ts", "dist/index.js"]) writeFileSync(join(root, path), "");
  writeFileSync(join(root, ".gitignore"), "dist\n");
  const workspace = await openWorkspace(root);
  const finder = createWorkspaceFinder(workspace, systemClock);
  expect(await finder.find("index", signal)).toEqual(["src/index.ts"]);
  expect(await finder.find("", signal)).toEqual(["src/", ".gitignore"]);
  await workspace.close();
});
