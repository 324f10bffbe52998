import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defaultKeyFile, keyEntry, readKeyFile, writeKeyFile } from "./key-file.ts";

const SECRET = "sk-very-secret";
/** Windows has no modes to look at. */
const hasModes = process.platform !== "win32";

let folder = "";
let path = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "keys-"));
  path = join(folder, "keys.json");
});
afterEach(() => rm(folder, { recursive: true }));

async function put(text: string, mode = 0o600): Promise<void> {
  await writeFile(path, text);
  await chmod(path, mode);
}

/** What reading the file fails with. */
async function failure(): Promise<string> {
  const error: unknown = await readKeyFile(path).catch((error: unknown) => error);
  expect(error).toMatchObject({ name: "KeyFileError", code: "key_file", path });
  expect(String(error)).not.toContain("very-secret");
  return String(error);
}

it("is in the folder for configuration", () => {
  const config = join(folder, "config");
  expect(defaultKeyFile({ XDG_CONFIG_HOME: config })).toBe(join(config, "gyre", "keys.json"));
  const home = join(homedir(), ".config", "gyre", "keys.json");
  for (const XDG_CONFIG_HOME of [undefined, "", "relative/folder"]) {
    expect(defaultKeyFile({ XDG_CONFIG_HOME })).toBe(home);
  }
});

describe("reading", () => {
  it("gives the entries; none if there is no file, or nothing in it", async () => {
    expect(await readKeyFile(path)).toEqual(new Map());
    await put("");
    expect(await readKeyFile(path)).toEqual(new Map());
    await put('\uFEFF{"a": "k", "__proto__": "p"}');
    expect([...(await readKeyFile(path))]).toEqual([
      ["a", "k"],
      ["__proto__", "p"],
    ]);
  });

  it.runIf(hasModes)("refuses a file that is open to others, and says what to do", async () => {
    for (const mode of [0o644, 0o640, 0o604, 0o620, 0o601]) {
      await put(`{"a": "${SECRET}"}`, mode);
      const text = await failure();
      expect(text).toContain(`(mode ${mode.toString(8)})`);
      expect(text).toContain(`run chmod 600 ${path}`);
    }
    await chmod(path, 0o400);
    expect(await readKeyFile(path)).toEqual(new Map([["a", SECRET]]));
  });

  it.runIf(hasModes)("quotes a path that a shell would take apart", async () => {
    path = join(folder, "my 'keys'.json");
    await put("{}", 0o644);
    const quoted = String.raw`'${folder}/my '\''keys'\''.json'`;
    expect(await failure()).toContain(`chmod 600 ${quoted}.`);
  });

  it.each([
    [`{"a": "${SECRET}" x}`, "line 1, column 24"],
    [`{\n  "a": ${SECRET}\n}`, "line 2, column 8"],
    [`{"a": "${SECRET}`, "line 1, column 22"],
    [`{"a": "${SECRET}",}`, "line 1, column 24"],
    [SECRET, "line 1, column 1"],
  ])("reports where it is no JSON, and not what it is: %j", async (text, place) => {
    await put(text);
    expect(await failure()).toBe(`KeyFileError: The key file ${path} is not JSON: see ${place}.`);
  });

  it("refuses what is no object, no file or too large", async () => {
    await put(`["${SECRET}"]`);
    expect(await failure()).toContain("is not a JSON object");
    await put(`"${SECRET.repeat(100_000)}"`);
    expect(await failure()).toContain("has more than 1048576 bytes");
    await rm(path);
    await mkdir(path);
    expect(await failure()).toMatch(/is not a file|cannot be opened/);
  });
});

describe("writing", () => {
  it("makes file and folder for their owner alone, and leaves nothing else", async () => {
    path = join(folder, "new", "er", "keys.json");
    await writeKeyFile(path, new Map([["a", SECRET]]));
    expect(await readFile(path, "utf8")).toBe(`{\n  "a": "${SECRET}"\n}\n`);
    expect(await readdir(join(folder, "new", "er"))).toEqual(["keys.json"]);
    if (!hasModes) return;
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, "new"))).mode & 0o777).toBe(0o700);
    expect((await stat(join(folder, "new", "er"))).mode & 0o777).toBe(0o700);
  });

  it.runIf(hasModes)("follows a link, also one that leads to nothing yet", async () => {
    const real = join(folder, "real.json");
    await symlink("real.json", join(folder, "hop"));
    await symlink("hop", path);
    for (const key of ["one", "two"]) {
      await writeKeyFile(path, new Map([["a", key]]));
      expect((await lstat(path)).isSymbolicLink()).toBe(true);
      expect((await lstat(real)).isFile()).toBe(true);
      expect(await readKeyFile(path)).toEqual(new Map([["a", key]]));
    }
  });

  it("leaves no draft behind where it fails", async () => {
    await mkdir(join(path, "in the way"), { recursive: true });
    await expect(writeKeyFile(path, new Map([["a", SECRET]]))).rejects.toThrow("cannot be written");
    expect(await readdir(folder)).toEqual(["keys.json"]);
  });
});

it("an entry is a key or a command; another says what it should be", () => {
  expect(keyEntry(undefined)).toBeUndefined();
  expect(keyEntry("k")).toEqual({ type: "key", key: "k" });
  const command = ["op", "read", "x"];
  expect(keyEntry({ command })).toEqual({ type: "command", command });
  expect(keyEntry({ command: "op read x" })).toMatchObject({
    problem: expect.stringContaining("is one string: write a list") as unknown,
  });
  for (const value of [
    1,
    null,
    [],
    {},
    { command: [] },
    { command: [""] },
    { command: ["a", 1] },
  ]) {
    expect(keyEntry(value)).toMatchObject({
      type: "unusable",
      problem: expect.stringContaining("is neither a key nor") as unknown,
    });
  }
});
