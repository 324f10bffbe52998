import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeOAuth } from "../../../../mcp/src/testing/fake-oauth.ts";
import {
  protectedServer,
  type ProtectedServer,
} from "../../../../mcp/src/testing/protected-server.ts";
import { teaOffer } from "../../../../mcp/src/testing/tea-server.ts";
import { EXIT } from "../../core/exit-codes.ts";
import type { Values } from "../../core/options.ts";
import { textIo, type TextIo } from "../../testing/command-io.ts";
import { runMcp } from "./mcp.ts";

let home: string;
let work: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "gyre-mcp-command-"));
  work = join(home, "work");
  mkdirSync(work);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const config = (): string => join(home, "config", "gyre", "config.json");
const settings = (): unknown => JSON.parse(readFileSync(config(), "utf8"));
const logins = (): string[] => {
  const folder = join(home, "state", "gyre", "mcp", "logins");
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
};

function createIo(more: Parameters<typeof textIo>[0] = {}): TextIo {
  const env = {
    HOME: home,
    PATH: process.env["PATH"],
    XDG_CONFIG_HOME: join(home, "config"),
    XDG_STATE_HOME: join(home, "state"),
  };
  return textIo({ env, cwd: work, ...more });
}

async function gyre(args: string, values: Values = {}): Promise<string> {
  const io = createIo();
  await runMcp(args.split(" "), values, io);
  return io.out();
}

describe("gyre mcp add and remove", () => {
  it("write servers into the user's settings, and leave the rest as it is", async () => {
    mkdirSync(join(home, "config", "gyre"), { recursive: true });
    writeFileSync(config(), '{\n  "model": "sonnet"\n}\n');
    await gyre("add wiki https://wiki.example/mcp", { header: ["X-Key: ${KEY}"] });
    const added = await gyre("add files npx -y files-server", { env: ["ROOT=/tmp", "EMPTY="] });
    expect(added).toContain(config());
    expect(settings()).toEqual({
      model: "sonnet",
      mcp: {
        wiki: { url: "https://wiki.example/mcp", headers: { "X-Key": "${KEY}" } },
        files: { command: "npx", args: ["-y", "files-server"], env: { ROOT: "/tmp", EMPTY: "" } },
      },
    });
    await gyre("remove wiki");
    expect(Object.keys((settings() as { mcp: object }).mcp)).toEqual(["files"]);
    await expect(gyre("remove fils")).rejects.toThrow("Did you mean files?");
    await expect(gyre("add files other")).rejects.toThrow("gyre mcp remove files");
  });

  it("write into the project's file, which has to be trusted", async () => {
    const text = await gyre("add wiki https://wiki.example/mcp", { project: true });
    expect(text).toContain("gyre trust");
    const path = join(work, ".mcp.json");
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({
      mcpServers: { wiki: { url: "https://wiki.example/mcp" } },
    });
    expect(existsSync(config())).toBe(false);
    const io = createIo();
    await runMcp(["list"], {}, io);
    expect(io.err()).toContain("is not trusted");
    await gyre("remove wiki", { project: true });
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ mcpServers: {} });
  });

  it.each([
    ["add", {}, "needs a name and what to reach"],
    ["add wiki", {}, "needs a name and what to reach"],
    ["add wiki https://a.example more", {}, 'takes no "more"'],
    ["add wiki https://a.example", { header: ["nothing"] }, 'is not "Name: value"'],
    ["add wiki https://a.example", { env: ["A=b"] }, "--env is for programs"],
    ["add wiki program", { header: ["A: b"] }, "--header is for addresses"],
    ["add wiki program", { env: ["nothing"] }, "is not NAME=VALUE"],
    ["add … program", {}, "needs a letter or a digit"],
    ["remove", {}, "takes the name of a server"],
    ["login", {}, "takes the name of a server"],
    ["login a b", {}, 'takes no argument "b"'],
    ["brew", {}, "takes one of: list, add"],
  ] as const)("refuse %j with %j: %s", async (args, values, problem) => {
    await expect(gyre(args, { ...values } as Values)).rejects.toThrow(problem);
    expect(existsSync(config())).toBe(false);
  });
});

