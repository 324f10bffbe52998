import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { runTrust } from "../../../commands/trust.ts";
import { mcpServers } from "@gyre/coding/internal/mcp/servers";
import { textIo } from "../../../testing/command-io.ts";
import {
  removeWorlds,
  type SettingsWorld,
  settingsWorld,
} from "@gyre/coding/internal/testing/settings-world";
import { textOfRow, widthOfRow } from "../terminal/row.ts";
import { NO_COLORS } from "../terminal/theme.ts";
import {
  applyTrust,
  type TrustAnswer,
  type TrustFinding,
  type TrustPlace,
  askAboutTrust,
} from "./trust-question.ts";

afterEach(removeWorlds);

const SERVERS = { mcpServers: { one: { command: "server-of-mine" } } };
const COLUMNS = 120;

function ask(world: SettingsWorld, more: Partial<TrustPlace> = {}): Promise<TrustFinding> {
  const { home, project: cwd } = world;
  return askAboutTrust({
    env: {},
    cwd,
    flags: {},
    home,
    theme: NO_COLORS,
    columns: COLUMNS,
    ...more,
  });
}

function apply(world: SettingsWorld, answer: TrustAnswer | undefined, finding: TrustFinding) {
  return applyTrust(answer, finding, { env: {}, home: world.home });
}

function about({ question }: TrustFinding): string[] {
  return (question?.about ?? []).map(textOfRow);
}

function answers({ question }: TrustFinding): TrustAnswer[] {
  return (question?.choices ?? []).map(({ value }) => value);
}

describe("the question of trust", () => {
  it("is not asked where a folder brings nothing along", async () => {
    const finding = await ask(settingsWorld());
    expect(finding).toEqual({ trust: "nothing to trust", notes: [], offers: [] });
  });

  it("names the files and what they can do", async () => {
    const world = settingsWorld({
      project: {
        model: "theirs",
        allow: ["shell(npm test)"],
        hooks: { stop: [{ command: ["make-noise"] }] },
      },
    });
    world.write(join(world.project, ".mcp.json"), SERVERS);
    const finding = await ask(world);
    expect(finding.notes).toEqual([]);
    expect(finding.question?.title).toBe(`Trust what ${world.project} brings along?`);
    expect(about(finding)).toEqual([
      ".gyre/config.json: runs programs (hooks), decides what is done without asking",
      ".mcp.json: starts servers (MCP)",
    ]);
    expect(answers(finding)).toEqual(["always", "once", "never", "leave"]);
  });

  it("is not asked where a policy refuses projects: the answer would not count", async () => {
    const refusal = "The policy /etc/gyre/policy.json does not allow to trust projects.";
    const project = { model: "theirs" };
    expect(await ask(settingsWorld({ project }), { refusal })).toEqual({
      trust: "not trusted",
      notes: [refusal],
      offers: [],
    });
    expect((await ask(settingsWorld(), { refusal })).notes).toEqual([]);
  });

  it("marks leaving them out first", async () => {
    const { question } = await ask(settingsWorld({ project: { model: "theirs" } }));
    expect(question?.choices[question.start ?? 0]?.value).toBe("leave");
  });

  it("lists what they set in the words of gyre trust --show", async () => {
    const world = settingsWorld({ project: { model: "theirs", instructions: "\x1b[8mhush" } });
    world.write(join(world.project, ".mcp.json"), SERVERS);
    const io = textIo({ cwd: world.project });
    await runTrust([], { show: true }, io, world.home);
    const { listing } = await ask(world);
    const shown = (listing?.rows(COLUMNS) ?? []).map(textOfRow);
    expect(shown).toEqual(io.out().trimEnd().split("\n"));
    expect(listing?.rows(COLUMNS)).toBe(listing?.rows(COLUMNS));
  });

  it("fits narrow terminals", async () => {
    const world = settingsWorld({ project: { hooks: {}, plugins: ["./a.js"] } });
    const { listing, question } = await ask(world, { columns: 24 });
    const rows = [...(question?.about ?? []), ...(listing?.rows(24) ?? [])];
    expect(rows.filter((row) => widthOfRow(row) > 24)).toEqual([]);
  });

  it("runs nothing and writes nothing", async () => {
    const world = settingsWorld({ project: { plugins: ["./plugin.mjs"] } });
    const mark = join(world.home, "ran");
    const plugin = `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(mark)}, "");`;
    world.write(join(world.project, ".gyre", "plugin.mjs"), plugin);
    const finding = await ask(world);
    expect(about(finding)).toEqual([".gyre/config.json: runs code (plugins)"]);
    expect(existsSync(mark)).toBe(false);
    expect(existsSync(join(world.home, ".config"))).toBe(false);
  });

  it("finds the files of the project from a folder below", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    const cwd = join(world.project, "src");
    world.write(join(cwd, "a.ts"), "");
    expect(about(await ask(world, { cwd }))).toEqual(["../.gyre/config.json: changes settings"]);
  });

  it("is answered already by --trust", async () => {
    const finding = await ask(settingsWorld({ project: {} }), { flags: { trust: true } });
    expect(finding.question).toBeUndefined();
    expect(finding.trust).toBe("trusted once");
  });

  it("is not asked about a file that the command line names", async () => {
    const world = settingsWorld({ project: { model: "mine" } });
    const finding = await ask(world, { flags: { config: world.projectFile } });
    expect(finding.trust).toBe("nothing to trust");
  });

  it("is not asked about a broken file, which is reported instead", async () => {
    const world = settingsWorld({ project: { maxTurns: "x" } });
    const finding = await ask(world);
    expect(finding.question).toBeUndefined();
    expect(finding.notes).toEqual([`${world.projectFile} is not trusted. Fix it first.`]);
  });

  it("does not offer to use a broken file this once beside a sound one", async () => {
    const world = settingsWorld({ project: { maxTurns: "x" } });
    world.write(join(world.project, ".mcp.json"), SERVERS);
    expect(answers(await ask(world))).toEqual(["always", "never", "leave"]);
  });

  it("says why trust cannot be written down, and offers the rest", async () => {
    const world = settingsWorld({ project: {} });
    world.write(join(world.home, ".config", "gyre", "trust.json"), "{");
    const finding = await ask(world);
    expect(about(finding).at(-1)).toContain("trust.json is not JSON: fix or remove it.");
    expect(answers(finding)).toEqual(["once", "leave"]);
  });
});

