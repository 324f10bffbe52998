import { join } from "node:path";
import {
  type LoadedSettings,
  loadSettings,
  SettingsError,
} from "@gyre/coding/internal/settings/load";
import {
  removeWorlds,
  settingsWorld,
  type SettingsWorld,
} from "@gyre/coding/internal/testing/settings-world";
import { afterEach, describe, expect, it } from "vitest";
import { UsageError } from "./exit-codes.ts";
import { readFlags } from "./flag-settings.ts";
import type { Values } from "./options.ts";

afterEach(removeWorlds);

async function load(
  values: Values,
  world: SettingsWorld = settingsWorld(),
  start: string = world.project,
): Promise<LoadedSettings> {
  const { home, project: cwd, warnings } = world;
  const options = await readFlags(values, { env: {}, cwd, home, start });
  return loadSettings({ ...options, warn: (text) => void warnings.push(text) });
}

const failure = (loading: Promise<unknown>): Promise<unknown> =>
  loading.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("the command line", () => {
  it("sets what the options say", async () => {
    const values: Values = {
      thinking: "high",
      tools: "read,grep",
      mode: "plan",
      allow: ["shell(npm test)"],
      "max-turns": "3",
      "max-cost": "0.5",
      timeout: "5m",
      sandbox: "none",
      network: true,
      "no-session": true,
    };
    const { settings, sources } = await load(values);
    expect(settings).toEqual({
      thinking: "high",
      tools: ["read", "grep"],
      mode: "plan",
      allow: ["shell(npm test)"],
      maxTurns: 3,
      maxCost: 0.5,
      timeout: 300,
      sandbox: "none",
      network: true,
      sessions: false,
    });
    expect(new Set(Object.values(sources))).toEqual(new Set(["command line"]));
  });

  it("has all that is wrong with it reported, before any file is looked at", async () => {
    const values = { "max-turns": "many", tools: "read,", allow: [""] };
    const error = await failure(load(values, settingsWorld({ user: "{" })));
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error).split("\n")).toEqual([
      'Error: --tools is "read,", but must be names with commas between them, or "none".',
      '--allow is [""], but must be a list of texts that are not empty.',
      '--max-turns is "many", but must be a whole number above 0.',
    ]);
  });

  it("has paths from where the program was started, not where it works", async () => {
    const world = settingsWorld({ user: { model: "usual" } });
    world.write(join(world.home, "b.json"), { model: "b" });
    const { settings } = await load({ config: "b.json", log: "x.log" }, world, world.home);
    expect(settings).toEqual({ model: "b", log: join(world.home, "x.log") });
  });

  it("names a file of settings that has to be there", async () => {
    const world = settingsWorld();
    const error = await failure(load({ config: "no.json" }, world));
    expect(error).toBeInstanceOf(SettingsError);
    expect(String(error)).toContain(
      `--config: there is no file ${join(world.project, "no.json")}.`,
    );
  });

  it("trusts a project once", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    expect((await load({}, world)).settings).toEqual({});
    expect((await load({ trust: true }, world)).settings).toEqual({ model: "theirs" });
  });
});
