import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineTool } from "@gyre/agent";
import { callAll, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import {
  askTool,
  defineAgent,
  type DurableAgent,
  durableTask,
  openRuns,
  type Runs,
  sleepTool,
  Worker,
} from "@gyre/durable";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startPostgres } from "../../../../../tests/support/postgres.ts";
import { scriptedService } from "../../testing/scripted-service.ts";
import { buildProgram, type Ended, jsonLines, type Program } from "../../testing/program.ts";

/** A limit for a worker that hangs: a busy machine takes long. */
const WAIT_MS = 20_000;

let program: Program;

beforeAll(async () => {
  program = await buildProgram();
});

afterAll(() => program.remove());

/** A database in a folder of its own, and the program beside it. */
interface Place {
  runs: Runs;
  home: string;
  cwd: string;
  url: string;
  /** Runs `gyre runs`. */
  gyre: (...args: string[]) => Promise<Ended>;
  /** The same with `--json`, to its object. */
  json: (...args: string[]) => Promise<unknown>;
  /** Starts a worker for an agent, and stops it at the end. */
  work: (agent?: DurableAgent) => Promise<Worker>;
}

async function withPlace(act: (place: Place) => Promise<void>): Promise<void> {
  const home = await program.makeHome();
  const cwd = join(home, "work");
  mkdirSync(cwd);
  const url = `file:${join(cwd, "runs.db")}`;
  const runs = await openRuns(url);
  const workers: Worker[] = [];
  const gyre: Place["gyre"] = (...args) => program.gyre(["runs", ...args], { home });
  try {
    await act({
      ...{ runs, home, cwd, url, gyre },
      async json(...args) {
        const { code, stdout, stderr } = await gyre(...args, "--json");
        expect([code, stderr]).toEqual([0, ""]);
        return JSON.parse(stdout) as unknown;
      },
      async work(agent = payer()) {
        const worker = new Worker(runs, { agents: [agent] });
        workers.push(worker);
        await worker.start();
        return worker;
      },
    });
  } finally {
    for (const worker of workers) await worker.stop({ drainMs: 0 });
    await runs.close();
  }
}

/** Pays where a person lets it. Its model answers by how many answers there are already. */
function payer(
  answers: readonly ScriptStep[] = [callAll([["pay", { to: "Ada" }]]), "Done."],
  paid: string[] = [],
) {
  const pay = defineTool({
    name: "pay",
    description: "Pays",
    parameters: { type: "object", properties: { to: { type: "string" } } },
    needsApproval: true,
    execute: ({ to = "" }) => {
      paid.push(to);
      return `paid ${to}`;
    },
  });
  return defineAgent({
    name: "payer",
    version: "1",
    open: () => {
      const step: ScriptStep = (context, options, callIndex) => {
        const answered = context.messages.filter(({ role }) => role === "assistant").length;
        const answer = answers[answered] ?? "More.";
        return typeof answer === "function" ? answer(context, options, callIndex) : answer;
      };
      const model = scriptedModel(Array.from({ length: 100 }, () => step));
      const tools = [pay, askTool(), sleepTool()];
      return { model: model.model, protocol: model, tools, instructions: "Pay." };
    },
  });
}

/** Starts a run, and waits until a call of it waits. Resolves to the id of that call. */
async function startWaiting(runs: Runs, id: string, agent = "payer"): Promise<string> {
  const run = await runs.start("Pay Ada.", { agent, id });
  return vi.waitFor(
    async () => {
      const [call] = (await run.info()).pending;
      if (!call) throw new Error("No call waits.");
      return call.toolCall.id;
    },
    { timeout: WAIT_MS, interval: 10 },
  );
}

