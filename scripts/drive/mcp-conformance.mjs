// The conformance suite of the MCP project, run against the client and the server of `@gyre/mcp`: all
// that both revisions of the protocol require, with a baseline of expected failures that is empty.
// `node scripts/drive/mcp-conformance.mjs`; `--verbose` shows what the suite writes. Needs the registry
// of npm; all that it connects to is on loopback.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { run } from "../shared/command.mjs";
import { runParts } from "../shared/parts.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { installForeign } from "./foreign.mjs";

const SUITE = "@modelcontextprotocol/conformance";
const SUITE_VERSION = "0.2.0-alpha.12";
/** The suite runs on this and later ones. */
const OLDEST_NODE = 22;
const REVISIONS = ["2025-11-25", "2026-07-28"];
/** It starts one client for each scenario, all at once. */
const SCENARIO_MS = 120_000;

const isVerbose = process.argv.includes("--verbose");

/** @param {string} name */
const place = (name) => fileURLToPath(new URL(`mcp-conformance/${name}`, import.meta.url));

/**
 * @typedef {(...args: string[]) => ReturnType<typeof run>} Suite
 * @typedef {import("../shared/parts.mjs").Findings} Findings
 */

/**
 * The scenarios that a revision requires.
 *
 * @param {Suite} suite
 * @param {string} revision
 * @param {"Client" | "Server"} side
 */
async function listRequired(suite, revision, side) {
  const { stdout } = await suite("list", "--requirements", revision);
  const [, section = ""] = stdout.split(`${side} scenarios`);
  const [first = ""] = section.split(/\n\n/);
  return [...first.matchAll(/^ {2}- (\S+)$/gm)].map(([, name = ""]) => name);
}

/**
 * Runs all that a revision requires, and more that the suite reports without counting it.
 *
 * @param {Suite} suite
 * @param {string} revision
 * @param {"Client" | "Server"} side
 * @param {readonly string[]} subject what is tried
 * @returns {Promise<Findings>}
 */
async function measure(suite, revision, side, subject) {
  const required = await listRequired(suite, revision, side);
  const { code, output } = await suite(
    side.toLowerCase(),
    ...subject,
    ...["--requirements", revision, "--expected-failures", place("baseline.yml")],
    ...["--timeout", String(SCENARIO_MS)],
  );
  if (isVerbose) console.log(output);
  const lines = output.matchAll(/^[✓✗] (\S+): (\d+) passed, (\d+) failed/gm);
  const results = new Map(
    [...lines].map(([, name = "", passed, failed]) => [name, [Number(passed), Number(failed)]]),
  );
  const problems = [];
  if (required.length === 0) problems.push("the suite lists no scenarios");
  if (code !== 0) problems.push(`the suite ended with ${code}: --verbose shows what it wrote`);
  let checks = 0;
  for (const name of required) {
    const [passed = 0, failed = 0] = results.get(name) ?? [];
    checks += passed;
    if (!results.has(name)) problems.push(`${name} was not run`);
    else if (failed > 0) problems.push(`${name}: ${failed} of ${passed + failed} checks failed`);
    else if (passed === 0) problems.push(`${name} has no checks`);
  }
  const good = required.filter((name) => results.get(name)?.[1] === 0).length;
  const others = [...results].filter(([name]) => !required.includes(name));
  const alsoGood = others.filter(([, [, failed]]) => failed === 0).length;
  return {
    problems,
    figures: [
      `${good} of ${required.length} scenarios, ${checks} checks`,
      `beside these, not counted: ${alsoGood} of ${others.length}`,
    ],
  };
}

/**
 * Starts the server, and gives its address to `use`.
 *
 * @template T
 * @param {string} node
 * @param {(url: string) => Promise<T>} use
 */
async function withServer(node, use) {
  const child = spawn(node, [place("server.mjs")], { stdio: ["pipe", "pipe", "ignore"] });
  try {
    const lines = createInterface({ input: child.stdout });
    const [url] = await Promise.race([
      once(lines, "line"),
      once(child, "exit").then(([code]) => {
        throw new Error(`The server has ended with ${code}.`);
      }),
    ]);
    return await use(String(url));
  } finally {
    child.stdin.end();
    child.kill();
  }
}

const ok = await inTemporaryFolder(async (folder) => {
  const { bin, node } = await installForeign(folder, OLDEST_NODE, { [SUITE]: SUITE_VERSION });
  const program = bin(SUITE, "conformance");
  /** @type {Suite} */
  const suite = (...args) => run(node, [program, ...args], { cwd: folder });
  const parts = REVISIONS.flatMap((revision) => [
    {
      name: `client of ${revision}`,
      check: () =>
        measure(suite, revision, "Client", ["--command", `${node} ${place("client.mjs")}`]),
    },
    {
      name: `server of ${revision}`,
      check: () => withServer(node, (url) => measure(suite, revision, "Server", ["--url", url])),
    },
  ]);
  return runParts(parts, (line) => console.log(line));
});
process.exitCode = ok ? 0 : 1;
