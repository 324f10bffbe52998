import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { buildEnvironment, buildProgram, type Program } from "../../testing/program.ts";
import {
  type Script,
  scriptedService,
  type ScriptedService,
} from "../../testing/scripted-service.ts";

// The built program where the home folder is mounted read-only: modes do not stop root.

const DEADLINE_MS = 60_000;
let program: Program;
let service: ScriptedService;
beforeAll(async () => {
  program = await buildProgram();
});
afterAll(() => program.remove());
afterEach(() => service.close());

interface Ended {
  code: number | undefined;
  stdout: string;
  stderr: string;
  cwd: string;
  /** What is in the folder for temporary files at the end. */
  left: string[];
}

async function run(
  script: Script,
  args: readonly string[],
  stateIn: (temporary: string) => string | undefined = () => undefined,
): Promise<Ended> {
  service = await scriptedService(script);
  const [home, outside] = [await program.makeHome(), await program.makeHome()];
  const [cwd, temporary] = [join(outside, "work"), join(outside, "tmp")];
  for (const folder of [cwd, temporary]) mkdirSync(folder);
  const state = stateIn(temporary);
  const env = {
    ...buildEnvironment(home, service),
    TMPDIR: temporary,
    ...(state !== undefined && { XDG_STATE_HOME: state }),
  };
  const binds = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
  const command = [...binds, "--bind", outside, outside, "--chdir", cwd, process.execPath];
  return new Promise((settle) => {
    const all = [...command, program.entry, ...args];
    const child = execFile("bwrap", all, { env, timeout: DEADLINE_MS }, (error, stdout, stderr) => {
      const code = error ? Number(error.code) : 0;
      settle({ code, stdout, stderr, cwd, left: readdirSync(temporary) });
    });
    child.stdin?.end();
  });
}

describe("a home folder that cannot be written to", { tags: "bubblewrap" }, () => {
  it("does not keep -p --no-session from its work, and nothing is left behind", async () => {
    const call = { call: "write", arguments: { path: "a.txt", content: "here" } };
    const script = [{ say: [call] }, { say: "Hello." }];
    const args = ["-p", "--no-session", "--mode", "auto-edit", "Hi."];
    const ended = await run(script, args);
    expect(ended).toMatchObject({ code: 0, stdout: "Hello.\n", left: [] });
    expect(readFileSync(join(ended.cwd, "a.txt"), "utf8")).toBe("here");
  });

  it("with sessions on is an error that says what to set, before anything is asked", async () => {
    const ended = await run([{ say: "Hello." }], ["-p", "Hi."]);
    expect([ended.code, ended.stdout, service.requests.length]).toEqual([1, "", 0]);
    expect(ended.stderr).toMatch(
      /^gyre: .*\.jsonl cannot be made: .*\. Set XDG_STATE_HOME .*--no-session.*\n$/,
    );
  });

  it("with sessions on works once they are elsewhere, as the error says", async () => {
    const ended = await run([{ say: "Hello." }], ["-p", "Hi."], (folder) => join(folder, "state"));
    expect(ended).toMatchObject({ code: 0, stdout: "Hello.\n", left: ["state"] });
  });
});
