// The packages as a user gets them, in an empty project: `npm run test:packed`.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mustRun, run } from "./command.mjs";
import { pack } from "./pack.mjs";
import { runParts } from "./parts.mjs";
import { inTemporaryFolder } from "./temporary.mjs";
import { packagesOf } from "./workspace.mjs";

/** Ours and all that they bring along. */
const MAX_INSTALLED = 8;

const root = fileURLToPath(new URL("..", import.meta.url));
const consumer = fileURLToPath(new URL("consumer/", import.meta.url));

/** @param {string} folder */
async function install(folder) {
  writeJson(join(folder, "package.json"), { name: "consumer", private: true, type: "module" });
  const ours = packagesOf(root).filter(({ room }) => room === "ai" || room === "agent");
  const tarballs = [];
  for (const one of ours) tarballs.push((await pack(one, folder)).tarball);
  await mustRun("npm", ["install", "--no-audit", "--no-fund", ...tarballs], { cwd: folder });
  /** @type {{ packages: Record<string, { version: string }> }} */
  const lock = JSON.parse(readFileSync(join(folder, "node_modules/.package-lock.json"), "utf8"));
  const installed = Object.entries(lock.packages).map(
    ([path, { version }]) => `${path.replace(/^.*node_modules\//, "")} ${version}`,
  );
  const figure = `${installed.length} of at most ${MAX_INSTALLED} packages: ${installed.join(", ")}`;
  return installed.length > MAX_INSTALLED
    ? { problems: [`too many: ${figure}`] }
    : { problems: [], figures: [figure] };
}

/** @param {string} folder */
async function walk(folder) {
  copyFileSync(join(consumer, "tour.mjs"), join(folder, "tour.mjs"));
  writeFileSync(
    join(folder, "main.mjs"),
    'import { tour } from "./tour.mjs";\nconsole.log((await tour()).join(", "));\n',
  );
  const { code, output } = await run(process.execPath, ["main.mjs"], { cwd: folder });
  const said = `on Node ${process.version}: ${output}`;
  return code === 0 ? { problems: [], figures: [said] } : { problems: [said] };
}

/**
 * @param {string} folder
 * @param {"nodenext" | "bundler"} moduleResolution
 */
async function compile(folder, moduleResolution) {
  copyFileSync(join(consumer, "types.ts"), join(folder, "types.ts"));
  writeJson(join(folder, "tsconfig.json"), {
    compilerOptions: {
      target: "es2023",
      lib: ["es2023", "dom"],
      types: [],
      module: moduleResolution === "bundler" ? "esnext" : "nodenext",
      moduleResolution,
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      noEmit: true,
    },
    files: ["types.ts"],
  });
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { code, output } = await run(process.execPath, [tsc, "-p", "."], { cwd: folder });
  return { problems: code === 0 ? [] : [output] };
}

/**
 * @param {string} file
 * @param {unknown} value
 */
function writeJson(file, value) {
  writeFileSync(file, JSON.stringify(value, null, 2));
}

const ok = await inTemporaryFolder((folder) =>
  runParts(
    [
      { name: "install", check: () => install(folder) },
      { name: "run", check: () => walk(folder) },
      { name: "nodenext", check: () => compile(folder, "nodenext") },
      { name: "bundler", check: () => compile(folder, "bundler") },
    ],
    (line) => console.log(line),
  ),
);
process.exitCode = ok ? 0 : 1;
