import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { call, type ScriptedModel, scriptedModel } from "@gyre/ai/testing";
import {
  type CodingAgentOptions,
  createCodingAgent,
  defineCodingAgent,
  type DurableCodingAgent,
} from "@gyre/coding";
import { hostPool, openRuns, type Runs, Worker, type WorkerOptions } from "@gyre/durable";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorld, type Script, scriptedCodingAgent, type World } from "./world.ts";

let world: World;
let runs: Runs;
let workers: Worker[] = [];
let warnings: string[] = [];
let errors: unknown[] = [];

beforeEach(async () => {
  world = createWorld();
  runs = await openRuns(world.url, { onError: (error) => void errors.push(error) });
});
afterEach(async () => {
  for (const worker of workers) await worker.stop({ drainMs: 0 });
  [workers, warnings, errors] = [[], [], []];
  await runs.close();
  world.remove();
});

async function startWorker(
  agent: DurableCodingAgent,
  options: Partial<WorkerOptions> = {},
): Promise<Worker> {
  const worker = new Worker(runs, { agents: [agent], ...options });
  workers.push(worker);
  await worker.start();
  return worker;
}

async function createSession(options: { pool?: string; id?: string } = {}): Promise<string> {
  const { pool = "", id = "7k2m" } = options;
  const session = await runs.sessions({ pool }).create({ cwd: world.cwd, id });
  await session.close();
  return id;
}

