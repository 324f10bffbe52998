// Everything that can be said about the code without running it: `npm run check`.
import { fileURLToPath } from "node:url";
import { run } from "../shared/command.mjs";
import { checkDefects } from "./defects.mjs";
import { checkFolders } from "./folders.mjs";
import { checkLayers } from "./layers.mjs";
import { checkLoopStory } from "./loop-story.mjs";
import { checkManifests } from "./manifests.mjs";
import { runParts } from "../shared/parts.mjs";
import { checkPublishable } from "./publishable.mjs";
import { checkReference } from "../docs/reference.mjs";
import { checkLlms } from "../docs/llms.mjs";
import { checkSizes } from "./sizes.mjs";
import { checkWords } from "./words.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/[/\\]$/, "");

/**
 * A part that is a program: what it says is the problem if it fails.
 *
 * @param {string} script below the root
 * @param {readonly string[]} args
 */
async function program(script, ...args) {
  const { code, output } = await run(process.execPath, [`${root}/${script}`, ...args], {
    cwd: root,
  });
  return { problems: code === 0 ? [] : [output] };
}

const ok = await runParts(
  [
    { name: "build", check: () => program("node_modules/typescript/bin/tsc", "-b") },
    { name: "bundle", check: () => program("scripts/release/bundle-cli.mjs") },
    {
      name: "types",
      check: () => program("node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json"),
    },
    { name: "lint", check: () => program("node_modules/oxlint/bin/oxlint", "--format=unix") },
    { name: "format", check: () => program("node_modules/oxfmt/bin/oxfmt", "--check") },
    { name: "layers", check: () => checkLayers(root) },
    { name: "folders", check: () => checkFolders(root) },
    { name: "manifests", check: () => checkManifests(root) },
    { name: "publishable", check: () => checkPublishable(root) },
    { name: "reference", check: () => checkReference(root) },
    { name: "llms", check: () => checkLlms(root) },
    { name: "loop", check: () => checkLoopStory(root) },
    { name: "defects", check: () => checkDefects(root) },
    { name: "sizes", check: () => checkSizes(root) },
    { name: "words", check: () => checkWords(root) },
  ],
  (line) => console.log(line),
);
process.exitCode = ok ? 0 : 1;
