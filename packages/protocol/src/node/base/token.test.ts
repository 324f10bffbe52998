import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeToken, readOrMakeToken, createTokenCheck } from "./token.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-token-"));
});
afterEach(() => rm(folder, { recursive: true }));

describe("a token always: generated, 0600", () => {
  it.skipIf(process.platform === "win32")("refuses a pipe and a link to nothing", async () => {
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", ["-m", "600", pipe]);
    await expect(readOrMakeToken(pipe)).rejects.toThrow("is not a file");
    const link = join(folder, "link");
    await symlink("nothing", link);
    await expect(readOrMakeToken(link)).rejects.toThrow(`${link} is a link to nothing`);
  });

  it("is made of 32 random bytes where there is none, for its owner alone", async () => {
    const file = join(folder, "deep", "token");
    const { token, isNew } = await readOrMakeToken(file);
    expect(isNew).toBe(true);
    expect(Buffer.from(token, "base64url")).toHaveLength(32);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, "deep"))).mode & 0o777).toBe(0o700);
    expect(await readFile(file, "utf8")).toBe(`${token}\n`);
    expect(makeToken()).not.toBe(makeToken());
  });

  it("is read again, and reported as new only once", async () => {
    const file = join(folder, "token");
    const { token } = await readOrMakeToken(file);
    expect(await readOrMakeToken(file)).toEqual({ token, isNew: false });
  });

  it.each([0o640, 0o604, 0o660, 0o644])("is refused where others have access: %o", async (mode) => {
    const file = join(folder, "token");
    await readOrMakeToken(file);
    await chmod(file, mode);
    await expect(readOrMakeToken(file)).rejects.toThrow(/Others have access to .*token/);
  });

  it.each([
    ["", /less than 16/],
    ["short", /less than 16/],
    ["two words are not one token", /a header cannot carry/],
    ["x".repeat(5000), /Remove the file/],
  ])("is refused where it is invalid: %s", async (text, message) => {
    const file = join(folder, "token");
    await writeFile(file, text, { mode: 0o600 });
    await expect(readOrMakeToken(file)).rejects.toThrow(message);
  });

  it("is no folder", async () => {
    await expect(readOrMakeToken(folder)).rejects.toThrow(/not a file/);
  });
});

describe("the token is compared in constant time", () => {
  it("takes the right one alone, whatever the length of what is given", () => {
    const check = createTokenCheck("a".repeat(32));
    expect(check("a".repeat(32))).toBe(true);
    for (const wrong of ["", "a", "a".repeat(31), "a".repeat(33), `${"a".repeat(31)}b`]) {
      expect(check(wrong)).toBe(false);
    }
  });

  it("is refused where anybody could guess it", () => {
    expect(() => createTokenCheck("")).toThrow(/less than 16/);
  });
});
