import { afterEach, describe, expect, it } from "vitest";
import { runConfig } from "./config.ts";
import { EXIT, UsageError } from "../core/exit-codes.ts";
import type { Values } from "../core/options.ts";
import { textIo } from "../testing/command-io.ts";
import {
  removeWorlds,
  type SettingsWorld,
  settingsWorld,
} from "@gyre/coding/internal/testing/settings-world";

afterEach(removeWorlds);

async function config(world: SettingsWorld, values: Values = {}, env = {}) {
  const io = textIo({ cwd: world.project, env });
  const code = await runConfig(values, io, world.home);
  return { code, out: io.out(), err: io.err() };
}

const KEY = "sk-only-for-this-test-0123456789";

describe("gyre config", () => {
  it("shows each setting, who set it, and the files", async () => {
    const world = settingsWorld({
      user: { model: "a", deny: ["write"] },
      project: { deny: ["ls"] },
    });
    world.trust();
    const { code, out, err } = await config(world, {}, { GYRE_MAX_TURNS: "7" });
    expect([code, err]).toEqual([EXIT.done, ""]);
    expect(out).toMatch(/^model +"a" {2}\(user file\)$/m);
    expect(out).toMatch(/^maxTurns +7 {2}\(environment\)$/m);
    expect(out).toMatch(/^thinking +as the model's service recommends {2}\(default\)$/m);
    expect(out).toMatch(/^mode +auto where a sandbox holds, else ask {2}\(default\)$/m);
    expect(out).toMatch(/^timeout +no limit {2}\(default\)$/m);
    expect(out).toMatch(/^tools +\["read", "edit", .*\] {2}\(default\)$/m);
    expect(out).not.toContain("not set");
    expect(out).toMatch(/^deny +\["write", "ls"\] {2}\(user file, project file\)$/m);
    expect(out).toContain(`${world.userFile} (used)`);
    expect(out).toContain(`${world.projectFile} (used)`);
  });

  it("prints JSON for programs", async () => {
    const world = settingsWorld({ user: { model: "a", modle: "b" }, project: {} });
    const { code, out } = await config(world, { json: true });
    expect(code).toBe(EXIT.done);
    expect(JSON.parse(out)).toEqual({
      settings: { model: { value: "a", from: ["user file"] } },
      files: [
        { of: "user file", path: world.userFile, state: "used" },
        { of: "project file", path: world.projectFile, state: "not trusted" },
      ],
      problems: [
        { level: "warning", text: expect.stringContaining('"modle" is no setting.') },
        { level: "warning", text: expect.stringContaining("is not trusted") },
      ],
    });
  });

  it("ends with 1 where something is wrong, and shows the rest all the same", async () => {
    const world = settingsWorld({ user: { model: "a", maxTurns: 0 } });
    const { code, out, err } = await config(world);
    expect(code).toBe(EXIT.failed);
    expect(out).toMatch(/^model +"a"/m);
    expect(err).toContain("gyre: error: ");
    expect(err).toContain("maxTurns is 0, but must be a whole number above 0.");
    expect(out).toContain(`${world.userFile} (invalid)`);
  });

  it.each([[{}], [{ json: true }]])("never shows keys %j", async (values) => {
    const headers = { authorization: `Bearer ${KEY}`, "x-anything": "hush" };
    const office = {
      api: "openai-completions",
      baseUrl: "https://me:pass@office.example",
      headers,
    };
    const models = { services: { office }, models: [{ provider: "office", id: "m", headers }] };
    const world = settingsWorld({ user: { models, instructions: `The key is ${KEY}` } });
    const { out, err } = await config(world, values);
    expect(out).toContain("[redacted]");
    expect(out).toContain("x-anything");
    expect(out + err).not.toMatch(/sk-only|hush|me:pass/);
  });

  it("follows --cwd, --trust and --config", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    const io = textIo({ cwd: world.home });
    await runConfig({ cwd: "work/project", trust: true }, io, world.home);
    expect(io.out()).toContain('"theirs"');
    world.write(`${world.project}/mine.json`, { oracle: "mine" });
    expect((await config(world, { config: "mine.json" })).out).toContain('"mine"');
    await expect(config(world, { cwd: "nowhere" })).rejects.toBeInstanceOf(UsageError);
  });
});
