// Runs a program of examples/: `npm run example -- hello`. Node 20 does not run TypeScript,
// so that its types are taken out first.
import { existsSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const examples = join(root, "examples");
const [name = ""] = process.argv.slice(2);
const source = join(examples, `${name}.ts`);

if (/^[\w-]+$/.test(name) && existsSync(source)) await runExample();
else {
  const names = readdirSync(examples)
    .filter((file) => file.endsWith(".ts"))
    .map((file) => file.slice(0, -".ts".length));
  const what = name === "" ? "Which example?" : `No example "${name}".`;
  console.error(`${what} There are: ${names.join(", ")}.`);
  process.exitCode = 2;
}

async function runExample() {
  // Inside the repository, so that the packages are found from there.
  await mkdir(join(root, ".tmp"), { recursive: true });
  const folder = await mkdtemp(join(root, ".tmp", "example-"));
  try {
    const file = join(folder, `${name}.mjs`);
    const bundle = await rolldown({
      input: source,
      platform: "node",
      external: (id) => !id.startsWith(".") && !id.startsWith("/"),
      logLevel: "silent",
    });
    await bundle.write({ file, format: "esm" });
    await bundle.close();
    await import(pathToFileURL(file).href);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
