// Programs that others wrote, for checks that hold ours against them.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { mustRun, plainEnvironment } from "../shared/command.mjs";

const NODE_VERSION = "24.21.0";
const DEADLINE_MS = 60_000;

/**
 * @typedef {{ code: number, stdout: string, stderr: string }} Ended
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
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, {
      ...options,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: DEADLINE_MS,
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? 1, stdout, stderr }));
  });
}
