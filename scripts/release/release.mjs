// A release in one command: `npm run release -- VERSION`. Without `--publish` it is a dry run: everything is
// done in a temporary clone, and what would be published is listed. With it, here, from a clean main.
import { readdirSync, readFileSync, existsSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mustRun } from "../shared/command.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { arePlaceholders, readAddresses, writeAddresses } from "../shared/addresses.mjs";
import { listExampleManifests } from "../shared/workspace.mjs";
import { parseReleaseArgs, releaseChangelog, setVersions } from "./versions.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** @param {string} text */
const print = (text) => console.log(text);

/**
 * Writes version, changelog and addresses, and commits and tags them.
 *
 * @param {string} folder a clean tree
 * @param {string} version
 */
async function prepare(folder, version) {
  const files = [
    "package.json",
    "package-lock.json",
    ...listManifests(folder),
    ...listExampleManifests(folder),
  ];
  setVersions(folder, files, version);
  const changelog = join(folder, "CHANGELOG.md");
  const day = new Date().toISOString().slice(0, 10);
  writeFileSync(changelog, releaseChangelog(readFileSync(changelog, "utf8"), version, day));
  await writeAddresses(folder);
  const git = (/** @type {string[]} */ ...args) => mustRun("git", args, { cwd: folder });
  await git("commit", "--quiet", "--all", "--message", `Release ${version}`);
  await git("tag", "--annotate", `v${version}`, "--message", `Release ${version}`);
  print(await git("show", "--stat", "--format=%D%n%s", `v${version}^{commit}`));
}

/** @param {string} folder */
function listManifests(folder) {
  return readdirSync(join(folder, "packages"))
    .map((room) => `packages/${room}/package.json`)
    .filter((file) => existsSync(join(folder, file)));
}

/**
 * Builds and packs in the order of the layers: what others need is published first.
 *
 * @param {string} folder
 * @param {string} into
 */
async function packAll(folder, into) {
  mkdirSync(into, { recursive: true });
  await mustRun("npm", ["run", "--silent", "build"], { cwd: folder });
  const { pack } = await import(`${folder}/scripts/release/pack.mjs`);
  const { listPackages } = await import(`${folder}/scripts/shared/workspace.mjs`);
  /** @type {import("../shared/workspace.mjs").Package[]} */
  const packages = listPackages(folder).filter(
    (/** @type {import("../shared/workspace.mjs").Package} */ { manifest }) =>
      manifest.private !== true,
  );
  const names = new Set(packages.map(({ manifest }) => manifest.name));
  const done = new Set();
  const tarballs = [];
  while (tarballs.length < packages.length) {
    const next = packages.find(
      ({ manifest }) =>
        !done.has(manifest.name) &&
        Object.keys(manifest.dependencies ?? {}).every(
          (name) => !names.has(name) || done.has(name),
        ),
    );
    if (next === undefined) throw new Error("The packages need each other in a circle.");
    done.add(next.manifest.name);
    tarballs.push(/** @type {string} */ ((await pack(next, into)).tarball));
  }
  return tarballs;
}

/** @param {string} tarball */
const publishArgs = (tarball) => ["publish", tarball, "--access", "public", "--provenance"];

/** @param {string} version */
async function dryRun(version) {
  await inTemporaryFolder(async (temporary) => {
    const clone = join(temporary, "clone");
    await mustRun("git", ["clone", "--quiet", root, clone], { cwd: temporary });
    await mustRun("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: clone });
    const git = (/** @type {string[]} */ ...args) => mustRun("git", args, { cwd: clone });
    await git("config", "user.name", "Release");
    await git("config", "user.email", "release@gyre.example");
    await prepare(clone, version);
    const tarballs = await packAll(clone, join(temporary, "tarballs"));
    print("Would run:");
    for (const tarball of tarballs) print(`  npm ${publishArgs(tarball).join(" ")}`);
    print(`  git push --follow-tags`);
    print("Nothing was published, and nothing here was changed: this was a dry run.");
  });
}

/** @param {string} version */
async function publish(version) {
  const addresses = readAddresses(root);
  if (addresses === undefined || arePlaceholders(addresses)) {
    throw new Error(
      "scripts/shared/addresses.json still has placeholders: set the addresses first.",
    );
  }
  const changed = await mustRun("git", ["status", "--porcelain"], { cwd: root });
  if (changed !== "") throw new Error(`The tree is not clean:\n${changed}`);
  await mustRun("npm", ["run", "check"], { cwd: root });
  await prepare(root, version);
  await inTemporaryFolder(async (folder) => {
    for (const tarball of await packAll(root, folder)) {
      print(await mustRun("npm", publishArgs(tarball), { cwd: root }));
    }
  });
  print("Published. Now: git push --follow-tags");
}

try {
  const { version, isPublished } = parseReleaseArgs(process.argv.slice(2), currentVersion());
  await (isPublished ? publish(version) : dryRun(version));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

function currentVersion() {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
}
