import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seatbeltProfile, seatbeltSandbox } from "./seatbelt.ts";

const NOTHING = { writable: [], readOnly: [], hidden: [], network: false };

/** The rules for places, in order. */
function placeRules(profile: string): string[] {
  return profile.split("\n").filter((line) => /"\/(?!dev\/)/.test(line));
}

describe("the Seatbelt profile", () => {
  let folder: string;

  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "gyre-test-")));
    mkdirSync(join(folder, "ws/.git"), { recursive: true });
    symlinkSync(join(folder, "ws"), join(folder, "link"));
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("denies all that it does not name", () => {
    const lines = seatbeltProfile(NOTHING).split("\n");
    expect(lines.slice(0, 2)).toEqual(["(version 1)", "(deny default)"]);
    expect(lines.some((line) => line.includes("network"))).toBe(false);
    expect(placeRules(seatbeltProfile(NOTHING))).toEqual([]);
  });

  it("lets programs run, read and signal their own", () => {
    const profile = seatbeltProfile(NOTHING);
    expect(profile).toContain("(allow process-exec*)");
    expect(profile).toContain("(allow process-fork)");
    expect(profile).toContain("(allow file-read*)");
    expect(profile).toContain("(allow signal (target same-sandbox))");
    expect(profile).toContain('(literal "/dev/null")');
  });

  it("has the network only if asked", () => {
    expect(seatbeltProfile({ ...NOTHING, network: true })).toContain("\n(allow network*)\n");
  });

  it("orders places so that the nearest around a path holds", () => {
    const profile = seatbeltProfile({
      writable: [`${folder}/ws`, `${folder}/ws/.git/x/y`],
      readOnly: [`${folder}/ws/.git/config`, `${folder}/ws/.gyre/`],
      hidden: [folder, `${folder}/ws/.env`],
      network: false,
    });
    expect(placeRules(profile)).toEqual([
      `(deny file-read* file-write* network-outbound (subpath "${folder}"))`,
      `(allow file-read* file-write* (subpath "${folder}/ws"))`,
      `(allow file-read* (subpath "${folder}/ws/.gyre"))`,
      `(deny file-write* (subpath "${folder}/ws/.gyre"))`,
      `(deny file-read* file-write* network-outbound (subpath "${folder}/ws/.env"))`,
      `(allow file-read* (subpath "${folder}/ws/.git/config"))`,
      `(deny file-write* (subpath "${folder}/ws/.git/config"))`,
      `(allow file-read* file-write* (subpath "${folder}/ws/.git/x/y"))`,
      // Folders around a read-only place stay where they are.
      `(deny file-write-unlink (literal "${folder}/ws"))`,
      `(deny file-write-unlink (literal "${folder}/ws/.git"))`,
    ]);
  });

  it("names real paths, because rules are compared with those", () => {
    const profile = seatbeltProfile({ ...NOTHING, writable: [`${folder}/link`] });
    expect(profile).toContain(`(subpath "${folder}/ws")`);
    expect(profile).not.toContain("/link");
  });

  it("does not let a path end its quotes", () => {
    const profile = seatbeltProfile({ ...NOTHING, writable: ['/no/a"))(allow default)\\'] });
    expect(profile).toContain(String.raw`(subpath "/no/a\"))(allow default)\\")`);
  });

  it("starts the program under it, with a temporary folder of its own", () => {
    const program = { argv: ["ls", "-l"], cwd: "/ws", env: { TMPDIR: "/tmp", A: "1" } };
    const { argv, cwd, env } = seatbeltSandbox("/no/own-tmp").wrap(program, NOTHING);
    const [command, flag, profile, ...rest] = argv;
    expect([command, flag, ...rest]).toEqual(["/usr/bin/sandbox-exec", "-p", "--", "ls", "-l"]);
    expect(profile).toContain('(allow file-read* file-write* (subpath "/no/own-tmp"))');
    expect(cwd).toBe("/ws");
    expect(env).toEqual({ TMPDIR: "/no/own-tmp", A: "1" });
  });
});
