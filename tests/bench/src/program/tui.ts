import { join } from "node:path";
import type { TerminalRun } from "../../../../packages/cli/dist/testing/terminal-program.js";
import { fullClearsIn } from "../../../../packages/cli/dist/testing/screen-text.js";
import type { Case, Line } from "../measure/lines.ts";
import { makeMessages } from "../library/history.ts";
import { type Bench, line, programCase } from "./cli.ts";
import { median } from "../measure/measure.ts";
import { DEADLINE_MS, eventually, later, PROMPT, quiet, start, stop, withRun } from "./terminal.ts";
import { readCommand, cpuSeconds, findDescendants, isDead, memoryMb } from "./processes.ts";

/**
 * The program as it is packed, in a terminal, against a scripted service in a process of its
 * own. The figures beside ours are of the best other program on Node that was measured for
 * each line (pi 1.5.0; bytes: Claude Code 2.1.325), in November 2026.
 */

/** Fewer runs, for a quick look. */
const MAX_RUNS = Number(process.env["GYRE_TUI_RUNS"] ?? Number.POSITIVE_INFINITY);
const limitRuns = (usual: number): number => Math.max(1, Math.min(usual, MAX_RUNS));

const STARTS = 10;
const IDLE_MS = 5_000;
/** After its start it is left alone for so long before it counts as idle. */
const SETTLE_MS = 2_000;
const KEYS_A_RUN = 30;
const KEY_RUNS = 10;
const MIN_KEY_GAP_MS = 8;
const MAX_KEY_GAP_MS = 40;
const ESCAPES = 50;
/** Two that come soon after one another mean something else. */
const BETWEEN_ESCAPES_MS = 800;
const RESUMED_ENTRIES = 5_000;
const TALL_ROWS = 600;
/** What each round of the long session ends with. */
const LAST_ANSWER = "Seen.";

const LAST_WORDS = "And that is the end of it.";

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;

/** From the start of the process to when all of a text has been written. */
async function shownMs(bench: Bench, args: readonly string[], text: string): Promise<number> {
  const run = await start(bench, args);
  const wanted = Buffer.from(text).toString("latin1");
  let written = "";
  const took = await new Promise<number>((settle, fail) => {
    run.listen((bytes) => {
      written += bytes.toString("latin1");
      if (written.includes(wanted)) settle(performance.now() - run.startedAt);
    });
    void run.end.then(() =>
      fail(new Error(`It did not show ${text}:\n${run.screen().join("\n")}`)),
    );
  });
  await stop(run);
  return took;
}

async function starts(bench: Bench, args: readonly string[], text: string): Promise<number[]> {
  const times: number[] = [];
  for (let nth = 0; nth < limitRuns(STARTS); nth++) times.push(await shownMs(bench, args, text));
  return times;
}

const firstFrame: Case = programCase("tui-first-frame", async (bench) => {
  const times = await starts(bench, [], PROMPT);
  const best = ms(Math.min(...times));
  return [
    line(`start to first prompt, median (best ${best})`, "376 ms", median(times), 200, " ms"),
  ];
});

const idle: Case = programCase("tui-idle", (bench) =>
  withRun(bench, [], async ({ pid }) => {
    await later(SETTLE_MS);
    const before = cpuSeconds(pid);
    await later(IDLE_MS);
    const share = ((cpuSeconds(pid) - before) / (IDLE_MS / 1000)) * 100;
    return [
      line(
        // Of what it shares with other programs, as Node itself is, it has its share.
        `idle, memory (PSS; all that it can reach: ${memoryMb(pid, "Rss").toFixed(0)} MB)`,
        "104 MB",
        memoryMb(pid, "Pss"),
        80,
        " MB",
      ),
      { ...line("idle, CPU over 5 s", "0.0 %", share, 0, " %"), gyre: `${share.toFixed(1)} %` },
    ];
  }),
);

/** Small letters alone, so that a capital on the terminal is one that was typed. */
const SMALL_WORDS = "the quick brown fox jumps over the lazy dog and runs through the field, ";

