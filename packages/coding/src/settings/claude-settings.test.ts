import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { removeWorlds, settingsWorld, type SettingsWorld } from "../testing/settings-world.ts";
import { storeTrust } from "./trust-offer.ts";
import { findClaudeOffer } from "./claude-settings.ts";

afterEach(removeWorlds);

const RULES = { allow: ["Bash(npm test:*)"], ask: ["Bash(git push:*)"], deny: ["Read(./.env)"] };

function worldWith(files: Record<string, unknown>): SettingsWorld {
  const world = settingsWorld();
  for (const [path, content] of Object.entries(files)) world.write(join(world.home, path), content);
  return world;
}

const PROJECT = "work/project/.claude/settings.json";
const LOCAL = "work/project/.claude/settings.local.json";

describe("settings files of Claude Code", () => {
  it("of a project deny and ask always, and allow only if they are trusted", async () => {
    const world = worldWith({ [PROJECT]: { permissions: RULES } });
    const before = await world.load();
    expect(before.settings).toEqual({
      ask: ["shell(git push)", "shell(git push *)"],
      deny: ["read(.env)"],
    });
    expect(world.warnings).toEqual([
      `${join(world.home, PROJECT)}: the rules that allow something do not hold. Its folder is not trusted. To see and trust them: gyre trust`,
    ]);
    const place = { cwd: world.project, env: {}, home: world.home };
    const offer = await findClaudeOffer(place);
    expect(offer?.shown).toBe(`${join(world.home, PROJECT)} allows:\n  Bash(npm test:*)\n`);
    if (offer) storeTrust(offer, {}, world.home);
    expect((await world.load()).settings.allow).toEqual(["shell(npm test)", "shell(npm test *)"]);
    // What is no rule that allows something may change.
    world.write(join(world.home, PROJECT), { permissions: { ...RULES, deny: [] }, model: "x" });
    expect((await world.load()).settings.allow).toHaveLength(2);
    world.write(join(world.home, LOCAL), { permissions: { allow: ["Bash"] } });
    const after = await world.load();
    expect(after.settings.allow).toBeUndefined();
    expect(after.files.filter(({ of }) => of === "Claude Code file")).toEqual([
      { of: "Claude Code file", path: join(world.home, PROJECT), state: "changed" },
      { of: "Claude Code file", path: join(world.home, LOCAL), state: "changed" },
    ]);
  });

  it("of the user allow, too; --trust uses those of a project this once", async () => {
    const world = worldWith({
      ".claude/settings.json": { permissions: { allow: ["WebFetch(domain:x.org)"] } },
      [LOCAL]: { permissions: { allow: ["Read(~/notes/**)"] } },
    });
    const { settings } = await world.load({ trustOnce: true });
    expect(settings.allow).toEqual([
      "fetch(https://x.org/**)",
      "fetch(https://x.org/**?**)",
      `read(${world.home}/notes/**)`,
    ]);
  });

  it("say in one line what has no effect", async () => {
    const world = worldWith({
      ".claude/settings.json": {
        permissions: { deny: ["Agent(Explore)", "Read([)", 7], defaultMode: "acceptEdits" },
        hooks: { PreToolUse: [] },
        model: "opus",
      },
    });
    await world.load();
    expect(world.warnings).toEqual([
      `${join(world.home, ".claude/settings.json")}: not used here: the deny rule "Agent(Explore)", the deny rule "Read([)", the deny rule "7", "defaultMode" (here: "mode"), "hooks", which are not run (gyre's own settings take "hooks" of the same form).`,
    ]);
  });

  it("that are damaged are named, and stop nothing", async () => {
    const world = worldWith({ [PROJECT]: "{", ".claude/settings.json": "[]" });
    expect((await world.load()).settings).toEqual({});
    expect(world.warnings).toEqual([
      expect.stringMatching(/is not JSON.*Its rules do not hold\.$/),
    ]);
  });

  it("allow nothing where the policy does not let projects be trusted", async () => {
    const world = worldWith({ [PROJECT]: { permissions: RULES } });
    const policy = {
      path: "/etc/policy.json",
      added: {},
      refusesProjects: "No projects.",
      lower: <T>(settings: T) => ({ settings, refused: [] }),
    };
    const { settings } = await world.load({ policy });
    expect([settings.allow, settings.deny]).toEqual([undefined, ["read(.env)"]]);
    expect(world.warnings).toEqual([expect.stringContaining("No projects.")]);
  });
});

describe("rules that are written as Claude Code has them", () => {
  it("are taken in our own settings and options", async () => {
    const world = settingsWorld({ user: { deny: ["Read(**/.env)", "shell(rm *)"] } });
    const { settings } = await world.load({ given: { allow: ["Bash(git status:*)", "mcp__hub"] } });
    expect(settings).toEqual({
      allow: ["shell(git status)", "shell(git status *)", "mcp__hub__*"],
      deny: ["read(**/.env)", "shell(rm *)"],
    });
  });

  it("are an error where there is no equal", async () => {
    const world = settingsWorld();
    await expect(world.load({ given: { allow: ["Agent(Explore)"] } })).rejects.toThrow(
      'command line: the allow rule "Agent(Explore)" has no equal here.',
    );
  });
});
