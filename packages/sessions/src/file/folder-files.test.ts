import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isLlmMessage } from "@gyre/agent";
import { type FileContent, hashFile, MAX_INLINE_BYTES, type UserContent } from "@gyre/ai";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import type { SessionFile } from "../format/types.ts";
import { temporaryPaths } from "../testing/folder.ts";
import { FolderFiles } from "./folder-files.ts";
import { createSession, openSession } from "./session-file.ts";

const newPath = temporaryPaths("files", afterAll);
const LARGE = MAX_INLINE_BYTES + 1;

function createFile(size: number): FileContent {
  const data = Buffer.alloc(size, size % 251).toString("base64");
  return { type: "file", mediaType: "application/pdf", source: { type: "base64", data } };
}

async function appendTo(session: SessionFile, ...content: UserContent[]): Promise<void> {
  await session.append({ type: "message", message: { role: "user", content, timestamp: 1 } });
}

async function readContents(session: SessionFile): Promise<unknown[]> {
  const { messages } = await session.context();
  return messages.map((message) => (isLlmMessage(message) ? message.content : undefined));
}

describe("beside a session file", () => {
  it("stand the contents above 256 KiB, once each, for their owner alone", async () => {
    const path = newPath();
    const session = await createSession(path, { cwd: "/w" });
    await appendTo(session, createFile(MAX_INLINE_BYTES));
    await expect(stat(`${path}.files`)).rejects.toThrow("ENOENT");
    await appendTo(session, createFile(LARGE), createFile(LARGE));
    await appendTo(session, createFile(LARGE));
    const sha256 = await hashFile(Buffer.alloc(LARGE, LARGE % 251));
    expect(await readdir(`${path}.files`)).toEqual([sha256]);
    const modes = await Promise.all(
      [`${path}.files`, join(`${path}.files`, sha256)].map(async (each) => (await stat(each)).mode),
    );
    if (process.platform !== "win32") {
      expect(modes.map((mode) => mode & 0o777)).toEqual([0o700, 0o600]);
    }
    const [, line] = (await readFile(path, "utf8")).split("\n").slice(1);
    expect(line).toContain(`"source":{"type":"stored","sha256":"${sha256}","size":${LARGE}}`);
    expect(line?.length).toBeLessThan(1000);
    await session.close();
  });

  it("a context keeps references where that is asked for", async () => {
    const session = await createSession(newPath(), { cwd: "/w" });
    await appendTo(session, createFile(LARGE));
    const { messages } = await session.context(undefined, { files: "stored" });
    expect(messages).toMatchObject([{ content: [{ source: { type: "stored", size: LARGE } }] }]);
    expect(await readContents(session)).toEqual([[createFile(LARGE)]]);
    await session.close();
  });

  it("contents that are missing or damaged stay references, and the session opens", async () => {
    const path = newPath();
    const session = await createSession(path, { cwd: "/w" });
    await appendTo(session, createFile(LARGE));
    await appendTo(session, createFile(LARGE + 1));
    await session.close();
    const [first = "", second = ""] = await readdir(`${path}.files`);
    await rm(join(`${path}.files`, first));
    await writeFile(join(`${path}.files`, second), "damaged");
    const again = await openSession(path);
    const contents = await readContents(again);
    expect(contents).toMatchObject([
      [{ source: { type: "stored" } }],
      [{ source: { type: "stored" } }],
    ]);
    // The same contents once more put them right.
    await appendTo(again, createFile(LARGE), createFile(LARGE + 1));
    expect((await readContents(again)).slice(0, 2)).toEqual([
      [createFile(LARGE)],
      [createFile(LARGE + 1)],
    ]);
    await again.close();
  });

  it("an entry whose contents cannot be stored is refused, and the session goes on", async () => {
    const path = newPath();
    const session = await createSession(path, { cwd: "/w" });
    const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    const writing = vi.spyOn(FolderFiles.prototype, "write").mockRejectedValueOnce(full);
    const lost = appendTo(session, createFile(LARGE));
    const kept = appendTo(session, { type: "text", text: "a" });
    await expect(lost).rejects.toMatchObject({
      code: "write_failed",
      message: expect.stringContaining("no space left on device"),
    });
    await kept;
    writing.mockRestore();
    expect(await readContents(session)).toEqual([[{ type: "text", text: "a" }]]);
    await session.close();
  });

  it("a hash from a file that others made names no other file", async () => {
    const path = newPath();
    const files = new FolderFiles(path);
    for (const name of ["../secret", "", "a".repeat(63), "A".repeat(64), `${"a".repeat(63)}/`]) {
      expect(await files.read(name)).toBeUndefined();
      await expect(files.write(name, new Uint8Array())).rejects.toThrow("no SHA-256");
    }
  });

  it("a fork shares them, and goes without what is missing", async () => {
    const path = newPath();
    const session = await createSession(path, { cwd: "/w" });
    await appendTo(session, createFile(LARGE), createFile(LARGE + 1));
    const missing = await hashFile(Buffer.alloc(LARGE + 1, (LARGE + 1) % 251));
    await rm(join(`${path}.files`, missing));
    const copy = await session.fork(newPath());
    const [name = ""] = await readdir(`${copy.path}.files`);
    const [one, other] = await Promise.all(
      [path, copy.path].map((each) => stat(join(`${each}.files`, name))),
    );
    expect(one?.ino).toBe(other?.ino);
    expect(await readContents(copy)).toMatchObject([
      [createFile(LARGE), { source: { type: "stored" } }],
    ]);
    await copy.close();
    await session.close();
  });
});

