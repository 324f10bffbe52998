import { writeFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentTool, type AgentToolResult, toResult } from "@gyre/agent";
import { systemClock } from "@gyre/ai";
import { manualClock } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JOB_MAX_UNREAD_CHARS, JobTable, MAX_JOBS } from "./job-table.ts";
import { JOB_MAX_READ_BYTES, jobsTool } from "./tool.ts";
import { processInfo } from "@gyre/ai/programs";
import type { ProgramSpec } from "../../sandbox/sandbox.ts";
import { modelText } from "../../testing/model-text.ts";

const isPosix = process.platform !== "win32";
const LONG_MS = 60_000;
let folder: string;
let jobs: JobTable;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-jobs-"));
  jobs = new JobTable({ spoolFolder: folder, clock: systemClock });
});
afterEach(async () => {
  await jobs.close();
  await rm(folder, { recursive: true, force: true });
});

const sh = (script: string): ProgramSpec => ({
  argv: ["sh", "-c", script],
  cwd: folder,
  env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
});
const start = (script: string): Promise<string> => jobs.start(sh(script), script);

/** Reads until all of `text` has come. */
async function readUntil(id: string, text: string): Promise<string> {
  let all = "";
  while (!all.includes(text)) {
    await jobs.wait(id, LONG_MS);
    const { text: more } = jobs.read(id);
    all += more;
    if (more === "" && jobs.info(id).end) throw new Error(`ended without it: ${all}`);
  }
  return all;
}

function call(tool: AgentTool, args: Record<string, unknown>): Promise<AgentToolResult> {
  const host = { call: () => Promise.reject(new Error("not here")) };
  const result = tool.execute(args, {
    id: "1",
    signal: new AbortController().signal,
    update: () => {},
    host,
    messages: [],
  });
  return Promise.resolve(result).then((value) => toResult(tool.name, value));
}

function joinText(result: AgentToolResult): string {
  return modelText(result);
}

