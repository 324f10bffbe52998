import fs, { mkdirSync, symlinkSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname } from "node:path";
import { systemClock } from "@gyre/ai";
import { createSandbox, type GuardedTool, SeenFiles, shellTool, type Workspace } from "@gyre/tools";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  type HistoryWorld,
  historyWorld,
  type HistoryWorldOptions,
} from "../testing/history-world.ts";

const FOLDERS = 12;
const open: HistoryWorld[] = [];
/** What lets looks go on that are held. */
const releases: (() => void)[] = [];

async function world(options: HistoryWorldOptions = {}): Promise<HistoryWorld> {
  const made = await historyWorld(options);
  open.push(made);
  return made;
}

afterEach(async () => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  for (const release of releases.splice(0)) release();
  for (const one of open.splice(0)) await one.close();
});

async function folderWorld(): Promise<HistoryWorld> {
  const w = await world();
  for (let at = 0; at < FOLDERS; at++) await w.put(`folder-${at}/file.txt`, "old");
  return w;
}

/** How often the folders of a workspace are asked about and read from now on. */
function countFolders(w: HistoryWorld): { asked: number; read: number } {
  const isFolder = (path: unknown): boolean =>
    path === w.root || /\/(?:folder|made)-\d+$/.test(String(path));
  const lstat = vi.spyOn(fs, "lstatSync");
  const readdir = vi.spyOn(fs, "readdirSync");
  syncBuiltinESMExports();
  lstat.mockClear();
  readdir.mockClear();
  return {
    get asked() {
      return lstat.mock.calls.filter(([path]) => isFolder(path)).length;
    },
    get read() {
      return readdir.mock.calls.filter(([path]) => String(path).startsWith("/proc/self/fd/"))
        .length;
    },
  };
}

/** A shell in a sandbox, which calls `onEnd` when all that it does itself is done. */
function createShell({ workspace, folder }: HistoryWorld, onEnd: () => void): GuardedTool {
  const spoolFolder = `${dirname(folder)}/spool`;
  mkdirSync(spoolFolder, { mode: 0o700, recursive: true });
  const tool = shellTool({
    workspace,
    seen: new SeenFiles(),
    sandbox: () => createSandbox(),
    spoolFolder,
    environment: { PATH: process.env["PATH"] ?? "", HOME: dirname(folder) },
    clock: systemClock,
  });
  return {
    ...tool,
    async execute(args, context) {
      const result = await tool.execute(args, context);
      onEnd();
      return result;
    },
  };
}

describe.skipIf(process.platform !== "linux")("the walk after a command", () => {
  it(
    "is one: the look of rewind has the folders that the scan for git settings has checked",
    { tags: "bubblewrap" },
    async () => {
      const w = await folderWorld();
      let counts = { asked: 0, read: 0 };
      const shell = createShell(w, () => {
        counts = countFolders(w);
      });
      const command = "echo new > folder-3/file.txt; mkdir made-1; echo new > made-1/new.txt";
      const entry = await w.run(() => w.use(shell, { command }));
      expect(counts).toMatchObject({ asked: 0, read: 0 });
      const plan = await w.recorder.plan({ before: entry });
      expect(plan.steps.map(({ path }) => path).sort()).toEqual([
        "folder-3/file.txt",
        "made-1/new.txt",
      ]);
    },
  );

  it(
    "is made again where something was put aside after the command",
    { tags: "bubblewrap" },
    async () => {
      const w = await folderWorld();
      let counts = { asked: 0, read: 0 };
      const shell = createShell(w, () => {
        counts = countFolders(w);
      });
      const command = "git init -q made-1; git -C made-1 config core.fsmonitor ./run";
      await w.run(() => w.use(shell, { command }));
      expect(counts.asked).toBeGreaterThanOrEqual(FOLDERS);
    },
  );

  it(
    "is made by the look of rewind after a command that ran beside another call",
    { tags: "bubblewrap" },
    async () => {
      const w = await folderWorld();
      let counts = { asked: 0, read: 0 };
      const shell = createShell(w, () => {
        counts = countFolders(w);
      });
      await w.run(() => w.shell(() => w.use(shell, { command: "true" })));
      expect(counts.asked).toBeGreaterThanOrEqual(FOLDERS + 1);
    },
  );

  it("is made by the look of rewind after any other call", async () => {
    const w = await folderWorld();
    let counts = { asked: 0, read: 0 };
    await w.run(() =>
      w.shell(async () => {
        counts = countFolders(w);
      }),
    );
    expect(counts.asked).toBe(FOLDERS + 1);
  });
});

describe("the first look", () => {
  /** A world whose files cannot be looked at to the end before `release`: there is a link among them. */
  async function heldWorld(
    options: HistoryWorldOptions,
  ): Promise<{ w: HistoryWorld; release: () => void }> {
    let release = (): void => {};
    const released = new Promise<void>((settle) => {
      release = settle;
    });
    releases.push(release);
    const w = await world({
      ...options,
      workspace: (own) =>
        new Proxy(own, {
          get(target, key) {
            const value: unknown = Reflect.get(target, key);
            if (typeof value !== "function") return value;
            if (key !== "resolve") return value.bind(target);
            return async (...args: Parameters<Workspace["resolve"]>) => {
              if (args[0] === "./0-link") await released;
              return target.resolve(...args);
            };
          },
        }),
    });
    symlinkSync("nowhere", w.path("0-link"));
    return { w, release };
  }

  it("is not waited for where it has more files than it can look at in time", async () => {
    const { w, release } = await heldWorld({ maxFirstWaitMs: 600_000, maxWaitedFiles: 2 });
    for (const name of ["a", "b", "c"]) await w.put(name, "old");
    let hasRun = false;
    await w.run(async () => {
      await w.shell(async () => {
        hasRun = true;
      });
      release();
    });
    expect(hasRun).toBe(true);
  });

  it("goes on without rests when the command has ended", async () => {
    const { w, release } = await heldWorld({ maxFirstWaitMs: 600_000, maxWaitedFiles: 2 });
    for (let count = 0; count < 1_000; count++) await w.put(`file-${count}`, "old");
    const timer = vi.spyOn(globalThis, "setTimeout");
    const rests = (): number => timer.mock.calls.filter(([, ms]) => ms === 4 || ms === 20).length;
    await w.run(async () => {
      await w.shell(async () => {});
      timer.mockClear();
      release();
      await w.recorder.lines();
    });
    expect(rests()).toBe(0);
  });
});
