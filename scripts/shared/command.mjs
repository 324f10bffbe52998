import { spawn } from "node:child_process";

/** A script that npm started hands these down; they would bind an npm below it to this folder. */
const OURS = /^(npm_(package|lifecycle)_.*|npm_config_(local_prefix|workspaces?))$/i;

/** @returns {NodeJS.ProcessEnv} the environment as it was before npm added to it */
export function plainEnvironment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !OURS.test(name)));
}

/**
 * Runs a program to its end and keeps what it said; stdin is empty. A program that
 * cannot be started rejects.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv, timeout?: number }} options
 * @returns {Promise<{ code: number, stdout: string, stderr: string, output: string }>} `output` is both
 */
export function run(program, args, { cwd, env = plainEnvironment(), timeout }) {
  return new Promise((resolve, reject) => {
    const stdio = /** @type {["ignore", "pipe", "pipe"]} */ (["ignore", "pipe", "pipe"]);
    const child = spawn(program, args, { cwd, env, timeout, stdio });
    let stdout = "";
    let stderr = "";
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text;
      output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text) => {
      stderr += text;
      output += text;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (signal !== null) output += `\n${program} was ended by ${signal}\n`;
      resolve({ code: code ?? 1, stdout, stderr, output });
    });
  });
}

/**
 * The same, for a program that must succeed.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv }} options
 * @returns {Promise<string>} what it wrote to stdout
 */
export async function mustRun(program, args, options) {
  const { code, stdout, output } = await run(program, args, options);
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}:\n${output}`);
  return stdout;
}
