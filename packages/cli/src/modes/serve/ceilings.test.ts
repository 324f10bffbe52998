import { existsSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Payload } from "@gyre/protocol";
import { SessionStore } from "@gyre/sessions";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Values } from "../../core/options.ts";
import { type FrameDriver, FrameWorld } from "../../testing/frame-driver.ts";
import { runServe } from "./serve.ts";

let world: FrameWorld;
let open: FrameDriver[] = [];

beforeEach(async () => {
  world = await FrameWorld.open();
});

afterEach(async () => {
  for (const each of open) await each.end().catch(() => {});
  open = [];
  await world.close();
});

async function serve(values: Values = {}): Promise<FrameDriver> {
  const server = world.start(runServe, { stdio: true, ...values });
  open.push(server);
  await Promise.race([server.hello(), server.code]);
  return server;
}

/** The code of a refusal, or what the session has. */
async function create(server: FrameDriver, options: Payload): Promise<unknown> {
  const { payload } = await server.ask("session_create", options);
  return payload["code"] ?? { mode: payload["mode"], tools: payload["tools"] };
}

describe("gyre serve --mode", () => {
  it("is the most that a client can have, in new sessions and by an update", async () => {
    const server = await serve({ mode: "ask" });
    expect(await create(server, { mode: "full" })).toBe("invalid_request");
    expect(await create(server, { mode: "auto-edit" })).toBe("invalid_request");
    expect(await create(server, { mode: "plan" })).toMatchObject({ mode: "plan" });
    const { payload } = await server.ask("session_create");
    const stream = String(payload["session"]);
    const update = async (permission: string): Promise<string> =>
      (await server.ask("session_update", { modes: { permission } }, stream)).type;
    expect([await update("full"), await update("plan"), await update("ask")]).toEqual([
      "nack",
      "ack",
      "ack",
    ]);
  });

  it("not given: is ask", async () => {
    const server = await serve();
    expect(await create(server, { mode: "auto-edit" })).toBe("invalid_request");
    expect(await create(server, {})).toMatchObject({ mode: "ask" });
  });

  it("a lower one: holds for sessions that had more", async () => {
    const wide = await serve({ mode: "full" });
    const { payload } = await wide.ask("session_create", { tools: ["read", "write"] });
    const id = String(payload["session"]);
    await wide.end();
    const narrow = await serve({ mode: "plan", tools: "read" });
    expect(await narrow.attach(id)).toMatchObject({ mode: "plan", tools: ["read"] });
  });
});

describe("a file that was edited by hand or made elsewhere", () => {
  const FORGED = { mode: "full", tools: ["read", "write", "shell"], systemPrompt: "Forged." };
  const openStore = (): SessionStore =>
    new SessionStore(join(world.home, "state", "gyre", "sessions"));

  /** A session of a client that may read and plan, and one that no server has made. */
  async function forgeFiles(): Promise<string[]> {
    const server = await serve({ mode: "full", tools: "read,write,shell" });
    const { payload } = await server.ask("session_create", { mode: "plan", tools: ["read"] });
    await server.end();
    const edited = await openStore().open(String(payload["session"]));
    const made = await openStore().create({ cwd: world.cwd });
    for (const session of [edited, made]) {
      await session.append({ type: "settings", settings: FORGED });
      await session.close();
    }
    return [edited.header.id, made.header.id];
  }

  it.each([
    [
      { mode: "plan", tools: "read" },
      { mode: "plan", tools: ["read"] },
    ],
    [
      { mode: "auto-edit", tools: "none" },
      { mode: "ask", tools: [] },
    ],
    [
      { mode: "full", tools: "read,write" },
      { mode: "ask", tools: ["read", "write"] },
    ],
    [{}, { mode: "ask", tools: ["read", "write", "shell"] }],
  ])("has no more than %j allows, no mode above ask, and no prompt", async (values, rights) => {
    const ids = await forgeFiles();
    const server = await serve(values);
    for (const id of ids) {
      const snapshot = await server.attach(id);
      expect(snapshot).toMatchObject(rights);
      expect(snapshot["systemPrompt"]).not.toContain("Forged.");
    }
  });
});

