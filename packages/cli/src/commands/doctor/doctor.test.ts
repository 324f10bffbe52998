import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { noSandbox, SandboxMissingError } from "@gyre/tools";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Check } from "./checks.ts";
import { type DoctorParts, runDoctor } from "./doctor.ts";
import { EXIT } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import { textIo } from "../../testing/command-io.ts";

const KEY = "sk-only-for-this-test-0123456789";
const OWNER_ONLY = 0o600;
const OPEN_TO_ALL = 0o644;
/** Above what Linux and macOS give to a process. */
const NO_SUCH_PID = 0x7ffffffe;

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-doctor-"));
  await mkdir(join(folder, "config/gyre"), { recursive: true });
  await mkdir(join(folder, "work"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

interface Found {
  code: number;
  ok: boolean;
  checks: Check[];
  of: (name: string) => string[];
}

const HEALTHY: DoctorParts = { sandbox: async () => noSandbox };

function ioWith(env: Io["env"] = {}): ReturnType<typeof textIo> {
  return textIo({
    cwd: join(folder, "work"),
    env: {
      PATH: process.env["PATH"],
      LANG: "C.UTF-8",
      XDG_CONFIG_HOME: join(folder, "config"),
      XDG_STATE_HOME: join(folder, "state"),
      ...env,
    },
  });
}

async function doctor(
  env: Io["env"] = {},
  parts: DoctorParts = {},
  values: Values = {},
): Promise<Found> {
  const io = ioWith(env);
  const given = { home: folder, ...HEALTHY, ...parts };
  const code = await runDoctor({ json: true, ...values }, io, given);
  expect(io.out()).not.toContain(KEY);
  const { checks, ok }: { checks: Check[]; ok: boolean } = JSON.parse(io.out());
  const of = (name: string): string[] =>
    checks
      .filter((check) => check.name === name)
      .map(({ message, status }) => `${status}: ${message}`);
  return { code, ok, checks, of };
}

describe("gyre doctor", () => {
  it("lists what a run would load and read, and runs none of it", async () => {
    const work = join(folder, "work");
    const skill = join(work, ".agents/skills/tidy");
    await mkdir(join(work, ".git"));
    await mkdir(skill, { recursive: true });
    await writeFile(join(skill, "SKILL.md"), "---\nname: tidy\ndescription: Tidies up.\n---\n");
    await writeFile(join(work, "AGENTS.md"), "Be brief.\n");
    const touch = `touch ${join(folder, "has-run")}`;
    await writeFile(join(folder, "plugin.mjs"), `throw new Error("not to be loaded");\n`);
    const there = { mcpServers: { theirs: { command: "sh", args: ["-c", touch] } } };
    await writeFile(join(work, ".mcp.json"), JSON.stringify(there));
    const settings = {
      plugins: [join(folder, "plugin.mjs"), join(folder, "gone.mjs")],
      hooks: { Stop: [{ command: touch }], Notification: [] },
      mcp: {
        mine: { command: "sh", args: ["-c", touch, KEY] },
        far: { type: "http", url: `https://me:pass@mcp.test/?key=${KEY}`, disabled: true },
      },
    };
    await writeFile(join(folder, "config/gyre/config.json"), JSON.stringify(settings));
    const { of, ok } = await doctor({ ANTHROPIC_API_KEY: KEY });
    expect(ok).toBe(true);
    expect(of("plugins")).toEqual([
      `ok: plugin: ${join(folder, "plugin.mjs")}, which a run loads`,
      expect.stringMatching(/^warning: The plugin .*gone\.mjs is left out: there is no file/),
    ]);
    expect(of("hooks")).toEqual([
      "ok: 1 for Stop",
      "warning: There are none for Notification: passed over.",
    ]);
    expect(of("mcp")).toEqual([
      "ok: mine: sh, of your settings",
      "ok: far: https://mcp.test, of your settings, disabled",
      expect.stringMatching(
        /^warning: .*\.mcp\.json is not used: it is not trusted\..*gyre trust$/,
      ),
    ]);
    expect(of("skills")).toEqual(["ok: tidy"]);
    expect(of("instructions")).toEqual([`ok: ${join(work, "AGENTS.md")}`]);
    expect(existsSync(join(folder, "has-run"))).toBe(false);
    const trusted = await doctor({ ANTHROPIC_API_KEY: KEY }, {}, { trust: true });
    expect(trusted.of("mcp")).toContain(`ok: theirs: sh, of ${work}`);
  });

  it("says that there are none, or that they are off", async () => {
    const names = ["plugins", "hooks", "mcp", "skills", "instructions"];
    const { of } = await doctor();
    for (const name of names) expect(of(name)).toEqual(["ok: none"]);
    const off = await doctor({ GYRE_SKILLS: "false", GYRE_INSTRUCTION_FILES: "false" });
    expect([...off.of("skills"), ...off.of("instructions")]).toEqual([
      "ok: off, as the settings say",
      "ok: off, as the settings say",
    ]);
  });

  it("finds nothing wrong where all is well", async () => {
    const { code, of, ok } = await doctor({ ANTHROPIC_API_KEY: KEY });
    expect(of("keys")).toEqual(["ok: Anthropic: ANTHROPIC_API_KEY"]);
    expect(of("model")[0]).toMatch(/^ok: anthropic\/claude-sonnet-/);
    expect(of("address")).toEqual(["ok: https://api.anthropic.com (the service's own)"]);
    expect(of("gyre")[0]).toMatch(/^ok: \d+\.\d+\.\d+$/);
    expect(of("ripgrep")[0]).toMatch(/^ok: ripgrep \d+/);
    expect(of("processes")[0]).toMatch(/^ok: without a sandbox, .* ends? with it$/);
    expect(of("git")[0]).toMatch(/^ok: \d+\./);
    expect(of("proxy")).toEqual(["ok: none"]);
    expect(of("sessions")[0]).toMatch(/^ok: .*sessions: none yet$/);
    expect([code, ok]).toEqual([EXIT.done, true]);
  });

  it("lists what races have left", async () => {
    const races = join(folder, "state/gyre/races");
    const race = { version: 1, session: "abc", cwd: "/shop", at: 1, prompt: "x", startedAt: 0 };
    await mkdir(join(races, "one"), { recursive: true });
    await writeFile(
      join(races, "one/race.json"),
      JSON.stringify({ ...race, pid: NO_SUCH_PID, rivals: [] }),
    );
    await mkdir(join(races, "running"));
    await writeFile(
      join(races, "running/race.json"),
      JSON.stringify({ ...race, pid: process.pid, rivals: [] }),
    );
    await mkdir(join(races, "torn"));
    await writeFile(join(races, "torn/race.json"), '{"version": 1');
    const found = await doctor({ ANTHROPIC_API_KEY: KEY });
    expect(found.of("races")).toEqual([
      expect.stringMatching(/a race in \/shop was cut off, .*gyre --resume abc, then \/race/),
      expect.stringContaining(`${join(races, "torn")} is left of a race`),
    ]);
    expect(found.code).toBe(EXIT.done);
  });

  it("writes a line for each, and how many are wrong", async () => {
    const io = ioWith({ LANG: "C" });
    const code = await runDoctor({}, io, { home: folder, ...HEALTHY, nodeVersion: "v18.1.0" });
    expect(code).toBe(EXIT.failed);
    expect(io.out()).toMatch(/^problem {2}node +v18\.1\.0 is too old: install 20\.19 or newer\.$/m);
    expect(io.out()).toMatch(/^warning {2}terminal +stdout is no terminal, no colors, the locale/m);
    expect(io.out()).toMatch(/\n\n\d+ problems, \d+ warnings?\.\n$/);
  });

  it("asks no service and no server", async () => {
    let asked = 0;
    const server = createServer(() => (asked += 1)).on("connection", () => (asked += 1));
    await new Promise<void>((settle) => server.listen(0, "127.0.0.1", settle));
    const address = server.address();
    const port = typeof address === "object" ? address?.port : 0;
    const url = `http://127.0.0.1:${port}`;
    await doctor({ ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: url, OLLAMA_HOST: url });
    await new Promise((settle) => server.close(settle));
    expect(asked).toBe(0);
  });

  it("says what to do where there is no key", async () => {
    const { code, of } = await doctor();
    expect(of("keys")[0]).toMatch(/^warning: .*gyre login/);
    expect(of("model")[0]).toMatch(/^problem: There is no model to ask/);
    expect(code).toBe(EXIT.failed);
  });

  it.each([
    [
      { GROQ_API_KEY: `${KEY} ` },
      /^problem: The key for Groq cannot be used: .*GROQ_API_KEY contains a space/,
    ],
    [
      { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: KEY },
      /^ok: Amazon Bedrock: AWS_ACCESS_KEY_ID$/,
    ],
  ])("looks at keys of the environment: %j", async (env, expected) => {
    expect((await doctor(env)).of("keys")[0]).toMatch(expected);
  });

  it("looks at the key file and its mode, and runs no command of it", async () => {
    const file = join(folder, "config/gyre/keys.json");
    const command = ["touch", join(folder, "was-run")];
    await writeFile(file, JSON.stringify({ xai: KEY, groq: { command } }), { mode: OWNER_ONLY });
    expect((await doctor()).of("keys")).toEqual([
      "ok: xAI: the key file",
      "ok: Groq: a command of the key file",
    ]);
    await expect(rm(join(folder, "was-run"))).rejects.toThrow("ENOENT");
    if (process.platform === "win32") return;
    await chmod(file, OPEN_TO_ALL);
    expect((await doctor()).of("keys")[0]).toMatch(/^problem: .*mode 644\): run chmod 600/);
  });

  it("looks at the model that is set, its key and its address", async () => {
    const noKey = await doctor({ GYRE_MODEL: "openai/gpt-5.4" });
    expect(noKey.of("model")[0]).toMatch(/^problem: .*no key\. Store one with: gyre login openai/);
    const wrong = await doctor({ GYRE_MODEL: "no-such-model" });
    expect(wrong.of("model")[0]).toMatch(/^problem: No model fits "no-such-model"/);
    const bad = await doctor({ GROQ_API_KEY: KEY, GROQ_BASE_URL: "api.groq.example/v1" });
    expect(bad.of("address")[0]).toMatch(/^problem: .*\(GROQ_BASE_URL\) is no address/);
    const secret = `https://me:${KEY}@proxy.example/v1?key=${KEY}`;
    const hidden = await doctor({ GROQ_API_KEY: KEY, GROQ_BASE_URL: secret });
    expect(hidden.of("address")).toEqual(["ok: https://proxy.example/v1 (GROQ_BASE_URL)"]);
    const azure = await doctor({ GYRE_MODEL: "azure-openai/mine", AZURE_OPENAI_API_KEY: KEY });
    expect(azure.of("address")[0]).toMatch(/^problem: None is known.*AZURE_OPENAI_BASE_URL/);
  });

  it("reports what is wrong with the settings", async () => {
    const file = join(folder, "config/gyre/config.json");
    await writeFile(file, JSON.stringify({ modle: "sonnet", thinking: "hard" }));
    const { code, of } = await doctor({ ANTHROPIC_API_KEY: KEY });
    expect(of("settings")[0]).toBe(`problem: user file ${file}: invalid`);
    expect(of("settings").filter((line) => line.startsWith("warning:"))[0]).toContain("modle");
    expect(of("settings").filter((line) => line.startsWith("problem:"))[1]).toContain("thinking");
    expect(code).toBe(EXIT.failed);
  });

  it("reports settings of a project that are not trusted", async () => {
    await mkdir(join(folder, "work/.gyre"));
    await writeFile(join(folder, "work/.gyre/config.json"), '{"thinking": "low"}');
    const lines = (await doctor({ ANTHROPIC_API_KEY: KEY })).of("settings");
    expect(lines.some((line) => /^ok: project file .*not trusted$/.test(line))).toBe(true);
    expect(lines.some((line) => /^warning: .*gyre trust/.test(line))).toBe(true);
  });

  it("shows proxies without their passwords", async () => {
    const env = { https_proxy: `http://me:${KEY}@proxy.example:3128`, NO_PROXY: "localhost" };
    expect((await doctor(env)).of("proxy")).toEqual([
      "ok: HTTPS_PROXY: http://proxy.example:3128",
      "ok: not for localhost",
    ]);
    const wrong = await doctor({ HTTP_PROXY: `${KEY}@proxy:3128` });
    expect(wrong.of("proxy")[0]).toMatch(/^problem: HTTP_PROXY is no address/);
  });

  it("tries the sandbox and ripgrep out", async () => {
    const env = { ANTHROPIC_API_KEY: KEY };
    const missing = await doctor(env, {
      sandbox: () => Promise.reject(new SandboxMissingError("There is none.")),
      ripgrep: () => Promise.reject(new Error("no build")),
    });
    expect(missing.of("sandbox")[0]).toMatch(/^warning: There is none\./);
    expect(missing.of("ripgrep")[0]).toMatch(/^warning: There is none for this platform/);
    expect(missing.code).toBe(EXIT.done);
    const broken = await doctor(env, {
      sandbox: async () => ({
        kind: "bubblewrap",
        wrap: (program) => ({ ...program, argv: ["/bin/sh", "-c", "echo no rights >&2; exit 1"] }),
      }),
      ripgrep: async () => join(folder, "no-rg"),
    });
    expect(broken.of("sandbox")).toEqual(["problem: bubblewrap does not work: no rights"]);
    expect(broken.of("ripgrep")[0]).toMatch(/^warning: .*no-rg does not work: .*ENOENT/);
    const off = await doctor({ ...env, GYRE_SANDBOX: "none" });
    expect(off.of("sandbox")[0]).toMatch(/^warning: none, as the settings say/);
  });

  it("says so where git is missing", async () => {
    const { of } = await doctor({ ANTHROPIC_API_KEY: KEY, PATH: folder });
    expect(of("git")[0]).toMatch(/^warning: It does not run .*ENOENT/);
  });

  it("runs no git that the folder brings", async () => {
    const bin = join(folder, "work", "node_modules/.bin");
    await mkdir(bin, { recursive: true });
    await writeFile(join(bin, "git"), "#!/bin/sh\necho git version of the folder\n", {
      mode: 0o755,
    });
    const env = { ANTHROPIC_API_KEY: KEY };
    for (const first of [bin, "node_modules/.bin"]) {
      const { of } = await doctor({ ...env, PATH: `${first}:${process.env["PATH"]}` });
      expect(of("git")[0]).not.toContain("of the folder");
    }
  });

  it("looks at sessions and at who holds them", async () => {
    const sessions = join(folder, "state/gyre/sessions/work-1");
    await mkdir(sessions, { recursive: true });
    for (const id of ["aa", "bb", "cc", "dd"]) {
      await writeFile(join(sessions, `2026-01-01_${id}.jsonl`), "x".repeat(1000));
    }
    const lock = (id: string, holder: unknown): Promise<void> =>
      writeFile(join(sessions, `2026-01-01_${id}.jsonl.lock`), JSON.stringify(holder));
    await lock("aa", { pid: process.pid, host: hostname() });
    await lock("bb", { pid: NO_SUCH_PID, host: hostname() });
    await lock("cc", { pid: 1, host: "elsewhere" });
    await lock("dd", 7);
    const { of } = await doctor({ ANTHROPIC_API_KEY: KEY });
    expect(of("sessions")[0]).toMatch(/^ok: .*: 4 sessions, 4\.\d kB$/);
    expect(of("locks").sort()).toEqual([
      `ok: Session aa is open in process ${process.pid}`,
      `ok: Session bb was left by process ${NO_SUCH_PID}: the next one takes it over`,
      "warning: Session cc is locked by process 1 on elsewhere. If no gyre has it open: gyre sessions unlock cc",
      "warning: Session dd is locked, by an unknown process. If no gyre has it open: gyre sessions unlock dd",
    ]);
  });

  it("says so where sessions cannot be written", async () => {
    await writeFile(join(folder, "state"), "");
    const { code, of } = await doctor({ ANTHROPIC_API_KEY: KEY });
    expect(of("sessions")[0]).toMatch(/^problem: .*state is no folder\./);
    expect(code).toBe(EXIT.failed);
  });
});
