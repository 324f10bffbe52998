// The packages as a user gets them, in an empty project: `npm run test:packed`.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mustRun, run } from "../shared/command.mjs";
import { pack } from "./pack.mjs";
import { runParts } from "../shared/parts.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { listPackages } from "../shared/workspace.mjs";

/** Ours and all that they bring along. */
const MAX_INSTALLED = 8;

const root = fileURLToPath(new URL("../..", import.meta.url));
const consumer = fileURLToPath(new URL("consumer/", import.meta.url));

/** @param {string} folder */
async function install(folder) {
  writeJson(join(folder, "package.json"), { name: "consumer", private: true, type: "module" });
  const ours = listPackages(root).filter(({ room }) => room === "ai" || room === "agent");
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
  const figure = `on Node ${process.version}: ${output}`;
  return code === 0 ? { problems: [], figures: [figure] } : { problems: [figure] };
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
 * The program alone, in a folder of its own: it brings all that it needs along. Key and
 * address come from the environment; the service is on loopback.
 *
 * @param {string} folder
 */
async function program(folder) {
  writeJson(join(folder, "package.json"), { name: "user", private: true });
  const one = listPackages(root).find(({ room }) => room === "cli");
  if (one === undefined) return { problems: ["there is no packages/cli"] };
  const { tarball } = await pack(one, folder);
  await mustRun("npm", ["install", "--no-audit", "--no-fund", tarball], { cwd: folder });
  const { scriptedService } = await import("../../packages/cli/dist/testing/scripted-service.js");
  const service = await scriptedService(() => ({ say: "Good day." }));
  const env = {
    PATH: process.env["PATH"],
    HOME: folder,
    CI: "true",
    ANTHROPIC_API_KEY: "sk-ant-for-this-check-alone",
    ANTHROPIC_BASE_URL: service.url,
  };
  /** @type {string[]} */
  const problems = [];
  /** @param {string[]} args @param {string} expected */
  const expect = async (args, expected) => {
    const { code, output } = await run("node_modules/.bin/gyre", args, { cwd: folder, env });
    if (code !== 0 || !output.includes(expected))
      problems.push(`gyre ${args.join(" ")}: ${output}`);
  };
  await expect(["--version"], one.manifest.version ?? "?");
  await expect(["-p", "Say good day."], "Good day.");
  await expect(["sessions"], "Say good day.");
  await expect(["demo", "--fast"], "the tests failed before, and pass now.");
  await service.close();
  const licenses = readFileSync(join(folder, "node_modules/gyre/bundle/THIRD-PARTY-LICENSES.txt"));
  return {
    problems,
    figures: [`gyre runs from its tarball; ${licenses.length} bytes of licenses`],
  };
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
      { name: "program", check: () => inTemporaryFolder(program) },
      { name: "install", check: () => install(folder) },
      { name: "run", check: () => walk(folder) },
      { name: "nodenext", check: () => compile(folder, "nodenext") },
      { name: "bundler", check: () => compile(folder, "bundler") },
    ],
    (line) => console.log(line),
  ),
);
process.exitCode = ok ? 0 : 1;
