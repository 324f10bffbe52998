// Clients of other projects read what `@gyre/server/streams` writes: `ai`, `@ag-ui/client` and `openai`, over random
// runs, must end with the text, the calls and the states of our transcript; a component of Svelte reads a store of `@gyre/react`, and
// Express and Fastify have `createHandler` mounted. `npm run test:ui-clients`; `-- --runs 1000 --seed 7` says
// how many and which, `-- --part speed` measures alone. Needs the registry of npm, and a build.
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { mustRun, run } from "../shared/command.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { installForeign } from "./foreign.mjs";

/** The clients run on this and later ones. */
const OLDEST_NODE = 22;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "1000" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    part: { type: "string", default: "" },
  },
});

/** @param {string} name */
const place = (name) => fileURLToPath(new URL(`ui-clients/${name}`, import.meta.url));

process.exitCode = await inTemporaryFolder((folder) =>
  inTemporaryFolder(async (nodeFolder) => {
    for (const name of ["package.json", "package-lock.json"]) {
      copyFileSync(place(name), join(folder, name));
    }
    const { node } = await installForeign(nodeFolder, OLDEST_NODE, {});
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--engine-strict=false"];
    await mustRun("npm", ["ci", ...options], { cwd: folder });
    const { code, output } = await run(
      node,
      [place("main.mjs"), folder, values.runs, values.seed, values.part],
      { cwd: folder },
    );
    console.log(output.trimEnd());
    return code;
  }),
);
