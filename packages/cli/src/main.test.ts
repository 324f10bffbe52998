import { spawn } from "node:child_process";
import { copyFile, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown, type OutputChunk } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

let home: string;
let chunks: OutputChunk[];

// A real program, made from the sources as they are now.
beforeAll(async () => {
  home = await mkdtemp(join(await realpath(tmpdir()), "gyre-main-"));
  const bundle = await rolldown({
    input: at("main.ts"),
    platform: "node",
    resolve: {
      alias: {
        "@gyre/ai": at("../../ai/src/index.ts"),
        "@gyre/agent": at("../../agent/src/index.ts"),
        "@gyre/tools": at("../../tools/src/index.ts"),
      },
    },
  });
  const { output } = await bundle.write({ dir: join(home, "dist"), entryFileNames: "[name].mjs" });
  chunks = output.filter((part) => part.type === "chunk");
  await bundle.close();
  await copyFile(at("../package.json"), join(home, "package.json"));
});

afterAll(() => rm(home, { recursive: true, force: true }));

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
  leftBehind: string[];
}

/** `watch` sees stdout so far; `temp` is a folder for this run alone. */
async function gyre(
  args: string[],
  watch: (stdout: string, child: ReturnType<typeof spawn>) => void = () => {},
): Promise<Ended> {
  const temp = await mkdtemp(join(home, "temp-"));
  const child = spawn(process.execPath, [join(home, "dist/main.mjs"), ...args], {
    env: { ...process.env, TMPDIR: temp, TEMP: temp, NODE_OPTIONS: "", CI: "" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    watch(stdout, child);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const code = await new Promise<number | null>((settle) => child.once("close", settle));
  return { code, stdout, stderr, leftBehind: await readdir(temp) };
}

describe("gyre", () => {
  it.each([[[]], [["--help"]], [["-h"]], [["demo", "--help"]]])(
    "shows help for %j",
    async (args) => {
      const { code, stdout, stderr } = await gyre(args);
      expect(stdout).toMatch(/^Usage: gyre <command>[^]*\bdemo\b[^]*--keep/);
      expect([code, stderr]).toEqual([0, ""]);
    },
  );

  it("tells its version, and loads neither agent nor models for that", async () => {
    expect(await gyre(["--version"])).toMatchObject({ code: 0, stdout: "0.1.0\n", stderr: "" });
    const main = chunks.find(({ isEntry }) => isEntry);
    const loaded = new Set<string>();
    const visit = (chunk: OutputChunk | undefined): void => {
      if (!chunk || loaded.has(chunk.fileName)) return;
      loaded.add(chunk.fileName);
      for (const name of chunk.imports) visit(chunks.find(({ fileName }) => fileName === name));
    };
    visit(main);
    const modules = chunks
      .filter(({ fileName }) => loaded.has(fileName))
      .flatMap(({ moduleIds }) => moduleIds)
      .filter((id) => !id.includes("rolldown"));
    expect(modules).toEqual([at("main.ts")]);
  });

  it.each([
    [["dmeo"], 'Unknown command "dmeo". Did you mean "demo"?'],
    [["xyz"], 'Unknown command "xyz". There is: demo.'],
    [["demo", "--kep"], 'Unknown option "--kep". Did you mean "--keep"?'],
    [["demo", "--keep=3"], "does not take an argument"],
    [["demo", "again"], '"demo" takes no argument "again".'],
  ])("refuses %j", async (args, why) => {
    const { code, stdout, stderr } = await gyre(args);
    expect(stderr).toContain(`gyre: `);
    expect(stderr).toContain(why);
    expect(stderr).toContain("See gyre --help.");
    expect([code, stdout]).toEqual([2, ""]);
  });
});

describe("gyre demo", () => {
  it("runs to its end, in plain text on a pipe", async () => {
    const { code, leftBehind, stderr, stdout } = await gyre(["demo"]);
    expect(stdout).toContain("✔ Mended");
    expect(stdout).not.toContain("\x1b");
    expect([code, stderr, leftBehind]).toEqual([0, "", []]);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("on %s aborts, cleans up and ends with %i", async (signal, expected) => {
    let sent = false;
    const { code, leftBehind, stdout } = await gyre(["demo"], (shown, child) => {
      if (sent || !shown.includes("● read")) return;
      sent = true;
      child.kill(signal);
    });
    expect(stdout).toContain("Aborted.");
    expect([code, leftBehind]).toEqual([expected, []]);
  });

  it("ends quietly when nobody reads on", async () => {
    const ended = await gyre(["demo"], (_shown, child) => child.stdout?.destroy());
    expect(ended).toMatchObject({ code: 0, stderr: "", leftBehind: [] });
  });
});
