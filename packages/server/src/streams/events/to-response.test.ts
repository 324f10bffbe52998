import { Agent, type AgentEndEvent, type AgentEvent, type AgentMessage } from "@gyre/agent";
import { fail, manualClock, say, scriptedModel, stall } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../../tests/support/cases.ts";
import { WireEventReader } from "../../events/wire-event-reader.ts";
import type { ReaderState } from "../../events/wire-event.ts";
import { makeRandom, playRandomRun } from "../../testing/random-runs.ts";
import { withoutErrors } from "../../testing/shown-run.ts";
import { RunLog } from "./run-log.ts";
import { resumeResponse, toResponse } from "./to-response.ts";

const CASES = countCases(60, 1000, "GYRE_RUNS");

/** A client that reads events, and remembers the last one. */
class Client {
  lastId = "";
  end: AgentEndEvent | undefined;
  snapshots = 0;
  text = "";
  #reader: WireEventReader;

  constructor(messages: readonly AgentMessage[] = []) {
    this.#reader = new WireEventReader({ messages });
  }

  /** Reads so many bytes of a response, and leaves. */
  async read(response: Response, bytes = Infinity): Promise<void> {
    const reader = response.body?.getReader();
    let count = 0;
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      // Each part is whole events.
      const text = new TextDecoder().decode(part.value);
      this.text += text;
      for (const event of text.split("\n\n")) this.#read(event);
      count += part.value.length;
      if (count < bytes) continue;
      void reader?.cancel();
      return;
    }
  }

  get request(): Request {
    return new Request("http://page.example", { headers: { "last-event-id": this.lastId } });
  }

  #read(event: string): void {
    const fields = Object.fromEntries(
      event.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2)),
    );
    if (fields["data"] === undefined) return;
    this.#take(fields["event"], JSON.parse(fields["data"]));
    this.lastId = fields["id"] ?? this.lastId;
  }

  #take(type: string, payload: Record<string, unknown>): void {
    if (type === "snapshot") {
      this.snapshots++;
      const { messages, state } = payload as { messages: AgentMessage[]; state: ReaderState };
      this.#reader = new WireEventReader({ messages, state });
      return;
    }
    for (const event of this.#reader.read({ type, payload })) {
      if (event.type === "agent_end") this.end = event;
    }
  }
}

function start(...script: Parameters<typeof scriptedModel>): Agent {
  const model = scriptedModel(...script);
  return new Agent({ model: model.model, protocol: model });
}

describe("a run as server-sent events", () => {
  it("arrives whole", async () => {
    const first = pickSeed();
    for (let seed = first; seed < first + CASES; seed++) {
      await playRandomRun(seed, async ({ run, history }) => {
        const client = new Client(history);
        await client.read(toResponse(run));
        const { messages } = await run.result();
        expect(client.end && withoutErrors(client.end.messages), `GYRE_SEED=${seed}`).toEqual(
          withoutErrors(JSON.parse(JSON.stringify(messages))),
        );
      });
    }
  });

  it("arrives whole over connections that break, from the log or from a snapshot", async () => {
    const first = pickSeed();
    let snapshots = 0;
    for (let seed = first; seed < first + CASES; seed++) {
      const random = makeRandom(seed);
      await playRandomRun(seed, async ({ run, history }) => {
        const client = new Client(history);
        const log = new RunLog({ history, maxEvents: 1 + Math.floor(random() * 60) });
        await client.read(toResponse(run, { log }), random() * 3000);
        while (!client.end) {
          // A client that is away for a while.
          for (let i = 0; i < random() * 10; i++) await new Promise((done) => setImmediate(done));
          const { request } = client;
          await client.read(resumeResponse(log, { request }), random() * 3000);
        }
        snapshots += client.snapshots;
        const { messages } = await run.result();
        expect(withoutErrors(client.end.messages), `GYRE_SEED=${seed}`).toEqual(
          withoutErrors(JSON.parse(JSON.stringify(messages))),
        );
      });
    }
    expect(snapshots).toBeGreaterThan(0);
  });

  it("says that it cannot be resumed without a log", async () => {
    const agent = start([[say("Begun"), stall()]]);
    const request = new Request("http://page.example", { headers: { "last-event-id": "3" } });
    const response = toResponse(agent.run("Hi"), { agent, request });
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({ error: { code: "not_resumable" } });
    await agent.waitForIdle();
  });

  it("names no address of a service", async () => {
    const agent = start([[say("It "), fail("https://up.example refused", { kind: "auth" })]]);
    const client = new Client();
    await client.read(toResponse(agent.run("Hi")));
    expect(client.text).not.toContain("up.example");
    expect(client.end?.finalMessage).toMatchObject({ failure: { kind: "auth" } });
  });

  it("reports why a run did not start", async () => {
    const agent = new Agent({ model: "no-such/model" });
    const text = await toResponse(agent.run("Hi")).text();
    expect(text).toMatch(/^event: error\ndata: \{"kind":"\w+"/);
  });

  it("sends a comment while nothing happens", async () => {
    const clock = manualClock();
    const agent = start([[stall()]]);
    const response = toResponse(agent.run("Hi"), { agent, clock, heartbeatMs: 1000 });
    const reader = response.body?.getReader();
    let text = "";
    while (!text.includes(": keep-alive")) {
      const next = reader?.read();
      await clock.advance(1000);
      text += new TextDecoder().decode((await next)?.value);
    }
    expect(text).toContain(": keep-alive\n\n");
    await reader?.cancel();
    await agent.waitForIdle();
  });
});

describe("a client that leaves", () => {
  const leave = async (response: Response): Promise<void> => {
    const reader = response.body?.getReader();
    let text = "";
    while (!text.includes("Begun")) text += new TextDecoder().decode((await reader?.read())?.value);
    void reader?.cancel();
  };

  it("aborts the run without a log", async () => {
    const agent = start([[say("Begun"), stall()]]);
    await leave(toResponse(agent.run("Hi"), { agent }));
    await agent.waitForIdle();
    expect(agent.state.messages.at(-1)).toMatchObject({ stopReason: "aborted" });
  });

  it("lets it go on with one, which stops it", async () => {
    const agent = start([[say("Begun"), stall()]]);
    const log = new RunLog();
    await leave(toResponse(agent.run("Hi"), { agent, log }));
    expect(agent.isRunning).toBe(true);
    log.abort();
    const client = new Client();
    await client.read(resumeResponse(log));
    expect(client.end?.stop).toBe("aborted");
    expect(() => log.record(noEvents())).toThrow("one run");
  });
});

async function* noEvents(): AsyncGenerator<AgentEvent, void> {}
