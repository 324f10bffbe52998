import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { removeFolder } from "../process/remove-folder.ts";
import { hashFolder } from "../testing/layer-world.ts";
import { openToolset } from "../toolset.ts";

/* A process that is killed while it runs, keeps or undoes a layer. Its code is bundled, so that any Node can run it. */

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const hosts: ChildProcess[] = [];
let built: string;
let folder: string;
let root: string;

beforeAll(async () => {
  built = await mkdtemp(join(tmpdir(), "gyre-killed-"));
  const entry = join(built, "entry.ts");
  await writeFile(
    entry,
    `export * from ${JSON.stringify(source("layers.ts"))};
     export * from ${JSON.stringify(source("../testing/layer-world.ts"))};`,
  );
  const bundle = await rolldown({
    input: entry,
    platform: "node",
    resolve: {
      alias: {
        "@gyre/ai": source("../../../ai/src/index.ts"),
        "@gyre/agent": source("../../../agent/src/index.ts"),
      },
    },
  });
  await bundle.write({ file: join(built, "layers.mjs"), format: "esm", codeSplitting: false });
  await bundle.close();
});
afterAll(() => rm(built, { recursive: true, force: true }));

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-layer-")));
  root = join(folder, "ws");
  mkdirSync(join(root, "d"), { recursive: true });
  for (const name of ["a", "b", "c", "d/e"]) writeFileSync(join(root, name), `${name}\n`);
});
afterEach(async () => {
  for (const host of hosts.splice(0)) host.kill("SIGKILL");
  await removeFolder(folder);
});

/** `killAt`: the host kills itself before this call of a function that changes files, as a crash would. */
function start(script: string): ChildProcess {
  const prelude = `
    import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    const { listKept, openLayerWorldIn, undoKept } = await import(${JSON.stringify(join(built, "layers.mjs"))});
    const world = await openLayerWorldIn(${JSON.stringify(folder)});
    const command = "rm -r d; rm c; echo more >> a; echo other > b; mkdir n; for i in 1 2 3; do echo $i > n/$i; done; chmod 700 b; ln -s a l";
    function killAt(number) {
      let count = 0;
      for (const name of ["renameSync", "linkSync", "unlinkSync", "mkdirSync", "rmdirSync", "chmodSync", "symlinkSync", "copyFileSync"]) {
        const real = fs[name];
        fs[name] = (...args) => {
          if (++count === number) process.kill(process.pid, "SIGKILL");
          return real(...args);
        };
      }
      syncBuiltinESMExports();
    }
  `;
  const host = spawn(process.execPath, ["--input-type=module", "-e", prelude + script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  hosts.push(host);
  return host;
}

/** The next agent in the workspace; what it warns of. */
async function startNext(): Promise<string[]> {
  const warnings: string[] = [];
  const toolset = await openToolset({
    root,
    stateFolder: join(folder, "state"),
    sandbox: "none",
    tools: ["read"],
    warn: (text) => warnings.push(text),
  });
  await toolset.close();
  return warnings;
}

const UNDONE = "gyre was ended while it kept what a command did in";

describe("a process that is killed", { tags: ["bubblewrap"] }, () => {
  it.each([2, 5, 9, 14, 20])(
    "while it keeps a layer, at change %i, has kept nothing when the next one begins",
    async (number) => {
      const before = hashFolder(root);
      const host = start(`
        const run = await world.run(command);
        killAt(${number});
        await run.layer.keep(run.effects, command);
      `);
      expect(await once(host, "exit")).toEqual([null, "SIGKILL"]);
      expect(await startNext()).toEqual([expect.stringContaining(UNDONE)]);
      expect(hashFolder(root)).toBe(before);
      expect(await startNext()).toEqual([]);
    },
  );

  it.each([2, 6, 9])(
    "while it undoes a layer, at change %i, has undone it when the next one begins",
    async (number) => {
      const before = hashFolder(root);
      const host = start(`
        const run = await world.run(command);
        await run.layer.keep(run.effects, command);
        const [kept] = await listKept(world.home);
        killAt(${number});
        await undoKept(world.home, kept);
      `);
      expect(await once(host, "exit")).toEqual([null, "SIGKILL"]);
      expect(hashFolder(root)).not.toBe(before);
      expect(await startNext()).toEqual([expect.stringContaining(UNDONE)]);
      expect(hashFolder(root)).toBe(before);
    },
  );

  it("leaves what others changed since, and says where the rest is", async () => {
    const host = start(`
      const run = await world.run(command);
      killAt(14);
      await run.layer.keep(run.effects, command);
    `);
    await once(host, "exit");
    expect(readFileSync(join(root, "a"), "utf8")).toBe("a\nmore\n");
    writeFileSync(join(root, "a"), "mine\n");
    expect(await startNext()).toEqual([
      expect.stringMatching(/Not all was undone; .*: "a" was changed by another program\.$/),
    ]);
    expect(readFileSync(join(root, "a"), "utf8")).toBe("mine\n");
    expect(readFileSync(join(root, "c"), "utf8")).toBe("c\n");
  });

  it("while the command runs leaves neither the command nor a change", async () => {
    const before = hashFolder(root);
    const mark = `sleep 98765.${process.pid}`;
    const host = start(`await world.run(${JSON.stringify(`: > begun; ${mark}`)});`);
    const layers = join(folder, "state/layers");
    const hasBegun = (): boolean =>
      existsSync(layers) &&
      readdirSync(layers).some((home) =>
        readdirSync(join(layers, home)).some((layer) =>
          existsSync(join(layers, home, layer, "up/begun")),
        ),
      );
    await expect.poll(hasBegun).toBe(true);
    await expect.poll(() => isRunning(mark)).toBe(true);
    host.kill("SIGKILL");
    await once(host, "exit");
    await expect.poll(() => isRunning(mark)).toBe(false);
    expect(hashFolder(root)).toBe(before);
  });
});

function isRunning(command: string): boolean {
  return readdirSync("/proc").some((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim() === command;
    } catch {
      // Not a process, or one that has ended.
      return false;
    }
  });
}
