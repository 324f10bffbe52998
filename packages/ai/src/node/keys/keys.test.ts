import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { createKeyStore, type KeyRequest, type KeyOptions, MissingKeyError } from "./keys.ts";

const need: KeyRequest = { id: "acme", name: "Acme", keyEnv: ["ACME_API_KEY", "ACME_TOKEN"] };
const TTL_MS = 300_000;

let folder = "";
let file = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "keys-"));
  file = join(folder, "keys.json");
});
afterEach(() => rm(folder, { recursive: true }));

const storeWith = (
  env: Record<string, string | undefined> = {},
  more: KeyOptions = {},
): ReturnType<typeof createKeyStore> => createKeyStore({ env, file, ...more });

async function put(entries: unknown): Promise<void> {
  await writeFile(file, typeof entries === "string" ? entries : JSON.stringify(entries));
  await chmod(file, 0o600);
}

const inFile = async (): Promise<unknown> => JSON.parse(await readFile(file, "utf8"));

/** What `get` fails with, after a look that nothing of it shows what may be a key. */
async function missing(
  env: Record<string, string> = {},
  options: KeyOptions = {},
): Promise<MissingKeyError> {
  const error: unknown = await storeWith(env, options)
    .get(need)
    .catch((error: unknown) => error);
  if (!(error instanceof MissingKeyError)) throw new Error("Expected a MissingKeyError.");
  expect(error.failure).toEqual({ kind: "auth", retryable: false });
  for (const shown of [error.message, error.stack, inspect(error), JSON.stringify(error)]) {
    expect(shown).not.toContain("abc");
  }
  return error;
}

describe("the places, in their order", () => {
  it("the variables as they are named, then the file", async () => {
    await put({ acme: "from-file" });
    expect(await storeWith({ ACME_API_KEY: "one", ACME_TOKEN: "two" }).get(need)).toBe("one");
    expect(await storeWith({ ACME_API_KEY: "", ACME_TOKEN: "two" }).get(need)).toBe("two");
    expect(await storeWith().get(need)).toBe("from-file");
  });

  it("a command in the file", async () => {
    await put({ acme: { command: [process.execPath, "-e", "console.log('from-command')"] } });
    expect(await storeWith().get(need)).toBe("from-command");
  });

  it("the process's own variables and the user's own file, where nothing is said", async () => {
    const name = "GYRE_TEST_KEY_OF_ACME";
    process.env[name] = "own";
    try {
      expect(await createKeyStore().get({ ...need, keyEnv: [name] })).toBe("own");
    } finally {
      delete process.env[name];
    }
    const env = { XDG_CONFIG_HOME: folder };
    await createKeyStore({ env }).set("acme", "from-home");
    expect(await readFile(join(folder, "gyre", "keys.json"), "utf8")).toContain("from-home");
    expect(await createKeyStore({ env }).get(need)).toBe("from-home");
  });

  it("are looked at again for each request", async () => {
    const env: Record<string, string> = {};
    const store = storeWith(env);
    await put({ acme: "one" });
    expect(await store.get(need)).toBe("one");
    await put({ acme: "two" });
    expect(await store.get(need)).toBe("two");
    env["ACME_TOKEN"] = "three";
    expect(await store.get(need)).toBe("three");
  });

  it("names of services are names, whatever they spell", async () => {
    for (const id of ["constructor", "__proto__", "toString"]) {
      const store = storeWith();
      await expect(store.get({ ...need, id })).rejects.toThrow("There is no key");
      await store.set(id, `key-of-${id}`);
      expect(await store.get({ ...need, id })).toBe(`key-of-${id}`);
    }
  });
});

describe("no key", () => {
  it("says where it was looked for", async () => {
    const error = await missing();
    expect(error.message).toBe(
      `There is no key for Acme: not in the environment variable ACME_API_KEY, nor in the environment variable ACME_TOKEN, nor in the key file ${file}. Put it into one of them, or pass it as the option apiKey.`,
    );
    expect(error.looked).toEqual([
      { place: "the environment variable ACME_API_KEY", found: false },
      { place: "the environment variable ACME_TOKEN", found: false },
      { place: `the key file ${file}`, found: false },
    ]);
  });

  it("is fine for a service that works without; one that is there is used", async () => {
    const local = { ...need, keyless: true };
    expect(await storeWith().get(local)).toBeUndefined();
    expect(await storeWith({ ACME_TOKEN: "one" }).get(local)).toBe("one");
    await put("{");
    await expect(storeWith().get(local)).rejects.toThrow("is not JSON");
  });
});

