// Runs a program of examples/: `npm run example -- hello`. Node 20 does not run TypeScript,
// so that its types are taken out first.
import { existsSync, readdirSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("../..", import.meta.url));
const examples = join(root, "examples");
const [name = ""] = process.argv.slice(2);
const isName = /^[\w-]+$/.test(name);
const own = join(examples, name);
/** One with files of its own is a folder. */
const hasFolder = isName && existsSync(join(own, `${name}.ts`));
const source = hasFolder ? join(own, `${name}.ts`) : `${own}.ts`;

if (isName && existsSync(source)) await runExample();
else {
  const names = readdirSync(examples).flatMap((file) => {
    if (file.endsWith(".ts")) return [file.slice(0, -".ts".length)];
    return existsSync(join(examples, file, `${file}.ts`)) ? [file] : [];
  });
  const what = name === "" ? "Which example?" : `No example "${name}".`;
  console.error(`${what} There are: ${names.join(", ")}.`);
  process.exitCode = 2;
}

async function runExample() {
  // Inside the repository, so that the packages are found from there.
  await mkdir(join(root, ".tmp"), { recursive: true });
  const folder = await mkdtemp(join(root, ".tmp", "example-"));
  try {
    if (hasFolder) await cp(own, folder, { recursive: true });
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
