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
const MAX_INSTALLED = 3;

/** Newer than those that this repository is compiled with. */
const NEWEST_NODE_TYPES = "26.6.6";

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

/** Compilers that users have, each under a name of its own beside the others. */
const COMPILERS = { "typescript-5": "5.9.3", "typescript-6": "6.0.3", "typescript-7": "7.0.2" };
/** How people write the parameters of a tool, with the library for it. */
const SCHEMAS = {
  json: {
    from: "",
    used: "",
    parameters: `{ type: "object", properties: { city: { type: "string" }, unit: { enum: ["c", "f"] } }, required: ["city"] }`,
  },
  zod: {
    from: `import * as z from "zod";`,
    used: ", z",
    parameters: `z.object({ city: z.string(), unit: z.enum(["c", "f"]).optional() })`,
  },
  typebox: {
    from: `import { Type } from "typebox";`,
    used: ", Type",
    parameters: `Type.Object({ city: Type.String(), unit: Type.Optional(Type.Enum(["c", "f"])) })`,
  },
};
/** For one tool and an agent. */
const MAX_INSTANTIATIONS = 20_000;
/** Of CPU time, which other programs on the machine change little; beside the same imports without a tool. */
const MAX_SECONDS = 0.5;
/** What is above the limit is measured again: the least counts. */
const MAX_MEASUREMENTS = 3;

/** Has a compiler that runs in Node print the CPU time that it took. */
const PRINT_CPU =
  'data:text/javascript,process.on("exit",()=>{const{user,system}=process.cpuUsage();console.log("CPU time: "+(user+system)/1e6+"s")})';

/**
 * What a program with one tool costs its compiler.
 *
 * @param {string} folder
 */