describe("an answer", () => {
  it("of always is written down as gyre trust does, and not asked for again", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    world.write(join(world.project, ".mcp.json"), SERVERS);
    const applied = await apply(world, "always", await ask(world));
    expect(applied.trustOnce).toBe(false);
    expect(applied.trust).toBe("trusted");
    expect(applied.messages).toEqual([
      `${world.project} is now trusted, until the file changes.`,
      `${join(world.project, ".mcp.json")} is now trusted, until it changes.`,
    ]);
    expect((await world.load()).settings.model).toBe("theirs");
    expect(await ask(world)).toEqual({ trust: "trusted", notes: [], offers: [] });
  });

  it("of always trusts what was shown, not what came after", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    const finding = await ask(world);
    world.write(world.projectFile, { model: "worse" });
    await apply(world, "always", finding);
    expect((await world.load()).settings).toEqual({});
    expect(about(await ask(world))).toEqual([".gyre/config.json (changed): changes settings"]);
  });

  it("of once is the flag, and nothing is written", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    const applied = await apply(world, "once", await ask(world));
    expect(applied).toEqual({ trustOnce: true, trust: "trusted once", messages: [] });
    expect(existsSync(join(world.home, ".config"))).toBe(false);
  });

  it.each(["leave", undefined] as const)("of %s uses nothing", async (answer) => {
    const world = settingsWorld({ project: { model: "theirs" } });
    const applied = await apply(world, answer, await ask(world));
    expect(applied).toEqual({ trustOnce: false, trust: "not trusted", messages: [] });
  });

  it("of never uses nothing, and is not asked again until a file changes", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    const applied = await apply(world, "never", await ask(world));
    expect(applied).toEqual({ trustOnce: false, trust: "not trusted", messages: [] });
    const next = await ask(world);
    expect([next.trust, next.question, next.offers]).toEqual(["not trusted", undefined, []]);
    expect((await world.load()).settings).toEqual({});
    world.write(world.projectFile, { model: "another" });
    expect((await ask(world)).question).toBeDefined();
  });

  it("keeps what else is trusted", async () => {
    const world = settingsWorld({ project: {} });
    world.write(join(world.home, ".config", "gyre", "trust.json"), { "/other": "sha256-1" });
    await apply(world, "always", await ask(world));
    const file = readFileSync(join(world.home, ".config", "gyre", "trust.json"), "utf8");
    expect(Object.keys(JSON.parse(file))).toEqual(["/other", world.project]);
  });
});

describe("settings that are read quietly", () => {
  it("leave out what is not trusted without a word", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    world.write(join(world.project, ".mcp.json"), SERVERS);
    const warnings: string[] = [];
    const warn = (text: string): void => void warnings.push(text);
    const { home, project: cwd } = world;
    const { loadSettings } = await import("@gyre/coding/internal/settings/load");
    const options = { policy: undefined, env: {}, cwd, home, quietAboutTrust: true, warn };
    const { layers, settings } = await loadSettings(options);
    expect(settings).toEqual({});
    expect(mcpServers({ ...options, layers, trustOnce: false })).toEqual([]);
    expect(warnings).toEqual([]);
  });
});
