import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Envelope, Payload } from "@gyre/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EXIT, UsageError } from "../../core/exit-codes.ts";
import type { Values } from "../../core/options.ts";
import { runRpc } from "./rpc.ts";
import { type FrameDriver, FrameWorld } from "../../testing/frame-driver.ts";
import type { Script, ScriptedService } from "../../testing/scripted-service.ts";

let world: FrameWorld;
let home: string;
let cwd: string;
let service: ScriptedService;

beforeEach(async () => {
  world = await FrameWorld.open();
  ({ home, cwd, service } = world);
});

afterEach(() => world.close());

function drive(values: Values = {}): FrameDriver {
  return world.start(runRpc, { mode: "auto-edit", ...values });
}

function play(script: Script): void {
  service.play(script);
}

describe("gyre rpc", () => {
  it("works on a prompt with tools, and writes it down", async () => {
    play([
      {
        say: [
          { text: "I write" },
          { call: "write", arguments: { path: "a.txt", content: "hi\n" } },
        ],
      },
      { say: "Done." },
    ]);
    const driver = drive();
    const id = await driver.create();
    const end = await driver.run("Write a file", id);
    expect(end.payload).toMatchObject({ stop: "done", turns: 2 });
    expect(await readFile(join(cwd, "a.txt"), "utf8")).toBe("hi\n");
    driver.stdin.end();
    expect(await driver.code).toBe(EXIT.done);
    expect(driver.stderr).toBe("");
    const messages = (await driver.entries(id)).filter(({ type }) => type === "message");
    expect(messages).toHaveLength(4);
    expect(service.problems).toEqual([]);
  });

  it("has the facts of the start as a message before the first prompt", async () => {
    world.set("GYRE_FACTS", "1");
    play([{ say: "Yes." }]);
    const driver = drive();
    const id = await driver.create();
    await driver.run("Well?", id);
    const started = driver.frames.filter(({ type }) => type === "message_start");
    const roles = started.map(({ payload }) => (payload["message"] as { role: string }).role);
    expect(roles).toEqual(["notice", "user", "assistant"]);
    expect(service.requests[0]?.text).toContain("[Date: ");
    driver.stdin.end();
    expect(await driver.code).toBe(EXIT.done);
  });

  it("suspends what needs an approval, and goes on with the decision", async () => {
    play([
      { say: [{ call: "shell", arguments: { command: "echo yes | tee said" }, id: "c1" }] },
      { say: "Done." },
    ]);
    const driver = drive();
    const id = await driver.create();
    const end = await driver.run("Say yes", id);
    expect(end.payload).toMatchObject({ stop: "suspended", pending: [{ toolCall: { id: "c1" } }] });
    const from = driver.frames.length;
    const decisions = { c1: { type: "approve" } };
    expect((await driver.ask("approve", { decisions }, id)).type).toBe("ack");
    const second = await driver.next(({ type }) => type === "agent_end", from);
    expect(second.payload).toMatchObject({ stop: "done" });
    const result = driver.frames.find(({ type }) => type === "tool_execution_end");
    expect(JSON.stringify(result?.payload)).toContain("yes");
    driver.stdin.end();
    expect(await driver.code).toBe(EXIT.done);
  });

  it("asks again about arguments that a person has changed, and runs these", async () => {
    play([
      { say: [{ call: "shell", arguments: { command: "echo yes | tee said" }, id: "c1" }] },
      { say: "Done." },
    ]);
    const driver = drive();
    const id = await driver.create();
    await driver.run("Say yes", id);
    const approve = async (decision: object): Promise<Record<string, unknown>> => {
      const from = driver.frames.length;
      const args = { command: "echo maybe | tee said" };
      const decisions = { c1: { type: "approve", args, ...decision } };
      expect((await driver.ask("approve", { decisions }, id)).type).toBe("ack");
      return (await driver.next(({ type }) => type === "agent_end", from)).payload;
    };
    const asked = await approve({});
    expect(asked).toMatchObject({ pending: [{ access: { targets: ["echo maybe | tee said"] } }] });
    const [{ fingerprint }] = asked["pending"] as [{ fingerprint: string }];
    expect(await approve({ fingerprint })).toMatchObject({ stop: "done" });
    const result = driver.frames.findLast(({ type }) => type === "tool_execution_end");
    expect(JSON.stringify(result?.payload)).toContain("maybe");
    driver.stdin.end();
    expect(await driver.code).toBe(EXIT.done);
  });

  it("end of stdin: what runs is aborted and written down, exit 0", async () => {
    play([{ silent: true }]);
    const driver = drive();
    const id = await driver.create();
    await driver.ask("prompt", { text: "Go" }, id);
    await service.asked(0);
    driver.stdin.end();
    expect(await driver.code).toBe(EXIT.done);
    const messages = (await driver.entries(id)).flatMap(({ message }) => message ?? []);
    expect(messages).toMatchObject([{ role: "user" }, { stopReason: "aborted" }]);
  });

  it("a signal does the same", async () => {
    play([{ silent: true }]);
    const driver = drive();
    const id = await driver.create();
    await driver.ask("prompt", { text: "Go" }, id);
    await service.asked(0);
    driver.interrupt();
    expect(await driver.code).toBe(EXIT.interrupted);
    // stdout is open: how it ended is reported.
    expect(driver.frames.slice(-3).map(({ type }) => type)).toEqual([
      "agent_end",
      "done",
      "goodbye",
    ]);
  });

  it("stdout carries nothing but frames, also when something writes to the console", async () => {
    const driver = drive();
    await driver.ask("hello", { versions: [1] });
    console.log("to whom it may concern");
    console.table([1]);
    driver.stdin.write("nonsense\n");
    await driver.next(({ type }) => type === "error");
    await driver.ask("goodbye").catch(() => {});
    expect(await driver.code).toBe(EXIT.done);
    expect(driver.stdout).not.toContain("concern");
    expect(driver.stderr).toContain("to whom it may concern");
  });

  it("reports what was paid, by what it was for: of a run in its end, of the session in snapshots", async () => {
    const args = { path: "a.txt", content: "x" };
    play([
      { say: [{ call: "write", arguments: args, id: "c1" }] },
      { say: "Written." },
      { say: "Again." },
    ]);
    const driver = drive({ mode: "ask" });
    const id = await driver.create();
    const paid = { answers: { input: 100, output: 20 } };
    expect((await driver.run("Write it.", id)).payload).toMatchObject({ spending: paid });
    const from = driver.frames.length;
    await driver.ask("approve", { decisions: { c1: { type: "approve" } } }, id);
    const approved = await driver.next(({ type }) => type === "agent_end", from);
    expect(approved.payload).toMatchObject({ stop: "done", spending: paid });
    expect((await driver.run("Again?", id)).payload).toMatchObject({ spending: paid });
    await driver.ask("session_attach", {}, id);
    const { payload } = await driver.next(({ type }) => type === "snapshot", from);
    expect(payload).toMatchObject({
      spending: { answers: { input: 300, output: 60 } },
      run: { end: { payload: { spending: paid } } },
    });
    await driver.ask("session_close", {}, id);
    // It is in the file.
    expect((await driver.attach(id))["spending"]).toMatchObject({ answers: { input: 300 } });
  });

  it("lists sessions in pages, those of other folders last while they are open", async () => {
    const driver = drive();
    const first = await driver.create();
    const more = [
      (await driver.ask("session_create")).payload["session"],
      (await driver.ask("session_create")).payload["session"],
    ];
    const elsewhere = (await driver.ask("session_create", { cwd: ".." })).payload["session"];
    const listed: unknown[] = [];
    let cursor: unknown;
    do {
      const page = { limit: 2, ...(cursor !== undefined && { cursor }) };
      const { payload } = await driver.ask("session_list", page);
      listed.push(...(payload["sessions"] as { id: unknown }[]).map(({ id }) => id));
      cursor = payload["next"];
    } while (cursor !== undefined);
    expect(new Set(listed.slice(0, 3))).toEqual(new Set([first, ...more]));
    expect(listed.slice(3)).toEqual([elsewhere]);
  });

  it("lists sessions, and goes on with one", async () => {
    play([{ say: "One." }, { say: "Two." }]);
    const first = drive();
    const id = await first.create();
    await first.run("First", id);
    first.stdin.end();
    await first.code;
    const second = drive();
    await second.ask("hello", { versions: [1] });
    const { sessions } = (await second.ask("session_list")).payload;
    expect(sessions).toMatchObject([{ id, cwd, firstPrompt: "First", isOpen: false }]);
    await second.ask("session_attach", {}, id);
    const snapshot = await second.next(({ type }) => type === "snapshot");
    expect(snapshot.payload).toMatchObject({ cwd, mode: "auto-edit" });
    expect(snapshot.payload["messages"]).toHaveLength(2);
    await second.run("Second", id);
    expect(service.requests[1]?.body["messages"]).toHaveLength(3);
    expect((await second.ask("session_attach", {}, "../x")).payload["code"]).toBe(
      "session_not_found",
    );
    second.stdin.end();
    expect(await second.code).toBe(EXIT.done);
  });

  it("changes model, thinking, tools and mode, all or nothing", async () => {
    const driver = drive();
    const id = await driver.create();
    const update = (payload: Payload): Promise<Envelope> =>
      driver.ask("session_update", payload, id);
    const done = await update({
      model: "haiku",
      thinkingLevel: "low",
      tools: ["read"],
      modes: { permission: "plan", steering: "all" },
    });
    expect(done).toMatchObject({
      type: "ack",
      payload: { thinkingLevel: "low", tools: ["read"], modes: { steering: "all" } },
    });
    expect(String((done.payload["model"] as Payload)["id"])).toContain("haiku");
    expect((await update({ model: "no such model" })).payload["code"]).toBe("model_not_found");
    expect((await update({ model: "sonnet", tools: ["nosuch"] })).payload["code"]).toBe(
      "tool_not_found",
    );
    expect((await update({ modes: { permission: "x" } })).payload["code"]).toBe("invalid_request");
    const still = await update({});
    expect(still.payload["model"]).toEqual(done.payload["model"]);
    driver.stdin.end();
    await driver.code;
  });

  it("starts over in the same file: reset and messages_replace", async () => {
    play([{ say: "One." }, { say: "Two." }, { say: "Three." }]);
    const driver = drive();
    const id = await driver.create();
    await driver.run("First", id);
    expect((await driver.ask("reset", {}, id)).type).toBe("ack");
    await driver.run("Second", id);
    expect(service.requests[1]?.body["messages"]).toHaveLength(1);
    const messages = [{ role: "user", content: "Earlier", timestamp: 1 }];
    expect((await driver.ask("messages_replace", { messages }, id)).type).toBe("ack");
    const from = driver.frames.length;
    await driver.ask("continue", {}, id);
    await driver.next(({ type }) => type === "agent_end", from);
    expect(JSON.stringify(service.requests[2]?.body["messages"])).toContain("Earlier");
    expect(service.requests[2]?.body["system"]).toEqual(service.requests[0]?.body["system"]);
    driver.stdin.end();
    await driver.code;
    const again = drive();
    await again.ask("hello", { versions: [1] });
    await again.ask("session_attach", {}, id);
    const snapshot = await again.next(({ type }) => type === "snapshot");
    expect(snapshot.payload["messages"]).toMatchObject([
      { content: "Earlier" },
      { content: [{ text: "Three." }] },
    ]);
    again.stdin.end();
    await again.code;
  });

  it("messages_replace keeps what waits; reset does not", async () => {
    const driver = drive();
    const id = await driver.create();
    const { queued } = (await driver.ask("follow_up", { text: "Later" }, id)).payload;
    const messages = [{ role: "user", content: "Earlier", timestamp: 1 }];
    const readQueue = async (): Promise<unknown> =>
      (await driver.ask("queue_edit", { queue: "followUp", op: "list" }, id)).payload["queued"];
    await driver.ask("messages_replace", { messages }, id);
    expect(await readQueue()).toMatchObject([{ id: queued, message: { content: "Later" } }]);
    await driver.ask("reset", {}, id);
    expect(await readQueue()).toEqual([]);
    driver.stdin.end();
    await driver.code;
  });

  it("makes sessions with options of their own, and ignores fields that it does not know", async () => {
    const driver = drive({ "no-session": true });
    await driver.ask("hello", { versions: [1] });
    const make = async (options: Payload): Promise<unknown> => {
      const { payload } = await driver.ask("session_create", options);
      return payload["code"] ?? payload;
    };
    expect(await make({ cwd: home, tools: ["read", "ls"], mode: "plan" })).toMatchObject({
      session: "unsaved-1",
      cwd: home,
      tools: ["read", "ls"],
      mode: "plan",
    });
    expect(await make({ cwd: join(home, "nosuch") })).toBe("invalid_request");
    expect(await make({ color: "red" })).toMatchObject({ session: "unsaved-2" });
    expect(await make({ tools: "read" })).toBe("invalid_request");
    expect(await make({ model: 1 })).toBe("invalid_request");
    const id = "unsaved-1";
    play([{ say: "One." }]);
    await driver.run("First", id);
    expect((await driver.ask("reset", {}, id)).type).toBe("ack");
    driver.stdin.end();
    expect(await driver.code).toBe(EXIT.done);
  });

  it("leaves no session behind that could not be made", async () => {
    const driver = drive();
    await driver.ask("hello", { versions: [1] });
    const { payload } = await driver.ask("session_create", { model: "no such model" });
    expect(payload["code"]).toBe("model_not_found");
    expect((await driver.ask("session_list")).payload).toEqual({ sessions: [] });
    driver.stdin.end();
    expect(await driver.code).toBe(EXIT.done);
  });

  it("ends before the first frame where the command line is wrong", async () => {
    const driver = drive({ cwd: "nosuch" });
    await expect(driver.code).rejects.toThrow(UsageError);
    expect(driver.stdout).toBe("");
  });
});
