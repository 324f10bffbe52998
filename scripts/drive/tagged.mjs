// Runs the tests that have a tag: `node scripts/drive/tagged.mjs TAG [options of vitest]`.
// Loads only the files that name the tag.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { argv, env, execPath } from "node:process";
import { fileURLToPath } from "node:url";
import { listFiles } from "../check/words.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** What a run with a tag has in its environment. */
const VARIABLES = {
  long: { GYRE_LONG: "1" },
  bubblewrap: { GYRE_REQUIRE: "bubblewrap" },
  postgres: { GYRE_REQUIRE: "postgres" },
};

const [tag = "", ...options] = argv.slice(2);
if (tag !== "long" && tag !== "bubblewrap" && tag !== "postgres") {
  console.error(`There is no tag "${tag}": long, bubblewrap, postgres.`);
  process.exit(2);
}
const names = new RegExp(`tags: (\\[[^\\]]*)?"${tag}"`);
const files = listFiles(root).filter(
  (path) => path.endsWith(".test.ts") && names.test(readFileSync(join(root, path), "utf8")),
);
const vitest = join(root, "node_modules/vitest/vitest.mjs");
const args = [vitest, "run", "--tags-filter", tag, ...options, ...files];
const { status } = spawnSync(execPath, args, {
  cwd: root,
  env: { ...env, ...VARIABLES[tag] },
  stdio: "inherit",
});
process.exitCode = status ?? 1;
