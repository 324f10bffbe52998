import type { AgentTool } from "@gyre/agent";
import { call, callAll, say } from "@gyre/ai/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startPostgres } from "../../../../tests/support/postgres.ts";
import type { Run, RunEvent } from "../contract/types.ts";
import { openRuns, openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { scriptedAgent, temporaryUrls, withWorker } from "../worker/harness.ts";
import { Worker } from "../worker/worker.ts";

const HOUR_MS = 3_600_000;

/** A short name of an event: deltas are their text. */
function nameEvent({ event }: RunEvent): string {
  if (event.type !== "message_update") return event.type;
  const { assistantMessageEvent: update } = event;
  return "delta" in update ? update.delta : update.type;
}

function createGate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

async function watchAll(run: Run, onEvent: (name: string) => void = () => {}): Promise<string[]> {
  const names: string[] = [];
  for await (const event of run.watch()) {
    names.push(nameEvent(event));
    onEvent(nameEvent(event));
  }
  return names;
}

const newFile = temporaryUrls("live", afterAll);

describe("watching a run of another process, in a file", () => {
  testWatching(async () => ({ url: newFile(), remove: async () => {} }));
});

describe("watching a run of another process, in Postgres", { tags: "postgres" }, () => {
  testWatching(async () => {
    const server = await startPostgres();
    return { url: server.url(), remove: () => server.remove() };
  });
});

function testWatching(create: () => Promise<{ url: string; remove: () => Promise<void> }>): void {
  let url: string;
  let remove: () => Promise<void>;
  let other: Runs;
  beforeAll(async () => {
    ({ url, remove } = await create());
    other = await openRuns(url);
  });
  afterAll(async () => {
    await other?.close();
    await remove?.();
  });

  it("deltas arrive while the answer streams, and all of them before its end", async () => {
    const agent = scriptedAgent([{ parts: ["I am done."], chunkSize: 5, betweenMs: HOUR_MS }]);
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      const names = await watchAll(other.get(run.id), (name) => {
        // Only a live event can say so: the answer has no end.
        if (name === "I am ") void other.get(run.id).abort();
      });
      expect(names).toEqual([
        "message_end",
        "message_start",
        "text_start",
        "I am ",
        "text_end",
        "message_end",
        "agent_end",
      ]);
    });
  });

  it("one that comes later gets the message so far", async () => {
    const agent = scriptedAgent([[say("I am still "), say("here."), { betweenMs: HOUR_MS }]]);
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      for await (const event of run.watch()) if (nameEvent(event) === "I am still ") break;
      // The first begins to follow, the second finds what that has received.
      for (const watcher of [other, other]) {
        let text = "";
        for await (const event of watcher.get(run.id).watch()) {
          if (event.event.type === "message_update") text += nameEvent(event);
          if (text.includes("still ")) break;
        }
        expect(text).toBe("text_startI am still ");
      }
      await run.abort();
      await run.result();
    });
  });

  it("calls and what they report arrive, also of tools that may run again", async () => {
    const finish = createGate();
    const look: AgentTool = {
      ...{ name: "look", description: "Looks.", parameters: { type: "object" } },
      idempotent: true,
      execute: async (_args, { update }) => {
        update?.({ content: [{ type: "text", text: "half" }] });
        await finish.opened;
        return "all";
      },
    };
    const agent = scriptedAgent([call("look", { at: "x" }, "c1"), "Done."], { tools: [look] });
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      const calls: unknown[] = [];
      for await (const { event } of other.get(run.id).watch()) {
        if (!event.type.startsWith("tool_execution")) continue;
        calls.push(event);
        if (event.type === "tool_execution_update") finish.open();
      }
      const of = { toolCallId: "c1", toolName: "look" };
      expect(calls).toMatchObject([
        { type: "tool_execution_start", ...of, args: { at: "x" } },
        { type: "tool_execution_update", ...of, args: { at: "x" } },
        { type: "tool_execution_end", ...of, outcome: "ok" },
      ]);
    });
  });

  it("what is too large for a notification arrives as well", async () => {
    const finish = createGate();
    const text = "a large report ".repeat(5_000);
    const report: AgentTool = {
      ...{ name: "report", description: "Reports.", parameters: { type: "object" } },
      execute: async (_args, { update }) => {
        update?.({ content: [{ type: "text", text }] });
        await finish.opened;
        return "done";
      },
    };
    const agent = scriptedAgent([callAll([["report", {}]]), "Done."], { tools: [report] });
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      for await (const { event } of other.get(run.id).watch()) {
        if (event.type !== "tool_execution_update") continue;
        expect(event.partialResult.content).toEqual([{ type: "text", text }]);
        finish.open();
      }
      expect((await run.result()).text).toBe("Done.");
    });
  });

  it("what was lost shows, and is asked for", async () => {
    const agent = scriptedAgent([{ parts: ["a b c d e f g h "], chunkSize: 2, betweenMs: 300 }]);
    const worker = await openStore(url);
    let losses = 0;
    let answers = 0;
    const send = worker.bus.send.bind(worker.bus);
    // Every second packet is lost that a question could not bring.
    worker.bus.send = (packets) => {
      answers += packets.filter(({ isWhole }) => isWhole).length;
      return send(packets.filter(({ isWhole }) => isWhole || losses++ % 2 === 0));
    };
    const runs = new Runs(worker);
    const working = new Worker(runs, { agents: [agent] });
    await working.start();
    const run = await runs.start("Go.", { agent: "office" });
    const names = await watchAll(other.get(run.id));
    expect(losses).toBeGreaterThan(2);
    // One is for the beginning.
    expect(answers).toBeGreaterThan(1);
    expect(names.filter((name) => name === "message_start")).toHaveLength(1);
    expect(names.filter((name) => name.includes(" ")).join("")).toBe("a b c d e f g h ");
    await working.stop();
    await runs.close();
  });

  it("nothing is sent of runs that only their own process watches, or none", async () => {
    const agent = scriptedAgent([{ parts: ["A long text."], chunkSize: 3, betweenMs: 30 }]);
    const worker = await openStore(url);
    const sent = vi.spyOn(worker.bus, "send");
    const runs = new Runs(worker);
    const working = new Worker(runs, { agents: [agent] });
    await working.start();
    const [here, unwatched] = [
      await runs.start("Go.", { agent: "office" }),
      await runs.start("Go.", { agent: "office" }),
    ];
    expect(await watchAll(here)).toContain("A l");
    await unwatched.result();
    expect(sent).not.toHaveBeenCalled();
    await working.stop();
    await runs.close();
  });
}
