import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FormatProgram, MAX_FORMATTED_BYTES, openFormatters } from "./formatters.ts";

const { signal } = new AbortController();
let folder = "";
let bin = "";
let cwd = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-formatters-"));
  bin = join(folder, "bin");
  cwd = join(folder, "project");
  await mkdir(bin);
  await mkdir(cwd);
});

afterEach(() => rm(folder, { recursive: true }));

async function program(path: string, script = ""): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
}

/** A stand-in for programs that notes what it was asked. */
function noted(answer = "formatted\n"): {
  calls: FormatProgram[];
  run: (call: FormatProgram) => Promise<string>;
} {
  const calls: FormatProgram[] = [];
  return {
    calls,
    run: async (call) => {
      calls.push(call);
      return answer;
    },
  };
}

describe("formatters", () => {
  it("gives the code to the program of its language", async () => {
    await program(join(bin, "gofmt"));
    const { calls, run } = noted();
    const format = openFormatters({ env: { PATH: bin }, cwd, run });
    expect(await format("go", "package a", signal)).toBe("formatted\n");
    expect(calls).toMatchObject([{ path: join(bin, "gofmt"), args: [], input: "package a" }]);
  });

  it("keeps keys from the program", async () => {
    await program(join(bin, "gofmt"));
    const { calls, run } = noted();
    const env = { PATH: bin, SOME_API_KEY: "secret" };
    await openFormatters({ env, cwd, run })("go", "a", signal);
    expect(calls[0]?.env["PATH"]).toBe(bin);
    expect(JSON.stringify(calls[0]?.env)).not.toContain("secret");
  });

  it("takes the first of several programs that is there", async () => {
    await program(join(bin, "ruff"));
    const { calls, run } = noted();
    await openFormatters({ env: { PATH: bin }, cwd, run })("Python", "a", signal);
    expect(calls.map(({ path, args }) => [path, ...args])).toEqual([
      [join(bin, "ruff"), "format", "-"],
    ]);
  });

  it("runs nothing that is in the folder worked in", async () => {
    await mkdir(join(cwd, "node_modules"));
    await program(join(cwd, "node_modules", "gofmt"));
    await symlink(join(cwd, "node_modules", "gofmt"), join(bin, "gofmt"));
    const { calls, run } = noted();
    const path = [join(cwd, "node_modules"), "node_modules", "", ".", bin].join(delimiter);
    const format = openFormatters({ env: { PATH: path }, cwd, run });
    expect(await format("go", "a", signal)).toBeUndefined();
    expect(calls).toEqual([]);
  });

  it("looks for a program once", async () => {
    const { calls, run } = noted();
    const format = openFormatters({ env: { PATH: bin }, cwd, run });
    await format("go", "a", signal);
    await program(join(bin, "gofmt"));
    await format("go", "a", signal);
    expect(calls).toEqual([]);
  });

  it("leaves code alone that the program cannot read, or that is too long", async () => {
    await program(join(bin, "gofmt"));
    const fails = openFormatters({
      env: { PATH: bin },
      cwd,
      run: () => Promise.reject(new Error("syntax")),
    });
    expect(await fails("go", "a", signal)).toBeUndefined();
    const { calls, run } = noted();
    const format = openFormatters({ env: { PATH: bin }, cwd, run });
    await format("go", "a".repeat(MAX_FORMATTED_BYTES + 1), signal);
    expect(calls).toEqual([]);
  });

  it("formats JSON without a program", async () => {
    const format = openFormatters({ env: {}, cwd });
    expect(await format("json", '{"a":[1]}', signal)).toBe('{\n  "a": [\n    1\n  ]\n}\n');
    expect(await format("json", '{"a":', signal)).toBeUndefined();
  });

  it("does not know languages by the names of what all objects have", async () => {
    expect(await openFormatters({ env: {}, cwd })("constructor", "a", signal)).toBeUndefined();
  });

  it("reads what a real program writes", async () => {
    await program(join(bin, "gofmt"), "pwd; exec cat");
    await program(join(bin, "shfmt"), "echo half; exit 1");
    const path = [bin, "/usr/bin", "/bin"].join(delimiter);
    const format = openFormatters({ env: { PATH: path }, cwd });
    expect(await format("go", "package a\n", signal)).toBe("/\npackage a\n");
    expect(await format("sh", "echo", signal)).toBeUndefined();
  });

  it("ends a program when its result is no longer needed", async () => {
    await program(join(bin, "gofmt"), "exec /bin/sleep 100");
    const controller = new AbortController();
    const formatted = openFormatters({ env: { PATH: bin }, cwd })("go", "a", controller.signal);
    controller.abort();
    expect(await formatted).toBeUndefined();
  });
});
