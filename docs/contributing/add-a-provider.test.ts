import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { run } from "../../scripts/shared/command.mjs";
import { isLong } from "../../tests/support/cases.ts";
import { type Fence, readFences, root } from "../snippets.ts";

// Follows the page to the letter, in a copy of the package.

const FORMATS_FILE = "packages/ai/src/providers/index.ts";
const PRESETS_FILE = "packages/ai/src/providers/services/presets.ts";

let copy = "";
let fences: Fence[] = [];
beforeAll(async () => {
  const page = await readFile(join(root, "docs/contributing/add-a-provider.md"), "utf8");
  fences = readFences(page).filter(({ language }) => language === "typescript");
  await mkdir(join(root, ".tmp"), { recursive: true });
  copy = await mkdtemp(join(root, ".tmp", "recipe-"));
  const ai = "packages/ai";
  await cp(join(root, ai, "src"), join(copy, ai, "src"), { recursive: true });
  await cp(join(root, "tests/support"), join(copy, "tests/support"), { recursive: true });
  for (const file of [`${ai}/package.json`, `${ai}/tsconfig.json`, "tsconfig.base.json"]) {
    await cp(join(root, file), join(copy, file));
  }
  await writeFile(
    join(copy, "vitest.config.ts"),
    'export default { test: { isolate: false, tags: [{ name: "long" }] } };\n',
  );
  await writeFormat();
});
afterAll(() => rm(copy, { recursive: true, force: true }));

function findFence(file: string): string {
  const fence = fences.find(({ note }) => note === file);
  if (!fence) throw new Error(`The page has no block for ${file}.`);
  return fence.body;
}

async function insert(file: string, text: string, before: string): Promise<void> {
  const source = await readFile(join(copy, file), "utf8");
  const at = source.indexOf(before);
  expect(at, `${before} in ${file}`).toBeGreaterThan(0);
  await writeFile(join(copy, file), source.slice(0, at) + text + source.slice(at));
}

/** What a reader of the page writes. */
async function writeFormat(): Promise<void> {
  for (const { body, note } of findFormatFiles()) {
    await mkdir(dirname(join(copy, note)), { recursive: true });
    await writeFile(join(copy, note), body);
  }
  await insert(FORMATS_FILE, findFence(FORMATS_FILE), '  "google-generative-ai": async () =>');
  await insert(PRESETS_FILE, findFence(PRESETS_FILE), '  defineService("ollama",');
}

const findFormatFiles = (): Fence[] =>
  fences.filter(({ note }) => note.startsWith("packages/ai/src/providers/echo/"));

it("the page's format takes four files and one line", () => {
  expect(
    findFormatFiles()
      .map(({ note }) => note.split("/").at(-1) ?? "")
      .sort(),
  ).toEqual(["index.ts", "reader.ts", "request-check.ts", "request.ts"]);
  expect(findFence(FORMATS_FILE).trimEnd().split("\n")).toHaveLength(1);
});

it.runIf(isLong)(
  "the page's format compiles, and passes the tests of all formats",
  { tags: ["long"] },
  async () => {
    const bin = join(root, "node_modules");
    const compiled = await run(
      process.execPath,
      [join(bin, "typescript/bin/tsc"), "-p", "packages/ai/tsconfig.json"],
      { cwd: copy },
    );
    expect(compiled.output).toBe("");

    const report = join(copy, "report.json");
    const tests = ["index", "formats", "transcripts"].map(
      (name) => `src/providers/${name}.test.ts`,
    );
    const tested = await run(
      process.execPath,
      [
        join(bin, "vitest/vitest.mjs"),
        "run",
        ...["--root", copy, "--reporter", "json", "--outputFile", report],
        ...tests,
        "packages/ai/src/models/catalog.test.ts",
      ],
      { cwd: copy, env: { ...process.env, GYRE_RUNS: "5" } },
    );
    expect(tested.code, tested.output.slice(-4_000)).toBe(0);
    const { testResults } = JSON.parse(await readFile(report, "utf8")) as {
      testResults: { assertionResults: { fullName: string; status: string }[] }[];
    };
    const passed = testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ fullName, status }) => fullName.includes("echo") && status === "passed");
    expect(passed.length).toBeGreaterThan(10);
  },
);

it("the page's service is found by its id, with its key, address and quirks", async () => {
  const presets = await import(join(copy, PRESETS_FILE));
  const { findService } =
    presets as typeof import("../../packages/ai/src/providers/services/presets.ts");
  expect(findService("aviary")).toMatchObject({
    name: "Aviary",
    api: "openai-completions",
    keyEnv: ["AVIARY_API_KEY"],
    quirks: { thinkingOff: true },
  });
});
