// Shows the test of a defect fail at the commit of its row in docs/contributing/defects.md:
// `node scripts/drive/red.mjs "part of the row"`, with `--build` for tests of the built program.
// Ends with 0 where the test fails.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { basename, join } from "node:path";
import { execPath } from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readDefects } from "../check/defects.mjs";
import { mustRun, run } from "../shared/command.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** What belongs to tests: it is of the commit of the test. */
const OF_TESTS = /\.test\.ts$|\.snap$|^tests\/|(?:^|\/)testing\//;

/**
 * The name of a test as a pattern, with anything in the place of what a case fills in.
 *
 * @param {string} title
 */
function toPattern(title) {
  return title.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`).replaceAll(/%[sjidf]/g, ".*");
}

/**
 * Runs the test of a defect in a worktree of its own.
 *
 * @param {import("../check/defects.mjs").Defect} defect
 * @param {boolean} isBuilt
 * @returns {Promise<boolean>} whether it failed
 */
function isRed({ file, title, redAt, testOf }, isBuilt) {
  return inTemporaryFolder(async (folder) => {
    const cwd = join(folder, "red");
    /** @param {string[]} args */
    const git = (...args) => mustRun("git", args, { cwd });
    await mustRun("git", ["worktree", "add", "--quiet", "--detach", cwd, redAt], { cwd: root });
    try {
      await cp(join(root, "node_modules"), join(cwd, "node_modules"), {
        recursive: true,
        verbatimSymlinks: true,
      });
      const names = await git("grep", "-lF", "-e", title, testOf, "--", "*.test.ts");
      const files = names.trim().split("\n");
      const named = files.find((name) => basename(name) === basename(file)) ?? files[0] ?? "";
      const path = named.slice(named.indexOf(":") + 1);
      const parents = await git("rev-parse", `${testOf}^`, redAt);
      const isNext = new Set(parents.trim().split("\n")).size === 1;
      const changed = await git("diff", "--name-only", "--diff-filter=d", redAt, testOf);
      const taken = changed.split("\n").filter((name) => isNext && OF_TESTS.test(name));
      await git("checkout", testOf, "--", path, ...taken);
      if (isBuilt) await run(execPath, ["node_modules/typescript/bin/tsc", "-b"], { cwd });
      const report = join(folder, "report.json");
      const reporters = ["--reporter=default", "--reporter=json", `--outputFile=${report}`];
      const args = ["run", path, `--testNamePattern=${toPattern(title)}`, ...reporters];
      spawnSync(execPath, ["node_modules/vitest/vitest.mjs", ...args], { cwd, stdio: "inherit" });
      // A file that cannot be loaded has no failed test.
      return JSON.parse(readFileSync(report, "utf8")).numFailedTests > 0;
    } finally {
      await mustRun("git", ["worktree", "remove", "--force", cwd], { cwd: root });
    }
  });
}

async function main() {
  const { values, positionals } = parseArgs({
    options: { build: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  const [text = ""] = positionals;
  const found = readDefects(root).defects.filter(
    ({ defect, title }) => text !== "" && `${defect} ${title}`.includes(text),
  );
  const [defect] = found;
  if (!defect || found.length > 1) {
    console.error(`${found.length} rows have "${text}": give a part of one.`);
    for (const { defect: name } of found) console.error(`- ${name}`);
    process.exitCode = 2;
  } else if (defect.change !== undefined) {
    console.error(`At ${defect.redAt}, take the fix out: ${defect.change}. Then run`);
    console.error(`npx vitest run ${defect.file} -t "${toPattern(defect.title)}"`);
    process.exitCode = 2;
  } else {
    const red = await isRed(defect, values.build);
    console.log(`${red ? "Red" : "GREEN"} at ${defect.redAt}: ${defect.defect}`);
    if (!red) process.exitCode = 1;
  }
}

await main();
