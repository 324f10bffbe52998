import { type AgentTool, approval, defineTool, isLlmMessage, type AgentMessage } from "@gyre/agent";
import { type Message, validateTranscript } from "@gyre/ai";
import { callAll, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { afterAll, describe, expect, it } from "vitest";
import { defineAgent } from "../contract/agent.ts";
import type { Run, RunEvent } from "../contract/types.ts";
import type { Store } from "../contract/store.ts";
import { openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { temporaryUrls } from "./harness.ts";
import { Worker } from "./worker.ts";

// A run with three parallel calls, an approval and steering. Its worker dies before and after each
// of its commits, another one goes on.

const newUrl = temporaryUrls("everywhere", afterAll);

const FIRST = callAll([
  ["pay", { to: "a" }],
  ["pay", { to: "b" }],
  ["look", { at: "c" }],
]);
const SECOND = callAll([
  ["sign", { what: "contract" }],
  ["pay", { to: "d" }],
]);
const ANSWERS: readonly ScriptStep[] = [FIRST, SECOND, "Signed.", "All is done."];

/** What happened outside of the store, over all workers: it is not undone by a crash. */
interface Outside {
  effects: string[];
  requests: string[];
}

/** Passes calls to a store until the worker dies: from then on none is answered. */
class MortalStore {
  readonly store: Store;
  commits = 0;
  #dies: { at: number; when: "before" | "after" } | undefined;
  readonly died: Promise<void>;
  #die: () => void = () => {};
  isDead = false;

  constructor(store: Store, dies?: { at: number; when: "before" | "after" }) {
    this.#dies = dies;
    this.died = new Promise((resolve) => (this.#die = resolve));
    const commits = new Set(["append", "finish", "claim"]);
    this.store = new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => {
          const call = (): unknown => Reflect.apply(value, target, args);
          if (name === "listen") return call();
          return this.#pass(commits.has(String(name)), call);
        };
      },
    });
  }

  /** It dies no more, unless it is dead. */
  spare(): void {
    this.#dies = undefined;
  }

  async #pass(isCommit: boolean, call: () => unknown): Promise<unknown> {
    if (this.isDead) return new Promise(() => {});
    const isLast = isCommit && ++this.commits === this.#dies?.at;
    if (isLast) this.isDead = true;
    if (isLast && this.#dies?.when === "before") return this.#end();
    const answer = await call();
    return this.isDead ? this.#end() : answer;
  }

  #end(): Promise<never> {
    this.#die();
    return new Promise(() => {});
  }
}

function makeTools(outside: Outside): AgentTool[] {
  const effect = (name: string, field: string, more: Partial<AgentTool>): AgentTool => ({
    ...defineTool({
      name,
      description: name,
      parameters: { type: "object", properties: { [field]: { type: "string" } } },
      execute: (args) => {
        outside.effects.push(`${name} ${Object.values(args).join()}`);
        return `${name} done`;
      },
    }),
    ...more,
  });
  return [
    effect("pay", "to", { concurrent: true }),
    effect("look", "at", { concurrent: true, idempotent: true }),
    effect("sign", "what", {}),
  ];
}

function startWorker(store: Store, outside: Outside): Worker {
  const agent = defineAgent({
    name: "office",
    version: "1",
    open: () => {
      const model = scriptedModel([
        ...ANSWERS.map((_, index): ScriptStep => (context, options, callIndex) => {
          void index;
          outside.requests.push(JSON.stringify(context.messages.map(withoutTime)));
          const answered = context.messages.filter(({ role }) => role === "assistant").length;
          const answer = ANSWERS[answered] ?? "More.";
          return typeof answer === "function" ? answer(context, options, callIndex) : answer;
        }),
      ]);
      return {
        model: model.model,
        protocol: model,
        instructions: "Work.",
        tools: makeTools(outside),
        middleware: [approval(({ tool }) => (tool.name === "sign" ? "suspend" : "allow"))],
      };
    },
  });
  return new Worker(new Runs(store), { agents: [agent], leaseMs: 60_000 });
}

const withoutTime = (message: Message): unknown => ({ ...message, timestamp: 0 });

