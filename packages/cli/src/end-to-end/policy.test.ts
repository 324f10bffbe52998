import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scriptedModel } from "@gyre/ai/testing";
import { openHarness } from "@gyre/coding/internal/harness/harness";
import { makePolicy, removePolicies, writePolicy } from "@gyre/coding/internal/testing/policy-file";
import { removeWorlds, settingsWorld } from "@gyre/coding/internal/testing/settings-world";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runConfig } from "../commands/config.ts";
import { runDoctor } from "../commands/doctor/doctor.ts";
import { runTrust } from "../commands/trust.ts";
import { EXIT } from "../core/exit-codes.ts";
import { createAcpHost } from "../modes/acp/host.ts";
import { configOptions, modeState } from "../modes/acp/config.ts";
import { runRpc } from "../modes/rpc/rpc.ts";
import { runServe } from "../modes/serve/serve.ts";
import { textIo } from "../testing/command-io.ts";
import { FrameWorld } from "../testing/frame-driver.ts";
import { buildEnvironment, buildProgram, type Program } from "../testing/program.ts";
import { type Script, scriptedService, type ScriptedService } from "../testing/scripted-service.ts";
import { FakeView } from "../testing/slash-commands.ts";
import { openCommand } from "../testing/terminal-program.ts";

afterEach(removeWorlds);
afterEach(removePolicies);

const POLICY = { maxMode: "auto-edit", deny: ["shell(curl*)"], projectTrust: false };

describe("commands show the policy", () => {
  it("gyre config: its file, what it says, and where a rule is from", async () => {
    const world = settingsWorld({ user: { mode: "full", deny: ["ls"] } });
    const policyPlace = writePolicy(POLICY);
    const io = textIo({ cwd: world.project, policyPlace });
    expect(await runConfig({}, io, world.home)).toBe(EXIT.done);
    expect(io.out()).toContain(`${policyPlace.path} (used): maxMode "auto-edit", deny ["shell(`);
    expect(io.out()).toMatch(/^deny +\["shell\(curl\*\)", "ls"\] {2}\(policy file, user file\)$/m);
    expect(io.out()).toMatch(/^mode +"auto-edit" {2}\(user file\)$/m);
    expect(io.err()).toContain('gyre: warning: user file: mode is "full", which the policy');
    const json = textIo({ cwd: world.project, policyPlace });
    await runConfig({ json: true }, json, world.home);
    expect(JSON.parse(json.out())).toMatchObject({
      policy: POLICY,
      files: [{ of: "policy file", path: policyPlace.path, state: "used" }, {}],
    });
  });

  it("gyre doctor: the same, or that there is none", async () => {
    const world = settingsWorld();
    const policyPlace = writePolicy(POLICY);
    const nowhere = { path: join(world.home, "none.json"), owner: 0 };
    const lines: string[] = [];
    for (const place of [policyPlace, nowhere]) {
      const io = textIo({ cwd: world.project, env: { HOME: world.home }, policyPlace: place });
      await runDoctor({ json: true }, io, { home: world.home });
      const { checks }: { checks: { name: string; message: string }[] } = JSON.parse(io.out());
      lines.push(...checks.flatMap(({ name, message }) => (name === "policy" ? [message] : [])));
    }
    expect(lines).toEqual([
      `${policyPlace.path}: maxMode "auto-edit", deny ["shell(curl*)"], projectTrust false`,
      "none",
    ]);
  });

  it("one that is wrong ends them", async () => {
    const world = settingsWorld();
    const io = textIo({ cwd: world.project, policyPlace: writePolicy("{}}") });
    for (const run of [
      () => runConfig({}, io, world.home),
      () => runDoctor({}, io, { home: world.home }),
      () => runTrust([], {}, io, world.home),
      () => runRpc({}, io),
    ]) {
      await expect(run()).rejects.toMatchObject({ code: "bad_settings" });
    }
    expect(io.out()).toBe("");
  });

  it("gyre trust is refused", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    const io = textIo({ cwd: world.project, policyPlace: writePolicy(POLICY) });
    await expect(runTrust([], {}, io, world.home)).rejects.toThrow("does not allow to trust");
    expect(await runTrust([], { show: true }, io, world.home)).toBe(EXIT.done);
  });
});

