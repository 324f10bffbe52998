import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Values } from "../../core/options.ts";
import { type FrameDriver, FrameWorld } from "../../testing/frame-driver.ts";
import { runServe } from "./serve.ts";

let world: FrameWorld;

beforeEach(async () => {
  world = await FrameWorld.open();
});

afterEach(() => world.close());

function serve(values: Values = {}): FrameDriver {
  return world.start(runServe, { stdio: true, ...values });
}

const WIDE: Values = { mode: "full", tools: "read,write,shell", model: "opus", thinking: "high" };
const NARROW = { mode: "plan", tools: ["read"], model: "sonnet", thinkingLevel: "off" };

/** What a snapshot says that the session may do. */
function rights({ mode, tools, model, thinkingLevel }: Record<string, unknown>): unknown {
  return { mode, tools, model, thinkingLevel };
}

const KEPT = {
  mode: "plan",
  tools: ["read"],
  model: { provider: "anthropic", id: expect.stringContaining("sonnet") },
  thinkingLevel: "off",
};

describe("what a session was given", () => {
  it("restart: is the same in the next server, and no command runs that could not before", async () => {
    world.service.play([
      { say: "One." },
      { say: [{ call: "shell", arguments: { command: "touch ran" }, id: "c1" }] },
      { say: "Two." },
    ]);
    const first = serve(WIDE);
    const id = await first.create(NARROW);
    await first.run("First.", id);
    await first.end();
    const second = serve(WIDE);
    await second.hello();
    expect(rights(await second.attach(id))).toEqual(KEPT);
    await second.run("Second.", id);
    expect(existsSync(join(world.cwd, "ran"))).toBe(false);
    await second.end();
  });

  it("close: is the same when a client attaches again", async () => {
    world.service.play([{ say: "One." }]);
    const server = serve(WIDE);
    const id = await server.create(NARROW);
    await server.run("First.", id);
    await server.ask("session_close", {}, id);
    expect(rights(await server.attach(id))).toEqual(KEPT);
    await server.end();
  });

  it("nothing said yet: is the same", async () => {
    const server = serve(WIDE);
    const id = await server.create(NARROW);
    await server.ask("session_close", {}, id);
    expect(rights(await server.attach(id))).toEqual(KEPT);
    await server.end();
    const plain = serve();
    await plain.hello();
    expect(rights(await plain.attach(id))).toEqual(KEPT);
    await plain.end();
  });

  it("an update: is in the file at once, and holds after a restart", async () => {
    const first = serve(WIDE);
    const id = await first.create();
    const changes = { tools: ["read"], model: "sonnet", thinkingLevel: "off" };
    await first.ask("session_update", { ...changes, modes: { permission: "plan" } }, id);
    const settings = (await first.entries(id)).flatMap((entry) => entry["settings"] ?? []);
    expect(Object.assign({}, ...settings)).toMatchObject(KEPT);
    await first.end();
    const second = serve(WIDE);
    await second.hello();
    expect(rights(await second.attach(id))).toEqual(KEPT);
    const wider = await second.ask("session_update", { modes: { permission: "full" } }, id);
    expect(wider.type).toBe("ack");
    await second.end();
    const third = serve(WIDE);
    await third.hello();
    expect(await third.attach(id)).toMatchObject({ mode: "full", tools: ["read"] });
    await third.end();
  });

  it("a client tool: its name gives no tool of the server after a restart", async () => {
    world.service.play([{ say: "One." }]);
    const first = serve(WIDE);
    const id = await first.create(NARROW);
    const shell = { name: "shell", description: "A shell.", parameters: { type: "object" } };
    expect((await first.ask("tool_register", { tools: [shell] }, id)).type).toBe("ack");
    await first.run("First.", id);
    await first.end();
    const second = serve(WIDE);
    await second.hello();
    expect((await second.attach(id))["tools"]).toEqual(["read"]);
    await second.end();
  });
});
