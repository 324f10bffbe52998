import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { openRuns } from "@gyre/durable";
import { type SessionPageOptions, SessionStore } from "@gyre/sessions";
import { openDriver } from "../../../../packages/durable/dist/sqlite/driver/driver.js";
import { type Case, formatMs, type Line } from "../measure/lines.ts";
import { median } from "../measure/measure.ts";

/**
 * Pages of 50 of 20,000 sessions: all files in one folder, which is the worst case of the index of
 * files, and in an SQLite file. What asking the system for each file takes stands beside it.
 */

const ROUNDS = 9;
const SESSIONS = 20_000;
const FOLDERS = 20;
const MAX_PAGE_MS = 50;
const PAGE: SessionPageOptions = { limit: 50, order: "updated" };
/** Files that have just been written are read again for a while. */
const SETTLE_MS = 2_500;
const CWD = "/home/ada/tea";
const PROMPT = "Which tea is good in the morning, and which one in the evening? ".repeat(20);
const START = Date.UTC(2030, 0, 1);

async function measureTime(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function measureRounds(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) times.push(await measureTime(work));
  return median(times);
}

function createLine(what: string, measured: number, floor?: string): Line {
  const gyre = formatMs(1)(measured);
  return { what, gyre, measured, limit: MAX_PAGE_MS, unit: " ms", ...(floor && { floor }) };
}

/** Puts sessions into the folder that a store has for one working folder. */
async function fillFolder(store: SessionStore): Promise<string> {
  const first = await store.create({ cwd: CWD, id: "first", createdAt: START });
  await first.close();
  const folder = dirname(first.path);
  for (let made = 0; made < SESSIONS; made++) {
    const [id, time] = [randomUUID(), START + made * 60_000];
    const stamp = new Date(time).toISOString().replace(/[:.]/g, "-");
    const header = { type: "session", version: 1, id, createdAt: time, cwd: CWD };
    const message = { role: "user", content: `${made} ${PROMPT}`, timestamp: time };
    const entry = { id: 1, parentId: null, type: "message", w: 1, timestamp: time, message };
    const lines = `${JSON.stringify(header)}\n${JSON.stringify(entry)}\n`;
    writeFileSync(join(folder, `${stamp}_${id}.jsonl`), lines);
  }
  return folder;
}

function askForEach(folder: string): number {
  const startedAt = performance.now();
  for (const name of readdirSync(folder)) statSync(join(folder, name));
  return performance.now() - startedAt;
}

async function measureFiles(): Promise<Line[]> {
  const root = mkdtempSync(join(tmpdir(), "gyre-lists-"));
  try {
    const store = new SessionStore(root);
    const folder = await fillFolder(store);
    const whole = await measureTime(() => store.listPage(PAGE));
    await wait(SETTLE_MS);
    // The index is written when files are as they were for a while.
    await new SessionStore(root).listPage(PAGE);
    await store.listPage(PAGE);
    const floor = median(Array.from({ length: ROUNDS }, () => askForEach(folder)));
    const beside = `each file asked: ${formatMs(0)(floor)}`;
    const openThen = async (): Promise<[opened: number, closed: number]> => {
      const session = await store.open("first");
      const opened = await measureTime(() => store.listPage(PAGE));
      await session.append({ type: "title", title: "Tea" });
      await session.close();
      return [opened, await measureTime(() => store.listPage(PAGE))];
    };
    const pairs: [number, number][] = [];
    for (let round = 0; round < ROUNDS; round++) pairs.push(await openThen());
    await wait(SETTLE_MS);
    await store.listPage(PAGE);
    return [
      createLine(
        `files: the first page of a process (without an index: ${formatMs(0)(whole)})`,
        await measureRounds(() => new SessionStore(root).listPage(PAGE)),
        beside,
      ),
      createLine("files: right after a session was opened", median(pairs.map(([time]) => time))),
      createLine("files: right after it was written to", median(pairs.map(([, time]) => time))),
      createLine("files: nothing changed", await measureRounds(() => store.listPage(PAGE))),
      createLine(
        "files: with words",
        await measureRounds(() => store.listPage({ ...PAGE, query: "19 evening" })),
      ),
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** The rows of as many sessions, as the store writes them. */
async function fillDatabase(path: string): Promise<void> {
  await (await openRuns(`file:${path}`)).close();
  const db = await openDriver(path);
  const data = JSON.stringify({ message: { role: "user", content: PROMPT } });
  const number = `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${SESSIONS})`;
  db.exec(`begin;
    insert into gyre_session (id, tenant, pool, agent, status, seq, leaf, ready_at, created_at, updated_at)
      ${number} select 's' || i, '', '', '', 'idle', 2, 2, 1, 1, 1 from n;
    insert into gyre_header (session, cwd, source, created_at)
      ${number} select 's' || i, '/home/ada/' || (i % ${FOLDERS}), null, ${START} + i from n;
    insert into gyre_entry (session, seq, parent, type, data, token, at)
      ${number} select 's' || i, 1, null, 'message', '${data}', 0, ${START} + i from n;
    insert into gyre_entry (session, seq, parent, type, data, token, at)
      ${number} select 's' || i, 2, 1, 'message', '${data}', 0, ${START} + i * 7919 % 999983 from n;
    commit`);
  db.close();
}

async function measureDatabase(): Promise<Line[]> {
  const root = mkdtempSync(join(tmpdir(), "gyre-lists-"));
  mkdirSync(root, { recursive: true });
  try {
    const path = join(root, "runs.db");
    await fillDatabase(path);
    const runs = await openRuns(`file:${path}`);
    const sessions = runs.sessions();
    const measure = async (what: string, options: Partial<SessionPageOptions>): Promise<Line> =>
      createLine(
        `SQLite: ${what}`,
        await measureRounds(() => sessions.listPage({ ...PAGE, ...options })),
      );
    const { next = "" } = await sessions.listPage({ ...PAGE, limit: SESSIONS / 2 });
    const lines = [
      await measure("all, by the last write", {}),
      await measure("the same, from the middle on", { after: next }),
      await measure("the same, those that are put away, which are none", { archived: true }),
      await measure("a folder of 1,000, by the last write", { cwd: "/home/ada/7" }),
      await measure("all, by creation", { order: "created" }),
    ];
    await runs.close();
    return lines;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

export const listCases: readonly Case[] = [
  { name: "lists-files", run: measureFiles },
  { name: "lists-sqlite", run: measureDatabase },
];
