// Programs that others wrote, for checks that hold ours against them.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { mustRun, plainEnvironment, run } from "../shared/command.mjs";
import { runParts } from "../shared/parts.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";

const NODE_VERSION = "24.21.0";
const DEADLINE_MS = 60_000;

/**
 * @typedef {{ code: number, stdout: string, stderr: string }} Ended
 * @typedef {import("../../packages/cli/src/testing/scripted-service.ts").ScriptedService} Service
 * @typedef {import("../shared/parts.mjs").Part} Part
 */

/**
 * Installs packages into a folder, without running their scripts, and a Node for them
 * where this one is too old.
 *
 * @param {string} folder
 * @param {number} oldestNode the first number of the version that they need
 * @param {Readonly<Record<string, string>>} packages versions by name
 * @returns {Promise<{ node: string, bin: (name: string, command: string) => string }>}
 */
export async function installForeign(folder, oldestNode, packages) {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "foreign", private: true }));
  const isNew = Number.parseInt(process.versions.node, 10) >= oldestNode;
  const system = process.platform === "win32" ? "win" : process.platform;
  const node = `node-${system}-${process.arch}`;
  const wanted = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  if (!isNew) wanted.push(`${node}@${NODE_VERSION}`);
  const options = ["--ignore-scripts", "--no-audit", "--no-fund"];
  await mustRun("npm", ["install", ...options, ...wanted], { cwd: folder });
  const modules = join(folder, "node_modules");
  const binary = process.platform === "win32" ? "bin/node.exe" : "bin/node";
  return {
    node: isNew ? process.execPath : join(modules, node, binary),
    bin(name, command) {
      /** @type {{ bin: Record<string, string> }} */
      const manifest = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
      const file = manifest.bin[command];
      if (file === undefined) throw new Error(`${name} has no ${command}`);
      return join(modules, name, file);
    },
  };
}

/**
 * The environment of a user whose home is a folder, with a Node first in the path and a
 * service in the place of the real one.
 *
 * @param {string} folder
 * @param {string} node
 * @param {{ url: string }} service
 * @returns {NodeJS.ProcessEnv}
 */
export function homeIn(folder, node, service) {
  return {
    ...plainEnvironment(),
    PATH: `${dirname(node)}${delimiter}${process.env["PATH"] ?? ""}`,
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, "config"),
    XDG_STATE_HOME: join(folder, "state"),
    XDG_DATA_HOME: join(folder, "data"),
    XDG_CACHE_HOME: join(folder, "cache"),
    ANTHROPIC_API_KEY: "sk-ant-test-0123456789abcdef",
    ANTHROPIC_BASE_URL: service.url,
  };
}

/**
 * Runs a program to its end, at most a minute.
 *
 * @param {string} node
 * @param {readonly string[]} args
 * @param {{ cwd: string, env: NodeJS.ProcessEnv }} options
 * @returns {Promise<Ended>}
 */
export function runForeign(node, args, options) {
  return run(node, args, { ...options, timeout: DEADLINE_MS });
}

/**
 * Runs the parts that `makeParts` makes for the built program, with an empty folder and a service
 * in the place of the real one, and sets the exit code. Nothing may be wrong with what the service
 * was asked, either.
 *
 * @param {string} program
 * @param {(folder: string, service: Service) => Promise<Part[]>} makeParts
 */
export async function driveProgram(program, makeParts) {
  if (!existsSync(program)) throw new Error(`${program} is not there: npm run build makes it.`);
  const { scriptedService } = await import("../../packages/cli/dist/testing/scripted-service.js");
  const ok = await inTemporaryFolder(async (folder) => {
    /** @type {Service} */
    const service = await scriptedService();
    const checkService = () => ({
      problems: [...service.problems],
      figures: [`${service.requests.length} requests`],
    });
    try {
      const parts = await makeParts(folder, service);
      parts.push({ name: "service", check: checkService });
      return await runParts(parts, (line) => console.log(line));
    } finally {
      await service.close();
    }
  });
  process.exitCode = ok ? 0 : 1;
}
