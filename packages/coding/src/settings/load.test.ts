import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { SettingsError } from "./load.ts";
import { removeWorlds, settingsWorld } from "../testing/settings-world.ts";

afterEach(removeWorlds);

async function failure(run: Promise<unknown>): Promise<SettingsError> {
  const error = await run.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(SettingsError);
  return error instanceof SettingsError ? error : new SettingsError([]);
}

describe("who goes first", () => {
  it("nothing is set where no source sets anything", async () => {
    const world = settingsWorld();
    const { settings, sources, files } = await world.load();
    expect([settings, sources, world.warnings]).toEqual([{}, {}, []]);
    expect(files).toEqual([{ of: "user file", path: world.userFile, state: "missing" }]);
  });

  it("user, project, environment, command line: later ones replace key by key", async () => {
    const world = settingsWorld({
      user: { model: "a", thinking: "low", maxTurns: 9, oracle: "o" },
      project: { model: "b", thinking: "high", maxTurns: 8 },
    });
    world.trust();
    const env = { GYRE_MODEL: "c", GYRE_THINKING: "medium" };
    const { settings, sources } = await world.load({ env, given: { model: "d" } });
    expect(settings).toEqual({ model: "d", thinking: "medium", maxTurns: 8, oracle: "o" });
    expect(sources).toEqual({
      model: "command line",
      thinking: "environment",
      maxTurns: "project file",
      oracle: "user file",
    });
    expect(world.warnings).toEqual([]);
  });

  it("rules and models add up", async () => {
    const service = (id: string) => ({
      services: { [id]: { api: "openai-completions", baseUrl: `https://${id}.example` } },
      models: [{ provider: id, id: "m" }],
    });
    const world = settingsWorld({
      user: { allow: ["read"], deny: ["write"], models: service("mine") },
      project: { allow: ["shell(npm test)", "read"], ask: ["edit"], models: service("theirs") },
    });
    world.trust();
    const { settings } = await world.load({ given: { allow: ["ls"], deny: ["fetch"] } });
    expect(settings.allow).toEqual(["read", "shell(npm test)", "ls"]);
    expect(settings.ask).toEqual(["edit"]);
    expect(settings.deny).toEqual(["write", "fetch"]);
    expect(settings.models).toEqual({
      services: { ...service("mine").services, ...service("theirs").services },
      models: [...service("mine").models, ...service("theirs").models],
    });
  });

  it("an empty variable is not set", async () => {
    const world = settingsWorld({ user: { model: "a" } });
    const { settings } = await world.load({ env: { GYRE_MODEL: "", GYRE_CONFIG: "" } });
    expect(settings.model).toBe("a");
  });
});

describe("the user's file", () => {
  it("is in XDG_CONFIG_HOME, if that is absolute", async () => {
    const world = settingsWorld({ user: { model: "home" } });
    const folder = join(world.home, "xdg");
    world.write(join(folder, "gyre", "config.json"), { model: "xdg" });
    const model = async (XDG_CONFIG_HOME: string) =>
      (await world.load({ env: { XDG_CONFIG_HOME } })).settings.model;
    expect([await model(folder), await model("xdg")]).toEqual(["xdg", "home"]);
  });

  it("is another one with GYRE_CONFIG, and --config takes precedence over that", async () => {
    const world = settingsWorld({ user: { model: "usual" } });
    world.write(join(world.project, "a.json"), { model: "a" });
    world.write(join(world.home, "b.json"), { model: "b" });
    const env = { GYRE_CONFIG: "a.json" };
    expect((await world.load({ env })).settings).toEqual({ model: "a" });
    const { settings } = await world.load({ env, userFile: join(world.home, "b.json") });
    expect(settings).toEqual({ model: "b" });
  });

  it("has to be there if it is named", async () => {
    const world = settingsWorld();
    const path = join(world.project, "no.json");
    const byOption = await failure(world.load({ userFile: path }));
    expect(byOption.message).toBe(`--config: there is no file ${path}.`);
    const byVariable = await failure(world.load({ env: { GYRE_CONFIG: "no.json" } }));
    expect(byVariable.message).toBe(`GYRE_CONFIG: there is no file ${path}.`);
  });

  it("may have a byte order mark and $schema", async () => {
    const world = settingsWorld({ user: '\uFEFF{ "$schema": "x.json", "model": "a" }' });
    expect((await world.load()).settings).toEqual({ model: "a" });
    expect(world.warnings).toEqual([]);
  });

  it("has its log relative to itself, or to the home folder", async () => {
    const world = settingsWorld({ user: { log: "calls.log" } });
    expect((await world.load()).settings.log).toBe(join(world.userFile, "..", "calls.log"));
    world.write(world.userFile, { log: "~/calls.log" });
    expect((await world.load()).settings.log).toBe(join(world.home, "calls.log"));
  });
});

