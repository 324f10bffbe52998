import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Values } from "../../core/options.ts";
import { type AttachPlace, readAttachPlace } from "./place.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-attach-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function read(
  args: readonly string[],
  values: Values = {},
  env: Record<string, string> = { GYRE_TOKEN: "from-the-variable" },
): Promise<AttachPlace> {
  return readAttachPlace(args, values, {
    cwd: folder,
    env: { XDG_STATE_HOME: join(folder, "state"), ...env },
  });
}

describe("the address", () => {
  it.each([
    ["ws://127.0.0.1:7420", "ws://127.0.0.1:7420"],
    ["http://127.0.0.1:7420", "http://127.0.0.1:7420"],
    ["tcp://localhost:7421", "tcp://localhost:7421"],
    ["127.0.0.1:7420", "ws://127.0.0.1:7420/"],
  ])("%s", async (given, address) => {
    expect(await read([given])).toMatchObject({ address, session: undefined, wish: {} });
  });

  it.each(["ftp://127.0.0.1", "nothing at all", "ws://", "::"])("not %j", async (given) => {
    await expect(read([given])).rejects.toThrow(`"${given}" is no address of a server`);
  });

  it("is needed, and one session may follow it", async () => {
    await expect(read([])).rejects.toThrow("attach needs the address that gyre serve prints");
    await expect(read(["ws://localhost", "a", "b"])).rejects.toThrow('not "b"');
    expect(await read(["ws://localhost", "7k2m"])).toMatchObject({ session: "7k2m" });
  });

  it("warns where others can read along", async () => {
    expect((await read(["wss://gyre.example"])).warnings).toEqual([]);
    expect((await read(["ws://[::1]:7420"])).warnings).toEqual([]);
    expect((await read(["ws://gyre.example"])).warnings).toEqual([
      "Others on the way to gyre.example can read along: ws:// is not encrypted.",
    ]);
  });
});

describe("the token", () => {
  const own = (): void => {
    mkdirSync(join(folder, "state", "gyre"), { recursive: true });
    writeFileSync(join(folder, "state", "gyre", "serve-token"), "of-this-computer\n");
  };

  it("is that of the option, the file, the variable, or of this computer's own server", async () => {
    own();
    writeFileSync(join(folder, "token"), "from-the-file\n");
    expect(await read(["ws://localhost"], { token: "given" })).toMatchObject({ token: "given" });
    const file = await read(["ws://localhost"], { "token-file": "token" });
    expect(file.token).toBe("from-the-file");
    expect(file.describeReturn("7k2m")).toBe("gyre attach ws://localhost 7k2m --token-file token");
    expect(await read(["ws://localhost"])).toMatchObject({ token: "from-the-variable" });
    expect(await read(["ws://localhost"], {}, {})).toMatchObject({ token: "of-this-computer" });
  });

  it("of this computer's own server is sent to no other one", async () => {
    own();
    await expect(read(["wss://gyre.example"], {}, {})).rejects.toThrow(
      "There is no token for the server",
    );
  });

  it("that is missing, empty or given twice is an error", async () => {
    await expect(read(["ws://localhost"], {}, {})).rejects.toThrow("GYRE_TOKEN");
    await expect(read(["ws://localhost"], { "token-file": "none" })).rejects.toThrow("ENOENT");
    writeFileSync(join(folder, "empty"), "\n");
    await expect(read(["ws://localhost"], { "token-file": "empty" })).rejects.toThrow(
      "has no token in it",
    );
    await expect(
      read(["ws://localhost"], { token: "given", "token-file": "empty" }),
    ).rejects.toThrow("cannot be used together");
  });
});

it("options of a new session are not for one that is there", async () => {
  const values = { cwd: "shop", model: "haiku", thinking: "low", mode: "plan" };
  expect((await read(["ws://localhost"], values)).wish).toEqual({
    ...{ cwd: "shop", model: "haiku", thinkingLevel: "low", mode: "plan" },
  });
  await expect(read(["ws://localhost", "7k2m"], { thinking: "low" })).rejects.toThrow(
    '--thinking is for a new session, and "7k2m" names one.',
  );
});