describe("gyre serve --tools", () => {
  it("none: no client gets a tool", async () => {
    const server = await serve({ tools: "none" });
    expect(await create(server, { tools: ["read"] })).toBe("invalid_request");
    expect(await create(server, {})).toMatchObject({ tools: [] });
    expect(await create(server, { tools: [] })).toMatchObject({ tools: [] });
  });

  it("a list: is all that clients can choose from", async () => {
    const server = await serve({ tools: "read,ls" });
    expect(await create(server, { tools: ["read", "shell"] })).toBe("invalid_request");
    expect(await create(server, { tools: ["mcp"] })).toBe("invalid_request");
    expect(await create(server, { tools: ["ls"] })).toMatchObject({ tools: ["ls"] });
  });
});

describe("gyre serve --models", () => {
  it("is all that sessions and requests can use", async () => {
    const server = await serve({ models: "sonnet,haiku" });
    const { payload: made } = await server.ask("session_create");
    expect(made["model"]).toMatchObject({ id: expect.stringContaining("sonnet") });
    expect(await create(server, { model: "opus" })).toBe("model_not_found");
    const stream = String(made["session"]);
    const update = await server.ask("session_update", { model: "opus" }, stream);
    expect(update.payload["code"]).toBe("model_not_found");
    expect((await server.ask("session_update", { model: "haiku" }, stream)).type).toBe("ack");
    const { models } = (await server.ask("models")).payload;
    const ids = (models as { id: string }[]).map(({ id }) => id);
    expect(ids).toHaveLength(2);
    expect(ids.join()).toMatch(/sonnet.*haiku/);
    const model = { provider: "anthropic", id: "claude-opus-5-5" };
    const asked = await server.ask("complete_request", { model, context: { messages: [] } });
    expect(asked.payload["code"]).toBe("model_not_found");
  });

  it("refuses a --model that is not in it", async () => {
    await expect(serve({ models: "sonnet", model: "opus" })).rejects.toThrow("--models");
  });
});

describe("gyre serve --root", () => {
  beforeEach(async () => {
    await mkdir(join(world.home, "other"));
    await mkdir(join(world.cwd, "inside"));
    await symlink(join(world.home, "other"), join(world.cwd, "link"));
  });

  it("not given: sessions work in the folder of the server, and below it", async () => {
    const server = await serve();
    expect(await create(server, { cwd: join(world.cwd, "inside") })).toMatchObject({ mode: "ask" });
    expect(await create(server, {})).toMatchObject({ mode: "ask" });
    for (const cwd of ["/", world.home, join(world.home, "other"), join(world.cwd, "link"), ".."]) {
      expect([cwd, await create(server, { cwd })]).toEqual([cwd, "invalid_request"]);
    }
    expect(await create(server, { cwd: `${world.cwd}\0` })).toBe("invalid_request");
  });

  it("given: sessions work in these folders, and those of others cannot be opened", async () => {
    const wide = await serve({ root: [world.home] });
    const { payload } = await wide.ask("session_create", { cwd: join(world.home, "other") });
    const id = String(payload["session"]);
    await wide.end();
    const narrow = await serve({ root: [world.cwd] });
    await expect(narrow.attach(id)).rejects.toThrow("invalid_request");
    const both = await serve({ root: [world.cwd, join(world.home, "other")] });
    expect(await both.attach(id)).toMatchObject({ cwd: join(world.home, "other") });
  });
});

