// The library in runtimes that are not Node: `npm run platforms`. They come from the npm registry into
// a temporary folder, without running a script of theirs; one that cannot be had fails and is named.
import { copyFileSync, existsSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { pack } from "../release/pack.mjs";
import { mustRun, plainEnvironment, run } from "../shared/command.mjs";
import { runParts } from "../shared/parts.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { listPackages } from "../shared/workspace.mjs";

/** @typedef {import("../shared/parts.mjs").Findings} Findings */

/** The packages that hold the programs themselves: others would fetch them by a script. */
const PACKAGES = {
  miniflare: "4.20260730.0",
  "edge-runtime": "4.0.1",
  "@oven/bun-linux-x64": "1.4.4",
  "@deno/linux-x64-glibc": "2.9.6",
};
const COMPATIBILITY_DATE = "2026-07-01";
const TIMEOUT_MS = 60_000;
const ANSWER = "Good day.";
const NAME_ERROR = "Names are looked up under Node alone.";

const root = fileURLToPath(new URL("../..", import.meta.url));
const consumer = fileURLToPath(new URL("../release/consumer/", import.meta.url));

/** @param {string} folder */
async function install(folder) {
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  const ours = listPackages(root).filter(({ room }) => room === "ai" || room === "agent");
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund"];
  for (const one of ours) args.push((await pack(one, folder)).tarball);
  await mustRun("npm", args, { cwd: folder });
  for (const file of ["tour.mjs", "edge.mjs", "named.mjs"]) {
    copyFileSync(join(consumer, file), join(folder, file));
  }
  /** @type {string[]} */
  const problems = [];
  for (const [name, version] of Object.entries(PACKAGES)) {
    // `npm run` passes on that engines are strict here; miniflare asks for Node 22, and runs on 20.
    const flags = ["--ignore-scripts", "--engine-strict=false", "--no-audit", "--no-fund"];
    const one = ["install", ...flags, `${name}@${version}`];
    const { code, output } = await run("npm", one, { cwd: folder });
    if (code !== 0) problems.push(`${name} ${version} could not be had:\n${output}`);
  }
  const versions = Object.entries(PACKAGES).map((entry) => entry.join(" "));
  return { problems, figures: [versions.join(", ")] };
}

/**
 * One file, for a runtime without Node.
 *
 * @param {string} folder
 * @param {string} main
 * @param {"esm" | "iife"} format
 */
async function bundle(folder, main, format) {
  const input = join(folder, "main.mjs");
  writeFileSync(input, `import { visit } from "./edge.mjs";\n${main}\n`);
  const made = await rolldown({ input, cwd: folder, platform: "browser", logLevel: "silent" });
  const { output } = await made.generate({ format, codeSplitting: false });
  await made.close();
  return output[0].code;
}

/**
 * @param {{ stops: string[], text: string, error: string }} outcome
 * @returns {Findings}
 */
function judgeEdge({ stops, text, error }) {
  const problems = [];
  if (text !== ANSWER) problems.push(`the answer is ${JSON.stringify(text)}`);
  if (!error.includes(NAME_ERROR)) problems.push(`a name is answered with ${error}`);
  return { problems, figures: [`${stops.join(", ")}; streams an answer by HTTP; ${error}`] };
}

/**
 * @param {string} folder
 * @param {string} service
 */
async function inWorkerd(folder, service) {
  const { Miniflare } = await load(folder, "miniflare");
  const main = `export default { fetch: async () => Response.json(await visit(${JSON.stringify(service)})) };`;
  const worker = new Miniflare({
    modules: true,
    script: await bundle(folder, main, "esm"),
    compatibilityDate: COMPATIBILITY_DATE,
  });
  try {
    const response = await worker.dispatchFetch("http://worker.example/");
    if (!response.ok) return { problems: [await response.text()] };
    return judgeEdge(await response.json());
  } finally {
    await worker.dispose();
  }
}

/**
 * @param {string} folder
 * @param {string} service
 */
async function inEdgeRuntime(folder, service) {
  const { EdgeRuntime } = await load(folder, "edge-runtime");
  const main = `addEventListener("fetch", (event) => event.respondWith(visit(${JSON.stringify(service)}).then((outcome) => Response.json(outcome))));`;
  const runtime = new EdgeRuntime({ initialCode: await bundle(folder, main, "iife") });
  const response = await runtime.dispatchFetch("http://edge.example/");
  await response.waitUntil();
  if (!response.ok) return { problems: [await response.text()] };
  return judgeEdge(await response.json());
}

/**
 * @param {string} folder
 * @param {string} service
 * @param {string} program below node_modules
 * @param {readonly string[]} args
 * @returns {Promise<Findings>}
 */
async function inProgram(folder, service, program, ...args) {
  const path = join(folder, "node_modules", program);
  if (!existsSync(path)) return { problems: [`there is no ${program}`] };
  const env = {
    ...plainEnvironment(),
    HOME: folder,
    ANTHROPIC_API_KEY: "sk-ant-for-this-check-alone",
    ANTHROPIC_BASE_URL: service,
  };
  const options = { cwd: folder, env, timeout: TIMEOUT_MS };
  const { code, stdout, output } = await run(path, [...args, "named.mjs"], options);
  if (code !== 0) return { problems: [output] };
  const { stops, text, streamed } = JSON.parse(stdout);
  if (text !== ANSWER || streamed !== ANSWER) return { problems: [output] };
  return {
    problems: [],
    figures: [`${stops.join(", ")}; a model by its name; its text, streamed`],
  };
}

/**
 * @param {string} folder
 * @param {string} name
 */
function load(folder, name) {
  const path = createRequire(join(folder, "package.json")).resolve(name);
  return import(pathToFileURL(path).href);
}

const { scriptedService } = await import("../../packages/cli/dist/testing/scripted-service.js");
const service = await scriptedService(() => ({ say: ANSWER }));
const ok = await inTemporaryFolder((folder) =>
  runParts(
    [
      { name: "install", check: () => install(folder) },
      { name: "workerd", check: () => inWorkerd(folder, service.url) },
      { name: "edge-runtime", check: () => inEdgeRuntime(folder, service.url) },
      {
        name: "bun",
        check: () => inProgram(folder, service.url, "@oven/bun-linux-x64/bin/bun", "run"),
      },
      {
        name: "deno",
        check: () =>
          inProgram(
            folder,
            service.url,
            "@deno/linux-x64-glibc/deno",
            "run",
            "--allow-all",
            "--node-modules-dir=manual",
          ),
      },
    ],
    (line) => console.log(line),
  ),
);
await service.close();
process.exitCode = ok ? 0 : 1;
