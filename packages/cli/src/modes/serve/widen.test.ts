import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Payload } from "@gyre/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FrameDriver, FrameWorld } from "../../testing/frame-driver.ts";
import { runServe } from "./serve.ts";

let world: FrameWorld;
let server: FrameDriver;

beforeEach(async () => {
  world = await FrameWorld.open();
  server = world.start(runServe, { stdio: true, mode: "plan", tools: "read" });
});

afterEach(async () => {
  await server.end();
  await world.close();
});

const FULL = { mode: "full", tools: ["read", "write", "shell"], permission: "full" };
const SHELL = { name: "shell", description: "A shell.", parameters: { type: "object" } };

describe("a client of a server with --mode plan --tools read", () => {
  it("gets no more by any frame that there is", async () => {
    world.service.play(() => ({ say: "No." }));
    const id = await server.create();
    const requests: [string, Payload][] = [
      ["session_create", { mode: "full" }],
      ["session_create", { tools: ["shell"] }],
      ["session_update", { modes: { permission: "full" } }],
      ["session_update", { modes: { permission: "auto-edit" } }],
      ["session_update", { tools: ["read", "shell"] }],
      ["session_update", FULL],
      ["session_attach", { ...FULL, modes: { permission: "full" } }],
      ["prompt", { text: "/mode full", ...FULL }],
      ["continue", FULL],
      ["approve", { decisions: {}, ...FULL }],
      ["steer", { text: "/mode full", ...FULL }],
      ["follow_up", { text: "/tools shell", ...FULL }],
      ["queue_edit", { queue: "steering", op: "clear", ...FULL }],
      ["messages_replace", { messages: [], ...FULL }],
      ["reset", FULL],
      ["session_list", FULL],
      ["session_fork", FULL],
      ["session_import", FULL],
      ["set_mode", FULL],
      ["set_tools", FULL],
    ];
    for (const [type, payload] of requests) {
      const from = server.frames.length;
      const isOfSession = !["session_create", "session_list"].includes(type);
      const { type: answer } = await server.ask(type, payload, isOfSession ? id : undefined);
      if (answer === "error") server.skip(id);
      if (answer === "ack" && ["prompt", "continue"].includes(type)) {
        await server.next((frame) => frame.type === "agent_end", from);
      }
    }
    const from = server.frames.length;
    await server.ask("session_attach", {}, id);
    const { payload } = await server.next(({ type }) => type === "snapshot", from);
    expect(payload).toMatchObject({ mode: "plan", tools: ["read"] });
    const asked = world.service.requests.flatMap(({ body }) => body["tools"] as { name: string }[]);
    expect(new Set(asked.map(({ name }) => name))).toEqual(new Set(["read"]));
    expect((await server.ask("session_list")).payload["sessions"]).toHaveLength(1);
  });

  it("a client tool takes the name of no tool of the session, and leaves with it", async () => {
    const id = await server.create();
    expect((await server.ask("tool_register", { tools: [SHELL] }, id)).type).toBe("ack");
    const taken = await server.ask("tool_register", { tools: [{ ...SHELL, name: "read" }] }, id);
    expect(taken.payload["code"]).toBe("invalid_request");
    await server.ask("session_close", {}, id);
    expect((await server.attach(id))["tools"]).toEqual(["read"]);
  });

  it("works in no other folder, by whatever name", async () => {
    await server.hello();
    mkdirSync(join(world.home, "workshop"));
    mkdirSync(join(world.cwd, "sub"));
    symlinkSync("..", join(world.cwd, "up"));
    symlinkSync("/", join(world.cwd, "sub", "root"));
    const names = [
      "/",
      "..",
      "work/..",
      "work/../workshop",
      "workshop",
      "work/up",
      "work/up/workshop",
      "work/sub/root",
      "work/sub/root/etc",
      "/proc/self/root",
      "work\0/sub",
      "WORK",
      "work/../WORK",
      "~",
      "",
    ];
    for (const cwd of names) {
      const { payload } = await server.ask("session_create", { cwd });
      expect([cwd, payload["code"]]).toEqual([cwd, "invalid_request"]);
    }
    expect((await server.ask("session_create", { cwd: "work/sub" })).type).toBe("ack");
  });

  it("a folder that has become a link to another one is not entered again", async () => {
    await server.hello();
    mkdirSync(join(world.home, "other"));
    mkdirSync(join(world.cwd, "sub"));
    const { payload } = await server.ask("session_create", { cwd: "work/sub" });
    const id = String(payload["session"]);
    await server.ask("session_close", {}, id);
    renameSync(join(world.cwd, "sub"), join(world.cwd, "moved"));
    symlinkSync(join(world.home, "other"), join(world.cwd, "sub"));
    server.forget(id);
    const attached = await server.ask("session_attach", {}, id);
    expect(attached.payload["code"]).toBe("invalid_request");
  });
});
