import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Payload } from "@gyre/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Values } from "../../core/options.ts";
import { type FrameDriver, FrameWorld } from "../../testing/frame-driver.ts";
import type { Script } from "../../testing/scripted-service.ts";
import { runServe } from "../serve/serve.ts";

let world: FrameWorld;
let driver: FrameDriver;
let id: string;

beforeEach(async () => {
  world = await FrameWorld.open();
});

afterEach(async () => {
  driver.stdin.end();
  await driver.code;
  await world.close();
});

/** A server with a session, after a prompt. */
async function serve(script: Script, values: Values = {}, prompt?: string): Promise<void> {
  world.service.play(script);
  driver = world.start(runServe, { stdio: true, mode: "ask", ...values });
  id = await driver.create();
  if (prompt !== undefined) await driver.run(prompt, id);
}

async function request(name: string, payload: Payload = {}): Promise<Payload> {
  const { type, payload: answer } = await driver.ask("session_request", {
    session: id,
    name,
    ...payload,
  });
  if (type !== "ack") throw new Error(`${String(answer["code"])}: ${String(answer["message"])}`);
  return answer;
}

const run = (command: string, rest = "", answers: unknown[] = []): Promise<Payload> =>
  request("command", { command, rest, answers });

const EDIT = {
  call: "edit",
  arguments: { path: "tea.txt", edits: [{ oldText: "black", newText: "green" }] },
  id: "c1",
} as const;

describe("commands", () => {
  it("lists those that clients may use, and those of files of the folder", async () => {
    mkdirSync(join(world.cwd, ".gyre", "commands"), { recursive: true });
    writeFileSync(join(world.cwd, ".gyre", "commands", "brew.md"), "Brew $ARGUMENTS.");
    await serve([]);
    const { commands } = await request("commands");
    const names = (commands as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["compact", "cost", "fork", "jobs", "brew"]));
    for (const name of ["login", "config", "rewind", "quit", "model"]) {
      expect(names).not.toContain(name);
    }
    expect(await run("brew", "green tea")).toMatchObject({ result: { prompt: "Brew green tea." } });
    await expect(run("login")).rejects.toThrow("not_implemented");
  });

  it("shows what the session has used, and gives it a name", async () => {
    await serve([{ say: "Green." }], {}, "Which tea?");
    expect(JSON.stringify(await run("cost"))).toContain("The session:");
    expect(JSON.stringify(await run("title", "The tea"))).toContain("The tea");
    const { sessions } = (await driver.ask("session_list")).payload;
    expect(sessions).toMatchObject([{ id, title: "The tea" }]);
    await expect(run("title")).rejects.toThrow("/title needs a name");
  });

  it("asks, and goes on with the answer", async () => {
    await serve([{ say: "Green." }, { say: "Black." }], {}, "Which tea?");
    await driver.run("And now?", id);
    const { ask } = await run("fork");
    expect(ask).toMatchObject({
      title: "A copy up to which prompt?",
      choices: [{ label: "And now?" }, { label: "Which tea?" }],
    });
    const { result } = await run("fork", "", [{ choice: 0, label: "And now?" }]);
    expect(result).toMatchObject({ open: { session: expect.any(String) }, edit: "And now?" });
    const { open } = result as { open: { session: string } };
    const { messages } = await driver.attach(open.session);
    expect(messages).toHaveLength(2);
    await expect(run("fork", "", [{ choice: 1, label: "And now?" }])).rejects.toThrow(
      "The list has changed since",
    );
    expect(await run("fork", "", [null])).toEqual({ show: [], result: {} });
  });

  it("does not go beyond what the server allows", async () => {
    await serve([], { tools: "read" });
    await expect(run("permissions", "full")).rejects.toThrow('more than this server allows: "ask"');
    await expect(run("tools", "+shell")).rejects.toThrow("not offered");
    await expect(run("mcp", "trust x")).rejects.toThrow("at the server");
    await expect(run("add-dir", world.home)).rejects.toThrow("invalid_request");
  });

  it("what is wrong with a request is refused", async () => {
    await serve([]);
    await expect(request("brew")).rejects.toThrow("not_implemented");
    await expect(run("cost", "", [{ choice: "x" }])).rejects.toThrow('"answers" is a list');
    await expect(request("command", { command: "cost", rest: 3 })).rejects.toThrow('"rest"');
    const { payload } = await driver.ask("session_request", { name: "commands" });
    expect(payload).toMatchObject({ code: "invalid_request" });
    const lost = await driver.ask("session_request", { session: "none", name: "commands" });
    expect(lost.payload).toMatchObject({ code: "session_not_found" });
  });
});