describe("a key of no use", () => {
  it("in a variable: no other place is tried", async () => {
    await put({ acme: "fine" });
    const error = await missing({ ACME_API_KEY: "sk-abc\n" });
    expect(error.message).toBe(
      "The key for Acme cannot be used: the environment variable ACME_API_KEY contains a line break at character 7 of 7.",
    );
    expect(error.looked).toEqual([
      {
        place: "the environment variable ACME_API_KEY",
        found: true,
        problem: "contains a line break at character 7 of 7",
      },
    ]);
  });

  it("in the file", async () => {
    await put({ acme: "sk-abc def" });
    expect((await missing()).message).toContain(
      `the entry "acme" of the key file ${file} contains a space at character 7 of 10.`,
    );
    await put({ acme: { command: "echo sk-abc" } });
    expect((await missing()).message).toContain("has a command that is one string");
    await put({ acme: ["sk-abc"] });
    expect((await missing()).message).toContain("is neither a key nor");
  });

  it("in a file that cannot be used", async () => {
    await put('{"acme": sk-abc}');
    expect((await missing()).message).toContain(`${file} is not JSON: see line 1, column 10.`);
  });

  it.runIf(process.platform !== "win32")("in a file that others can read", async () => {
    await put({ acme: "sk-abc" });
    await chmod(file, 0o644);
    expect((await missing()).message).toContain(`run chmod 600 ${file}.`);
  });

  it("from a command that fails", async () => {
    const source =
      "console.log('plain-abc-word'); console.error('no: plain-abc-word'); process.exit(1)";
    await put({ acme: { command: [process.execPath, "-e", source] } });
    const { looked, message } = await missing();
    expect(message).toContain("failed with code 1: no: [redacted].");
    expect(looked.at(-1)).toMatchObject({
      place: `the command ${process.execPath} for "acme" in the key file ${file}`,
      found: true,
    });
  });
});

describe("commands", () => {
  it("run once for those who ask together, and again when the answer is old", async () => {
    const runs = join(folder, "runs");
    const source = `fs.appendFileSync(process.argv[1], "."); console.log("key-" + fs.statSync(process.argv[1]).size)`;
    await put({ acme: { command: [process.execPath, "-e", source, runs] } });
    const clock = manualClock();
    const store = storeWith({}, { clock });
    const other = { ...need, name: "Other" };
    expect(await Promise.all([store.get(need), store.get(other)])).toEqual(["key-1", "key-1"]);
    await clock.advance(TTL_MS - 1);
    expect(await store.get(need)).toBe("key-1");
    await clock.advance(1);
    expect(await store.get(need)).toBe("key-2");
    await store.set("another", "key");
    expect(await store.get(need)).toBe("key-3");
  });

  it("are not waited for by who has left", async () => {
    await put({ acme: { command: [process.execPath, "-e", "setInterval(() => {}, 1e6)"] } });
    const clock = manualClock();
    const controller = new AbortController();
    const left = storeWith({}, { clock })
      .get(need, controller.signal)
      .catch((reason: unknown) => reason);
    controller.abort("gone");
    expect(await left).toBe("gone");
    expect(clock.pending).toBe(0);
    await expect(storeWith().get(need, AbortSignal.abort("before"))).rejects.toBe("before");
  });
});

describe("changes", () => {
  it("are written for the owner alone, and keep what else is there", async () => {
    const others = { "x-future": { nested: [1, null] }, note: 7 };
    await put({ ...others, acme: "old" });
    const store = storeWith();
    await store.set("acme", "new");
    await store.setCommand("vault", ["op", "read", "op://a/b"]);
    expect(await inFile()).toEqual({
      ...others,
      acme: "new",
      vault: { command: ["op", "read", "op://a/b"] },
    });
    expect(await store.list()).toEqual([
      { service: "acme", from: "file" },
      { service: "vault", from: "command" },
    ]);
    expect(await store.remove("acme")).toBe(true);
    expect(await store.remove("acme")).toBe(false);
    expect(await store.list()).toEqual([{ service: "vault", from: "command" }]);
    if (process.platform !== "win32") expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it("made at once are all made", async () => {
    const store = storeWith();
    const names = Array.from({ length: 20 }, (_, index) => `service-${index}`);
    await Promise.all(names.map((name) => store.set(name, `key-of-${name}`)));
    expect((await store.list()).map(({ service }) => service)).toEqual(names);
  });

  it("of what cannot be a key or a command are refused, and nothing is written", async () => {
    const store = storeWith();
    const refused = store.set("acme", "sk-abc\u201D");
    await expect(refused).rejects.toThrow(/^The key for "acme" contains a character that is not/);
    await expect(refused).rejects.not.toThrow("abc");
    await expect(store.setCommand("acme", [])).rejects.toThrow("must begin with a program");
    await expect(store.setCommand("acme", [""])).rejects.toThrow("must begin with a program");
    await expect(store.remove("acme")).resolves.toBe(false);
    await expect(stat(file)).rejects.toThrow("ENOENT");
  });

  it("leave a file alone that cannot be read, and the next one is made", async () => {
    await put("not JSON");
    const store = storeWith();
    await expect(store.set("acme", "new")).rejects.toThrow("is not JSON");
    expect(await readFile(file, "utf8")).toBe("not JSON");
    await put({});
    await store.set("acme", "new");
    expect(await inFile()).toEqual({ acme: "new" });
  });

  it("a store shows nothing of what it knows", async () => {
    const store = storeWith({ ACME_TOKEN: "sk-abc" });
    await store.get(need);
    expect(inspect(store, { depth: 9, showHidden: true }) + JSON.stringify(store)).not.toContain(
      "abc",
    );
  });
});
