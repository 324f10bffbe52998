import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FrameDriver, FrameWorld } from "../../testing/frame-driver.ts";
import { runServe } from "./serve.ts";

let world: FrameWorld;
let server: FrameDriver;

beforeEach(async () => {
  world = await FrameWorld.open();
  server = world.start(runServe, { stdio: true });
});

afterEach(async () => {
  await server.end();
  await world.close();
});

describe("the question of an approval", () => {
  it("says where a path leads, and what exactly is approved", async () => {
    await mkdir(join(world.cwd, "real"));
    await symlink("real", join(world.cwd, "harmless"));
    const args = { path: "harmless/a.txt", content: "x\n" };
    world.service.play([{ say: [{ call: "write", arguments: args, id: "c1" }] }, { say: "Done." }]);
    const id = await server.create();
    const end = await server.run("Write it.", id);
    expect(end.payload["pending"]).toMatchObject([
      {
        toolCall: { id: "c1" },
        access: { kind: "write", targets: ["real/a.txt"], summary: expect.any(String) },
        fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
    // What is approved by its fingerprint is not another file meanwhile.
    const [{ fingerprint }] = end.payload["pending"] as [{ fingerprint: string }];
    await writeFile(join(world.cwd, "real", "other"), "");
    const from = server.frames.length;
    const decisions = { c1: { type: "approve", fingerprint } };
    expect((await server.ask("approve", { decisions }, id)).type).toBe("ack");
    const second = await server.next(({ type }) => type === "agent_end", from);
    expect(second.payload).toMatchObject({ stop: "done" });
  });
});

describe("an approval with other arguments", () => {
  it("is asked about as the other call that it is, and then runs that one alone", async () => {
    const written = { path: "a.txt", content: "x\n" };
    const args = { path: "b.txt", content: "y\n" };
    const play = { say: [{ call: "write", arguments: written, id: "c1" }] };
    world.service.play([play, { say: "Done." }]);
    const id = await server.create();
    await server.run("Write it.", id);
    const approve = async (decision: object): Promise<Record<string, unknown>> => {
      const from = server.frames.length;
      const decisions = { c1: { type: "approve", args, ...decision } };
      expect((await server.ask("approve", { decisions }, id)).type).toBe("ack");
      return (await server.next(({ type }) => type === "agent_end", from)).payload;
    };
    const asked = await approve({});
    expect(asked).toMatchObject({
      stop: "suspended",
      pending: [{ toolCall: { id: "c1" }, access: { kind: "write", targets: ["b.txt"] } }],
    });
    const [{ fingerprint }] = asked["pending"] as [{ fingerprint: string }];
    expect(await approve({ fingerprint })).toMatchObject({ stop: "done" });
    expect(await readdir(world.cwd)).not.toContain("a.txt");
    expect(await readFile(join(world.cwd, "b.txt"), "utf8")).toBe("y\n");
    expect(world.service.requests.at(-1)?.text).toContain("A person changed the arguments");
  });

  it("is denied where rules deny that call", async () => {
    await server.end();
    server = world.start(runServe, { stdio: true, deny: ["write(secret/**)"] });
    const play = { say: [{ call: "write", arguments: { path: "a.txt", content: "" }, id: "c1" }] };
    world.service.play([play, { say: "Done." }]);
    const id = await server.create();
    await server.run("Write it.", id);
    const from = server.frames.length;
    const args = { path: "secret/a.txt", content: "" };
    await server.ask("approve", { decisions: { c1: { type: "approve", args } } }, id);
    const { payload } = await server.next(({ type }) => type === "agent_end", from);
    expect(payload).toMatchObject({ stop: "done" });
    const result = server.frames.findLast(({ type }) => type === "tool_execution_end");
    expect(result?.payload).toMatchObject({ outcome: "denied" });
    expect(await readdir(world.cwd)).toEqual([]);
  });
});

describe("stream_request", () => {
  it("does not take the id of an open session, nor session_attach that of a stream", async () => {
    world.service.play([{ silent: true }, { silent: true }]);
    const id = await server.create();
    const model = { provider: "anthropic", id: "claude-sonnet-5-5" };
    const context = { messages: [{ role: "user", content: "Hi.", timestamp: 1 }] };
    const taken = await server.ask("stream_request", { model, context }, id);
    expect(taken.payload["code"]).toBe("stream_exists");
    await server.ask("session_close", {}, id);
    server.forget(id);
    expect((await server.ask("stream_request", { model, context }, id)).type).toBe("ack");
    const attached = await server.ask("session_attach", {}, id);
    expect(attached.payload["code"]).toBe("stream_exists");
  });
});
