import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import {
  errorCode,
  FuzzTarget,
  GREETING,
  MAX_SERVER_MIB,
  type RawClient,
} from "../testing/fuzz-target.ts";
import { countCases } from "../../../../tests/support/cases.ts";

/** How long a line without an end gets. `GYRE_LINE_MB=1024` is the full figure. */
const LINE_MB = countCases(32, 64, "GYRE_LINE_MB");
const PIECE = Buffer.alloc(1024 * 1024, "x");
const OTHERS_EVERY_MB = 16;
const TINY_FRAMES = countCases(10_000, 100_000);
const FRAMES_A_WRITE = 1000;
/** Of some 30 KiB each. */
const LONG_ANSWERS = countCases(1_000, 10_000);
const ASKED_AT_ONCE = 100;
const MAX_MS = 120_000 + LINE_MB * 200;

const TOO_LARGE_STATUS = 413;
const TOO_LARGE_CLOSURE = 1009;

let target: FuzzTarget;

beforeAll(async () => {
  target = await FuzzTarget.start();
});

afterAll(async () => {
  console.log(`flood: the server had at most ${Math.round(await target.maxMib())} MiB`);
  await target.stop();
});

/** Sends so many frames, and returns what another client got in the meantime. */
async function flood(client: RawClient, frame: (at: number) => string): Promise<Set<string>> {
  const greetings = new Set<string>();
  for (let at = 0; at < TINY_FRAMES && !client.isClosed; at += FRAMES_A_WRITE) {
    const lines = Array.from({ length: FRAMES_A_WRITE }, (_, i) => `${frame(at + i)}\n`);
    await client.write(lines.join(""));
    if (at % (TINY_FRAMES / 5) === 0) greetings.add(await target.greetOther());
  }
  return greetings;
}

describe("limits: a line without an end", { tags: "long", timeout: MAX_MS }, () => {
  it("ends the connection of an unknown client", async () => {
    const client = target.raw();
    for (let sent = 0; sent < LINE_MB && !client.isClosed; sent++) await client.write(PIECE);
    await client.until(() => client.isClosed);
    expect(await target.greetOther()).toBe(GREETING);
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });

  it("is reported once and never kept, and the connection goes on", async () => {
    const client = await target.raw().hello();
    await client.write('{"v":1,"type":"models","id":"z","payload":{"filter":"');
    for (let sent = 0; sent < LINE_MB; sent++) {
      await client.write(PIECE);
      if (sent % OTHERS_EVERY_MB === 0) expect(await target.greetOther()).toBe(GREETING);
    }
    await client.write('"}}\n');
    expect(await client.isAlive()).toBe(true);
    expect(client.answers.map(errorCode)).toEqual(["too_large", undefined]);
    client.end();
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });

  it("ends the connection over WebSocket", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${target.ports.http}/api/ws`, ["gyre.v1"], {
      headers: { authorization: `Bearer ${target.token}` },
    });
    await new Promise((resolve) => socket.once("open", resolve));
    const closed = new Promise((resolve) => socket.once("close", resolve));
    // It is cut off while it still talks.
    socket.on("error", () => {});
    for (let sent = 0; sent < LINE_MB && socket.readyState === WebSocket.OPEN; sent++) {
      await new Promise((resolve) => socket.send(PIECE, { fin: false, binary: false }, resolve));
    }
    expect(await closed).toBe(TOO_LARGE_CLOSURE);
    expect(await target.greetOther()).toBe(GREETING);
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });

  it("is refused over HTTP", async () => {
    const asking = request({
      port: target.ports.http,
      path: "/api/stream",
      method: "POST",
      headers: { authorization: `Bearer ${target.token}` },
    });
    const status = new Promise((resolve) => {
      asking.on("response", ({ statusCode }) => resolve(statusCode));
    });
    asking.on("error", () => {});
    const over = new Promise((resolve) => asking.on("close", resolve));
    for (let sent = 0; sent < LINE_MB && !asking.destroyed; sent++) {
      // What is written when it is cut off never goes out.
      await Promise.race([over, new Promise((resolve) => asking.write(PIECE, resolve))]);
    }
    expect(await status).toBe(TOO_LARGE_STATUS);
    asking.destroy();
    expect(await target.greetOther()).toBe(GREETING);
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });
});

describe(`limits: ${TINY_FRAMES} tiny frames`, { tags: "long", timeout: MAX_MS }, () => {
  it.each<[string, (at: number) => string]>([
    ["pings", (at) => `{"v":1,"type":"ping","id":"${at}"}`],
    ["lines that are no frames", () => "x"],
    ["empty lines", () => ""],
    ["unknown types", (at) => `{"v":1,"type":"nosuch","id":"${at}"}`],
    ["aborts", (at) => `{"v":1,"type":"abort_request","id":"${at}","stream":"a_${at}","seq":1}`],
  ])("%s are all answered, and others meanwhile", async (_, frame) => {
    const client = await target.raw().hello();
    expect(await flood(client, frame)).toEqual(new Set([GREETING]));
    await client.until(() => client.frames.length > TINY_FRAMES || client.isClosed);
    expect(client.answers.length).toBe(TINY_FRAMES);
    client.end();
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });

  it("long answers are not kept for ever", async () => {
    const client = await target.raw().hello();
    let heard = 0;
    client.onFrame = () => void heard++;
    for (let at = 0; at < LONG_ANSWERS && !client.isClosed; at += ASKED_AT_ONCE) {
      const ids = Array.from({ length: ASKED_AT_ONCE }, (_, i) => `long_${at + i}`);
      await client.write(ids.map((id) => `{"v":1,"type":"models","id":"${id}"}\n`).join(""));
      await client.until(() => heard >= at + ASKED_AT_ONCE || client.isClosed);
    }
    expect(heard).toBe(LONG_ANSWERS);
    client.end();
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });

  it("a slow reader is not fed without end", async () => {
    const client = await target.raw().hello();
    client.socket.pause();
    const greetings = await flood(client, (at) => `{"v":1,"type":"models","id":"${at}"}`);
    expect(greetings).toEqual(new Set([GREETING]));
    client.end();
    expect(await target.maxMib()).toBeLessThan(MAX_SERVER_MIB);
  });
});
