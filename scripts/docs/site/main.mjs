// The guide as a static site: `npm run docs` writes it to dist/site, `npm run docs -- --serve` serves it.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildSite } from "./build.mjs";
import { serveSite } from "./serve.mjs";

const FOLDER = "dist/site";
const BYTES_PER_MB = 1e6;

const root = fileURLToPath(new URL("../../..", import.meta.url));
const folder = join(root, FOLDER);
const { values } = parseArgs({
  options: {
    check: { type: "boolean" },
    port: { type: "string", default: "0" },
    serve: { type: "boolean" },
  },
});

const { files, problems } = await buildSite(root);
if (problems.length > 0) {
  for (const problem of problems) console.error(problem);
  process.exitCode = 1;
} else if (values.serve) {
  const { address } = await serveSite(files, { port: Number(values.port) });
  console.log(`The guide is at ${address} until you press Ctrl+C.`);
} else {
  const bytes = [...files.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const figures = `${files.size} files, ${(bytes / BYTES_PER_MB).toFixed(1)} MB, no dead link`;
  if (values.check) console.log(figures);
  else {
    rmSync(folder, { recursive: true, force: true });
    for (const [path, text] of files) {
      const file = join(folder, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    console.log(`${FOLDER}: ${figures}`);
  }
}
