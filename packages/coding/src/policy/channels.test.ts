import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Settings } from "../settings/settings.ts";
import { SETTING_NAMES, type SettingName, SETTINGS } from "../settings/table.ts";
import { makePolicy, removePolicies } from "../testing/policy-file.ts";
import { removeWorlds, settingsWorld, type SettingsWorld } from "../testing/settings-world.ts";
import { DECISIONS } from "./decisions.ts";
import type { Policy } from "./policy.ts";

afterEach(removeWorlds);
afterEach(removePolicies);

interface Attempt {
  /** What is asked for. */
  value: unknown;
  /** The same for a variable. */
  text?: string;
  /** What holds then. Absent: nothing. */
  most?: unknown;
  /** A value that is allowed. */
  within?: unknown;
}

/** For each setting that a policy restricts: what asks for too much. */
const ATTEMPTS: Partial<Record<SettingName, Attempt>> = {
  mode: { value: "full", text: "full", most: "auto-edit", within: "plan" },
  sandbox: { value: "none", text: "none", most: "auto", within: "auto" },
  network: { value: true, text: "true", most: false, within: false },
  domains: {
    value: ["example.org", "evil.example", "*.example.org", "example.org:8080"],
    text: "example.org,evil.example,*.example.org,example.org:8080",
    most: ["example.org"],
    within: ["example.org"],
  },
  addDirs: { value: ["/", "~/work/lib"], most: ["LIB"], within: ["~/work/lib"] },
  writable: { value: ["/tmp", "~/work/lib"], most: ["LIB"], within: ["~/work/lib"] },
  webSearch: { value: "service", text: "service" },
  mcp: { value: { tea: { command: "tea" } } },
  plugins: { value: ["./tea.mjs"] },
  hooks: { value: { Stop: [{ command: "true" }] } },
  languageServers: { value: { go: { command: ["gopls"], files: { ".go": "go" } } } },
  statusLine: { value: { command: "date" }, within: "{model}" },
};

/** Restricts all that can be. */
async function strictPolicy({ home }: SettingsWorld): Promise<Policy> {
  mkdirSync(join(home, "work", "lib"), { recursive: true });
  return makePolicy({
    maxMode: "auto-edit",
    sandbox: "required",
    domains: ["example.org"],
    folders: [join(home, "work")],
    mcp: false,
    plugins: false,
    hooks: false,
  });
}

const RESTRICTED = SETTING_NAMES.filter((name) => typeof DECISIONS[name] !== "string");

describe("every setting", () => {
  it("has a decision, and each that a policy restricts has an attempt here", () => {
    expect(Object.keys(DECISIONS)).toEqual([...SETTING_NAMES]);
    expect(Object.keys(ATTEMPTS)).toEqual(RESTRICTED);
  });

  it("that a project cannot set for others' safety is decided on, with the reason why it is free", () => {
    // What a project may never widen is about rights, money, files of the user or the terminal. The last are free.
    const free = SETTING_NAMES.filter(
      (name) => SETTINGS[name].project && DECISIONS[name] === "free",
    );
    expect(free).toEqual([
      ...["hidden", "effects", "maxTurns", "maxCost", "timeout", "firstByteTimeout"],
      ...["connectionTimeout", "contentTimeout", "retryAttempts", "retryTime"],
      ...["instructionFiles", "skills", "compactAt", "sessions", "log"],
      ...["catalogUrl", "catalogHash", "editorMode", "keys"],
    ]);
  });
});

describe.each(RESTRICTED)("%s is not widened", (name) => {
  const { value, text, most, within } = ATTEMPTS[name] ?? { value: undefined };
  const named = (found: unknown, { home }: SettingsWorld): unknown =>
    JSON.parse(JSON.stringify(found ?? null).replaceAll(join(home, "work", "lib"), "LIB"));
  const given = { [name]: value } as Settings;

  it("by the user's file", async () => {
    const world = settingsWorld({ user: given });
    const { settings } = await world.load({ policy: await strictPolicy(world) });
    expect(named(settings[name], world)).toEqual(most ?? null);
    expect(world.warnings.join("\n")).toMatch(
      new RegExp(`^user file: ${name} is .*, which the policy .* does not allow`),
    );
  });

  it("by a project that is trusted", async () => {
    const world = settingsWorld({ project: given });
    const policy = await strictPolicy(world);
    const { settings } = await world.load({ policy, trustOnce: true });
    const found = named(settings[name], world);
    expect([null, most]).toContainEqual(found);
  });

  it("by a variable", async () => {
    const variable = SETTINGS[name].env;
    if (variable === undefined) return;
    const world = settingsWorld();
    const env = { [variable]: text };
    const { settings } = await world.load({ policy: await strictPolicy(world), env });
    expect(named(settings[name], world)).toEqual(most ?? null);
    expect(world.warnings).toHaveLength(1);
  });

  it("by the command line or a program: that is an error", async () => {
    const world = settingsWorld();
    const policy = await strictPolicy(world);
    const absolute = JSON.parse(JSON.stringify(given).replaceAll("~", world.home));
    const { problems, settings } = await world.inspect({ policy, given: absolute });
    expect(problems).toEqual([{ level: "error", text: expect.stringContaining(`${name} is `) }]);
    expect(named(settings[name], world)).toEqual(most ?? null);
    await expect(world.load({ policy, given: absolute })).rejects.toThrow(policy.path);
  });

  it("and what is allowed stays as it is", async () => {
    if (within === undefined) return;
    const world = settingsWorld({ user: { [name]: within } });
    const free = await world.load();
    const { settings } = await world.load({ policy: await strictPolicy(world) });
    expect(settings[name]).toEqual(free.settings[name]);
    expect(world.warnings).toEqual([]);
  });
});

it("rules are added to those of all sources, and stand first", async () => {
  const world = settingsWorld({ user: { deny: ["ls"], allow: ["shell"] } });
  const policy = await makePolicy({ deny: ["shell(curl*)"], ask: ["shell(git push*)"] });
  const { settings, layers } = await world.load({ policy, given: { deny: ["grep"] } });
  expect(settings.deny).toEqual(["shell(curl*)", "ls", "grep"]);
  expect(settings.ask).toEqual(["shell(git push*)"]);
  expect(settings.allow).toEqual(["shell"]);
  expect(layers[0]).toEqual({ source: "policy file", settings: policy.added });
});

describe("trust in projects", () => {
  it("can be forbidden: their settings are not used, and --trust is an error", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    world.trust();
    const policy = await makePolicy({ projectTrust: false });
    const { settings, files } = await world.load({ policy });
    expect(settings.model).toBeUndefined();
    expect(files.at(-1)).toMatchObject({ of: "project file", state: "refused" });
    expect(world.warnings).toEqual([
      `${world.projectFile} is not used. The policy ${policy.path} does not allow to trust projects.`,
    ]);
    await expect(world.load({ policy, trustOnce: true })).rejects.toThrow(
      "does not allow to trust projects",
    );
  });
});

it("the file is listed first", async () => {
  const world = settingsWorld();
  const policy = await makePolicy({});
  expect((await world.load({ policy })).files[0]).toEqual({
    of: "policy file",
    path: policy.path,
    state: "used",
  });
});