async function measureTypes(folder) {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const compilers = Object.entries(COMPILERS).map(([name, at]) => `${name}@npm:typescript@${at}`);
  const libraries = ["zod", "typebox"].map((name) => `${name}@${devDependencies[name]}`);
  const args = ["install", "--no-audit", "--no-fund", ...compilers, ...libraries];
  await mustRun("npm", args, { cwd: folder });
  writeJson(join(folder, "tsconfig.json"), {
    compilerOptions: {
      target: "es2022",
      lib: ["es2023", "dom"],
      types: [],
      module: "nodenext",
      strict: true,
      skipLibCheck: true,
      noEmit: true,
    },
    files: ["cost.ts"],
  });
  /** @param {string} compiler @param {string} program */
  const measure = async (compiler, program) => {
    writeFileSync(join(folder, "cost.ts"), program);
    const tsc = join(folder, "node_modules", compiler, "bin/tsc");
    const given = ["--import", PRINT_CPU, tsc, "-p", ".", "--extendedDiagnostics"];
    const { code, output } = await run(process.execPath, given, { cwd: folder });
    if (code !== 0) throw new Error(`${compiler}: ${output}`);
    // A compiler that is no JavaScript runs in a process of its own: what it says of its check.
    const isNative = compiler === "typescript-7";
    const seconds = isNative ? /Check time:\s+([\d.]+)s/ : /CPU time: ([\d.]+)s/;
    return {
      count: Number(/Instantiations:\s+(\d+)/.exec(output)?.[1]),
      seconds: Number(seconds.exec(output)?.[1]),
    };
  };
  const problems = [];
  const figures = [];
  for (const [name, { from, used, parameters }] of Object.entries(SCHEMAS)) {
    const imports = `${from}
import { Agent, defineTool } from "@gyre/agent";
`;
    const without = `${imports}export const imported: unknown = [Agent, defineTool${used}];
`;
    const withTool = `${imports}const weather = defineTool({
  name: "weather",
  description: "The weather of a city.",
  parameters: ${parameters},
  execute: ({ city, unit }) => {
    const asked: { city: string; unit: "c" | "f" | undefined } = { city, unit };
    return asked.city;
  },
});
export const agent: Agent = new Agent({ tools: [weather] });
`;
    for (const compiler of Object.keys(COMPILERS)) {
      let [before, after, count] = [Infinity, Infinity, 0];
      for (let left = MAX_MEASUREMENTS; left > 0 && !(after - before <= MAX_SECONDS); left--) {
        before = Math.min(before, (await measure(compiler, without)).seconds);
        const measured = await measure(compiler, withTool);
        after = Math.min(after, measured.seconds);
        count = measured.count;
      }
      const more = after - before;
      const figure = `${name}, ${compiler}: ${count} of at most ${MAX_INSTANTIATIONS} instantiations, ${more.toFixed(2)} of at most ${MAX_SECONDS} s`;
      figures.push(figure);
      if (!(count <= MAX_INSTANTIATIONS && more <= MAX_SECONDS))
        problems.push(`too much: ${figure}`);
    }
  }
  return { problems, figures };
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
 * A program of a package, with what that needs of ours and of others.
 *
 * @param {string} folder
 * @param {readonly string[]} rooms
 * @param {string} name of the program
 */
async function runConsumer(folder, rooms, name) {
  writeJson(join(folder, "package.json"), { name: "consumer", private: true, type: "module" });
  const tarballs = [];
  for (const one of listPackages(root).filter(({ room }) => rooms.includes(room))) {
    tarballs.push((await pack(one, folder)).tarball);
  }
  await mustRun("npm", ["install", "--no-audit", "--no-fund", ...tarballs], { cwd: folder });
  copyFileSync(join(consumer, name), join(folder, name));
  const env = { PATH: process.env["PATH"], HOME: folder };
  const { code, output } = await run(process.execPath, [name], { cwd: folder, env });
  return code === 0 ? { problems: [], figures: [output.trim()] } : { problems: [output] };
}

/** The coding agent as a library. @param {string} folder */
async function coding(folder) {
  const rooms = ["ai", "agent", "tools", "mcp", "sessions", "coding"];
  const { problems, figures = [] } = await runConsumer(folder, rooms, "coding.mjs");
  return { problems: [...problems, ...(await checkNodeTypes(folder))], figures };
}

/**
 * Compiles the declarations of packages for Node with the newest types of Node, all of them checked.
 *
 * @param {string} folder where the coding agent is installed
 */
async function checkNodeTypes(folder) {
  const args = ["install", "--no-audit", "--no-fund", `@types/node@${NEWEST_NODE_TYPES}`];
  await mustRun("npm", args, { cwd: folder });
  copyFileSync(join(consumer, "node-types.ts"), join(folder, "node-types.ts"));
  writeJson(join(folder, "tsconfig.json"), {
    compilerOptions: {
      target: "es2023",
      lib: ["es2023", "dom", "dom.iterable"],
      types: ["node"],
      module: "nodenext",
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
    },
    files: ["node-types.ts"],
  });
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { code, output } = await run(process.execPath, [tsc, "-p", "."], { cwd: folder });
  return code === 0 ? [] : [output];
}

/** Durable runs in a file, with the driver that is installed along. @param {string} folder */
const durable = (folder) =>
  runConsumer(folder, ["ai", "agent", "sessions", "durable"], "durable.mjs");

/** The oldest React that `@gyre/react` is for. */
const OLDEST_REACT = "18.3.1";

/** The store of a page without React, and the hooks with the oldest React. @param {string} folder */
async function react(folder) {
  const rooms = ["ai", "agent", "sessions", "protocol", "server", "react"];
  const without = await runConsumer(folder, rooms, "react.mjs");
  const args = ["install", "--no-audit", "--no-fund"];
  const versions = ["react", "react-dom"].map((name) => `${name}@${OLDEST_REACT}`);
  await mustRun("npm", [...args, ...versions], { cwd: folder });
  const { code, output } = await run(process.execPath, ["react.mjs", "--react"], { cwd: folder });
  return {
    problems: [...without.problems, ...(code === 0 ? [] : [output])],
    figures: [...(without.figures ?? []), output.trim()],
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
      { name: "coding", check: () => inTemporaryFolder(coding) },
      { name: "durable", check: () => inTemporaryFolder(durable) },
      { name: "react", check: () => inTemporaryFolder(react) },
      { name: "install", check: () => install(folder) },
      { name: "run", check: () => walk(folder) },
      { name: "nodenext", check: () => compile(folder, "nodenext") },
      { name: "bundler", check: () => compile(folder, "bundler") },
      { name: "type cost", check: () => measureTypes(folder) },
    ],
    (line) => console.log(line),
  ),
);
process.exitCode = ok ? 0 : 1;