describe("what is wrong", () => {
  it("a key that is not known is reported, with what may have been meant, and passed over", async () => {
    const world = settingsWorld({ user: { thikning: "secret-value", __proto__x: 1, model: "a" } });
    expect((await world.load()).settings).toEqual({ model: "a" });
    expect(world.warnings).toEqual([
      `${world.userFile}: "thikning" is no setting. Did you mean "thinking"?`,
      `${world.userFile}: "__proto__x" is no setting.`,
    ]);
  });

  it("values that do not fit are reported all at once: file, key, value, what is allowed", async () => {
    const world = settingsWorld({
      user: { maxTurns: "ten", thinking: "much", models: { services: [], model: [] } },
      project: { network: 0 },
    });
    world.trust();
    const error = await failure(world.load({ env: { GYRE_TIMEOUT: "soon" } }));
    expect(error.code).toBe("bad_settings");
    expect(error.problems).toHaveLength(6);
    expect(error.message.split("\n")).toEqual([
      `${world.userFile}: maxTurns is "ten", but must be a whole number above 0.`,
      `${world.userFile}: thinking is "much", but must be one of "off", "minimal", "low", "medium", "high", "xhigh", "max".`,
      expect.stringMatching(/config\.json: models: services is \[\], but must be an object\.$/),
      expect.stringMatching(/config\.json: models: model is no key that is known here/),
      `${world.projectFile}: network is 0, but must be true or false.`,
      expect.stringMatching(/^GYRE_TIMEOUT is "soon", but must be seconds above 0 .* 5m or 1h\.$/),
    ]);
  });

  it.each([
    ['{\n  "model": "a",\n}', "line 3, column 1"],
    ['{ // mine\n "model": "a" }', "line 1, column 3"],
    ["", "line 1, column 1"],
  ])("what is not JSON is reported with its place: %j", async (text, place) => {
    const world = settingsWorld({ user: text });
    const error = await failure(world.load());
    expect(error.message).toContain(`${world.userFile} is not JSON: ${place}: `);
  });

  it.each([["[]"], ["null"], ['"model"']])("%s is no settings", async (text) => {
    const world = settingsWorld({ user: text });
    const error = await failure(world.load());
    expect(error.message).toBe(`${world.userFile} must hold a JSON object.`);
  });

  it("a folder in its place is an error", async () => {
    const world = settingsWorld();
    world.write(join(world.userFile, "inside"), "");
    expect((await failure(world.load())).message).toBe(`${world.userFile} is not a file.`);
  });

  it("shows no keys", async () => {
    const key = "sk-only-for-this-test-0123456789";
    const world = settingsWorld({
      user: { thinking: key, maxTurns: { headers: { "x-a": "hush" } } },
    });
    const { message } = await failure(world.load());
    expect(message).toContain("[redacted]");
    expect(message).not.toMatch(/sk-only|hush/);
  });

  it("shows nothing that a terminal would obey", async () => {
    const world = settingsWorld({ user: { "\x1b[2Jx\ny": 1, mode: "\x1b[31m\u202efull" } });
    const { message } = await failure(world.load());
    const shown = message + world.warnings.join("");
    // oxlint-disable-next-line no-control-regex -- they are what must not be there
    expect(shown).not.toMatch(/[\x00-\x1f\u202e]/);
    expect(message).toContain(String.raw`\u{202e}full`);
  });
});