describe("a writer that is killed at any moment", { tags: "long" }, () => {
  let home: string;
  let program: string;

  beforeAll(async () => {
    home = await mkdtemp(join(await realpath(tmpdir()), "gyre-file-writer-"));
    const bundle = await rolldown({
      input: fileURLToPath(new URL("../testing/writer.ts", import.meta.url)),
      platform: "node",
      resolve: { conditionNames: ["@gyre/source", "import"] },
    });
    await bundle.write({ dir: home, entryFileNames: "writer.mjs" });
    await bundle.close();
    program = join(home, "writer.mjs");
  });
  afterAll(() => rm(home, { recursive: true, force: true }));

  /** Gives all orders at once, and kills the program when so many were answered and so many bytes written. */
  async function killAfter(
    path: string,
    orders: readonly string[],
    answers: number,
    waitMs: number,
  ): Promise<number> {
    const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [program, path]);
    let done = 0;
    const ended = new Promise<void>((settle) => child.once("close", () => settle()));
    const lines = createInterface({ input: child.stdout });
    const counting = (async () => {
      for await (const line of lines) {
        expect(line).toBe("ok");
        done++;
        if (done === answers) setTimeout(() => child.kill("SIGKILL"), waitMs);
      }
    })();
    child.stdin.on("error", () => {});
    child.stdin.write(`${orders.join("\n")}\n`);
    await Promise.all([ended, counting]);
    return done;
  }

  it("has lost no contents of an entry that was acknowledged", async () => {
    const seed = pickSeed();
    console.log(`GYRE_SEED=${seed}`);
    let state = seed || 1;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return state % below;
    };
    for (let round = 0; round < countCases(3, 40); round++) {
      const path = join(home, `s${round}.jsonl`);
      const around = [
        0,
        1,
        MAX_INLINE_BYTES - 1,
        MAX_INLINE_BYTES,
        LARGE,
        LARGE + random(4),
        900_000,
      ];
      const sizes = Array.from({ length: 12 }, () => around[random(around.length)] ?? 0);
      const orders = ["create", ...sizes.map((size) => `file ${size}`)];
      const done = await killAfter(path, orders, 2 + random(8), random(12));
      const acknowledged = Math.min(done - 1, sizes.length);
      const session = await openSession(path);
      const contents = await readContents(session);
      expect(contents.length, `seed ${seed}, round ${round}`).toBeGreaterThanOrEqual(acknowledged);
      // Also what was written and not yet acknowledged has its contents.
      for (const [at, content] of contents.entries()) {
        expect(JSON.stringify(content) === JSON.stringify([createFile(sizes[at] ?? 0)])).toBe(true);
      }
      await appendTo(session, createFile(LARGE));
      await session.close();
    }
  });
});