describe("keys, tokens and sessions", () => {
  /** What the model reads of calls that look for a secret. */
  async function results(values: Values, calls: Payload[]): Promise<string> {
    const say = calls.map(({ call, ...args }) => ({ call: String(call), arguments: args }));
    world.service.play([{ say }, { say: "Done." }]);
    const server = await serve({ root: [world.home], ...values });
    const { payload } = await server.ask("session_create", { cwd: world.home });
    await server.run("Read.", String(payload["session"]));
    return JSON.stringify(world.service.requests.at(-1)?.body["messages"]);
  }

  it("no file tool shows them, wherever they are", async () => {
    await mkdir(join(world.home, "config", "gyre"), { recursive: true });
    await mkdir(join(world.home, "state", "gyre", "sessions"), { recursive: true });
    const secret = "secret-0123456789";
    const places = [
      "config/gyre/keys.json",
      "state/gyre/serve-token",
      "state/gyre/sessions/x.jsonl",
    ];
    for (const path of places) {
      await writeFile(join(world.home, path), `{"anthropic":"${secret}"}\n`, { mode: 0o600 });
    }
    await symlink("config/gyre/keys.json", join(world.home, "harmless"));
    const read = [...places, "harmless", `${world.home}/config/gyre/keys.json`];
    const shown = await results({}, [
      ...read.map((path) => ({ call: "read", path })),
      { call: "grep", pattern: "anthropic" },
      { call: "grep", pattern: "anthropic", path: "config/gyre" },
    ]);
    expect(shown).toContain("not for tools");
    expect(shown).not.toContain(secret);
  });

  it("no session works in their folders", async () => {
    const folders = ["config/gyre", "config/gyre/skills", "state/gyre", "state/gyre/sessions"];
    const server = await serve({ root: [world.home] });
    for (const folder of folders) {
      const cwd = join(world.home, folder);
      await mkdir(cwd, { recursive: true });
      expect([folder, await create(server, { cwd })]).toEqual([folder, "invalid_request"]);
    }
  });

  it("no instruction file that is a link to them is read", async () => {
    await mkdir(join(world.home, "config", "gyre"), { recursive: true });
    const secret = "secret-0123456789";
    const keys = `{"anthropic":"${secret}"}\n`;
    await writeFile(join(world.home, "config", "gyre", "keys.json"), keys, { mode: 0o600 });
    await writeFile(join(world.home, "config", "gyre", "AGENTS.md"), "Speak plainly.\n");
    await symlink("config/gyre/keys.json", join(world.home, "AGENTS.md"));
    const server = await serve({ root: [world.home] });
    const { payload } = await server.ask("session_create", { cwd: world.home });
    expect(payload["systemPrompt"]).toContain("Speak plainly.");
    expect(JSON.stringify(payload)).not.toContain(secret);
  });

  it("a command outside of the sandbox is denied, and no client can approve it", async () => {
    const unsandboxed = "I want the keys.";
    const shown = await results({ mode: "full" }, [
      { call: "shell", command: "touch one", unsandboxed },
      { call: "shell", command: "touch two" },
    ]);
    expect(shown).toContain("outside of the sandbox");
    expect(existsSync(join(world.home, "one"))).toBe(false);
    expect(existsSync(join(world.home, "two"))).toBe(false);
  });

  it("--allow-unsandboxed: it runs, and the log says that keys are exposed", async () => {
    await results({ mode: "full", "allow-unsandboxed": true }, [
      { call: "shell", command: "touch two" },
    ]);
    expect(existsSync(join(world.home, "two"))).toBe(true);
    expect(open[0]?.stderr).toContain("can read the keys");
  });
});

describe("gyre serve --trust", () => {
  it("trusts the folder of the server alone", async () => {
    const other = join(world.cwd, "other");
    for (const folder of [world.cwd, other]) {
      const hooks = { SessionStart: [{ command: "touch ran" }] };
      await mkdir(join(folder, ".gyre"), { recursive: true });
      await writeFile(join(folder, ".gyre", "config.json"), JSON.stringify({ hooks }));
    }
    world.service.play(() => ({ say: "Yes." }));
    const server = await serve({ trust: true });
    for (const cwd of [other, world.cwd]) {
      const { payload } = await server.ask("session_create", { cwd });
      await server.run("Begin.", String(payload["session"]));
    }
    expect(existsSync(join(other, "ran"))).toBe(false);
    expect(existsSync(join(world.cwd, "ran"))).toBe(true);
  });
});
