import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/**
 * Writes packages/cli/man/gyre.1, the manual page, from the tables of the program, which
 * must have been built.
 *
 *     node scripts/docs/manual.mjs            write the file
 *     node scripts/docs/manual.mjs --check    fail where the file is not what would be written
 */
const root = new URL("../..", import.meta.url);
const file = fileURLToPath(new URL("packages/cli/man/gyre.1", root));
const { values } = parseArgs({ options: { check: { type: "boolean" } } });

/** @type {{ manualPage: () => string }} */
const { manualPage } = await import(new URL("packages/cli/dist/commands/manual.js", root).href);
const page = manualPage();
if (values.check) {
  if (readFileSync(file, "utf8") !== page) {
    console.error(`${file} is not up to date: run node scripts/docs/manual.mjs`);
    process.exitCode = 1;
  }
} else {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, page);
}
