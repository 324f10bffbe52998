import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { removeWorlds, settingsWorld } from "../testing/settings-world.ts";
import {
  computeFingerprint,
  readTrustFile,
  type TrustedFile,
  TrustFileError,
  findTrust,
  writeTrustFile,
} from "./trust.ts";

afterEach(removeWorlds);

const MODE_BITS = 0o777;
const OWNER_ONLY = 0o600;
const ANYBODY = 0o666;

const file = (name: string, text: string): TrustedFile => ({ name, content: Buffer.from(text) });

describe("a fingerprint", () => {
  it("differs with any name, byte or file, and not with their order", () => {
    const [a, b] = [file("a", "1"), file("b", "2")];
    const prints = [
      [a, b],
      [a],
      [b],
      [],
      [file("a", "2"), file("b", "1")],
      [file("a", "1b2")],
      [file("a1", ""), b],
    ].map(computeFingerprint);
    expect(new Set(prints).size).toBe(prints.length);
    expect(computeFingerprint([b, a])).toBe(prints[0]);
    expect(prints[0]).toMatch(/^sha256-[0-9a-f]{64}$/);
  });

  it("decides on trust", () => {
    const folders = new Map([["/p", computeFingerprint([file("a", "1")])]]);
    expect(findTrust(folders, "/p", [file("a", "1")])).toBe("trusted");
    expect(findTrust(folders, "/p", [file("a", "2")])).toBe("changed");
    expect(findTrust(folders, "/p/q", [file("a", "1")])).toBe("unknown");
  });
});

describe("the trust file", () => {
  it("is its owner's alone, and nothing else is left beside it", () => {
    const { home } = settingsWorld();
    const path = join(home, "new", "gyre", "trust.json");
    const folders = new Map([
      ["/p", "sha256-1"],
      ["__proto__", "sha256-2"],
    ]);
    writeTrustFile(path, folders);
    expect(readTrustFile(path)).toEqual(folders);
    expect(readdirSync(join(path, ".."))).toEqual(["trust.json"]);
    if (process.platform !== "win32") expect(statSync(path).mode & MODE_BITS).toBe(OWNER_ONLY);
  });

  it("trusts nothing where it is missing", () => {
    expect(readTrustFile(join(settingsWorld().home, "trust.json"))).toEqual(new Map());
  });

  it("stays a link", () => {
    const { home, write } = settingsWorld();
    write(join(home, "real.json"), {});
    symlinkSync("real.json", join(home, "trust.json"));
    writeTrustFile(join(home, "trust.json"), new Map([["/p", "sha256-1"]]));
    expect(readFileSync(join(home, "real.json"), "utf8")).toContain("sha256-1");
  });

  it.each(["{", "[]", "null"])("is refused if it holds %s", (text) => {
    const { home, write } = settingsWorld();
    write(join(home, "trust.json"), text);
    expect(() => readTrustFile(join(home, "trust.json"))).toThrow(TrustFileError);
  });

  it.skipIf(process.platform === "win32")("is refused if others can write to it", () => {
    const { home, write } = settingsWorld();
    const path = join(home, "trust.json");
    write(path, {});
    chmodSync(path, ANYBODY);
    expect(() => readTrustFile(path)).toThrow("can be written by others");
  });

  it("that cannot be written is reported", () => {
    const { home, write } = settingsWorld();
    write(join(home, "file"), "");
    expect(() => writeTrustFile(join(home, "file", "trust.json"), new Map())).toThrow(
      TrustFileError,
    );
  });
});