describe("gyre mcp login", () => {
  let oauth: FakeOAuth;
  let server: ProtectedServer;

  beforeEach(async () => {
    oauth = new FakeOAuth();
    await oauth.listen();
    server = await protectedServer(oauth, teaOffer());
    await gyre(`add tea ${server.url}`);
  });
  afterEach(async () => {
    await server.close();
    await oauth.close();
  });

  /** The page that the user is asked to open, once it is. */
  async function findPage(io: TextIo): Promise<URL> {
    const find = (): string => /^ {2}(http\S+)$/m.exec(io.err())?.[1] ?? "";
    await vi.waitFor(() => expect(find()).not.toBe(""));
    return new URL(find());
  }

  it("has a browser come back, and keeps the login for its owner alone", async () => {
    expect(await gyre("list")).toContain("wants a login: gyre mcp login tea");
    const stdin = new PassThrough();
    const io = createIo({ stdin });
    const ended = runMcp(["login", "tea"], {}, io);
    // What a browser does: it follows the redirections to this machine.
    const page = await fetch(await findPage(io));
    expect(await page.text()).toContain("You are logged in");
    expect(await ended).toBe(EXIT.done);
    expect(io.out()).toContain("You are logged in to tea: 6 tools.");
    expect(logins().map((path) => statSync(path).mode & 0o777)).toEqual([0o600]);
    expect(await gyre("list")).toMatch(/^tea +http +6 tools$/m);
    expect(oauth.problems).toEqual([]);
  });

  it("takes the address that a browser of another machine ended at", async () => {
    const stdin = new PassThrough();
    const io = createIo({ stdin });
    const ended = runMcp(["login", "tea"], {}, io);
    const page = await fetch(await findPage(io), { redirect: "manual" });
    expect(io.err()).toContain("There is no browser here.");
    stdin.write(`\n${page.headers.get("location")}\n`);
    expect(await ended).toBe(EXIT.done);
    expect(logins()).toHaveLength(1);
  });

  it("does not take what another login brought", async () => {
    const stdin = new PassThrough();
    const io = createIo({ stdin });
    const ended = runMcp(["login", "tea"], {}, io);
    await findPage(io);
    stdin.write("http://127.0.0.1:1/callback?code=stolen&state=guessed\n");
    await expect(ended).rejects.toThrow("the browser came back from another login");
    expect(oauth.tokens.size).toBe(0);
  });

  it("ends when it is interrupted", async () => {
    const controller = new AbortController();
    const io = createIo({ stdin: new PassThrough(), signal: controller.signal });
    const ended = runMcp(["login", "tea"], {}, io);
    await findPage(io);
    controller.abort(new Error("interrupted"));
    await expect(ended).rejects.toThrow("interrupted");
    expect(
      logins()
        .map((path) => readFileSync(path, "utf8"))
        .join(""),
    ).not.toContain("access_token");
  });

  it("says why it failed, in words of the servers for the person alone", async () => {
    oauth.overrides.set("/token", {
      status: 400,
      body: { error: "invalid_grant", error_description: "Too late." },
    });
    const io = createIo({ stdin: new PassThrough() });
    const ended = runMcp(["login", "tea"], {}, io);
    await fetch(await findPage(io));
    await expect(ended).rejects.toThrow(/refuses it \(invalid_grant\).*It said: .*Too late/);
  });

  it("is forgotten by logout, and with the server", async () => {
    const logIn = async (): Promise<void> => {
      const io = createIo({ stdin: new PassThrough() });
      const ended = runMcp(["login", "tea"], {}, io);
      await fetch(await findPage(io));
      await ended;
    };
    await logIn();
    expect(await gyre("logout tea")).toContain("was removed from this machine");
    expect(logins()).toEqual([]);
    await logIn();
    expect(logins()).toHaveLength(1);
    await gyre("remove tea");
    expect(logins()).toEqual([]);
  });

  it("is of no use for a program, or one that is not there", async () => {
    await gyre("add files some-program");
    await expect(gyre("login files")).rejects.toThrow("it is a program");
    await expect(gyre("login tee")).rejects.toThrow("Did you mean tea?");
    await expect(gyre("logout tee")).rejects.toThrow("Did you mean tea?");
  });
});