const keyEcho: Case = programCase("tui-key-echo", (bench) =>
  withRun(bench, [], async (run) => {
    const answer = { say: SMALL_WORDS.repeat(1_000), deltaChars: 12, paceMs: 10 };
    bench.service.send({ answer });
    run.type("go");
    run.press("enter");
    await run.until("quick brown", { within: DEADLINE_MS });
    const screen = run.screen().join("");
    const keys = Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZ").filter((key) => !screen.includes(key));
    const times: number[] = [];
    while (times.length < limitRuns(KEY_RUNS) * KEYS_A_RUN) {
      for (const key of keys) {
        await later(MIN_KEY_GAP_MS + Math.random() * (MAX_KEY_GAP_MS - MIN_KEY_GAP_MS));
        times.push(await echoMs(run, key));
      }
      run.press("ctrl+u");
      await run.until((rows) => !rows.some((row) => row.includes(keys.join(""))));
    }
    const what = `key to echo while streaming, p99 of ${times.length} (median ${ms(median(times))})`;
    return [exact(line(what, "1.4-6 ms", percentile(times, 0.99), 8, " ms"))];
  }),
);

function echoMs(run: TerminalRun, key: string): Promise<number> {
  const pressedAt = performance.now();
  const echoed = new Promise<number>((settle, fail) => {
    const late = setTimeout(
      () => fail(new Error(`No echo of ${key}:\n${run.screen().join("\n")}`)),
      DEADLINE_MS / 10,
    );
    const end = run.listen((bytes) => {
      if (!bytes.includes(key)) return;
      clearTimeout(late);
      end();
      settle(performance.now() - pressedAt);
    });
  });
  run.type(key);
  return echoed;
}

const exact = (one: Line): Line => ({ ...one, gyre: `${one.measured.toFixed(1)}${one.unit}` });

/** As many as make about 5.8 KB. */
const PARTS = 7;

/** As models write: headings, paragraphs, lists, and a program. */
function markdown(): string {
  const parts: string[] = [];
  for (let nth = 1; nth <= PARTS; nth++) {
    parts.push(
      `## Part ${nth}: how the queue is drained`,
      `The worker takes **one message at a time**, and \`drainQueue\` hands it to the loop as soon ` +
        `as the call before it has ended. Nothing is lost when it is interrupted: what was not ` +
        `taken stays where it is, in the *same* order, until it is needed again.`,
      [
        `- **First**, look at \`src/queue/part-${nth}.ts\`: that is where the order is kept.`,
        `- Then run the tests; they take about ${nth * 3} seconds on a machine like this one.`,
        `- If one fails, its seed is printed, and the same run can be had again with it.`,
      ].join("\n"),
      [
        "```ts",
        `export function part${nth}(queue: readonly string[]): string[] {`,
        `  const taken = queue.filter((message) => message.length > ${nth});`,
        `  return taken.map((message) => message.trim()); // in the same order`,
        "}",
        "```",
      ].join("\n"),
      `All of it together is what makes part ${nth} work, and there is not much more to say.`,
    );
  }
  return [...parts, LAST_WORDS].join("\n\n");
}

interface Streamed {
  bytes: number;
  clears: number;
  /** Rows that were not the same any more after they had left the screen. */
  changed: number;
  /** All rows from the question to the last words. */
  rows: string[];
}

/** Asks for an answer and keeps an eye on all rows that leave the screen. */
async function stream(run: TerminalRun): Promise<Streamed> {
  const kept = run.scrollback();
  run.watch(() => kept.push(...run.scrollback(kept.length)));
  const before = run.bytes.length;
  run.type("go");
  run.press("enter");
  await run.until(LAST_WORDS, { within: DEADLINE_MS });
  await quiet(run);
  await run.settled();
  const rows = [...run.scrollback(), ...run.screen()];
  const written = run.bytes.subarray(before);
  return {
    bytes: written.length,
    clears: fullClearsIn(written.toString("latin1")),
    changed: kept.filter((row, nth) => row !== rows[nth]).length,
    rows: rows.slice(
      rows.findIndex((row) => row.includes("Part 1:")),
      rows.findIndex((row) => row.includes(LAST_WORDS)) + 1,
    ),
  };
}

