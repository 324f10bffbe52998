import fs, { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import fsPromises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FrameWorld } from "../../testing/frame-driver.ts";
import { runServe } from "./serve.ts";

const FOLDERS = 4;

let world: FrameWorld;

beforeEach(async () => {
  world = await FrameWorld.open();
});

afterEach(async () => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  await world.close();
});

function sessionFolder(): string {
  return join(world.env["XDG_STATE_HOME"] ?? "", "gyre", "sessions");
}

/** Session files as they are named, with a header and a prompt each, in folders that are at rest. */
function storeSessions(count: number): void {
  const prompt = { role: "user", content: "Which teas are there?", timestamp: 1 };
  for (let at = 0; at < FOLDERS; at++) {
    const folder = join(sessionFolder(), `other-${at}`);
    mkdirSync(folder, { recursive: true });
    for (let each = 0; each < count / FOLDERS; each++) {
      const id = `s${at}x${each}`;
      const header = { type: "session", version: 1, id, cwd: world.cwd, createdAt: 1 };
      const entry = { id: 1, parentId: null, type: "message", timestamp: 1, message: prompt };
      const lines = `${JSON.stringify(header)}\n${JSON.stringify(entry)}\n`;
      writeFileSync(join(folder, `2030-01-31T12-30-59-123Z_${id}.jsonl`), lines);
    }
    utimesSync(folder, 1, 1);
  }
}

/** What has been asked of the system about the sessions that are stored, since the last time. */
type Asked = Record<string, number>;

/** Counts the calls of the file system about stored sessions, and the names that folders gave. */
function countCalls(): () => Asked {
  const calls = {
    readdir: vi.spyOn(fsPromises, "readdir"),
    stat: vi.spyOn(fsPromises, "stat"),
    lstat: vi.spyOn(fsPromises, "lstat"),
    open: vi.spyOn(fsPromises, "open"),
    readFile: vi.spyOn(fsPromises, "readFile"),
    readdirSync: vi.spyOn(fs, "readdirSync"),
    statSync: vi.spyOn(fs, "statSync"),
    lstatSync: vi.spyOn(fs, "lstatSync"),
    openSync: vi.spyOn(fs, "openSync"),
    readFileSync: vi.spyOn(fs, "readFileSync"),
  };
  syncBuiltinESMExports();
  return () => {
    const asked: Asked = { names: 0 };
    for (const [name, { mock }] of Object.entries(calls)) {
      const paths: unknown[] = mock.calls.map(([path]) => path);
      const isOurs = paths.map((path) => String(path).startsWith(sessionFolder()));
      asked[name] = isOurs.filter(Boolean).length;
      if (name !== "readdir" && name !== "readdirSync") continue;
      mock.settledResults.forEach(({ value }, index) => {
        if (isOurs[index] && Array.isArray(value))
          asked["names"] = (asked["names"] ?? 0) + value.length;
      });
    }
    for (const spy of Object.values(calls)) spy.mockClear();
    return asked;
  };
}

/** What the system is asked when clients attach to sessions, of so many that are stored. */
async function attachAmong(stored: number): Promise<Record<string, Asked>> {
  storeSessions(stored);
  const server = world.start(runServe, { stdio: true });
  await server.hello();
  const read = countCalls();
  read();
  await expect(server.attach("nosuch")).rejects.toThrow("session_not_found");
  const unknown = read();
  await server.attach("s0x1");
  const first = read();
  await server.attach("s3x2");
  const known = read();
  await server.ask("session_close", {}, "s3x2");
  read();
  await server.attach("s3x2");
  const again = read();
  const made = await server.create({ tools: [] });
  await server.ask("session_close", {}, made);
  read();
  await server.attach(made);
  const own = read();
  await server.end();
  return { unknown, first, known, again, own };
}

describe("session_attach", () => {
  it("asks the system as often among many stored sessions as among few, for an id that is not there too", async () => {
    const few = await attachAmong(12);
    await world.close();
    world = await FrameWorld.open();
    const many = await attachAmong(1_200);
    expect(many).toEqual(few);
    expect(many["unknown"]).toMatchObject({ readdir: 1, names: FOLDERS, stat: FOLDERS, open: 0 });
    for (const each of ["first", "known", "again", "own"]) {
      expect(many[each]).toMatchObject({ readdir: 0, readdirSync: 0, names: 0 });
    }
  });
});
