import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { createKeyStore } from "@gyre/ai/node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EXIT, ExitError, UsageError } from "../core/exit-codes.ts";
import type { Io } from "../core/io.ts";
import { runLogin, runLogout } from "./login.ts";
import { type TextIo, textIo } from "../testing/command-io.ts";

const KEY = "sk-only-for-this-test-0123456789";
const OWNER_ONLY = 0o600;
const MODE_BITS = 0o777;

let folder = "";
let file = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-login-"));
  file = join(folder, "gyre", "keys.json");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function ioWith(options: Partial<Io> & { input?: string } = {}): TextIo {
  return textIo({ ...options, env: { XDG_CONFIG_HOME: folder, ...options.env } });
}

/** A terminal that is typed into; `raw` counts how often it was made to hide and to show. */
function typing(): { stdin: PassThrough & { isTTY: boolean }; raw: boolean[] } {
  const raw: boolean[] = [];
  const setRawMode = (on: boolean): void => void raw.push(on);
  return { stdin: Object.assign(new PassThrough(), { isTTY: true, setRawMode }), raw };
}

async function refusal(run: Promise<number>): Promise<ExitError> {
  const error = await run.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ExitError);
  return error instanceof ExitError ? error : new ExitError(EXIT.done, "");
}

describe("gyre login", () => {
  it("stores a key that is piped in where the agent looks for it, and never shows it", async () => {
    const io = ioWith({ input: `${KEY}\n` });
    expect(await runLogin(["anthropic"], {}, io)).toBe(EXIT.done);
    const need = { id: "anthropic", name: "Anthropic", keyEnv: [] };
    expect(await createKeyStore({ env: io.env }).get(need)).toBe(KEY);
    expect(io.out()).toContain(file);
    expect(io.out() + io.err()).not.toContain(KEY);
    if (process.platform !== "win32") {
      expect((await stat(file)).mode & MODE_BITS).toBe(OWNER_ONLY);
    }
  });

  it("takes a typed key without showing it", async () => {
    const { raw, stdin } = typing();
    const io = ioWith({ stdin });
    const done = runLogin(["OpenAI"], {}, io);
    stdin.write("wrong\x15\x1b[200~");
    stdin.write(`${KEY}x\x7f`);
    stdin.write("\x1b[201~\r");
    expect(await done).toBe(EXIT.done);
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ openai: KEY });
    expect(raw).toEqual([true, false]);
    expect(io.err()).toBe("Key for OpenAI (not shown): \n");
    expect(io.out()).not.toContain(KEY);
  });

  it.each(["\x03", `${KEY}\x03`, "\x04"])(
    "ends with 130 on %j, and stores nothing",
    async (keys) => {
      const { raw, stdin } = typing();
      const io = ioWith({ stdin });
      const done = refusal(runLogin(["openai"], {}, io));
      stdin.write(keys);
      expect((await done).exitCode).toBe(EXIT.interrupted);
      expect(raw).toEqual([true, false]);
      await expect(stat(file)).rejects.toThrow("ENOENT");
    },
  );

  it("ends with 130 when it is asked to, also while it waits for a pipe", async () => {
    for (const stdin of [typing().stdin, new PassThrough()]) {
      const controller = new AbortController();
      const done = refusal(runLogin(["openai"], {}, ioWith({ stdin, signal: controller.signal })));
      controller.abort();
      expect((await done).exitCode).toBe(EXIT.interrupted);
    }
  });

  it.each([
    ["", "There was no key"],
    ["two words", "a space at character 4"],
    [`"${KEY}"`, "begins or ends with a quote"],
  ])("refuses %j", async (input, why) => {
    const error = await refusal(runLogin(["groq"], {}, ioWith({ input })));
    expect(error.exitCode).toBe(EXIT.failed);
    expect(error.message).toContain(why);
    expect(error.message).not.toContain(KEY);
  });

  it("stores a command, split as a shell would", async () => {
    const io = ioWith();
    const command = `op read "op://my keys/groq"`;
    expect(await runLogin(["groq"], { command }, io)).toBe(EXIT.done);
    const stored = JSON.parse(await readFile(file, "utf8"));
    expect(stored).toEqual({ groq: { command: ["op", "read", "op://my keys/groq"] } });
    expect(io.out()).toContain("what op prints");
    expect(io.out()).not.toContain("my keys");
    await expect(runLogin(["groq"], { command: " " }, ioWith())).rejects.toThrow(UsageError);
  });

  it("says what takes precedence over the stored key", async () => {
    const io = ioWith({ input: KEY, env: { GROQ_API_KEY: "another" } });
    await runLogin(["groq"], {}, io);
    expect(io.err()).toContain(
      "GROQ_API_KEY is set in the environment, and takes precedence over it.",
    );
  });

  it.each([
    [["anthropc"], 'There is no service "anthropc". Did you mean anthropic?'],
    [["zzzzzzzz"], "The services are anthropic, openai"],
    [[], "needs a service: anthropic, openai"],
    [["anthropic", KEY], "A key is piped in or typed"],
  ])("refuses %j", async (args, why) => {
    const error = await runLogin(args, {}, ioWith(), { settings: {} }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toContain(why);
    expect(String(error)).not.toContain(KEY);
  });

  it("knows the services of the settings", async () => {
    const settings = { models: { services: { office: { api: "openai-completions" } } } };
    const io = ioWith({ input: KEY });
    expect(await runLogin(["office"], {}, io, { settings })).toBe(EXIT.done);
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ office: KEY });
  });

  it("says of a local server that it needs none, and stores one that is given all the same", async () => {
    const typed = ioWith({ stdin: typing().stdin });
    expect(await runLogin(["ollama"], {}, typed)).toBe(EXIT.done);
    expect(typed.out()).toContain("Ollama needs no key");
    const empty = ioWith();
    expect(await runLogin(["ollama"], {}, empty)).toBe(EXIT.done);
    await expect(stat(file)).rejects.toThrow("ENOENT");
    await runLogin(["ollama"], {}, ioWith({ input: KEY }));
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ ollama: KEY });
  });

  it("reports what is wrong with the key file", async () => {
    await runLogin(["groq"], {}, ioWith({ input: KEY }));
    await writeFile(file, "{ broken");
    const error = await refusal(runLogin(["groq"], {}, ioWith({ input: KEY })));
    expect(error.message).toMatch(/keys\.json is not JSON: see line 1/);
  });
});

describe("gyre logout", () => {
  it("removes a key, and says if there was none", async () => {
    await runLogin(["groq"], {}, ioWith({ input: KEY }));
    const io = ioWith({ env: { GROQ_API_KEY: "another" } });
    expect(await runLogout(["groq"], {}, io)).toBe(EXIT.done);
    expect(io.out()).toContain("was removed from");
    expect(io.err()).toContain("GROQ_API_KEY is still set");
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({});
    const again = ioWith();
    expect(await runLogout(["groq"], {}, again)).toBe(EXIT.failed);
    expect(again.err()).toContain("There was no key for Groq");
  });

  it("removes the key of a service that the file alone knows", async () => {
    const settings = { models: { services: { office: { api: "openai-completions" } } } };
    await runLogin(["office"], {}, ioWith({ input: KEY }), { settings });
    expect(await runLogout(["office"], {}, ioWith())).toBe(EXIT.done);
    await expect(runLogout(["office"], {}, ioWith())).rejects.toThrow(UsageError);
  });
});
