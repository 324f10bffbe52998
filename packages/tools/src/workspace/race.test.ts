import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openWorkspace, PathError, type Workspace } from "./workspace.ts";
import { countCases } from "../../../../tests/support/cases.ts";

const CANARY = "outside";
const ROUNDS = countCases(100, 1_000, "GYRE_RACE");
const TIMEOUT_MS = 120_000 + ROUNDS * 20;

/**
 * What the other thread does until it is asked to stop: each name is in turn what it was
 * and a link to the outside. `folder` is a folder, `file` a file, `deep/in` a folder
 * inside of another, `turn` a link that points inside and outside.
 */
const SWAPPER = `
const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
const { parentPort, workerData: { root, outside, flags } } = require("node:worker_threads");
const state = new Int32Array(flags);
const swaps = [
  ["folder", outside],
  ["file", outside + "/file"],
  ["deep", outside],
  ["deep/in", outside],
  ["folder/file", "../../outside/file"],
  ["deep/in/file", outside + "/file"],
];
// A tool may make something in the very place meanwhile: that goes aside.
let asides = 0;
const clear = (place) => {
  try {
    unlinkSync(place);
  } catch (error) {
    if (error.code === "EISDIR" || error.code === "EPERM") renameSync(place, root + "/.aside" + asides++);
    else if (error.code !== "ENOENT") throw error;
  }
};
const put = (from, to) => {
  for (;;) {
    try {
      return renameSync(from, to);
    } catch (error) {
      if (!["EISDIR", "ENOTEMPTY", "ENOTDIR"].includes(error.code)) throw error;
      clear(to);
    }
  }
};
symlinkSync("folder", root + "/turn");
parentPort.postMessage("ready");
for (let round = 0; Atomics.load(state, 0) === 0; round++) {
  const [name, target] = swaps[round % swaps.length];
  const here = root + "/" + name;
  const link = root + "/.link";
  const kept = root + "/.kept";
  symlinkSync(target, link);
  renameSync(here, kept);
  put(link, here);
  Atomics.add(state, 1, 1);
  for (let spin = 0; spin < (round % 64) * 50; spin++) Atomics.load(state, 0);
  clear(here);
  put(kept, here);
  symlinkSync(round % 2 ? outside : "folder", link);
  renameSync(link, root + "/turn");
}
parentPort.postMessage("done");
`;

let base: string;
let root: string;
let outside: string;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-race-")));
  root = join(base, "ws");
  outside = join(base, "outside");
  for (const folder of ["folder", "deep/in"]) {
    mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, folder, "file"), "inside");
  }
  writeFileSync(join(root, "file"), "inside");
  for (const folder of ["", "in"]) {
    mkdirSync(join(outside, folder), { recursive: true });
    writeFileSync(join(outside, folder, "file"), CANARY);
  }
  symlinkSync("in", join(outside, "sub"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** All there is to know of the outside but for the times at which it was looked at. */
function picture(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const path = join(folder, name);
      const { ino, mode, size, mtimeMs, ctimeMs, nlink } = lstatSync(path);
      const content = lstatSync(path).isFile() ? readFileSync(path, "utf8") : "";
      return [name, ino, mode, size, mtimeMs, ctimeMs, nlink, content].join(" ");
    });
}

interface Tally {
  swaps: number;
  done: number;
  refused: number;
  /** Reads that gave what is outside. */
  leaks: number;
}

async function race(workspace: Workspace): Promise<Tally> {
  const flags = new SharedArrayBuffer(8);
  const state = new Int32Array(flags);
  const worker = new Worker(SWAPPER, { eval: true, workerData: { root, outside, flags } });
  const failed = new Promise<never>((_, reject) => worker.once("error", reject));
  const next = (): Promise<unknown> =>
    Promise.race([failed, new Promise((resolve) => worker.once("message", resolve))]);
  const tally: Tally = { swaps: 0, done: 0, refused: 0, leaks: 0 };
  const attempt = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
      tally.done += 1;
    } catch (error) {
      // Whatever happens is reported as an error of the workspace.
      if (!(error instanceof PathError)) throw error;
      tally.refused += 1;
    }
  };
  const read = async (path: string): Promise<void> => {
    const text = Buffer.from((await workspace.read(path)).bytes).toString();
    if (text === CANARY) tally.leaks += 1;
    // Nothing half-written is ever seen.
    else expect(text).toMatch(/^inside( \d+x*)?$/);
  };
  const files = ["folder/file", "file", "deep/in/file", "turn/file"];
  await next();
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const file = files[round % files.length] ?? "file";
      const text = `inside ${round}${"x".repeat(round % 5000)}`;
      await attempt(read(file));
      if (round % 4 === 0)
        await Promise.all([
          attempt(workspace.write(file, text)),
          attempt(workspace.write(`${file}.new`, text, { expected: null })),
          attempt(workspace.write(`deep/in/made/${round % 3}/file`, text)),
          attempt(read(file)),
        ]);
      await attempt(workspace.remove(`${file}.new`));
      await attempt(workspace.stat(file));
      await attempt(
        workspace.list("folder").then((entries) => {
          if (entries.some((entry) => entry.name === "sub")) tally.leaks += 1;
        }),
      );
    }
  } finally {
    const stopped = next();
    Atomics.store(state, 0, 1);
    await stopped;
    await worker.terminate();
  }
  tally.swaps = Atomics.load(state, 1);
  return tally;
}

describe("while another thread swaps files and folders for links to the outside", () => {
  it.runIf(process.platform === "linux")(
    "a workspace held by descriptor neither reads nor changes the outside",
    { tags: "long", timeout: TIMEOUT_MS },
    async () => {
      const before = picture(outside);
      const workspace = await openWorkspace(root, { hold: "descriptor" });
      const tally = await race(workspace);
      await workspace.close();
      expect(tally.leaks).toBe(0);
      expect(picture(outside)).toEqual(before);
      expect(tally.swaps).toBeGreaterThan(ROUNDS / 10);
      expect(Math.min(tally.done, tally.refused)).toBeGreaterThan(0);
      const left = readdirSync(root, { recursive: true, encoding: "utf8" });
      expect(left.filter((name) => name.includes(".tmp"))).toEqual([]);
      if (process.env["GYRE_RACE"]) console.log(tally);
    },
  );

  // There is a window (see `holdByIdentity`), so that nothing is promised of the outside.
  // What is: every failure is a `PathError`, and no file is seen half-written.
  it(
    "a workspace held by identity fails in words, and tears nothing",
    { tags: "long", timeout: TIMEOUT_MS },
    async () => {
      const workspace = await openWorkspace(root, { hold: "identity" });
      const tally = await race(workspace);
      await workspace.close();
      expect(Math.min(tally.done, tally.refused, tally.swaps)).toBeGreaterThan(0);
      if (process.env["GYRE_RACE"]) console.log(tally);
    },
  );
});