describe.runIf(isPosix)("JobTable", () => {
  it("starts a job and gives its output piece by piece", async () => {
    const id = await start("echo one; until [ -e go ]; do :; done; echo two >&2; exit 5");
    expect(id).toBe("job-1");
    expect(await readUntil(id, "one")).toBe("one\n");
    expect(jobs.read(id).text).toBe("");
    expect(jobs.info(id).end).toBeUndefined();
    writeFileSync(join(folder, "go"), "");
    expect(await readUntil(id, "two")).toBe("two\n");
    await jobs.ended(id);
    expect(jobs.list()).toMatchObject([{ id, end: { exitCode: 5, aborted: false } }]);
  });

  it("stops a job with all that it started", async () => {
    const id = await start("trap '' TERM; setsid sleep 1000 & echo $!; sleep 1000; sleep 1000");
    const child = Number(await readUntil(id, "\n"));
    const { end } = await jobs.stop(id);
    expect(end?.aborted).toBe(true);
    // Dead, if perhaps not taken note of yet by its last parent.
    expect(processInfo(child)?.isZombie ?? true).toBe(true);
    // Once more changes nothing.
    expect((await jobs.stop(id)).end).toBe(end);
  });

  it("ends all of them when the agent ends, and starts none after that", async () => {
    const ids = [await start("sleep 1000"), await start("sleep 1000")];
    await jobs.close();
    expect(ids.map((id) => jobs.info(id).end?.aborted)).toEqual([true, true]);
    await expect(start("true")).rejects.toThrow("The agent has ended");
    expect(await readdir(folder)).toEqual([]);
  });

  it("ends one that was being started when the agent ended", async () => {
    const starting = start("sleep 1000");
    const closing = jobs.close();
    const id = await starting;
    await closing;
    expect(jobs.info(id).end?.aborted).toBe(true);
  });

  it("runs a limited number at once and forgets the oldest that have ended", async () => {
    const starting = Array.from({ length: MAX_JOBS }, () => start("sleep 1000"));
    await expect(start("true")).rejects.toThrow("16 jobs run already");
    const ids = await Promise.all(starting);
    await expect(start("true")).rejects.toThrow("Stop one of them first.");
    await jobs.stop(ids[3] ?? "");
    await start("true");
    for (const id of ids) await jobs.stop(id);
    for (let n = 0; n < MAX_JOBS; n++) await jobs.stop(await start("true"));
    expect(jobs.list().length).toBe(MAX_JOBS);
    expect(() => jobs.info("job-1")).toThrow('There is no job "job-1". Available: job-');
  });

  it("keeps the last of what is never read, and all of it in a file", async () => {
    const id = await start("seq 1000000; echo end");
    await jobs.ended(id);
    const { text, dropped, paths } = jobs.read(id);
    expect(text.length).toBe(JOB_MAX_UNREAD_CHARS);
    expect(text.endsWith("1000000\nend\n")).toBe(true);
    const all = await readFile(paths[0] ?? "", "utf8");
    expect(all.length).toBe(dropped + text.length);
  });

  it("waits for something to read, no longer than its limit, and until it is aborted", async () => {
    const clock = manualClock();
    const table = new JobTable({ spoolFolder: folder, clock });
    const id = await table.start(sh("sleep 1000"), "sleep");
    const waiting = table.wait(id, 500);
    expect(clock.pending).toBe(1);
    await clock.advance(500);
    await waiting;
    const stop = new AbortController();
    const aborted = table.wait(id, 500, stop.signal);
    stop.abort();
    await aborted;
    expect(clock.pending).toBe(0);
    expect(table.info(id).durationMs).toBe(500);
    await table.close();
    await table.wait(id, 500);
  });

  it("ends a job whose time is over", async () => {
    const clock = manualClock();
    const table = new JobTable({ spoolFolder: folder, clock });
    const id = await table.start(sh("sleep 1000"), "sleep", 3_000);
    await clock.advance(3_000);
    await table.ended(id);
    expect(table.info(id).end).toMatchObject({ timedOut: true, durationMs: 3_000 });
  });

  it("gives ids that no other table gives, and says that jobs of another one are gone", async () => {
    const [one, other] = ["a1", "b2"].map(
      (token) => new JobTable({ spoolFolder: folder, clock: systemClock, token }),
    );
    if (!one || !other) throw new Error("There are no tables.");
    const first = await one.start(sh("true"), "true");
    const second = await other.start(sh("sleep 1000"), "sleep");
    expect([first, second]).toEqual(["job-a1-1", "job-b2-1"]);
    const gone = (id: string): string =>
      `Job "${id}" is gone: the process that started it has ended, and its jobs with it.`;
    const tool = jobsTool(other);
    for (const id of [first, "job-1"]) {
      await expect(call(tool, { action: "read", id })).rejects.toThrow(gone(id));
      await expect(call(tool, { action: "stop", id })).rejects.toThrow(gone(id));
    }
    expect(() => other.info("job-b2-9")).toThrow(
      'There is no job "job-b2-9". Available: job-b2-1.',
    );
    await Promise.all([one.close(), other.close()]);
  });

  it("says so where a job cannot be started", async () => {
    const spec = { ...sh("true"), argv: ["no-such-program"] };
    await expect(jobs.start(spec, "x")).rejects.toThrow("Cannot start no-such-program");
    expect(jobs.list()).toEqual([]);
  });
});

describe.runIf(isPosix)("the tool jobs", () => {
  it("lists, reads and stops", async () => {
    const tool = jobsTool(jobs);
    expect(joinText(await call(tool, { action: "list" }))).toBe("There are no jobs.");
    const id = await start("echo hello; sleep 1000");
    const read = await call(tool, { action: "read", id, waitMs: LONG_MS });
    expect(joinText(read)).toMatch(/^job-1: running for [\d.]+ s echo hello; sleep 1000\n<source /);
    expect(joinText(read)).toContain("\nhello\n");
    const again = joinText(await call(tool, { action: "read", id }));
    expect(again.endsWith("Nothing new.")).toBe(true);
    const stopped = joinText(await call(tool, { action: "stop", id }));
    expect(stopped).toContain("Ended by us: it was aborted.");
    expect(joinText(await call(tool, { action: "list" }))).toContain("job-1: Ended by us");
  });

  it("shows the end of much, and says where all of it is", async () => {
    const id = await start("seq 1000000");
    await jobs.ended(id);
    const result = joinText(await call(jobsTool(jobs), { action: "read", id }));
    expect(result).toMatch(/\[[\d,]+ characters before this left out\. All of it is in \S+\.\]/);
    expect(result.length).toBeLessThan(JOB_MAX_READ_BYTES + 1_000);
  });

  it("says what is missing", async () => {
    const tool = jobsTool(jobs);
    await expect(call(tool, { action: "read" })).rejects.toThrow("read needs the id of a job");
    await expect(call(tool, { action: "stop", id: "job-9" })).rejects.toThrow(
      'There is no job "job-9". Available: none.',
    );
  });

  it("does nothing that has to be asked about", () => {
    expect(jobsTool(jobs).access({ action: "stop", id: "job-1" })).toEqual({
      kind: "none",
      targets: ["job-1"],
      summary: "stop background jobs",
    });
  });
});
