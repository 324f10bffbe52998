import { type ChildProcess, execFileSync, fork, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeMessages } from "../library/history.ts";
import type { Case, Line } from "../measure/lines.ts";
import { median } from "../measure/measure.ts";

/**
 * The program as it is packed, against a scripted service in a process of its own. The
 * figures beside ours are of the best other program on Node that was measured for each line
 * (pi 1.5.0; for ACP Gemini CLI 0.61), in November 2026 on a machine where Node itself takes
 * 81 ms of CPU to start. What Node takes here is in the first line: take both off before
 * you compare.
 */

const ROUNDS = 11;
const MB = 1_000_000;
const SESSION_MB = Number(process.env["GYRE_SESSION_MB"] ?? 1_000);
const ENTRY_BYTES = 50_000;
/** Compactions come after as many messages; those before it are not sent any more. */
const ENTRIES_A_COMPACTION = 200;
const DEADLINE_MS = 60_000;
/** The exit code for a key that is refused. */
const REFUSED = 41;

const root = fileURLToPath(new URL("../../../..", import.meta.url));
export const entry: string = join(root, "packages/cli/bundle/gyre.js");

export interface Bench {
  service: ChildProcess;
  url: string;
  /** Empty at first. */
  home: string;
  env: Record<string, string>;
}

/** Runs `work` with the program, a service, and a home that is gone afterwards. */
export async function withProgram<T>(work: (bench: Bench) => T | Promise<T>): Promise<T> {
  execFileSync(process.execPath, [join(root, "scripts/release/bundle-cli.mjs")]);
  const home = mkdtempSync(join(tmpdir(), "gyre-bench-"));
  const path = join(root, "packages/cli/dist/testing/service-process.js");
  const service = fork(path, { execArgv: [] });
  try {
    const url = await nextMessage<string>(service);
    for (const name of ["work", "tmp"]) mkdirSync(join(home, name));
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      XDG_CONFIG_HOME: join(home, "config"),
      XDG_DATA_HOME: join(home, "data"),
      XDG_STATE_HOME: join(home, "state"),
      XDG_CACHE_HOME: join(home, "cache"),
      TMPDIR: join(home, "tmp"),
      ANTHROPIC_API_KEY: "sk-ant-bench",
      ANTHROPIC_BASE_URL: url,
    };
    return await work({ service, url, home, env });
  } finally {
    service.disconnect();
    rmSync(home, { recursive: true, force: true });
  }
}

/** A case that is run with the program. */
export function programCase(name: string, run: (bench: Bench) => Line[] | Promise<Line[]>): Case {
  return { name, run: () => withProgram(run) };
}

function nextMessage<T>(service: ChildProcess): Promise<T> {
  return new Promise((settle) => service.once("message", (message) => settle(message as T)));
}

interface Cost {
  cpuMs: number;
  wallMs: number;
}

/** What a run of Node costs with all of its children, as bash counts it: it sees milliseconds. */
function measureCost({ env, home }: Bench, args: readonly string[], expected = 0): Cost {
  const script = 'TIMEFORMAT="%3U %3S %3R"; time "$0" "$@" >/dev/null 2>"$TMPDIR/stderr"';
  const { status, stderr } = spawnSync("bash", ["-c", script, process.execPath, ...args], {
    env,
    cwd: join(home, "work"),
    encoding: "utf8",
    timeout: DEADLINE_MS,
  });
  if (status !== expected) {
    const stderr = readFileSync(join(home, "tmp/stderr"), "utf8");
    throw new Error(`node ${args.join(" ")} ended with ${status}:\n${stderr}`);
  }
  const [user = Number.NaN, system = Number.NaN, real = Number.NaN] = stderr
    .trim()
    .split(" ")
    .map((seconds) => Number(seconds) * 1000);
  return { cpuMs: user + system, wallMs: real };
}

/** The most memory that a run of Node had, in MB. */
function measurePeak(bench: Bench, args: readonly string[]): number {
  const file = join(bench.home, "peak");
  const hook = join(bench.home, "peak.cjs");
  writeFileSync(
    hook,
    `process.on("exit", () => require("node:fs").writeFileSync(${JSON.stringify(file)}, String(process.resourceUsage().maxRSS)));`,
  );
  measureCost(bench, ["--require", hook, ...args]);
  return (Number(readFileSync(file, "utf8")) * 1024) / MB;
}

const rounds = <T>(one: () => T): T[] => Array.from({ length: ROUNDS }, one);
const ms = (value: number): string => `${value.toFixed(0)} ms`;

export function line(
  what: string,
  peer: string,
  measured: number,
  limit: number,
  unit: string,
): Line {
  return { what, floor: peer, gyre: `${measured.toFixed(0)}${unit}`, measured, limit, unit };
}

const ONE_SHOT = [entry, "-p", "Say hello."] as const;