/** Drives a run as a person does, whatever becomes of its workers. */
async function drive(run: Run): Promise<RunEvent[]> {
  const seen: RunEvent[] = [];
  let isSteered = false;
  for await (const each of run.watch({ deltas: false })) {
    seen.push(each);
    const { event } = each;
    if (event.type === "tool_execution_end" && !isSteered) {
      isSteered = true;
      await run.followUp("Then rest.", { key: "rest" });
    }
    if (event.type === "agent_end" && event.stop === "suspended") {
      const { pending } = await run.info();
      const decisions = pending.map(({ toolCall }) => [toolCall.id, { type: "approve" }] as const);
      if (decisions.length > 0)
        await run.decide(Object.fromEntries(decisions), { key: "approved" });
    }
  }
  return seen;
}

interface Story {
  outside: Outside;
  messages: AgentMessage[];
  commits: number;
  rows: { id: number; type: string; data: string }[];
  activations: number;
  stop: string | undefined;
  /** What a watcher has seen while the run went on, and what the log says afterwards. */
  seen: RunEvent[];
  stored: RunEvent[];
}

async function live(dies?: { at: number; when: "before" | "after" }): Promise<Story> {
  const store = await openStore(newUrl());
  const runs = new Runs(store);
  const outside: Outside = { effects: [], requests: [] };
  const mortal = new MortalStore(store, dies);
  const first = startWorker(mortal.store, outside);
  await first.start();
  const run = await runs.start("Pay them, then sign.", { agent: "office", id: "r" });
  const driven = drive(run);
  let last = first;
  // A slow worker looks more often for what it can claim: the run may end before its worker dies.
  await Promise.race([mortal.died, driven]);
  mortal.spare();
  if (mortal.isDead) {
    last = startWorker(store, outside);
    await last.start();
    // As a sweep does with one whose process is gone.
    await store.unregister(first.id);
  }
  const seen = await driven;
  const stored: RunEvent[] = [];
  for await (const event of run.watch({ deltas: false })) stored.push(event);
  const { stop, activations } = await run.info();
  const messages = await run.messages();
  const rows = await store.readEntriesAfter("r", 0, 1_000);
  await last.stop();
  // Nothing answers it any more.
  if (mortal.isDead) void first.stop({ drainMs: 0 });
  await store.close();
  return { outside, messages, commits: mortal.commits, rows, activations, stop, seen, stored };
}

describe("a worker that dies before and after each of its commits", async () => {
  const whole = await live();
  const worlds = Array.from({ length: whole.commits }, (_, index) => index + 1).flatMap((at) =>
    (["before", "after"] as const).map((when) => [when, at] as const),
  );

  it("undisturbed, runs each tool once and asks four times", () => {
    expect(whole.stop).toBe("done");
    expect(whole.outside.requests).toHaveLength(4);
    expect(whole.outside.effects.toSorted()).toEqual(
      ["pay a", "pay b", "look c", "sign contract", "pay d"].toSorted(),
    );
  });

  it.each(worlds)("D1, D3, D4, D5, D6, D7, D9, D10, D11 %s commit %i", async (when, at) => {
    const story = await live({ when, at });
    expect(story.stop).toBe("done");
    // D1: what was seen is stored.
    expect(story.seen).toEqual(story.stored);
    // D3: numbers without gap or repeat.
    expect(story.rows.map(({ id }) => id)).toEqual(story.rows.map((_, index) => index + 1));
    // D4: every call has one result in its place.
    expect(validateTranscript(story.messages.filter(isLlmMessage))).toEqual([]);
    // D5: what is not idempotent begins once.
    const effects = story.outside.effects.filter((effect) => !effect.startsWith("look"));
    expect(effects).toEqual([...new Set(effects)]);
    // D6, D7: a call is interrupted only where it had begun, and none is lost without a word.
    const interrupted = story.messages.filter(
      (message) => message.role === "toolResult" && message.outcome === "interrupted",
    );
    const missing = whole.outside.effects.filter(
      (effect) => !story.outside.effects.includes(effect),
    );
    expect(missing.length).toBeLessThanOrEqual(interrupted.length);
    const begins = story.rows.filter(({ type }) => type === "begin");
    expect(new Set(begins.map(({ data }) => data)).size).toBe(begins.length);
    // D9: what has a result is not worked out again.
    const results = story.rows.flatMap(({ type, data }) =>
      type === "result" ? [String(JSON.parse(data).toolCallId)] : [],
    );
    expect(results).toEqual([...new Set(results)]);
    // D10: at most the answer that was on its way is asked for again.
    expect(story.outside.requests.length).toBeLessThanOrEqual(5);
    // D11: the last request is that of an undisturbed run, byte for byte.
    if (interrupted.length === 0) {
      expect(story.outside.requests.at(-1)).toBe(whole.outside.requests.at(-1));
    }
  });
});