describe("gyre runs", () => {
  it("lists runs, shows one, and lets a call run that waits for a decision", async () => {
    await withPlace(async ({ runs, gyre, json, work }) => {
      const paid: string[] = [];
      const worker = await work(payer(undefined, paid));
      const call = await startWaiting(runs, "order-1");
      const listed = await gyre();
      expect(listed.stdout).toMatch(/^order-1 {2}waiting {2}payer {2}1 turn {2}\S+ {2}just now\n$/);
      expect(await json("list", "--status", "waiting,ready")).toMatchObject([
        { id: "order-1", status: "waiting", agent: "payer", turns: 1 },
      ]);
      const shown = await gyre("show", "order-1");
      expect(shown.stdout).toContain("Run order-1: waiting\nAgent: payer, version 1\nStarted: ");
      expect(shown.stdout).toMatch(
        /\nTurns: 1, [\d,]+ tokens, for .+\nActivations: 1\n {2}1: .+ UTC, \d+ entries, suspended\n/,
      );
      expect(shown.stdout).toContain(`\nWaits for a decision on call ${call}: pay {"to":"Ada"}\n`);
      expect(shown.stdout).toContain(`  gyre runs approve order-1 ${call}\n`);
      expect(await json("show", "order-1")).toMatchObject({
        id: "order-1",
        pending: [{ waitsFor: "decision", toolCall: { id: call } }],
        activations: [{ activation: 1, stop: "suspended" }],
      });
      expect(await json("workers")).toMatchObject([
        { id: worker.id, pid: process.pid, agents: [{ name: "payer" }], live: 0 },
      ]);
      const approved = await gyre("approve", "order-1", call);
      expect([approved.code, approved.stdout]).toEqual([0, "Approved.\n"]);
      expect((await runs.get("order-1").result()).text).toBe("Done.");
      expect(paid).toEqual(["Ada"]);
      expect((await gyre("list", "--status", "ended")).stdout).toContain("order-1  ended: done");
    });
  });

  it("denies a call with a reason that the model reads", async () => {
    await withPlace(async ({ runs, gyre, work }) => {
      const paid: string[] = [];
      await work(payer(undefined, paid));
      const call = await startWaiting(runs, "order-1");
      expect((await gyre("deny", "order-1", call, "--reason", "Too much.")).stdout).toBe(
        "Denied.\n",
      );
      const { messages } = await runs.get("order-1").result();
      expect(JSON.stringify(messages)).toContain("Too much.");
      expect(paid).toEqual([]);
    });
  });

  it("answers the question of a call", async () => {
    await withPlace(async ({ runs, gyre, json, work }) => {
      await work(payer([callAll([["ask", { question: "Which tea?" }]]), "Noted."]));
      const call = await startWaiting(runs, "order-1");
      const shown = await gyre("show", "order-1");
      expect(shown.stdout).toContain(`  gyre runs answer order-1 ${call} "TEXT"\n`);
      expect(shown.stdout).not.toContain("gyre runs approve");
      expect(await json("answer", "order-1", call, "Green tea.")).toEqual({
        ...{ ok: true, run: "order-1", call, decision: "result" },
      });
      const { messages } = await runs.get("order-1").result();
      expect(JSON.stringify(messages)).toContain("Green tea.");
    });
  });

  it("names the run that works for a call", async () => {
    await withPlace(async ({ runs, gyre, work }) => {
      const boss = payer([callAll([["task", { prompt: "Pay Ada." }]]), "Done."]);
      await work({
        ...{ ...boss, name: "boss" },
        open: async (run) => ({
          ...(await boss.open(run)),
          tools: [durableTask({ agent: "payer" })],
        }),
      });
      const call = await startWaiting(runs, "order-1", "boss");
      const [child] = (await runs.list({ parent: "order-1" })).runs;
      const { stdout } = await gyre("show", "order-1");
      expect(stdout).toContain(`Waits for another run, which works for call ${call}: task {`);
      expect(stdout).toContain(`\n  gyre runs show ${child?.id}\n`);
      // No worker knows the agent of that run.
      const aborted = await gyre("abort", child?.id ?? "");
      expect(aborted.stdout).toBe(
        'It ends, and asks no model, when a worker claims it. No worker knows the agent "payer": start one that has it. Workers know boss.\n',
      );
    });
  });

  it("watches a run up to its end, from any number on", async () => {
    await withPlace(async ({ runs, home, gyre, work }) => {
      await work();
      const call = await startWaiting(runs, "order-1");
      const watching = await program.start(["runs", "watch", "order-1"], { home });
      await watching.shows(`waits: pay ${call}; see gyre runs show order-1`);
      await gyre("approve", "order-1", call);
      const { code, stdout } = await watching.end;
      expect(code).toBe(0);
      expect(stdout).toContain("=== user\n\nPay Ada.\n");
      expect(stdout).toContain(`pay: ok (${call})`);
      expect(stdout).toMatch(/=== assistant .+\n\nDone\.\n\n--- \d+ ended: done\n/);
      const events = jsonLines((await gyre("watch", "order-1", "--json")).stdout);
      const last = events.at(-1);
      expect(last).toMatchObject({ event: { type: "agent_end", stop: "done" } });
      const rest = await gyre(
        "watch",
        "order-1",
        "--json",
        "--after",
        String(Number(last?.["seq"]) - 1),
      );
      expect(jsonLines(rest.stdout)).toEqual([last]);
    });
  });

  it("steers and aborts a run", async () => {
    await withPlace(async ({ runs, gyre, work }) => {
      await work();
      await startWaiting(runs, "order-1");
      expect((await gyre("steer", "order-1", "Pay Bob instead.")).stdout).toBe("Sent.\n");
      const { messages } = await runs.get("order-1").result();
      expect(JSON.stringify(messages)).toContain("Pay Bob instead.");
      await startWaiting(runs, "order-2");
      expect((await gyre("abort", "order-2", "--reason", "Closed today.")).code).toBe(0);
      expect((await runs.get("order-2").result()).stop).toBe("aborted");
      expect((await gyre("watch", "order-2")).code).toBe(1);
    });
  });

  it("retries a run that failed", async () => {
    await withPlace(async ({ runs, gyre, work }) => {
      let failures = 0;
      await work(
        payer([
          () => {
            if (failures++ === 0) throw new Error("No water.");
            return "Better.";
          },
        ]),
      );
      const run = await runs.start("Pay.", { agent: "payer", id: "order-1" });
      expect((await run.result()).stop).toBe("error");
      expect((await gyre("show", "order-1")).stdout).toContain("\nError: ");
      const retried = await gyre("retry", "order-1");
      expect([retried.code, retried.stdout]).toEqual([0, "It is ready for a worker.\n"]);
      for await (const { event } of run.watch()) {
        if (event.type === "agent_end" && event.stop === "done") break;
      }
      expect((await run.result()).messages.at(-1)).toMatchObject({ role: "assistant" });
    });
  });

  it("lists runs that no worker will claim, with the reason", async () => {
    await withPlace(async ({ runs, gyre, json, work }) => {
      await runs.start("Brew.", { agent: "brewer", id: "tea-1", tenant: "acme" });
      expect((await gyre("list", "--stuck")).stdout).toMatch(
        /^tea-1 {2}ready {2}brewer {2}acme .*\n {2}There is no worker: start one\.\n$/,
      );
      await work();
      expect(await json("list", "--stuck", "--tenant", "acme")).toMatchObject([
        { id: "tea-1", stuck: expect.stringContaining('No worker knows the agent "brewer"') },
      ]);
      expect(await json("list", "--stuck", "--tenant", "other")).toEqual([]);
      expect(await json("list", "--agent", "payer")).toEqual([]);
      expect(await json("list", "--since", "1h")).toHaveLength(1);
      expect(await json("list", "--since", "2999-01-01")).toEqual([]);
      const { code, stdout } = await gyre("doctor");
      expect(code).toBe(1);
      expect(stdout).toMatch(/^problem {2}stuck +Run "tea-1": No worker knows the agent/m);
      expect((await gyre("show", "tea-1")).stdout).toContain("\nStuck: No worker knows the agent");
    });
  });

  it("writes a session file that gyre goes on with", async () => {
    await withPlace(async ({ runs, home, cwd, gyre, work }) => {
      await work(payer(["The answer is green."]));
      await (await runs.start("Which tea?", { agent: "payer", id: "tea-1" })).result();
      const exported = await gyre("export", "tea-1", "tea.jsonl");
      expect([exported.code, exported.stderr]).toEqual([0, ""]);
      expect(exported.stdout).toMatch(
        /^Wrote \d+ entries to .+tea\.jsonl\. gyre --resume .+tea\.jsonl goes on with it\.\n$/,
      );
      const lines = jsonLines(readFileSync(join(cwd, "tea.jsonl"), "utf8"));
      expect(lines[0]).toMatchObject({ type: "session", id: "tea-1", cwd });
      const checked = await program.gyre(["sessions", "check", "tea.jsonl"], { home });
      expect(checked.stdout).toMatch(/^No problems; /);
      const service = await scriptedService();
      try {
        service.play([{ say: "Two cups." }]);
        const resumed = await program.gyre(
          ["-p", "How much of it?", "--resume", "tea.jsonl", "--quiet"],
          { home, service },
        );
        expect([resumed.code, resumed.stdout]).toEqual([0, "Two cups.\n"]);
        expect(JSON.stringify(resumed.requests[0]?.body)).toContain("The answer is green.");
      } finally {
        await service.close();
      }
      const again = await gyre("export", "tea-1", "tea.jsonl");
      expect([again.code, again.stdout]).toEqual([1, ""]);
      expect(again.stderr).toContain("tea.jsonl");
    });
  });

  it("deletes runs that ended long ago", async () => {
    await withPlace(async ({ runs, gyre, json, work }) => {
      await work(payer(["Done."]));
      await (await runs.start("Pay.", { agent: "payer", id: "old" })).result();
      expect((await gyre("prune", "--older", "30d")).stdout).toBe("Deleted 0 runs.\n");
      expect(await json("prune", "--older", "0s")).toEqual({ ok: true, deleted: 1 });
      expect((await gyre("list")).stderr).toBe("There are no runs.\n");
    });
  });

  it("lists schedules, pauses one, and deletes it", async () => {
    await withPlace(async ({ runs, gyre, json }) => {
      expect((await gyre("schedules")).stderr).toBe("There are no schedules.\n");
      const monday = { cron: "0 8 * * 1", timeZone: "Europe/Berlin", agent: "payer" };
      const { nextAt } = await runs.schedule("Pay.", { id: "weekly", ...monday });
      await runs.schedule("Look.", { id: "often", everyMs: 90_000_000, agent: "payer" });
      const { stdout } = await gyre("schedules");
      expect(stdout).toContain(
        `weekly  0 8 * * 1 Europe/Berlin  payer  next ${nextAt.toISOString()}  -\n`,
      );
      expect(stdout).toMatch(/^often {3}every 90000 s {12}payer {2}next /);
      expect((await gyre("pause", "weekly")).stdout).toBe(
        "Paused: it starts no runs. gyre runs resume weekly has it go on.\n",
      );
      expect(await json("schedules")).toMatchObject([{ id: "often" }, { isPaused: true }]);
      expect(await json("resume", "weekly")).toEqual({ ok: true, schedule: "weekly" });
      expect(await json("unschedule", "weekly")).toEqual({ ok: true, schedule: "weekly" });
      expect(await json("schedules")).toMatchObject([{ id: "often", isPaused: false }]);
      const missing = await gyre("pause", "weekly");
      expect([missing.code, missing.stderr]).toEqual([
        1,
        'gyre: There is no schedule "weekly". Those that there are: gyre runs schedules.\n',
      ]);
    });
  });

  it("declares a worker dead, which then goes on under another id", async () => {
    await withPlace(async ({ gyre, json, work }) => {
      const worker = await work();
      const { id } = worker;
      expect((await gyre("release", id)).stdout).toBe(
        "Released: other workers go on with what it had.\n",
      );
      let workers: unknown = [];
      while (!Array.isArray(workers) || workers.length === 0) workers = await json("workers");
      expect(workers).toMatchObject([{ id: worker.id }]);
      expect(worker.id).not.toBe(id);
      const unknown = await gyre("release", id);
      expect([unknown.code, unknown.stderr]).toEqual([
        1,
        `gyre: There is no worker "${id}". Those that there are: gyre runs workers.\n`,
      ]);
    });
  });

  it("makes the tables, and reports what works", async () => {
    await withPlace(async ({ gyre, cwd, work }) => {
      const made = await gyre("migrate", "--database", "file:other.db");
      expect([made.code, made.stdout]).toEqual([
        0,
        `The tables of file:${join(cwd, "other.db")} are up to date.\n`,
      ]);
      await work();
      const { code, stdout } = await gyre("doctor");
      expect(code).toBe(0);
      expect(stdout).toMatch(/^ok {7}store {4}SQLite \d/);
      expect(stdout).toContain("All is well.");
      const alone = await gyre("doctor", "--database", "file:other.db");
      expect([alone.code, alone.stdout]).toEqual([0, expect.stringContaining("none: start one.")]);
    });
  });

  it("finds the database by the environment", async () => {
    await withPlace(async ({ runs, home, cwd }) => {
      await runs.start("Pay.", { agent: "payer", id: "order-1" });
      const elsewhere = join(home, "elsewhere");
      const env = { GYRE_DATABASE: `file:${join(cwd, "runs.db")}` };
      const { stdout } = await program.gyre(["runs"], { home, cwd: elsewhere, env });
      expect(stdout).toContain("order-1  ready");
    });
  });
});

