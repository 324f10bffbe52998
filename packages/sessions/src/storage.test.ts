import { spawnSync } from "node:child_process";
import { cp, mkdtemp, open, readdir, rm, writeFile, appendFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import type { SessionStorage } from "./format/storage.ts";
import { SessionError } from "./format/types.ts";
import { MemorySessions } from "./memory-sessions.ts";
import { SessionStore } from "./store.ts";
import { describeSessionStorage, type StorageUnderTest } from "./testing/index.ts";

/** Files as they are when the power fails: no lock is held, and half a line stands at the end. */
async function cutOff(folder: string): Promise<string> {
  const next = `${folder}-next`;
  await cp(folder, next, { recursive: true, filter: (path) => !/\.(?:lock|alive)$/.test(path) });
  for (const name of await readdir(next, { recursive: true })) {
    if (name.endsWith(".jsonl")) await appendFile(join(next, name), '{"id":99,"parentId":3,"ty');
  }
  return next;
}

async function createFiles(): Promise<StorageUnderTest> {
  const home = await mkdtemp(join(tmpdir(), "gyre-storage-"));
  const folder = join(home, "sessions");
  const storage = new SessionStore(folder);
  return {
    storage,
    crash: async () => new SessionStore(await cutOff(folder)),
    async takeOver(id) {
      const { path } = await storage.find(id);
      await rm(`${path}.lock`);
      return new SessionStore(folder).open(id);
    },
    async failNextAppend({ path = "" }) {
      const handle = await open(path);
      const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
      const prototype: typeof handle = Object.getPrototypeOf(handle);
      const synced = vi.spyOn(prototype, "datasync").mockImplementationOnce(() => {
        synced.mockRestore();
        return Promise.reject(full);
      });
      await handle.close();
    },
    dispose: () => rm(home, { recursive: true, force: true }),
  };
}

describe("sessions in files", () => {
  describeSessionStorage(it, createFiles);
});

describe("sessions in memory", () => {
  describeSessionStorage(it, () => ({ storage: new MemorySessions() }));
});

/** Runs the tests, and answers with what failed. */
async function findFailures(create: () => SessionStorage): Promise<string[]> {
  const failed: string[] = [];
  const running: Promise<void>[] = [];
  describeSessionStorage(
    (name, run) => running.push(run().catch(() => void failed.push(name))),
    () => ({ storage: create() }),
  );
  await Promise.all(running);
  return failed;
}

describe("the tests of a storage", () => {
  it("find one that lets two write", async () => {
    class Unlocked extends MemorySessions {
      override async open(...args: Parameters<MemorySessions["open"]>) {
        try {
          return await super.open(...args);
        } catch (error) {
          if (!(error instanceof SessionError) || error.code !== "locked") throw error;
          return super.open(args[0], { readOnly: true });
        }
      }
    }
    expect(await findFailures(() => new Unlocked())).toEqual([
      "one writer at a time, and any number of readers",
    ]);
  });

  it("find one that locates by the beginning of an id", async () => {
    class Loose extends MemorySessions {
      override async locate(id: string) {
        return (await this.find(id).catch(() => undefined))?.id;
      }
    }
    expect(await findFailures(() => new Loose())).toEqual([
      "sessions are found by the beginning of an id, and located by all of it",
    ]);
  });

  it("find one that forgets", async () => {
    class Forgetful extends MemorySessions {
      override async open(id: string) {
        const { cwd } = await this.find(id);
        return this.create({ cwd });
      }
    }
    expect((await findFailures(() => new Forgetful())).length).toBeGreaterThan(5);
  });

  it("run with node:test", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gyre-storage-"));
    const from = (path: string): string =>
      JSON.stringify(new URL(`../dist/${path}`, import.meta.url));
    const file = join(folder, "memory.test.mjs");
    await writeFile(
      file,
      `import { test } from "node:test";
import { MemorySessions } from ${from("memory.js")};
import { describeSessionStorage } from ${from("testing/index.js")};
describeSessionStorage(test, () => ({ storage: new MemorySessions() }));
`,
    );
    const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
    const run = spawnSync(process.execPath, ["--test", "--test-reporter=tap", file], {
      encoding: "utf8",
      env,
      cwd: fileURLToPath(new URL("..", import.meta.url)),
    });
    expect(run.stdout).toMatch(/^# fail 0$/m);
    expect(Number(/^# pass (\d+)$/m.exec(run.stdout)?.[1])).toBeGreaterThan(20);
    await rm(folder, { recursive: true });
  });
});

describe("an entry point", () => {
  it.each([
    ["memory.ts", false],
    ["index.ts", true],
  ])("%s needs Node: %s", async (entry, needsNode) => {
    const { build } = await import("rolldown");
    const { output } = await build({
      input: fileURLToPath(new URL(entry, import.meta.url)),
      resolve: { conditionNames: ["@gyre/source", "browser", "import"] },
      platform: "browser",
      write: false,
      logLevel: "silent",
    });
    const imports = output.flatMap((chunk) => (chunk.type === "chunk" ? chunk.imports : []));
    expect(imports.some((name) => name.startsWith("node:"))).toBe(needsNode);
  });
});
