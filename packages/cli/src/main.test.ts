import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildProgram, type Chunk, type Program } from "./testing/program.ts";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

let program: Program;
const gyre: Program["gyre"] = (args, options) => program.gyre(args, options);

beforeAll(async () => {
  program = await buildProgram();
});

afterAll(() => program.remove());

describe("gyre", () => {
  it.each([[["--help"]], [["-h"]], [["-p", "--help"]]])("shows help for %j", async (args) => {
    const { code, stdout, stderr } = await gyre(args);
    expect(stdout).toMatch(/^Usage: gyre \["PROMPT"\][^]*-p "PROMPT"[^]*\bdemo\b[^]*--max-cost/);
    expect([code, stderr]).toEqual([0, ""]);
  });

  it("shows the help of a command", async () => {
    const { code, stdout, stderr } = await gyre(["demo", "--help"]);
    expect(stdout).toMatch(/^Usage: gyre demo[^]*--keep/);
    expect(stdout).not.toContain("--max-cost");
    expect([code, stderr]).toEqual([0, ""]);
    expect(await gyre(["help", "demo"])).toMatchObject({ code: 0, stdout, stderr: "" });
  });

  it("shows its own help for the command help", async () => {
    const { stdout } = await gyre(["--help"]);
    expect(await gyre(["help"])).toMatchObject({ code: 0, stdout, stderr: "" });
  });

  it("prints its version, and loads neither agent nor models for that", async () => {
    expect(await gyre(["--version"])).toMatchObject({ code: 0, stdout: "0.1.0\n", stderr: "" });
    const { chunks } = program;
    const main = chunks.find(({ fileName }) => fileName === "gyre.js");
    const loaded = new Set<string>();
    const visit = (chunk: Chunk | undefined): void => {
      if (!chunk || loaded.has(chunk.fileName)) return;
      loaded.add(chunk.fileName);
      for (const name of chunk.imports) visit(chunks.find(({ fileName }) => fileName === name));
    };
    visit(main);
    const modules = chunks
      .filter(({ fileName }) => loaded.has(fileName))
      .flatMap(({ moduleIds }) => moduleIds)
      .filter((id) => !id.includes("rolldown"));
    expect(modules.toSorted()).toEqual(
      [
        "core/exit-codes.ts",
        "core/options.ts",
        "main.ts",
        "../../coding/src/core/errors.ts",
        "../../coding/src/core/version.ts",
      ].map(at),
    );
  });

  it.each([
    [["dmeo"], 'Unknown command "dmeo". Did you mean "demo"?'],
    [["xyz"], 'Unknown command "xyz". The commands are rpc, acp,'],
    [[], "There is no prompt."],
    [["help", "dmeo"], '"help" takes the name of a command, not "dmeo". Did you mean "demo"?'],
    [["help", "demo", "it"], '"help" takes the name of a command, not "demo it".'],
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
    expect(stdout).toContain("✔ Fixed");
    expect(stdout).not.toContain("\x1b");
    expect([code, stderr, leftBehind]).toEqual([0, "", []]);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("on %s aborts, cleans up and ends with %i", async (signal, expected) => {
    let sent = false;
    const { code, leftBehind, stdout } = await gyre(["demo"], {
      onStdout(shown, run) {
        if (sent || !shown.includes("● read")) return;
        sent = true;
        run.kill(signal);
      },
    });
    expect(stdout).toContain("Aborted.");
    expect([code, leftBehind]).toEqual([expected, []]);
  });

  it("ends quietly when the reader is gone", async () => {
    const ended = await gyre(["demo"], { onStdout: (_shown, run) => run.stopReading() });
    expect(ended).toMatchObject({ code: 0, stderr: "", leftBehind: [] });
  });
});