const version: Case = programCase("cli-version", (bench) => {
  const bare = median(rounds(() => measureCost(bench, ["-e", "0"]).cpuMs));
  const cpu = median(rounds(() => measureCost(bench, [entry, "--version"]).cpuMs));
  return [line(`--version, CPU (bare node ${ms(bare)})`, "311 ms", cpu, 120, " ms")];
});

const oneShot: Case = programCase("cli-one-shot", (bench) => {
  const costs = rounds(() => measureCost(bench, ONE_SHOT));
  const cpu = median(costs.map(({ cpuMs }) => cpuMs));
  const wall = median(costs.map(({ wallMs }) => wallMs));
  const peak = median(rounds(() => measurePeak(bench, ONE_SHOT)));
  return [
    line(`one answer without a terminal, CPU (wall ${ms(wall)})`, "462 ms", cpu, 300, " ms"),
    line("the same, most memory", "112 MB", peak, 90, " MB"),
  ];
});

const tokens: Case = programCase("cli-tokens", async (bench) => {
  // Loaded where it is needed: other cases measure memory.
  const { countTokens } = await import("gpt-tokenizer/encoding/o200k_base");
  measureCost(bench, ONE_SHOT);
  bench.service.send("requests");
  const [text = ""] = await nextMessage<string[]>(bench.service);
  const { messages, system, tools } = JSON.parse(text) as Record<string, unknown>;
  const count = (part: unknown): number => countTokens(JSON.stringify(part));
  // The message has facts of this machine: it is printed, and has no limit.
  const what = `system prompt and tools, tokens (with the first message ${count([system, tools, messages])})`;
  return [line(what, "1150 (no grep, find)", count(system) + count(tools), 1_400, "")];
});

const acp: Case = programCase("cli-acp", async (bench) => {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) times.push(await initialize(bench));
  return [line("ACP, start to initialized", "2978 ms", median(times), 400, " ms")];
});

async function initialize({ env, home }: Bench): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [entry, "acp"], {
    env,
    cwd: join(home, "work"),
    stdio: ["pipe", "pipe", "inherit"],
  });
  const params = { protocolVersion: 1, clientCapabilities: {} };
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params })}\n`);
  const ended = new Promise((settle) => child.once("close", settle));
  let answer = "";
  const took = await new Promise<number>((settle, fail) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      answer += text;
      if (answer.includes("\n")) settle(performance.now() - startedAt);
    });
    void ended.then(() => fail(new Error("gyre acp ended without an answer.")));
  });
  if (!("result" in (JSON.parse(answer) as object))) throw new Error(`It answered ${answer}`);
  child.stdin.end();
  await ended;
  return took;
}

const refused: Case = programCase("cli-401", (bench) => {
  bench.service.send({ answer: { status: 401, message: "invalid x-api-key" } });
  const wall = median(rounds(() => measureCost(bench, ONE_SHOT, REFUSED).wallMs));
  return [line("a key that is refused, start to exit", "1600 ms", wall, 1_000, " ms")];
});

const bigSession: Case = programCase("cli-session", async (bench) => {
  const file = join(bench.home, "big.jsonl");
  const entries = await writeBigSession(file, join(bench.home, "work"));
  const size = `${(statSync(file).size / MB).toFixed(0)} MB, ${entries} entries`;
  const args = [entry, "-p", "Go on.", "--history", file];
  const costs = Array.from({ length: 3 }, () => measureCost(bench, args));
  const wall = median(costs.map(({ wallMs }) => wallMs));
  const cpu = median(costs.map(({ cpuMs }) => cpuMs));
  const peak = measurePeak(bench, args);
  const what = `a session of ${size}: start, open, answer, exit (CPU ${ms(cpu)}, ${peak.toFixed(0)} MB)`;
  return [line(what, "", wall, 3_000, " ms")];
});

/** A long piece of work: results of calls, and summaries that took the place of old ones. */
async function writeBigSession(file: string, cwd: string): Promise<number> {
  const { createSession } = await import("@gyre/sessions");
  const session = await createSession(file, { cwd });
  const text = "The quick brown fox jumps over the lazy dog. ".repeat(ENTRY_BYTES / 45);
  const count = Math.ceil((SESSION_MB * MB) / ENTRY_BYTES);
  for (let nth = 0; nth < count;) {
    const { entries } = session;
    const first = entries.find(({ type }) => type === "message")?.id;
    if (first !== undefined) {
      const message = { role: "user", content: "Much was done.", timestamp: nth } as const;
      await session.append({ type: "compaction", first, until: null, message });
    }
    const appended: Promise<unknown>[] = [];
    for (let one = 0; one < ENTRIES_A_COMPACTION && nth < count; one += 4, nth++) {
      for (const message of makeMessages(nth, text)) {
        appended.push(session.append({ type: "message", message }));
      }
    }
    await Promise.all(appended);
  }
  const { length } = session.entries;
  await session.close();
  return length;
}

export const cliCases: readonly Case[] = [version, oneShot, tokens, acp, refused, bigSession];
