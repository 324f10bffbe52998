import { createServer, type Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { defineAgent } from "../contract/agent.ts";
import { MAX_ENTRY_BYTES } from "../contract/messages.ts";
import { effectTool, scriptedAgent, temporaryUrls, withWorker } from "../worker/harness.ts";
import { Worker, type WorkerOptions } from "../worker/worker.ts";
import { openRuns } from "./open.ts";
import type { Runs } from "./runs.ts";

const newUrl = temporaryUrls("bad-options", afterAll);

async function withRuns(act: (runs: Runs) => Promise<void>): Promise<void> {
  const runs = await openRuns(newUrl());
  try {
    await act(runs);
  } finally {
    await runs.close();
  }
}

/** A Postgres that says these bytes to each message, and nothing else. */
async function withDatabase(
  answers: readonly Buffer[],
  act: (host: string) => Promise<void>,
): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let count = 0;
    socket.on("error", () => {});
    socket.on("data", () => {
      const answer = answers[count++];
      if (answer) socket.write(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  try {
    await act(`127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

function authentication(kind: number, text: string): Buffer {
  const message = Buffer.alloc(9 + text.length);
  message.write("R");
  message.writeInt32BE(8 + text.length, 1);
  message.writeInt32BE(kind, 5);
  message.write(text, 9);
  return message;
}

describe("an address", () => {
  it("that is not set", async () => {
    const opening = openRuns(process.env["GYRE_NOT_SET"] as string);
    await expect(opening).rejects.toMatchObject({ code: "bad_url" });
    await expect(opening).rejects.toThrow("Runs cannot be opened from undefined: give a file");
  });

  it.each(["p@s/s", "p?ss", "p#ss", "p/ss"])(
    "with the password %s, which is not encoded: no part of it is shown",
    async (password) => {
      const opening = openRuns(`postgres://tea:${password}@db.example/runs`);
      await expect(opening).rejects.toMatchObject({
        code: "bad_url",
        message:
          '"postgres://tea:***@db.example/runs" is no address: encode characters such as "@", "/", "?", "#" and "%" of the password, "/" as "%2F", or set it as PGPASSWORD.',
      });
    },
  );

  it("of a database that asks for a password", async () => {
    const sasl = [authentication(10, "SCRAM-SHA-256\0\0"), authentication(11, "r=1,s=MQ==,i=1")];
    await withDatabase(sasl, async (host) => {
      await expect(openRuns(`postgres://tea@${host}/runs`)).rejects.toMatchObject({
        code: "no_access",
        message: `postgres://${host}/runs cannot be used: it asks for a password, and the address has none. Write postgres://USER:PASSWORD@HOST/NAME, or set PGPASSWORD.`,
      });
    });
  });

  it("of a database without TLS, where the address asks for TLS", async () => {
    await withDatabase([Buffer.from("N")], async (host) => {
      await expect(
        openRuns(`postgres://tea@${host}/runs?sslmode=verify-full`),
      ).rejects.toMatchObject({
        code: "no_access",
        message: `postgres://${host}/runs cannot be used: the connection could not be made. The driver says: The server does not support SSL connections`,
      });
    });
  });
});

describe("numbers that cannot be", () => {
  it.each([undefined, {}, { olderThanMs: Number.NaN }, { olderThanMs: "30d" }])(
    "prune(%o) deletes nothing",
    async (options) => {
      await withWorker(newUrl(), { agents: [scriptedAgent(["Done."])] }, async (runs) => {
        await (await runs.start("Go.", { agent: "office" })).result();
        const pruning = runs.prune(options as never);
        await expect(pruning).rejects.toMatchObject({ code: "invalid" });
        await expect(pruning).rejects.toThrow("`olderThanMs` is a number: got");
        expect((await runs.list()).runs).toHaveLength(1);
      });
    },
  );

  it.each([{ maxRunning: -1 }, { maxReady: Number.NaN }, { maxRunning: "2" }, { maxReady: 1.5 }])(
    "limitTenant(%o)",
    async (limits) => {
      await withRuns(async (runs) => {
        const limiting = runs.limitTenant("a", limits as never);
        await expect(limiting).rejects.toMatchObject({ code: "invalid" });
        await expect(limiting).rejects.toThrow("is a whole number of at least 0: got");
      });
    },
  );

  it.each<[Partial<Record<keyof WorkerOptions, unknown>>, string]>([
    [{ concurrency: 0 }, "`concurrency` is a whole number of at least 1: got 0"],
    [{ concurrency: Number.NaN }, "`concurrency` is a whole number of at least 1: got NaN"],
    [{ leaseMs: -1 }, "`leaseMs` is a number of at least 1: got -1"],
    [{ stallMs: Number.NaN }, "`stallMs` is a number of at least 0: got NaN"],
    [{ maxDeaths: 0 }, "`maxDeaths` is a whole number of at least 1: got 0"],
    [{ pools: "gpu" }, '`pools` is a list of names: got "gpu"'],
    [{ agents: undefined }, "A worker needs agents: write new Worker(runs, { agents: [agent] })."],
    [{ agents: [{ name: "office" }] }, 'Agent "office" has no version'],
  ])("a worker with %o", async (options, words) => {
    await withRuns(async (runs) => {
      const agents = [scriptedAgent(["Done."])];
      expect(() => new Worker(runs, { agents, ...options } as WorkerOptions)).toThrow(words);
    });
  });
});

describe("an agent", () => {
  it("without a name, or without `open`", () => {
    const open = (): never => {
      throw new Error("It is not opened.");
    };
    expect(() => defineAgent({ version: "1", open } as never)).toThrow("got undefined");
    expect(() => defineAgent({ name: "office", version: "1" } as never)).toThrow(
      'Agent "office" has no `open`: write open: () => ({ model }).',
    );
  });

  it("that cannot run: the run fails with the reason, and is not claimed again", async () => {
    const agent = defineAgent({ name: "office", version: "1", open: () => ({}) });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      const { stop, error } = await run.result();
      expect([stop, error]).toEqual([
        "error",
        'The agent "office" cannot run: The agent has no model: give it one as `model`, or call setModel().',
      ]);
      expect(await run.info()).toMatchObject({ status: "ended", activations: 1 });
    });
  });

  it("a limit that there is not", async () => {
    const agents = [scriptedAgent(["Done."])];
    await withWorker(newUrl(), { agents }, async (runs) => {
      const limits = { turns: 1 } as never;
      const end = await (await runs.start("Go.", { agent: "office", limits })).result();
      expect(end.error).toContain('cannot run: There is no limit "turns". There are maxTurns');
    });
  });

  it("that has no model any more in the middle of its run: it fails, and `retry` continues it", async () => {
    let isBroken = true;
    const whole = scriptedAgent(["Done."], { tools: [effectTool("pay", () => "Paid.")] });
    const agent = defineAgent({
      ...whole,
      open: async (run) => {
        const options = await whole.open(run);
        return isBroken || typeof options === "function" ? {} : options;
      },
    });
    await withWorker(newUrl(), { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      expect((await run.result()).stop).toBe("error");
      isBroken = false;
      await run.retry();
      expect(await run.result()).toMatchObject({ stop: "done", text: "Done." });
    });
  });
});

describe("what is stored with a run", () => {
  it("`meta` has the limit of an entry", async () => {
    await withRuns(async (runs) => {
      const meta = { note: "x".repeat(MAX_ENTRY_BYTES) };
      await expect(runs.start("Go.", { agent: "office", meta })).rejects.toMatchObject({
        code: "too_large",
        message: expect.stringContaining("`meta` of a run has 16.0 MiB"),
      });
    });
  });

  it("a schedule without an agent, and a name of times that there is not", async () => {
    await withRuns(async (runs) => {
      await expect(runs.schedule("Go.", { id: "a", cron: "@daily" } as never)).rejects.toThrow(
        'A run needs the name of an agent: write { agent: "name" }.',
      );
      const options = { id: "a", agent: "office", cron: "@reboot" };
      await expect(runs.schedule("Go.", options)).rejects.toThrow(
        '"@reboot" is no cron expression: there are @hourly, @daily, @weekly, @monthly, @yearly.',
      );
    });
  });
});