describe("slash commands", () => {
  it("show it, offer what it allows, and refuse the rest", async () => {
    const world = settingsWorld();
    const client = scriptedModel(["Hello."]);
    const policy = await makePolicy(POLICY);
    const env = { HOME: world.home, XDG_STATE_HOME: world.home };
    const harness = await openHarness({
      settings: { tools: ["read"], skills: false, instructionFiles: false },
      policy,
      cwd: world.project,
      env,
      approvals: "deny",
      warn: () => {},
      models: {
        client,
        fallbacks: [],
        current: () => Promise.resolve(client.model),
        find: () => Promise.resolve(client.model),
        list: () => Promise.resolve([client.model]),
      },
    });
    const layers = [{ source: "policy file", settings: policy.added }] as const;
    const view = new FakeView({ harness, env, cwd: world.project, layers });
    await view.run("permissions");
    await view.run("status");
    const shown = view.output.join("\n");
    expect(shown).toMatch(/deny.*shell\(curl\*\).*the administrator's policy/);
    expect(shown).toContain(`The policy ${policy.path} holds: maxMode "auto-edit"`);
    expect(shown).toMatch(new RegExp(`policy \\| .*${policy.path.replaceAll("/", ".")}`));
    const labels = view.questions[0]?.choices.map(({ label }) => label);
    expect(labels).toEqual(["ask", "auto-edit", "plan"]);
    for (const name of ["mode", "permissions"]) {
      await expect(view.run(`${name} full`)).rejects.toThrow('Mode "full" is not allowed.');
    }
    expect(harness.mode).toBe("auto-edit");
    await harness.close();
  });
});

describe("clients", () => {
  let frames: FrameWorld;
  beforeEach(async () => {
    frames = await FrameWorld.open();
  });
  afterEach(() => frames.close());

  it("of gyre rpc have no more, in new sessions and by an update, and nothing else changes", async () => {
    const policyPlace = writePolicy(POLICY);
    const driver = frames.start((values, io) => runRpc(values, { ...io, policyPlace }));
    await driver.hello();
    const wide = await driver.ask("session_create", { mode: "full" });
    expect(wide.payload).toMatchObject({ code: "invalid_request" });
    const stream = String((await driver.ask("session_create")).payload["session"]);
    const update = { model: "anthropic/haiku", modes: { permission: "full" } };
    const refused = await driver.ask("session_update", update, stream);
    expect(refused.type).toBe("nack");
    expect(JSON.stringify(refused.payload)).toContain('Mode \\"full\\" is not allowed here');
    const taken = await driver.ask("session_update", { modes: { permission: "plan" } }, stream);
    expect(taken.type).toBe("ack");
    await driver.end();
  });

  it("of gyre serve have no more than the policy, whatever --mode says", async () => {
    const policyPlace = writePolicy({ maxMode: "plan" });
    const start = (mode?: string) =>
      frames.start((values, io) => runServe(values, { ...io, policyPlace }), {
        stdio: true,
        ...(mode !== undefined && { mode }),
      });
    await expect(start("full").code).rejects.toThrow('mode is "full", which the policy');
    const driver = start();
    await driver.hello();
    const { payload } = await driver.ask("session_create", { mode: "ask" });
    expect(payload).toMatchObject({ code: "invalid_request" });
    expect((await driver.ask("session_create")).payload).toMatchObject({ mode: "plan" });
    await driver.end();
  });

  it("of gyre acp are offered what is allowed, and their MCP servers are left out", async () => {
    const policyPlace = writePolicy({ ...POLICY, mcp: false });
    const io = textIo({ env: frames.env, cwd: frames.cwd, policyPlace });
    const folder = await createAcpHost({ sandbox: "none" }, io).folder(frames.cwd);
    const config = { command: process.execPath, args: ["-e", "0"] };
    const harness = await folder.open({
      approvals: "deny",
      mcpServers: [{ name: "tea", scope: "editor", config }],
    });
    expect(modeState(harness).availableModes.map(({ id }) => id)).toEqual([
      "ask",
      "auto-edit",
      "plan",
    ]);
    expect(JSON.stringify(configOptions(harness, []))).not.toContain('"full"');
    await expect(harness.setMode("full")).rejects.toThrow("is not allowed");
    expect(harness.mcp).toBeUndefined();
    await harness.close();
  });
});

/** The built program where an administrator has put a policy. */
describe("the program", { tags: "bubblewrap" }, () => {
  let program: Program;
  let service: ScriptedService;
  beforeAll(async () => {
    program = await buildProgram();
  });
  afterAll(() => program.remove());
  beforeEach(async () => {
    service = await scriptedService();
  });
  afterEach(() => service.close());

  interface Place {
    home: string;
    cwd: string;
    /** The command that runs another one there. */
    argv: string[];
    env: Record<string, string>;
  }

  /** In a namespace the user of the tests is another user: 0 stands for the administrator. */
  async function place(policy: unknown, user = 0): Promise<Place> {
    const home = await program.makeHome();
    const [cwd, etc] = [join(home, "work"), join(home, "etc")];
    for (const folder of [cwd, etc, join(home, "tmp")]) mkdirSync(folder);
    const text = typeof policy === "string" ? policy : JSON.stringify(policy);
    writeFileSync(join(etc, "policy.json"), text);
    const argv = [
      ...["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/etc"],
      ...["--ro-bind-try", "/etc/hosts", "/etc/hosts", "--ro-bind", etc, "/etc/gyre"],
      ...["--unshare-user", "--uid", String(user), "--gid", String(user), "--chdir", cwd],
      ...[process.execPath, program.entry],
    ];
    return { home, cwd, argv, env: buildEnvironment(home, service) };
  }

  async function run(
    { argv: [file = "", ...before], env }: Place,
    args: readonly string[],
    more: Record<string, string> = {},
  ): Promise<{ code: number; stdout: string; stderr: string }> {
    return new Promise((settle) => {
      const child = execFile(
        file,
        [...before, ...args],
        { env: { ...env, ...more } },
        (error, stdout, stderr) => settle({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
      child.stdin?.end();
    });
  }

  const writes: Script = [
    { say: [{ call: "write", arguments: { path: "out.txt", content: "x" } }] },
    { say: "Done." },
  ];

  it("lowers what a variable and a file say, and refuses an option", async () => {
    const at = await place({ maxMode: "plan" });
    mkdirSync(join(at.home, ".config/gyre"), { recursive: true });
    service.play(writes);
    const lowered = await run(at, ["-p", "Write it.", "--output", "stream-json"], {
      GYRE_MODE: "full",
    });
    expect(lowered.stdout).toContain('"mode":"plan"');
    expect(lowered.stdout).toContain('In mode \\"plan\\" nothing is changed');
    expect(lowered.stderr).toContain('environment: mode is "full", which the policy /etc/gyre/');
    const refused = await run(at, ["-p", "Write it.", "--mode", "full"]);
    expect(refused).toMatchObject({ code: EXIT.usage, stdout: "" });
    expect(refused.stderr).toContain("/etc/gyre/policy.json does not allow");
  });

  it("does not run with one that is wrong, or that its user could have written", async () => {
    const wrong = await place("{");
    for (const args of [["-p", "Hello"], ["doctor"], ["config"], ["models"], ["acp"]]) {
      const { code, stdout, stderr } = await run(wrong, args);
      expect({ args, code, stdout }).toEqual({ args, code: EXIT.usage, stdout: "" });
      expect(stderr).toContain("gyre: The policy /etc/gyre/policy.json is not JSON");
    }
    const users = await run(await place({ maxMode: "ask" }, 1234), ["-p", "Hello"]);
    expect(users.code).toBe(EXIT.usage);
    expect(users.stderr).toMatch(/can be changed by users: \/\S* belongs to user \d+, not to 0/);
    expect(service.requests).toEqual([]);
  });

  it("changes its mode by Shift+Tab as far as it may", async () => {
    const at = await place({ maxMode: "ask" });
    const { argv, cwd, env } = at;
    const terminal = openCommand(argv, { cwd, env });
    try {
      await terminal.until(/gyre \d/);
      terminal.press("shift+tab");
      await terminal.until("plan");
      terminal.press("shift+tab");
      await terminal.until((screen) => !screen.some((row) => row.includes("plan")));
      terminal.type("/mode full");
      terminal.press("enter");
      await terminal.until('Mode "full" is not allowed.');
      expect(terminal.screen().join("\n")).toContain("The policy /etc/gyre/policy.json allows ask");
    } finally {
      terminal.kill();
      await terminal.end;
    }
  });
});
