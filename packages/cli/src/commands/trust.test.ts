import { rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { EXIT, ExitError, UsageError } from "../core/exit-codes.ts";
import type { Values } from "../core/options.ts";
import { textIo } from "../testing/command-io.ts";
import {
  removeWorlds,
  type SettingsWorld,
  settingsWorld,
} from "@gyre/coding/internal/testing/settings-world";
import { runTrust } from "./trust.ts";

afterEach(removeWorlds);

async function trust(world: SettingsWorld, args: string[] = [], values: Values = {}) {
  const io = textIo({ cwd: world.project });
  const code = await runTrust(args, values, io, world.home);
  return { code, out: io.out(), err: io.err() };
}

async function refusal(world: SettingsWorld): Promise<string> {
  const error = await trust(world).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ExitError);
  expect(error).toMatchObject({ exitCode: EXIT.failed });
  return error instanceof Error ? error.message : "";
}

describe("gyre trust", () => {
  it("shows what the file sets, and has it used until it changes", async () => {
    const world = settingsWorld({ project: { model: "theirs", allow: ["shell(npm test)"] } });
    expect(await trust(world)).toEqual({
      code: EXIT.done,
      out: [
        `${world.projectFile} sets:`,
        '  model: "theirs"',
        '  allow: ["shell(npm test)"]',
        `${world.project} is now trusted, until the file changes.\n`,
      ].join("\n"),
      err: "",
    });
    expect((await world.load()).settings.model).toBe("theirs");
    expect((await trust(world)).out).toContain("is still trusted");
    world.write(world.projectFile, { model: "other" });
    expect((await world.load()).settings).toEqual({});
    await trust(world);
    expect((await world.load()).settings.model).toBe("other");
  });

  describe("on a terminal", () => {
    /** What happens when this is typed; undefined: the terminal is closed. */
    async function answered(world: SettingsWorld, ...typed: (string | undefined)[]) {
      const stdin = Object.assign(new PassThrough(), { isTTY: true });
      let out = "";
      const write = (text: string): void => {
        out += text;
        if (!text.endsWith("[y/N] ")) return;
        const answer = typed.shift();
        if (answer === undefined) stdin.end();
        else stdin.write(`${answer}\n`);
      };
      const io = textIo({ cwd: world.project, stdin, stdout: { write, isTTY: true } });
      const code = await runTrust([], {}, io, world.home);
      return { code, out };
    }

    it.each(["y", "Yes", " y "])("asks after it has shown all, and trusts with %j", async (yes) => {
      const world = settingsWorld({ project: { model: "theirs" } });
      const { code, out } = await answered(world, yes);
      expect(code).toBe(EXIT.done);
      expect(out).toMatch(/model: "theirs"\nTrust .*config\.json\? \[y\/N\] .* is now trusted/s);
      expect((await world.load()).settings.model).toBe("theirs");
    });

    it.each(["", "n", "yess", undefined])("trusts nothing with %j, and ends with 1", async (no) => {
      const world = settingsWorld({ project: { model: "theirs" } });
      const { code, out } = await answered(world, no);
      expect(code).toBe(EXIT.failed);
      expect(out).toContain("nothing was written");
      expect((await world.load()).settings).toEqual({});
    });

    it("asks about the servers of .mcp.json as well", async () => {
      const world = settingsWorld({ project: { model: "theirs" } });
      const servers = { mcpServers: { one: { command: "server-of-mine" } } };
      world.write(join(world.project, ".mcp.json"), servers);
      const { code, out } = await answered(world, "y", "n");
      expect(code).toBe(EXIT.failed);
      expect(out).toMatch(/server-of-mine.*with all your rights\.\nTrust .*\.mcp\.json\?/s);
      expect(out).not.toContain(".mcp.json is now trusted");
      expect((await world.load()).settings.model).toBe("theirs");
    });
  });

  it("shows and ends with --show, wherever it runs", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    const { code, out } = await trust(world, [], { show: true });
    expect([code, out]).toEqual([EXIT.done, `${world.projectFile} sets:\n  model: "theirs"\n`]);
    expect((await world.load()).settings).toEqual({});
    await expect(trust(world, [], { show: true, remove: true })).rejects.toThrow(UsageError);
  });

  it("takes a folder, and finds the project that it is in", async () => {
    const world = settingsWorld({ project: {} });
    const io = textIo({ cwd: world.home });
    await runTrust(["work/project/.git"], {}, io, world.home);
    expect(io.out()).toContain(`${world.project} is now trusted`);
    expect(io.out()).toContain("  nothing\n");
  });

  it("takes it back with --remove, also where the file is gone", async () => {
    const world = settingsWorld({ project: { model: "theirs" } });
    await trust(world);
    rmSync(world.projectFile);
    const { out } = await trust(world, [], { remove: true });
    expect(out).toBe(`${world.project} is not trusted any more.\n`);
    world.write(world.projectFile, { model: "theirs" });
    expect((await world.load()).settings).toEqual({});
    expect((await trust(world, [], { remove: true })).out).toContain("was not trusted");
  });

  it("reports what is not taken from a project", async () => {
    const world = settingsWorld({ project: { sandbox: "none", thikning: "x" } });
    const { out, err } = await trust(world);
    expect(out).toContain("  nothing\n");
    expect(err).toContain("sandbox is not taken from a project.");
    expect(err).toContain('"thikning" is no setting. Did you mean "thinking"?');
  });

  it("reports which key a service of the project would get, and hides headers", async () => {
    const office = {
      api: "openai-completions",
      baseUrl: "https://office.example/v1",
      headers: { "x-team": "hush" },
    };
    const world = settingsWorld({ project: { models: { services: { office, openai: office } } } });
    const { out, err } = await trust(world);
    expect(out).toContain("https://office.example/v1");
    expect(out).toContain('The service "office" is sent the key in OFFICE_API_KEY');
    expect(err).toContain('the service "openai" is not used');
    expect(out + err).not.toContain("hush");
  });

  it("hides nothing of what is trusted", async () => {
    const world = settingsWorld({ project: { instructions: "Be \x1b[8mevil\u202e\u200b good" } });
    const { out } = await trust(world);
    expect(out).toContain(String.raw`"Be \u001b[8mevil\u{202e}\u{200b} good"`);
  });

  it("does not trust what is broken, missing, or no part of the project", async () => {
    const world = settingsWorld({ project: { maxTurns: "x" } });
    expect(await refusal(world)).toBe(`${world.projectFile} is not trusted. Fix it first.`);
    rmSync(world.projectFile);
    expect(await refusal(world)).toContain("There is nothing to trust: no ");
    symlinkSync(join(world.home, "outside.json"), world.projectFile);
    world.write(join(world.home, "outside.json"), {});
    expect(await refusal(world)).toContain("it is a link that leads out of the project");
  });

  it("does not write over a trust file that it cannot read", async () => {
    const world = settingsWorld({ project: {} });
    world.write(join(world.home, ".config", "gyre", "trust.json"), "{");
    expect(await refusal(world)).toContain("trust.json is not JSON: fix or remove it.");
  });

  it("takes one folder", async () => {
    await expect(trust(settingsWorld(), ["a", "b"])).rejects.toBeInstanceOf(UsageError);
  });
});