describe("questions", () => {
  it("have what a terminal shows, and the text that a call would change", async () => {
    writeFileSync(join(world.cwd, "tea.txt"), "black\n");
    await serve([{ say: [EDIT] }], {}, "Change it.");
    const end = driver.frames.findLast(({ type }) => type === "agent_end");
    expect(end?.payload).toMatchObject({
      pending: [
        {
          access: {
            kind: "write",
            targets: ["tea.txt"],
            question: { byMode: { mode: "ask", about: "write", notes: [] } },
          },
        },
      ],
    });
    expect(await request("call_files", { call: "c1" })).toEqual({
      files: [{ path: "tea.txt", text: "black\n" }],
    });
    await expect(request("call_files", { call: "c2" })).rejects.toThrow("No call");
  });

  it("show no text where the session has no tool to read it", async () => {
    writeFileSync(join(world.cwd, "tea.txt"), "black\n");
    await serve([{ say: [EDIT] }], { tools: "edit" }, "Change it.");
    expect(await request("call_files", { call: "c1" })).toEqual({ files: [] });
  });

  it("are answered with rules that they offer, and no others, until the session is closed", async () => {
    const write = (path: string, id: string) =>
      ({ call: "write", arguments: { path, content: "green\n" }, id }) as const;
    await serve(
      [{ say: [write("a.txt", "c1")] }, { say: [write("b.txt", "c2")] }, { say: "Done." }],
      {},
      "Write them.",
    );
    await expect(request("allow", { call: "c1", rules: ["shell"] })).rejects.toThrow(
      'The rule "shell" is not offered for this call',
    );
    await expect(request("allow", { call: "c1", rules: [] })).rejects.toThrow('"rules" is a list');
    await request("allow", { call: "c1", rules: ["write", "edit", "apply_patch"] });
    const from = driver.frames.length;
    await driver.ask("approve", { decisions: { c1: { type: "approve" } } }, id);
    const end = await driver.next(({ type }) => type === "agent_end", from);
    expect(end.payload).toMatchObject({ stop: "done", pending: [] });
    expect(readFileSync(join(world.cwd, "b.txt"), "utf8")).toBe("green\n");
    expect(JSON.stringify(await run("permissions", "forget write"))).toContain("asked about again");
    expect(existsSync(join(world.home, "config", "gyre", "permissions.json"))).toBe(false);
  });
});

describe("files and tree", () => {
  it("finds files of the folder", async () => {
    writeFileSync(join(world.cwd, "teapot.txt"), "");
    await serve([]);
    expect(await request("find_files", { query: "pot" })).toEqual({ paths: ["teapot.txt"] });
    await expect(request("find_files", {})).rejects.toThrow('"query"');
  });

  it("reads the entries of a session, names one, and goes to another place", async () => {
    await serve([{ say: "Green." }, { say: "Black." }, { say: "White." }], {}, "Which tea?");
    await driver.run("And now?", id);
    const { entries } = await request("tree");
    const messages = (entries as { id: number; type: string }[]).filter(
      ({ type }) => type === "message",
    );
    expect(messages).toHaveLength(4);
    const second = messages[1]?.id ?? 0;
    expect(await request("entry", { entry: second })).toMatchObject({
      entry: { type: "message", message: { role: "assistant" } },
    });
    await request("label", { entry: second, label: "good" });
    const from = driver.frames.length;
    await request("go_to", { entry: second });
    const snapshot = await driver.next(({ type }) => type === "snapshot", from);
    expect(snapshot.payload["messages"]).toHaveLength(2);
    const end = await driver.run("And now?", id);
    expect(end.payload).toMatchObject({ stop: "done" });
  });
});

describe("plans", () => {
  interface Plan {
    id: string;
    plan: string;
  }
  const PLAN = { call: "plan", arguments: { plan: "1. Tea" } } as const;

  /** The plan in the status, once a client has said that it shows plans. */
  async function readPlan(): Promise<Plan> {
    await driver.ask("session_attach", { status: true }, id);
    await request("show_plans");
    await driver.ask("prompt", { text: "Plan it." }, id);
    const hasPlan = (payload: Payload): boolean => Array.isArray(payload["plans"]);
    const { payload } = await driver.next(
      (one) => one.type === "session_status" && hasPlan(one.payload),
    );
    const [plan] = payload["plans"] as Plan[];
    if (!plan) throw new Error("There is no plan.");
    return plan;
  }

  it("are refused with answers that do not fit, and wait on", async () => {
    await serve([{ say: [PLAN] }, { say: "More." }], { mode: "plan" });
    const { id: question, plan } = await readPlan();
    expect(plan).toBe("1. Tea");
    for (const answer of [
      { approve: true, plan, mode: "full" },
      { approve: true, plan },
      { approve: true, mode: "plan" },
      { approve: false },
      {},
    ]) {
      await expect(request("answer_plan", { question, ...answer })).rejects.toThrow(
        "A plan is answered with",
      );
    }
    const answer = { approve: false, reason: "Which tea?" };
    await expect(request("answer_plan", { question: "x", ...answer })).rejects.toThrow(
      "No question",
    );
    await request("answer_plan", { question, ...answer });
    await driver.next(({ type }) => type === "agent_end");
    expect(world.service.requests[1]?.text).toContain("Not approved: Which tea? Go on planning.");
    await expect(request("answer_plan", { question, ...answer })).rejects.toThrow("No question");
  });

  it("are answers where no client shows them", async () => {
    await serve([{ say: "1. Tea" }], { mode: "plan" }, "Plan it.");
    expect(world.service.requests[0]?.text).not.toContain('"name":"plan"');
    expect(world.service.requests[0]?.text).toContain("write it as your answer");
  });
});

it("no command goes to the background where none runs", async () => {
  await serve([]);
  await expect(request("background")).rejects.toThrow("No command runs that can go on");
});