describe("the program", () => {
  it("loads what keeps runs where it is asked for alone: nothing imports it at the start", () => {
    const chunks = new Map(program.chunks.map((chunk) => [chunk.fileName, chunk]));
    const isDurable = (name: string): boolean =>
      chunks
        .get(name)
        ?.moduleIds.some((id) =>
          /packages[\\/]durable[\\/]src[\\/](?!contract[\\/]errors)/.test(id),
        ) ?? false;
    const holders = program.chunks.filter(({ fileName }) => isDurable(fileName));
    expect(holders.length).toBeGreaterThan(0);
    const loaded = new Set(["gyre.js"]);
    for (const name of loaded) {
      for (const next of chunks.get(name)?.imports ?? []) loaded.add(next);
    }
    expect(loaded.size).toBeGreaterThan(1);
    expect([...loaded].filter(isDurable)).toEqual([]);
  });
});

describe("gyre runs on Postgres", { tags: "postgres" }, () => {
  it("lists, approves, exports and checks as it does in a file", async () => {
    const server = await startPostgres();
    const home = await program.makeHome();
    const env = { GYRE_DATABASE: server.url() };
    const gyre = (...args: string[]): Promise<Ended> =>
      program.gyre(["runs", ...args], { home, env });
    try {
      const older = await gyre("list");
      expect([older.code, older.stderr]).toEqual([
        1,
        expect.stringMatching(
          /^gyre: There are no runs in .+: it has no tables of them\. To make them: gyre runs migrate\.\n$/,
        ),
      ]);
      expect((await gyre("migrate")).stdout).toMatch(/ are up to date\.\n$/);
      const runs = await openRuns(server.url());
      const worker = new Worker(runs, { agents: [payer()] });
      await worker.start();
      const call = await startWaiting(runs, "order-1");
      expect((await gyre()).stdout).toMatch(/^order-1 {2}waiting {2}payer /);
      expect((await gyre("approve", "order-1", call)).stdout).toBe("Approved.\n");
      expect((await runs.get("order-1").result()).text).toBe("Done.");
      expect((await gyre("export", "order-1", "order.jsonl")).code).toBe(0);
      const checked = await program.gyre(["sessions", "check", "order.jsonl"], { home });
      expect(checked.stdout).toMatch(/^No problems; /);
      const { code, stdout } = await gyre("doctor");
      expect(code).toBe(0);
      expect(stdout).toMatch(/^ok +store +PostgreSQL \d/);
      expect(stdout).toMatch(/^ok +clock +the database's is \d+ ms /m);
      expect(stdout).toMatch(/^ok +notifications +arrive$/m);
      expect(stdout).toMatch(/^ok +tables +\d+ MB with indexes$/m);
      expect(stdout).toContain("All is well.");
      await worker.stop();
      await runs.close();
    } finally {
      await server.remove();
    }
    const away = await gyre("list");
    expect([away.code, away.stdout]).toEqual([1, ""]);
    expect(away.stderr).toMatch(
      / does not answer: .+ Check that it runs and that the address is right\.\n$/,
    );
  });
});

describe("bad input of gyre runs", () => {
  it.each<[string[], number, string]>([
    [["lst"], 2, '"runs" cannot "lst". Did you mean "list"?'],
    [["show"], 2, '"runs show" needs the id of a run (gyre runs list has them).'],
    [
      ["approve", "r"],
      2,
      '"runs approve" needs the id of a call (gyre runs show has those that wait).',
    ],
    [["show", "r", "s"], 2, '"runs show" takes no argument "s".'],
    [["show", "r", "--stuck"], 2, '"runs show" does not take --stuck.'],
    [
      ["list", "--status", "dead"],
      2,
      '--status takes queued, ready, running, waiting, aside, ended, with commas; not "dead".',
    ],
    [
      ["list", "--since", "soon"],
      2,
      '--since takes a time such as 24h or 30d, or a date such as 2030-01-31, not "soon".',
    ],
    [["prune"], 2, '"runs prune" needs --older TIME: runs that ended longer ago are deleted.'],
    [["prune", "--older", "30"], 2, '--older takes a time such as 24h or 30d, not "30".'],
    [["watch", "r", "--after", "x"], 2, '--after takes the number of an event, not "x".'],
    [
      ["list", "--database", "mysql://a:secret@b/c"],
      2,
      'Runs cannot be opened from "mysql://a:***@b/c": give a file, such as "file:./runs.db", or a database, such as "postgres://user@host/name".',
    ],
    [["show", "nope"], 1, 'There is no run "nope". Those that there are: gyre runs list --all.'],
    [["watch", "nope"], 1, 'There is no run "nope". Those that there are: gyre runs list --all.'],
    [
      ["export", "nope", "a.jsonl"],
      1,
      'There is no run "nope". Those that there are: gyre runs list --all.',
    ],
    [
      ["abort", "over"],
      1,
      'Run "over" has ended: there is nothing to abort. See gyre runs show over.',
    ],
    [
      ["steer", "over", "Hi"],
      1,
      'Run "over" has ended: there is nothing to steer. See gyre runs show over.',
    ],
    [
      ["retry", "order-1"],
      1,
      'Run "order-1" is waiting: only one that has ended, or was set aside, can be retried.',
    ],
    [
      ["approve", "over", "c"],
      1,
      'Call "c" of run "over" does not wait for a decision. The run has ended.',
    ],
    [
      ["deny", "order-1", "c"],
      1,
      'Call "c" of run "order-1" does not wait for a decision. These wait: CALL (pay).',
    ],
    [
      ["approve", "sleeps", "TIMER"],
      1,
      'Call "TIMER" of run "sleeps" waits for a time, not for a decision.',
    ],
    [
      ["list", "--database", "file:none.db"],
      1,
      "There is no file CWD/none.db. Say where the runs are: --database URL, or GYRE_DATABASE in the environment; gyre runs migrate --database file:CWD/none.db makes it.",
    ],
    [
      ["list", "--database", "file:notes.db"],
      1,
      "The file CWD/notes.db is no SQLite database: give the path of another file, or of none, which is then made.",
    ],
  ])("%j ends with %i", async (args, code, message) => {
    const { cwd, home, call, timer } = await prepared;
    const fill = (text: string): string =>
      text.replaceAll("CALL", call).replaceAll("TIMER", timer).replaceAll("CWD", cwd);
    const ended = await program.gyre(["runs", ...args.map(fill)], { home });
    const hint = code === 2 ? "See gyre --help.\n" : "";
    expect([ended.code, ended.stderr, ended.stdout]).toEqual([
      code,
      `gyre: ${fill(message)}\n${hint}`,
      "",
    ]);
  });

  interface Prepared {
    home: string;
    cwd: string;
    call: string;
    timer: string;
  }
  let prepared: Promise<Prepared>;
  let finish: () => void = () => {};

  beforeAll(() => {
    prepared = new Promise((resolve, reject) => {
      const over = new Promise<void>((end) => (finish = end));
      withPlace(async ({ runs, home, cwd, work }) => {
        writeFileSync(join(cwd, "notes.db"), "These are notes, no database.\n".repeat(100));
        const worker = await work();
        const call = await startWaiting(runs, "order-1");
        await worker.stop();
        const second = await work(payer([callAll([["sleep", { seconds: 86_400 }]])]));
        const timer = await startWaiting(runs, "sleeps");
        await second.stop();
        await work(payer(["Done."]));
        await (await runs.start("Pay.", { agent: "payer", id: "over" })).result();
        resolve({ home, cwd, call, timer });
        await over;
      }).catch(reject);
    });
  });

  afterAll(() => finish());
});