/** A token is about so many characters. */
const TOKEN_CHARS = 4;

const streaming: Case = programCase("tui-stream", async (bench) => {
  const say = markdown();
  const size = Buffer.byteLength(say);
  const lines: Line[] = [];
  const ask = (tokensASecond: number, rows?: number): Promise<Streamed> => {
    const paceMs = 1_000 / tokensASecond;
    bench.service.send({ answer: { say, deltaChars: TOKEN_CHARS, paceMs } });
    return withRun(bench, ["--no-session"], stream, rows);
  };
  // Where nothing leaves the screen, all of it is as it was laid out last.
  const whole = await ask(1_000, TALL_ROWS);
  for (const speed of MAX_RUNS < STARTS ? [200] : [40, 200]) {
    const { bytes, clears, changed, rows } = await ask(speed);
    const kb = `${(size / 1000).toFixed(1)} KB at ${speed} tokens/s`;
    const differing = rows.filter((row, nth) => row !== whole.rows[nth]).length;
    const other = differing + Math.abs(rows.length - whole.rows.length);
    lines.push(
      exact(line(`bytes written a byte, ${kb}`, "6.4", bytes / size, 5, "")),
      line("the same, full clears", "", clears, 0, ""),
      line(`the same, rows of scrollback that changed (of ${rows.length})`, "", changed, 0, ""),
      line("the same, rows that are not as laid out whole", "", other, 0, ""),
    );
  }
  return lines;
});

/** Three that would sleep on, one of which ignores its signal. */
const SLEEPERS = ["301", "302", "303"];
const TREE = `sleep 301 & sh -c 'trap "" TERM INT HUP; sleep 302; sleep 302' & sleep 303`;

const escape: Case = programCase("tui-escape", (bench) =>
  withRun(bench, ["--mode", "full"], async (run) => {
    const answer = { say: [{ call: "shell", arguments: { command: TREE } }] };
    bench.service.send({ answer });
    const times: number[] = [];
    while (times.length < limitRuns(ESCAPES)) times.push(await escapeMs(run));
    const what = `Esc to dead process tree, p99 of ${times.length} (median ${ms(median(times))})`;
    return [line(what, "", percentile(times, 0.99), 250, " ms")];
  }),
);

async function escapeMs(run: TerminalRun): Promise<number> {
  run.type("go");
  run.press("enter");
  const tree = await eventually(() => {
    const found = findDescendants(run.pid);
    const asleep = found.map((pid) => readCommand(pid)).filter(([name]) => name === "sleep");
    return asleep.length === SLEEPERS.length ? found : undefined;
  });
  const pressedAt = performance.now();
  run.press("escape");
  await eventually(() => (tree.every((pid) => isDead(pid)) ? true : undefined));
  const took = performance.now() - pressedAt;
  await later(BETWEEN_ESCAPES_MS);
  return took;
}

const resume: Case = programCase("tui-resume", async (bench) => {
  const file = join(bench.home, "long.jsonl");
  const { createSession } = await import("@gyre/sessions");
  const session = await createSession(file, { cwd: join(bench.home, "work") });
  const appended: Promise<unknown>[] = [];
  for (let nth = 0; session.entries.length + appended.length < RESUMED_ENTRIES; nth++) {
    for (const message of makeMessages(nth, `${SMALL_WORDS.repeat(20)}\n`)) {
      appended.push(session.append({ type: "message", message }));
    }
  }
  await Promise.all(appended);
  await session.close();
  const args = ["--history", file];
  const first = median(await starts(bench, args, PROMPT));
  const resumed = median(await starts(bench, args, LAST_ANSWER));
  const what = `a session of ${RESUMED_ENTRIES} entries, start to first prompt`;
  return [
    line(what, "", first, 400, " ms"),
    line("the same, start to what was said last", "", resumed, 400, " ms"),
  ];
});

export const tuiCases: readonly Case[] = [firstFrame, idle, keyEcho, streaming, escape, resume];
