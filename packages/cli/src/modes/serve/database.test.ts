import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Connect } from "@gyre/protocol";
import { RemoteAgent } from "@gyre/server/client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { startPostgres } from "../../../../../tests/support/postgres.ts";
import {
  PATIENCE,
  readText,
  type ServedProgram,
  ServeWorld,
} from "../../testing/served-program.ts";

// Real servers, real clients, one database.

let world: ServeWorld;
let folder: string;
let home: string;

beforeAll(async () => {
  world = await ServeWorld.open();
});

afterAll(() => world.remove());

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "gyre-serve-"));
  home = await world.program.makeHome();
  await world.begin();
});

afterEach(async () => {
  await world.end();
  rmSync(folder, { recursive: true });
});

/** A server of the database; all of them work in the same folder. */
function serve(url: string, ...args: string[]): Promise<ServedProgram> {
  return world.serve(["--database", url, ...args], { home });
}

/** The way to one server after the other, of those that are there. */
function connectAny(...servers: readonly ServedProgram[]): Connect {
  let nth = 0;
  return async (signal) => {
    const server = servers[nth++ % servers.length];
    if (!server) throw new Error("There is no server.");
    return server.webSocket(signal);
  };
}

async function createAgent(...servers: readonly ServedProgram[]): Promise<RemoteAgent> {
  const agent = await RemoteAgent.create({ connect: connectAny(...servers) });
  world.closes(agent);
  return agent;
}

const SLOW = {
  call: "shell",
  arguments: { command: "echo ran >> ran.txt; sleep 60" },
  id: "slow",
} as const;

describe("gyre serve --database", () => {
  it("kill -9 of a server in the middle of an answer: prompt() settles at another one", async () => {
    const url = `file:${join(folder, "runs.db")}`;
    const long = "Tea is made of leaves. ".repeat(20);
    world.service.play([
      { say: long, deltaChars: 8, fault: { how: "silence", afterDeltas: 5 } },
      { say: long, deltaChars: 8 },
      { say: "You are welcome." },
    ]);
    const one = await serve(url);
    const two = await serve(url, "--no-worker");
    const agent = await createAgent(one, two);
    const ending = agent.prompt("How is tea made?");
    await world.service.asked(0);
    one.run.kill("SIGKILL");
    await one.run.end;
    await serve(url);
    const end = await ending;
    expect(end.stop).toBe("done");
    expect(readText(end.messages.at(-1))).toBe(long);
    expect(agent.state.messages).toEqual(end.messages);
    expect((await agent.prompt("Thanks.")).stop).toBe("done");
    // The facts of the start are there once.
    const roles = agent.state.messages.map(({ role }) => role);
    expect(roles).toEqual(["user", "notice", "assistant", "user", "assistant"]);
    const sessions = await RemoteAgent.list({ connect: two.webSocket });
    expect(sessions).toMatchObject([{ id: agent.sessionId, firstPrompt: "How is tea made?" }]);
  });

  it("SIGTERM: another server continues at once, and has the client", async () => {
    const url = `file:${join(folder, "runs.db")}`;
    world.service.play([
      { say: [{ call: "write", arguments: { path: "a.txt", content: "tea" }, id: "c1" }] },
      { say: "Done." },
    ]);
    const one = await serve(url, "--drain", "5");
    const agent = await createAgent(one, await serve(url));
    const { pending, stop } = await agent.prompt("Write it.");
    expect(stop).toBe("suspended");
    one.run.kill("SIGTERM");
    expect((await one.run.end).signal ?? (await one.run.end).code).toBe(143);
    const fingerprint = String(pending[0]?.fingerprint);
    const end = await agent.approve({ c1: { type: "approve", fingerprint } });
    expect(end.stop).toBe("done");
    expect(readFileSync(join(one.run.cwd, "a.txt"), "utf8")).toBe("tea");
  });

  it("has the runs of the database in its figures, and what its worker does in its log", async () => {
    world.service.play([{ say: "A secret answer." }]);
    const server = await serve(`file:${join(folder, "runs.db")}`);
    const agent = await createAgent(server);
    expect((await agent.prompt("A secret question.")).stop).toBe("done");
    const headers = { authorization: `Bearer ${server.token}` };
    const figures = await (await fetch(`${server.url}/metrics`, { headers })).text();
    expect(figures).toContain("\ngyre_sessions_running ");
    expect(figures).toContain("\ngyre_claims_total 1\n");
    expect(figures).toContain('\ngyre_workers{state="alive"} 1\n');
    expect(await server.logged("claim")).toMatchObject({ agent: expect.any(String), deaths: 0 });
    expect(await server.logged("end")).toMatchObject({ stop: "done", turns: 1 });
    expect(server.run.stderr).not.toContain("secret");
  });

  it("a command that runs as its server dies is reported as interrupted, and not run again", async () => {
    const url = `file:${join(folder, "runs.db")}`;
    world.service.play([{ say: [SLOW] }, { say: "I see." }]);
    const one = await serve(url, "--allow-unsandboxed", "--mode", "full");
    const agent = await createAgent(one, await serve(url, "--no-worker"));
    const ending = agent.prompt("Be slow.");
    const ran = join(one.run.cwd, "ran.txt");
    await vi.waitFor(() => expect(existsSync(ran)).toBe(true), PATIENCE);
    one.run.kill("SIGKILL");
    await serve(url, "--allow-unsandboxed", "--mode", "full");
    const end = await ending;
    expect(end.stop).toBe("done");
    expect(JSON.stringify(end.messages)).toContain("Interrupted");
    expect(readFileSync(ran, "utf8")).toBe("ran\n");
  });

  it("a session of a folder that the server does not work in is not opened", async () => {
    const url = `file:${join(folder, "runs.db")}`;
    world.service.play([{ say: "Hello." }]);
    const one = await serve(url);
    const agent = await createAgent(one);
    await agent.prompt("Hello?");
    expect(agent.state.info).toMatchObject({ cwd: one.run.cwd, mode: "ask" });
    const other = await world.serve(["--database", url]);
    await expect(
      RemoteAgent.attach({ connect: other.webSocket }, agent.sessionId),
    ).rejects.toMatchObject({ code: "invalid_request" });
    expect(await RemoteAgent.list({ connect: other.webSocket })).toEqual([]);
  });

  it.each([
    [["--database", "mysql://a:secret@b/c"], 'Runs cannot be opened from "mysql://a:***@b/c"'],
    [["--database", "file:/nowhere/at/all.db"], "/nowhere/at/all.db"],
    [["--no-worker"], "--no-worker is for --database."],
    [["--database", "file:a.db", "--worker", "--no-worker"], "contradict each other"],
    [["--database", "file:a.db", "--no-session"], "--no-session writes nothing down"],
  ])("%j: one sentence", async (args, what) => {
    const { code, stderr } = await world.program.gyre(["serve", "--port", "0", ...args]);
    expect(code).not.toBe(0);
    expect(stderr).toContain(what);
    expect(stderr.split("\n").filter((line) => line.includes(what))).toHaveLength(1);
    expect(stderr).not.toMatch(/^ +at /m);
    expect(stderr).not.toContain("secret");
  });
});

