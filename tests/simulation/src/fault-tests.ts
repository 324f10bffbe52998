import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Tried in this order: most faults are found by the first of them. */
const TESTS = [
  ["packages/agent/src/loop", "tests/simulation"],
  ["packages/agent", "packages/ai"],
];
/** A fault may make a test spin without end. */
const SILENCE_MS = 300_000;

interface Report {
  testResults: {
    message: string;
    assertionResults: { status: string; fullName: string }[];
  }[];
}

/**
 * Runs the tests of the core with a source file as it would be built with a fault. Gives the name of a test that
 * fails, or nothing.
 */
export async function findByTests(
  root: string,
  source: string,
  code: string,
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "gyre-fault-"));
  try {
    const file = join(folder, "faulty.js");
    await writeFile(file, code);
    for (const tests of TESTS) {
      const found = await runTests(root, tests, {
        GYRE_FAULTY_SOURCE: source,
        GYRE_FAULTY_CODE: file,
      });
      if (found !== undefined) return found;
    }
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runTests(
  root: string,
  tests: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const config = join(root, "tests/simulation/faulty.config.ts");
  const args = [join(root, "node_modules/vitest/vitest.mjs"), "run", "--config", config, ...tests];
  const env = { ...process.env, ...variables, GYRE_TEST_RETRY: "0" };
  const { out, code, signal } = await runNode(args, { cwd: root, env }, SILENCE_MS);
  if (signal) return "hang: a test does not end";
  if (code !== 0 && out.trim() === "") return `crash: the tests ended with ${code} and no report`;
  return code === 0 ? undefined : nameFailure(out);
}

export interface Ended {
  out: string;
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** Runs Node to its end. One that sends no message for `silenceMs` is killed. */
export function runNode(
  args: readonly string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
  silenceMs: number,
): Promise<Ended> {
  const child = spawn(process.execPath, args, {
    ...options,
    stdio: ["ignore", "pipe", "ignore", "ipc"],
  });
  return new Promise((resolve, reject) => {
    let out = "";
    const timer = setTimeout(() => child.kill("SIGKILL"), silenceMs);
    // After each seed. On a busy machine all of them take longer than the silence of one.
    child.on("message", () => timer.refresh());
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (out += text));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ out, code, signal });
    });
  });
}

function nameFailure(out: string): string {
  const { testResults }: Report = JSON.parse(out.slice(out.indexOf('{"numTotal')));
  for (const { assertionResults, message } of testResults) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    if (failed) return failed.fullName;
    if (message !== "") return message;
  }
  return "an error outside of any test";
}
