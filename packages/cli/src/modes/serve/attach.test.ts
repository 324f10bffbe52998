import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FrameWorld } from "../../testing/frame-driver.ts";
import { runServe } from "./serve.ts";

const STORED = 8_000;
const FOLDERS = 20;
const TRIES = 7;
/** How many times longer it takes to read all of them. */
const MIN_RATIO = 4;

let world: FrameWorld;

beforeEach(async () => {
  world = await FrameWorld.open();
});

afterEach(() => world.close());

/** Session files as they are named, with a header and a prompt each. Returns their paths. */
function storeSessions(): string[] {
  const paths: string[] = [];
  const prompt = { role: "user", content: "Which teas are there? ".repeat(50), timestamp: 1 };
  for (let at = 0; at < FOLDERS; at++) {
    const folder = join(world.env["XDG_STATE_HOME"] ?? "", "gyre", "sessions", `other-${at}`);
    mkdirSync(folder, { recursive: true });
    for (let each = 0; each < STORED / FOLDERS; each++) {
      const id = `s${at}x${each}`;
      const header = { type: "session", version: 1, id, cwd: "/other", createdAt: 1 };
      const entry = { id: 1, parentId: null, type: "message", timestamp: 1, message: prompt };
      const lines = `${JSON.stringify(header)}\n${JSON.stringify(entry)}\n`;
      const path = join(folder, `2030-01-31T12-30-59-123Z_${id}.jsonl`);
      writeFileSync(path, lines);
      paths.push(path);
    }
  }
  return paths;
}

describe("session_attach", () => {
  it("finds a session, or that there is none, without reading all that are stored", async () => {
    const stored = storeSessions();
    const server = world.start(runServe, { stdio: true });
    const id = await server.create({ tools: [] });
    await server.ask("session_close", {}, id);
    const known: number[] = [];
    const unknown: number[] = [];
    for (let tries = 0; tries < TRIES; tries++) {
      let startedAt = performance.now();
      await server.attach(id);
      known.push(performance.now() - startedAt);
      await server.ask("session_close", {}, id);
      startedAt = performance.now();
      await expect(server.attach(`nosuch${tries}`)).rejects.toThrow("session_not_found");
      unknown.push(performance.now() - startedAt);
    }
    await server.end();
    const from = performance.now();
    for (const path of stored) readFileSync(path);
    const reading = performance.now() - from;
    // Other programs of the machine take their time too: the fastest of a few tries counts.
    expect(Math.min(...known) * MIN_RATIO).toBeLessThan(reading);
    expect(Math.min(...unknown) * MIN_RATIO).toBeLessThan(reading);
  });
});