describe("gyre serve --database on Postgres", { tags: "postgres" }, () => {
  it("an answer that another server asks for is shown as it comes", async () => {
    const postgres = await startPostgres();
    try {
      const long = "Tea is made of leaves. ".repeat(20);
      world.service.play([{ say: long, deltaChars: 8, paceMs: 20 }]);
      await serve(postgres.url());
      const agent = await createAgent(await serve(postgres.url(), "--no-worker"));
      let streamed = "";
      let updates = 0;
      agent.subscribe((event) => {
        if (event.type !== "message_update") return;
        const { assistantMessageEvent: update } = event;
        updates++;
        if (update.type === "text_delta") streamed += update.delta;
      });
      const end = await agent.prompt("How is tea made?");
      expect(readText(end.messages.at(-1))).toBe(long);
      expect(updates).toBeGreaterThan(3);
      expect(long.startsWith(streamed)).toBe(true);
      await world.end();
      await world.begin();
    } finally {
      await postgres.remove();
    }
  });

  it("kill -9 of a server in the middle of an answer: prompt() settles at another one", async () => {
    const postgres = await startPostgres();
    try {
      world.service.play([
        { say: "Tea.", fault: { how: "silence", afterDeltas: 0 } },
        { say: "Tea is made of leaves." },
      ]);
      const one = await serve(postgres.url());
      const two = await serve(postgres.url(), "--no-worker");
      const agent = await createAgent(one, two);
      const ending = agent.prompt("How is tea made?");
      await world.service.asked(0);
      one.run.kill("SIGKILL");
      await serve(postgres.url());
      const end = await ending;
      expect(readText(end.messages.at(-1))).toBe("Tea is made of leaves.");
      const roles = agent.state.messages.map(({ role }) => role);
      expect(roles).toEqual(["user", "notice", "assistant"]);
      await world.end();
      await world.begin();
    } finally {
      await postgres.remove();
    }
  });
});
