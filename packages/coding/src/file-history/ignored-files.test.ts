import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { mkdir, writeFile } from "node:fs/promises";
import { afterEach, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { type HistoryWorld, historyWorld } from "../testing/history-world.ts";

/** Larger than what is kept of one file. */
const LARGE_BYTES = 1024 * 1024 + 1;

let world: HistoryWorld | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

function runBash(w: HistoryWorld, command: string): void {
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: w.path(".."),
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "t",
    GIT_AUTHOR_EMAIL: "t@localhost",
    GIT_COMMITTER_NAME: "t",
    GIT_COMMITTER_EMAIL: "t@localhost",
  };
  execFileSync("bash", ["-c", command], { cwd: w.root, env, stdio: "ignore" });
}

/** A repository with files of these contents, of which `.gitignore` leaves some out. */
async function openRepository(files: Readonly<Record<string, string>>): Promise<HistoryWorld> {
  const w = (world = await historyWorld({ waitsForLooks: true }));
  await w.put(".gitignore", ".env*\n*.local\nsecrets/\nnode_modules/\n");
  await w.put("tea.txt", "green\n");
  runBash(w, "git init -q && git add -A && git commit -qm x");
  for (const [path, text] of Object.entries(files)) await w.put(path, text);
  return w;
}

/** Runs a command as the agent, and gives the prompt before it. */
function runAsAgent(w: HistoryWorld, command: string): Promise<number> {
  return w.run(() => w.shell(() => Promise.resolve(runBash(w, command)), command));
}

async function rewind(w: HistoryWorld, entry: number): Promise<string[]> {
  const plan = await w.recorder.plan({ before: entry });
  await w.recorder.apply(plan, { withConflicts: true });
  return plan.leftOut.map(({ path, why }) => `${path}: ${why}`);
}

it.for([
  "git clean -fdx",
  "git clean -fdX",
  "git -c core.quotePath=off clean -ffdxq",
  "rm -rf .env secrets config.local",
  "rm -rf *.local .env* secrets",
  "find . -name '.env*' -delete; find secrets -type f -delete; rm config.local",
  "node -e \"const fs = require('fs'); fs.unlinkSync('.env'); fs.unlinkSync('config.local'); fs.rmSync('secrets', { recursive: true })\"",
])("ignored files come back by a rewind: %s", async (command) => {
  const files = { ".env": "KEY=1\n", "config.local": "a\n", "secrets/deep/key.pem": "private\n" };
  const w = await openRepository(files);
  const before = await w.files();
  const entry = await runAsAgent(w, command);
  expect(existsSync(w.path(".env"))).toBe(false);
  expect(await rewind(w, entry)).toEqual([]);
  const after = await w.files();
  for (const path of Object.keys(files)) expect(after[path], path).toBe(before[path]);
});

it("what is not brought back is named: too large, made again, outside", async () => {
  const w = await openRepository({
    ".env": "KEY=1\n",
    "big.local": "x".repeat(LARGE_BYTES),
    "node_modules/tea/index.js": "1\n",
  });
  const outside = w.path("../outside.txt");
  await mkdir(dirname(outside), { recursive: true });
  await writeFile(outside, "mine\n");
  const entry = await runAsAgent(w, `git clean -fdx; rm ${outside}`);
  const leftOut = await rewind(w, entry);
  expect(existsSync(w.path(".env"))).toBe(true);
  expect(leftOut).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^big\.local: .*\d/),
      "node_modules/: it is ignored, and made again by programs",
      `${outside}: it is outside of the workspace`,
    ]),
  );
  expect(leftOut).toHaveLength(3);
});

it("nothing is copied for commands that delete nothing", async () => {
  const w = await openRepository({ ".env": "KEY=1\n" });
  const entry = await runAsAgent(w, "echo black > tea.txt; echo KEY=2 > .env");
  await rewind(w, entry);
  const after = await w.files();
  expect(after["tea.txt"]).toContain("green");
  expect(after[".env"]).toContain("KEY=2");
});

it("random commands with real git: what is gone comes back or is named", async () => {
  const seed = pickSeed();
  let state = seed >>> 0;
  const random = (n: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const names = [".env", ".env.test", "a.local", "secrets/k", "src/b.local", "notes.txt", "src/c"];
  for (let nth = 0; nth < countCases(4, 30); nth++) {
    const files: Record<string, string> = {};
    for (const name of names) if (random(3) > 0) files[name] = `${random(1000)}\n`;
    const w = await openRepository(files);
    const commands = [
      "git clean -fdx",
      "git clean -fX",
      "git clean -fd",
      `rm -rf ${names[random(names.length)]} ${names[random(names.length)]}`,
      "find . -name '*.local' -delete",
      "git clean -fdxq src",
      "rm -f .env* && git clean -fdX",
    ];
    const before = await w.files();
    const command = commands[random(commands.length)] ?? "true";
    const leftOut = await rewind(w, await runAsAgent(w, command));
    const after = await w.files();
    for (const path of Object.keys(files)) {
      const isNamed = leftOut.some((line) => line.startsWith(path));
      if (!isNamed) expect(after[path], `${command} ${path} GYRE_SEED=${seed}`).toBe(before[path]);
    }
    expect(leftOut, `${command} GYRE_SEED=${seed}`).toEqual([]);
    await w.close();
    world = undefined;
  }
});
