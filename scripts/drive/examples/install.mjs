// Examples as a stranger gets them, in folders of their own: our packages from tarballs, the others from npm's registry.
import { spawn } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { basename, delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { pack } from "../../release/pack.mjs";
import { mustRun, plainEnvironment, run } from "../../shared/command.mjs";
import { listPackages } from "../../shared/workspace.mjs";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const INSTALL = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
/** An example that is still there by then was left behind. */
const MAX_RUN_MS = 300_000;

/** @typedef {import("../../shared/workspace.mjs").Manifest} Manifest */

/**
 * Packs those of our packages that examples need, and those that these need.
 *
 * @param {string} into
 * @param {readonly string[]} names of examples
 * @returns {Promise<ReadonlyMap<string, string>>} tarballs by name of the package
 */
export async function packFor(into, names) {
  const all = listPackages(root);
  const wanted = new Set(
    names.flatMap((name) => Object.keys(readExample(name).dependencies ?? {})),
  );
  for (const name of wanted) {
    const { dependencies = {} } =
      all.find(({ manifest }) => manifest.name === name)?.manifest ?? {};
    for (const needed of Object.keys(dependencies)) wanted.add(needed);
  }
  const packages = all.filter(({ manifest }) => wanted.has(manifest.name));
  const packed = packages.map(
    async (one) => /** @type {const} */ ([one.manifest.name, (await pack(one, into)).tarball]),
  );
  return new Map(await Promise.all(packed));
}

/** @param {string} name @returns {Manifest} */
function readExample(name) {
  return JSON.parse(readFileSync(join(root, "examples", name, "package.json"), "utf8"));
}

/**
 * Copies an example into a folder, installs what it needs, and builds it if it has a build.
 *
 * @param {string} name
 * @param {string} folder
 * @param {ReadonlyMap<string, string>} tarballs
 * @param {string} node the program to build with
 */
export async function installExample(name, folder, tarballs, node) {
  const source = join(root, "examples", name);
  // What a reader installed and built there is theirs.
  const isOurs = (/** @type {string} */ path) =>
    !["node_modules", "dist", ".next", "package-lock.json"].includes(basename(path));
  cpSync(source, folder, { recursive: true, filter: isOurs });
  const manifest = readExample(name);
  const ours = [...tarballs].map(([dependency, tarball]) => [dependency, `file:${tarball}`]);
  const dependencies = { ...manifest.dependencies, ...Object.fromEntries(ours) };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, dependencies }));
  await mustRun("npm", INSTALL, { cwd: folder, env: makeEnv(node) });
  if (manifest.scripts?.["build"] === undefined) return;
  const { code, output } = await run("npm", ["run", "build"], { cwd: folder, env: makeEnv(node) });
  if (code !== 0) throw new Error(`npm run build ended with ${code}:\n${output}`);
}

/** @param {string} node */
function makeEnv(node) {
  const PATH = `${dirname(node)}${delimiter}${process.env["PATH"] ?? ""}`;
  return { ...plainEnvironment(), PATH, NEXT_TELEMETRY_DISABLED: "1" };
}

/**
 * Starts an example with `npm start`, on a port that is free.
 *
 * @param {string} folder where it is installed
 * @param {string} node
 * @param {Readonly<Record<string, string>>} [more] variables of its environment
 * @returns {Promise<{ address: URL, output: () => string, end: () => Promise<void> }>}
 */
export async function startExample(folder, node, more = {}) {
  const child = spawn("npm", ["start", "--silent"], {
    cwd: folder,
    env: { ...makeEnv(node), PORT: "0", ...more },
    stdio: ["ignore", "pipe", "pipe"],
    // npm starts a shell, and that the program: they end together.
    detached: true,
  });
  let output = "";
  const ended = new Promise((resolve) => child.once("close", resolve));
  const end = async () => {
    clearTimeout(timer);
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid);
    await ended;
  };
  const timer = setTimeout(() => void end(), MAX_RUN_MS);
  /** @type {Promise<URL>} */
  const found = new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
        const address = /http:\/\/[\w.]+:\d+/.exec(output)?.[0];
        if (address !== undefined) resolve(new URL(address));
      });
    }
  });
  const address = await Promise.race([found, ended.then(() => undefined)]);
  if (address === undefined) throw new Error(`npm start ended before it was ready:\n${output}`);
  return { address, output: () => output, end };
}
