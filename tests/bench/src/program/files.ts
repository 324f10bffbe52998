import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { RunInfo, ToolInvocation } from "@gyre/agent";
import { systemClock } from "@gyre/ai";
import { createSession, type SessionFile } from "@gyre/sessions";
import {
  createSandbox,
  findTool,
  type GuardedTool,
  openWorkspace,
  SeenFiles,
  shellTool,
  type ToolEnv,
} from "@gyre/tools";
import { FileRecorder } from "../../../../packages/coding/dist/file-history/recorder.js";
import { type Case, createRatio, formatMs, type Line } from "../measure/lines.ts";
import { median } from "../measure/measure.ts";

/**
 * Commands and searches in a large workspace: what rewind adds to a command that does nothing,
 * and `find` beside `rg --files`. A look asks the system for each file; how long that takes in
 * one thread stands beside what rewind adds, so that figures of different machines compare.
 */

const ROUNDS = 7;
/** Each makes a first look, which takes seconds. */
const FIRST_ROUNDS = 5;
const FILES_A_FOLDER = 10;
const FOLDERS_A_PACKAGE = 12;
/** A model takes longer to answer than a look stays fresh. */
const PAUSE_MS = 400;
const MAX_MORE_MS = 100;
const MAX_FIND_RATIO = 2;
/** `GYRE_FILES=240000 npm run bench -- --case files`. */
const FILES = Number(process.env["GYRE_FILES"] ?? 24_000);

/** A workspace with packages, an ignore file, and half as many files that it leaves out. */
function makeTree(root: string, files: number): void {
  mkdirSync(root);
  writeFileSync(join(root, ".gitignore"), "node_modules/\ndist/\n*.log\n**/*.tmp\n!keep.log\n");
  for (let made = 0; made < files; made += FILES_A_FOLDER) {
    const folder = made / FILES_A_FOLDER;
    const at = join(
      root,
      `packages/package-${Math.floor(folder / FOLDERS_A_PACKAGE)}/src`,
      `${folder % 4 === 0 ? "deep/" : ""}module-${folder % FOLDERS_A_PACKAGE}`,
    );
    mkdirSync(at, { recursive: true });
    for (let count = 0; count < FILES_A_FOLDER && made + count < files; count++) {
      const text = `export const value${made + count} = "${"x".repeat((count * 331) % 3000)}";\n`;
      writeFileSync(join(at, `file-${count}.ts`), text);
    }
  }
  for (let made = 0; made < files / 2; made += FILES_A_FOLDER) {
    const at = join(root, `node_modules/package-${made}/lib`);
    mkdirSync(at, { recursive: true });
    for (let count = 0; count < FILES_A_FOLDER; count++)
      writeFileSync(join(at, `${count}.js`), "x");
  }
}

/** One thread that asks the system for each file. */
function measureStats(root: string): number {
  const folders = [root];
  const files: string[] = [];
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (!entry.isDirectory()) files.push(path);
      else if (entry.name !== "node_modules" && entry.name !== ".git") folders.push(path);
    }
  }
  return measureMedian(() => {
    for (const path of files) lstatSync(path);
  });
}

function measureMedian(work: () => void): number {
  return median(
    Array.from({ length: ROUNDS }, () => {
      const startedAt = performance.now();
      work();
      return performance.now() - startedAt;
    }),
  );
}

const RUN: RunInfo = {
  fallbacks: [],
  sessionId: "bench",
  model: { id: "none", name: "none", api: "none", provider: "none" },
};
const SIGNAL = new AbortController().signal;
const ARGS = { command: "true" };

function execute(
  tool: GuardedTool,
  args: Record<string, unknown>,
): ReturnType<typeof tool.execute> {
  return tool.execute(args, {
    id: "call",
    signal: SIGNAL,
    update: () => {},
    host: { call: () => Promise.reject(new Error("There is nothing else to call.")) },
    messages: [],
  });
}

async function measureTime(work: () => unknown): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function measureFiles(base: string): Promise<Line[]> {
  const root = join(base, "work");
  makeTree(root, FILES);
  const workspace = await openWorkspace(root);
  const env: ToolEnv = {
    workspace,
    seen: new SeenFiles(),
    sandbox: () => createSandbox(),
    spoolFolder: join(base, "spool"),
    environment: { PATH: process.env["PATH"] ?? "", HOME: base },
    clock: systemClock,
  };
  mkdirSync(env.spoolFolder, { mode: 0o700 });
  // Loads what is needed, in another folder: the other one was never looked at.
  const empty = await openWorkspace(env.spoolFolder);
  await execute(shellTool({ ...env, workspace: empty }), ARGS);
  await empty.close();
  const lines = await measureRewind(env, base);
  lines.push(...(await measureFind(env)));
  await workspace.close();
  return lines;
}

/** A command that does nothing in a workspace, with rewind or without. */
class Commands {
  readonly #env: ToolEnv;
  readonly #tool: GuardedTool;
  readonly #recorder: FileRecorder;
  readonly #session: SessionFile;
  #end: ReturnType<NonNullable<FileRecorder["middleware"]["run"]>> = undefined;