describe("a project's settings", () => {
  it("are not used before they are trusted: one line says so", async () => {
    const world = settingsWorld({ project: { model: "theirs", modle: 1 } });
    const { settings, files } = await world.load();
    expect(settings).toEqual({});
    expect(files[1]).toEqual({ of: "project file", path: world.projectFile, state: "not trusted" });
    expect(world.warnings).toEqual([
      `${world.projectFile} is not used: its folder is not trusted. To see what it sets and trust it: gyre trust`,
    ]);
  });

  it("the line names the folder where the program was started elsewhere", async () => {
    const world = settingsWorld({ project: {} });
    await world.load({ start: world.home });
    expect(world.warnings[0]).toMatch(new RegExp(` trust it: gyre trust ${world.project}$`));
  });

  it("do not keep the program from running by being broken", async () => {
    const world = settingsWorld({ project: "{" });
    expect((await world.load()).settings).toEqual({});
  });

  it("are used this once with --trust", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    expect((await world.load({ trustOnce: true })).settings.model).toBe("theirs");
    expect(world.warnings).toEqual([]);
    expect((await world.load()).settings).toEqual({});
  });

  it("are not trusted any more once they change", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    world.trust();
    expect((await world.load()).settings.model).toBe("theirs");
    world.write(world.projectFile, '{"model":"theirs" }');
    const { settings, files } = await world.load();
    expect([settings, files[1]?.state]).toEqual([{}, "changed"]);
    expect(world.warnings).toEqual([
      `${world.projectFile} is not used: it has changed since it was trusted. To see what it sets and trust it: gyre trust`,
    ]);
  });

  it("are used no matter which users can write to them: what is trusted is their content", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    chmodSync(world.projectFile, 0o666);
    world.trust();
    expect((await world.load()).settings.model).toBe("theirs");
  });

  it("are not used where the trust file is of no use", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    world.write(join(world.home, ".config", "gyre", "trust.json"), "{");
    expect((await world.load()).settings).toEqual({});
    expect(world.warnings[0]).toContain("trust.json is not JSON: fix or remove it");
  });

  it("set nothing that takes effect outside of the project, though they are trusted", async () => {
    const world = settingsWorld({
      project: {
        model: "theirs",
        mode: "full",
        sandbox: "none",
        network: true,
        sessions: false,
        log: "../../.bashrc",
      },
    });
    world.trust();
    expect((await world.load()).settings).toEqual({ model: "theirs" });
    const refused = world.warnings.map((line) => line.slice(world.projectFile.length + 2));
    expect(refused.map((line) => line.split(" ", 1)[0])).toEqual([
      "mode",
      "sandbox",
      "network",
      "sessions",
      "log",
    ]);
    expect(refused[0]).toMatch(/^mode is not taken from a project if it is "full"\. /);
    expect(refused[1]).toMatch(/^sandbox is not taken from a project\. /);
  });

  it("may be more careful", async () => {
    const project = { mode: "plan", network: false, deny: ["write"], maxCost: 1 };
    const world = settingsWorld({ user: { mode: "full", network: true, maxCost: 2 }, project });
    world.trust();
    expect((await world.load()).settings).toEqual(project);
  });

  it("do not raise a limit of the user", async () => {
    const world = settingsWorld({
      user: { maxCost: 1, timeout: 60 },
      project: { maxCost: 1000, maxTurns: 50, timeout: 60 },
    });
    world.trust();
    expect((await world.load()).settings).toEqual({ maxCost: 1, maxTurns: 50, timeout: 60 });
    expect(world.warnings).toHaveLength(1);
    expect(world.warnings[0]).toContain("if it is more than your own file says");
  });

  it("are the user's own where --config names them", async () => {
    const world = settingsWorld({ project: { mode: "full" } });
    const { settings, files } = await world.load({ userFile: world.projectFile });
    expect(settings).toEqual({ mode: "full" });
    expect([files.length, world.warnings]).toEqual([1, []]);
  });
});

it("loads nothing of other packages where there is nothing to complain about", () => {
  const seen = new Set<string>();
  const foreign: string[] = [];
  const visit = (url: URL): void => {
    if (seen.has(url.href)) return;
    seen.add(url.href);
    const source = readFileSync(fileURLToPath(url), "utf8");
    for (const [, name = ""] of source.matchAll(
      /^(?:import|export)\s(?!type\b)[^;]*?\sfrom "([^"]+)"/gm,
    )) {
      if (name.startsWith(".")) visit(new URL(name, url));
      // The catalog is small: it loads no tool.
      else if (!["node:fs", "node:path", "@gyre/tools/catalog"].includes(name)) foreign.push(name);
    }
  };
  visit(new URL("load.ts", import.meta.url));
  expect(seen.size).toBeGreaterThan(4);
  expect(foreign).toEqual([]);
});