describe("the coding agent of a worker", () => {
  it("works in the folder of its session", async () => {
    const session = await createSession();
    await startWorker(
      scriptedCodingAgent(world, [
        call("write", { path: "tea.txt", content: "green\n" }),
        call("shell", { command: "cat tea.txt; echo black >> tea.txt" }),
        "Done.",
      ]),
    );
    const run = await runs.start("Make a list of teas.", { agent: "coding", session });
    expect((await run.result()).text).toBe("Done.");
    expect(readFileSync(join(world.cwd, "tea.txt"), "utf8")).toBe("green\nblack\n");
    const messages = JSON.stringify(await run.messages());
    expect(messages).toContain("green");
  });

  it("gives the model the facts of the start with its first prompt, once, unless a setting says no", async () => {
    const session = await createSession();
    const seen: string[] = [];
    const answer = (messages: string): string => {
      seen.push(messages);
      return "Green.";
    };
    await startWorker(scriptedCodingAgent(world, [answer, answer]));
    const run = await runs.start("Which tea?", { agent: "coding", session });
    await run.result();
    const next = await run.prompt("And now?");
    await next.result();
    expect(seen).toHaveLength(2);
    for (const each of seen) {
      expect(each).toMatch(/Which tea\?.*\[Date: \d{4}-\d\d-\d\d\\nSystem: /);
      expect(each).toContain(`Folder: ${world.cwd}`);
      expect(each).toContain("Mode: full");
      expect(each.split("[Date: ")).toHaveLength(2);
    }
    const roles = (await run.messages()).map(({ role }) => role);
    expect(roles.slice(0, 3)).toEqual(["user", "notice", "assistant"]);
    await workers[0]?.stop({ drainMs: 0 });
    await startWorker(scriptedCodingAgent(world, [answer], { settings: { facts: false } }));
    const other = await createSession({ id: "8n3p" });
    await (await runs.start("Which tea?", { agent: "coding", session: other })).result();
    expect(seen[2]).not.toContain("[Date: ");
  });

  it("leaves a call that needs an approval to a person, and goes on with the decision", async () => {
    const session = await createSession();
    await startWorker(
      scriptedCodingAgent(world, [call("shell", { command: "touch made" }, "c1"), "Done."], {
        permissions: { mode: "ask" },
      }),
    );
    const run = await runs.start("Make it.", { agent: "coding", session });
    await expect.poll(async () => (await run.info()).status).toBe("waiting");
    const { pending } = await run.info();
    expect(pending).toMatchObject([{ toolCall: { id: "c1" }, waitsFor: "decision" }]);
    const fingerprint = pending[0]?.fingerprint;
    await run.decide({
      c1: { type: "approve", ...(fingerprint !== undefined && { fingerprint }) },
    });
    expect((await run.result()).text).toBe("Done.");
    expect(readFileSync(join(world.cwd, "made"), "utf8")).toBe("");
  });

  it("says that jobs of an earlier worker are gone: a run that waits has none", async () => {
    const session = await createSession();
    await startWorker(
      scriptedCodingAgent(
        world,
        [
          call("shell", { command: "sleep 1000", background: true }, "job"),
          call("write", { path: "made", content: "" }, "c1"),
          (messages) =>
            call("jobs", { action: "read", id: /job-[\w-]+/.exec(messages)?.[0] ?? "" }, "look"),
          "Done.",
        ],
        { permissions: { mode: "full", ask: ["write"] } },
      ),
    );
    const run = await runs.start("Make it.", { agent: "coding", session });
    await expect.poll(async () => (await run.info()).status).toBe("waiting");
    await run.decide({ c1: { type: "approve" } });
    await run.result();
    const look = (await run.messages()).find(
      (message) => message.role === "toolResult" && message.toolCallId === "look",
    );
    expect(JSON.stringify(look)).toMatch(
      /job-[\w-]+\\" is gone: the process that started it has ended/,
    );
  });

  it("fails a run whose prompt a hook refuses, also after retry(), and asks no model", async () => {
    const session = await createSession();
    const log = join(world.home, "refused");
    const command = `if grep -q secret; then echo x >> ${log}; echo It is secret. >&2; exit 2; fi`;
    const hooks = { UserPromptSubmit: [{ command }] };
    await startWorker(scriptedCodingAgent(world, ["Done."], { hooks }));
    const run = await runs.start("Name the secret.", { agent: "coding", session });
    const refused = { stop: "error", error: expect.stringContaining("It is secret.") };
    expect(await run.result()).toMatchObject(refused);
    await run.retry();
    expect(await run.result()).toMatchObject(refused);
    expect(readFileSync(log, "utf8")).toBe("x\nx\n");
    const next = await run.prompt("Name a tea.");
    expect((await next.result()).text).toBe("Done.");
  });

  it("throws on an option that there is not, before any run", () => {
    const options: object = { permissionMode: "full" };
    expect(() => defineCodingAgent(options)).toThrow("Write permissions: { mode }");
  });

  it("fails the run where the folder is not there, and retry() goes on when it is", async () => {
    const id = "9abc";
    const cwd = join(world.home, "later");
    await (await runs.sessions().create({ cwd, id })).close();
    await startWorker(scriptedCodingAgent(world, ["Done."]));
    const run = await runs.start("Work.", { agent: "coding", session: id });
    expect(await run.result()).toMatchObject({
      stop: "error",
      error: expect.stringContaining("there is no such folder"),
    });
    mkdirSync(cwd);
    await run.retry();
    expect((await run.result()).text).toBe("Done.");
    expect(errors).toHaveLength(1);
  });
});

describe("sessions of a store under createCodingAgent", () => {
  function options(script: Script): CodingAgentOptions & { model: ScriptedModel["model"] } {
    const model = scriptedModel(
      [...script].map((step) => (typeof step === "function" ? "" : step)),
    );
    return {
      ...{ cwd: world.cwd, env: world.env, sandbox: "none", model: model.model, protocol: model },
      permissions: { mode: "full" },
      onWarning: (text) => void warnings.push(text),
    };
  }

  it("are continued by a program, by a worker, and by a program again", async () => {
    const pool = hostPool();
    const storage = runs.sessions({ pool });
    const agent = await createCodingAgent({
      ...options([call("write", { path: "tea.txt", content: "green\n" }), "Written."]),
      session: { storage },
    });
    expect((await agent.prompt("Write a tea.")).text).toBe("Written.");
    const id = agent.session?.header.id ?? "";
    await agent.close();
    expect(await storage.list({ cwd: world.cwd })).toMatchObject([
      { id, firstPrompt: "Write a tea.", cwd: world.cwd },
    ]);

    // The transcript has two answers already.
    const answers: Script = ["", "", call("shell", { command: "cat tea.txt" }), "Green."];
    await startWorker(scriptedCodingAgent(world, answers), { pools: [pool] });
    const run = await runs.start("Which?", { agent: "coding", session: id });
    expect((await run.result()).text).toBe("Green.");

    const again = await createCodingAgent({
      ...options(["It was green."]),
      session: { id, storage },
    });
    expect(again.state.messages.filter(({ role }) => role === "user")).toHaveLength(2);
    expect((await again.prompt("And?")).text).toBe("It was green.");
    // Worker and program write the same settings: neither takes those of the other for foreign.
    expect(warnings).toEqual([]);
    await again.close();
  });

  it("are taken back to an earlier prompt, with their files", async () => {
    const agent = await createCodingAgent({
      ...options([
        call("write", { path: "tea.txt", content: "green\n" }),
        "Green.",
        call("write", { path: "tea.txt", content: "black\n" }),
        "Black.",
      ]),
      session: { storage: runs.sessions() },
    });
    await agent.prompt("Green.");
    await agent.prompt("Black.");
    expect((await agent.rewind()).prompt).toBe("Black.");
    expect(readFileSync(join(world.cwd, "tea.txt"), "utf8")).toBe("green\n");
    const id = agent.session?.header.id ?? "";
    await agent.close();
    const session = await runs.sessions().open(id, { readOnly: true });
    expect((await session.context()).messages.at(-1)).toMatchObject({ role: "assistant" });
    expect(JSON.stringify((await session.context()).messages)).not.toContain("black");
  });
});