  constructor(env: ToolEnv, session: SessionFile, folder: string) {
    this.#env = env;
    this.#session = session;
    this.#tool = shellTool(env);
    this.#recorder = new FileRecorder({
      workspace: env.workspace,
      session: () => session,
      isJobRunning: () => false,
      folder,
      warn: (text) => console.error(text),
    });
  }

  /** In a workspace that was never looked at. */
  static async open(env: ToolEnv, base: string): Promise<Commands> {
    const workspace = await openWorkspace(env.workspace.root);
    const session = await createSession(join(base, `${randomUUID()}.jsonl`), {
      cwd: workspace.root,
    });
    return new Commands({ ...env, workspace }, session, join(base, "files"));
  }

  /** The prompt is sent, and the first look begins. */
  begin(): void {
    this.#end = this.#recorder.middleware.run?.(RUN);
  }

  runBare(): Promise<number> {
    return measureTime(() => execute(this.#tool, ARGS));
  }

  runRecorded(): Promise<number> {
    const call: ToolInvocation = {
      tool: this.#tool,
      args: ARGS,
      toolCall: { type: "toolCall", id: "call", name: "shell", arguments: ARGS },
      signal: SIGNAL,
      run: RUN,
    };
    return measureTime(() =>
      this.#recorder.middleware.tool?.(call, async () => {
        await execute(this.#tool, ARGS);
        return { content: [] };
      }),
    );
  }

  /** How long looks go on from now. */
  endLooks(): Promise<number> {
    return measureTime(() => this.#recorder.lines());
  }

  async close(): Promise<void> {
    this.#end?.(undefined);
    await this.#recorder.close();
    await this.#session.close();
    await this.#env.workspace.close();
  }
}

async function measureRewind(env: ToolEnv, base: string): Promise<Line[]> {
  const without: number[] = [];
  const within: number[] = [];
  const commands = await Commands.open(env, base);
  commands.begin();
  await commands.runRecorded();
  await commands.endLooks();
  for (let round = 0; round < ROUNDS; round++) {
    await wait(PAUSE_MS);
    without.push(await commands.runBare());
    await commands.endLooks();
    await wait(PAUSE_MS);
    within.push(await commands.runRecorded());
    await commands.endLooks();
  }
  await commands.close();
  const first = await measureFirst(env, base);
  const stats = formatMs(0)(measureStats(env.workspace.root));
  const line = (what: string, floor: string, measured: number): Line => {
    return {
      what,
      floor,
      gyre: `${measured.toFixed(0)} ms`,
      measured,
      limit: MAX_MORE_MS,
      unit: " ms",
    };
  };
  const count = FILES.toLocaleString("en-US");
  const show = formatMs(0);
  return [
    line(
      `shell true on ${count} files, what rewind adds`,
      `each file asked: ${stats}`,
      median(within) - median(without),
    ),
    line(
      `the first one (its look goes on for ${show(median(first.looked))})`,
      `without: ${show(median(first.without))}`,
      median(first.within) - median(first.without),
    ),
  ];
}

/** First commands in workspaces that were never looked at, so long after the prompt as a model needs. */
async function measureFirst(
  env: ToolEnv,
  base: string,
): Promise<Record<"without" | "within" | "looked", number[]>> {
  const times: Record<"without" | "within" | "looked", number[]> = {
    without: [],
    within: [],
    looked: [],
  };
  for (let round = 0; round < FIRST_ROUNDS; round++) {
    const bare = await Commands.open(env, base);
    await wait(PAUSE_MS);
    times.without.push(await bare.runBare());
    await bare.close();
    const recorded = await Commands.open(env, base);
    recorded.begin();
    await wait(PAUSE_MS);
    times.within.push(await recorded.runRecorded());
    times.looked.push(await recorded.endLooks());
    await recorded.close();
  }
  return times;
}

async function measureFind(env: ToolEnv): Promise<Line[]> {
  const { rgPath } = await import("@vscode/ripgrep");
  const { root } = env.workspace;
  const rg: number[] = [];
  const cold: number[] = [];
  const warm: number[] = [];
  // In turns: what else the machine does slows all of them.
  for (let round = 0; round < ROUNDS; round++) {
    rg.push(
      await measureTime(() => execFileSync(rgPath, ["--files"], { cwd: root, maxBuffer: 1e9 })),
    );
    const again = await openWorkspace(root);
    const tool = findTool({ ...env, workspace: again });
    cold.push(await measureTime(() => execute(tool, { pattern: "*.ts" })));
    warm.push(await measureTime(() => execute(tool, { pattern: "*.ts" })));
    await again.close();
  }
  const floor = median(rg);
  const show = formatMs(0);
  const what = "find *.ts beside rg --files";
  return [
    createRatio(what, { floor, gyre: median(warm) }, show, MAX_FIND_RATIO),
    createRatio(
      `${what}, folders never listed`,
      { floor, gyre: median(cold) },
      show,
      MAX_FIND_RATIO,
    ),
  ];
}

export const fileCases: readonly Case[] = [
  {
    name: "files",
    async run() {
      const base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-bench-files-")));
      try {
        return await measureFiles(base);
      } finally {
        rmSync(base, { recursive: true, force: true });
      }
    },
  },
];
