import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findLoss } from "./loss.ts";

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(await realpath(tmpdir()), "gyre-loss-"));
});
afterEach(() => rm(root, { recursive: true }));

const remove = (text: string, since: number): string | undefined =>
  findLoss(
    { targets: [{ text, literal: true, prefix: text }], isRecursive: true },
    { root, cwd: root, since },
  );

const MINUTE_MS = 60_000;

it("what is younger than the session is no loss", async () => {
  await mkdir(join(root, "tea"));
  await writeFile(join(root, "tea/green.txt"), "sencha\n");
  expect(remove("tea", Date.now() - MINUTE_MS)).toBeUndefined();
  expect(remove("tea", Date.now() + MINUTE_MS)).toBe("tea");
});

it("a repository inside, the workspace itself and more files than are looked at are a loss", async () => {
  const soon = Date.now() - MINUTE_MS;
  await mkdir(join(root, "app/.git"), { recursive: true });
  expect(remove("app", soon)).toBe("app");
  expect(remove(".", soon)).toBe(".");
  await mkdir(join(root, "many"));
  for (let each = 0; each <= 2_000; each++) await writeFile(join(root, "many", String(each)), "");
  expect(remove("many", soon)).toBe("many");
});
