import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { call, say, type ScriptAnswer, stall, think } from "@gyre/ai/testing";
import { afterEach, describe, expect, it } from "vitest";
import { createTestTool } from "./testing/remote-world.ts";
import {
  type ServedWorld,
  createServedWorld,
  type ServedWorldOptions,
} from "./testing/served-world.ts";

// A second implementation of the wire, in Python and from its document alone: what is not
// written down there does not work here. It needs python3, and fails where there is none.

const CLIENT = fileURLToPath(new URL("../../../scripts/drive/wire-client.py", import.meta.url));
const run = promisify(execFile);

const TEXT = "Hello 😀 there,\r\n\u2028 it is a fine day. ".repeat(10);
const THOUGHT = "Hm, how do I say that?";
const ARGUMENTS = { at: "the window" };

const open: ServedWorld[] = [];

afterEach(async () => {
  for (const world of open.splice(0)) await world.close();
});

async function served(options: Partial<ServedWorldOptions> = {}): Promise<ServedWorld> {
  const answer = (question: string): ScriptAnswer =>
    question === "Wait" ? [say("Well"), stall()] : [think(THOUGHT), say(TEXT)];
  const world = await createServedWorld({ answer, scripted: { chunkSize: 3 }, ...options });
  open.push(world);
  return world;
}

async function python({ tcp, token }: ServedWorld, ...args: string[]): Promise<unknown> {
  const env = { ...process.env, GYRE_TOKEN: token, PYTHONIOENCODING: "utf-8" };
  const port = String(tcp.port);
  const { stdout } = await run("python3", [CLIENT, "--port", port, ...args], { env });
  return JSON.parse(stdout);
}

/** From 1 to the last, each once. */
function isWhole(seqs: unknown): boolean {
  return Array.isArray(seqs) && seqs.length > 0 && seqs.every((seq, at) => seq === at + 1);
}

describe("a client in Python", () => {
  it("handshake and models: says hello with the token, and lists", async () => {
    const world = await served();
    expect(await python(world, "models")).toMatchObject([{ provider: "scripted", id: "scripted" }]);
  });

  it("who may come in: is refused without the token", async () => {
    const { tcp } = await served();
    const args = [CLIENT, "--port", String(tcp.port), "models"];
    const refused = run("python3", args, { env: { ...process.env, GYRE_TOKEN: "wrong" } });
    await expect(refused).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("unauthorized"),
    });
  });

  it("stream_request: builds the message from deltas, and checks its length", async () => {
    const heard = await python(await served(), "stream", "Go");
    expect(heard).toMatchObject({ end: "done", reason: "stop", blocks: { 0: THOUGHT, 1: TEXT } });
    expect(isWhole((heard as { seqs?: unknown }).seqs)).toBe(true);
  });

  it("abort_request: cancels the service's request, and once is as good as twice", async () => {
    const world = await served();
    const heard = await python(world, "stream", "Wait", "--abort", "3");
    expect(heard).toMatchObject({ end: "error", reason: "aborted", blocks: { 0: "Well" } });
    expect(world.model.calls[0]?.options.signal?.aborted).toBe(true);
  });

  it("resume: sends what is missing, and asks the model once", async () => {
    const world = await served();
    const cuts = ["--cut", "0", "--cut", "1", "--cut", "17", "--cut", "60"];
    const heard = await python(world, "stream", "Go", ...cuts);
    expect(heard).toMatchObject({ end: "done", blocks: { 0: THOUGHT, 1: TEXT } });
    expect(isWhole((heard as { seqs?: unknown }).seqs)).toBe(true);
    expect(world.model.requests).toBe(1);
  });

  it("resume: what is gone comes as a snapshot", async () => {
    const world = await served({ limits: { tailEvents: 4 } });
    const heard = await python(world, "stream", "Go", "--cut", "5");
    expect(heard).toMatchObject({
      end: "done",
      blocks: { 0: THOUGHT, 1: TEXT },
      seqs: [1, 2, 3, 4, 5, "snapshot", expect.any(Number)],
    });
  });

  it("session_list: comes in pages", async () => {
    const world = await served();
    for (let made = 0; made < 3; made++) await python(world, "session", "Go");
    expect(await python(world, "sessions", "--limit", "3")).toEqual([
      ["kept", "s_1", "s_2"],
      ["s_3"],
    ]);
    expect(await python(world, "sessions")).toEqual([["kept", "s_1", "s_2", "s_3"]]);
  });

  it("session_rename, session_archive, session_fork, session_list {query}", async () => {
    const world = await served();
    expect(await python(world, "sessions", "green")).toEqual([[]]);
    expect(await python(world, "amend", "kept", "--title", "Green tea")).toBe("f_1");
    expect(world.host.stored.get("kept")).toMatchObject({ title: "Green tea", archived: true });
    expect(await python(world, "sessions", "TEA green")).toEqual([["kept"]]);
  });

  it("session_attach: every event once, and who comes later gets the messages", async () => {
    const answers: ScriptAnswer[] = [[think(THOUGHT), call("look", ARGUMENTS)], TEXT];
    const world = await served({
      answer: (_, { messages }) => answers[messages.length === 1 ? 0 : 1] ?? "",
      host: { tools: [createTestTool("look")] },
    });
    const cuts = ["--cut", "0", "--cut", "4", "--cut", "9"];
    const heard = await python(world, "session", "Go", ...cuts);
    expect(heard).toMatchObject({ stop: "done" });
    const { seqs, session } = heard as { seqs?: unknown; session?: unknown };
    expect(isWhole(seqs)).toBe(true);
    expect(world.host.agents.length).toBe(1);
    expect(await python(world, "attach", String(session))).toMatchObject({
      session,
      messages: [
        { role: "user", content: "Go" },
        { role: "assistant", content: [{ thinking: THOUGHT }, { arguments: ARGUMENTS }] },
        { role: "toolResult" },
        { role: "assistant", content: [{ text: TEXT }] },
      ],
    });
  });
});
