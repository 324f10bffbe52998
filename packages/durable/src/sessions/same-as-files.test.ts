import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AssistantMessage, Clock, ToolResultMessage } from "@gyre/ai";
import { systemClock } from "@gyre/ai";
import {
  type EntryBody,
  type Session,
  SessionError,
  type SessionStorage,
  SessionStore,
} from "@gyre/sessions";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { type PostgresServer, startPostgres } from "../../../../tests/support/postgres.ts";
import { openRuns } from "../runs/open.ts";
import type { Runs } from "../runs/runs.ts";

// Random operations, made on sessions in files and on those of a store: entries, branches, contexts
// and lists have to be the same after each of them.

const CWDS = ["/tea", "/coffee"] as const;
const CALLS = ["c1", "c2", "c3"] as const;

const text = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 12 })
  .map((value) => `x${value}`);
const call = fc.constantFrom(...CALLS);
const place = fc.nat(40);

const operation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("user" as const), text }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("assistant" as const),
      text,
      calls: fc.uniqueArray(call, { maxLength: 3 }),
      begins: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("begin" as const), call }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pending" as const), call, text }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("decision" as const),
      call,
      type: fc.constantFrom("approve" as const, "deny" as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("result" as const),
      call,
      text,
      terminates: fc.boolean(),
      hasMessage: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("settings" as const),
      level: fc.constantFrom("off" as const, "high" as const),
      tools: fc.option(fc.array(call, { maxLength: 2 }), { nil: undefined }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("compaction" as const), first: place, text }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("queue" as const),
      queue: fc.constantFrom("steering" as const, "followUp" as const),
      texts: fc.array(text, { maxLength: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("title" as const), text }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("label" as const), entry: place, text }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("custom" as const), data: fc.jsonValue() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("start" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("end" as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("branch" as const), to: place }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("reopen" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("fork" as const),
      to: place,
      cwd: fc.constantFrom(...CWDS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("remove" as const), which: place }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** Sessions of one storage; those of both have the same place in the list. */
class Side {
  readonly #storage: SessionStorage;
  readonly #ids: string[] = [];
  #session: Session | undefined;

  constructor(storage: SessionStorage) {
    this.#storage = storage;
  }

  async begin(): Promise<void> {
    await this.#use(await this.#storage.create({ cwd: CWDS[0] }));
    await this.#open.append(user("xFirst"));
  }

  get #open(): Session {
    if (!this.#session) throw new Error("No session is open.");
    return this.#session;
  }

  async #use(session: Session): Promise<void> {
    await this.#session?.close();
    this.#session = session;
    if (!this.#ids.includes(session.header.id)) this.#ids.push(session.header.id);
  }

  async close(): Promise<void> {
    await this.#session?.close();
  }

  async play(one: Operation): Promise<unknown> {
    try {
      return await this.#play(one);
    } catch (error) {
      if (error instanceof SessionError) return error.code;
      throw error;
    }
  }

  async #play(one: Operation): Promise<unknown> {
    const session = this.#open;
    switch (one.do) {
      case "branch": {
        await session.branch(this.#pick(one.to));
        return session.leaf;
      }
      case "reopen": {
        const { id } = session.header;
        await session.close();
        return this.#use(await this.#storage.open(id));
      }
      case "fork":
        return this.#use(
          await this.#storage.fork(session.header.id, { entry: this.#pick(one.to), cwd: one.cwd }),
        );
      case "remove": {
        const id = this.#ids[one.which % this.#ids.length] ?? "";
        return this.#storage.remove(id);
      }
      default: {
        const bodies = this.#listBodies(one);
        // Not waited for one by one: what is appended together is written together.
        const entries = await Promise.all(bodies.map((body) => session.append(body)));
        return entries.map(({ id, parentId, timestamp }) => ({ id, parentId, timestamp }));
      }
    }
  }

  /** An entry, or none of them. */
  #pick(at: number): number | null {
    const { entries } = this.#open;
    return entries[at % (entries.length + 1)]?.id ?? null;
  }

  #listBodies(
    one: Exclude<Operation, { do: "branch" | "reopen" | "fork" | "remove" }>,
  ): EntryBody[] {
    switch (one.do) {
      case "user":
        return [user(one.text)];
      case "assistant":
        return [
          {
            type: "message",
            message: calling(one.text, one.calls),
            ...(one.begins && { begins: true }),
          },
        ];
      case "begin":
        return [{ type: "begin", toolCallId: one.call, toolName: "look" }];
      case "pending":
        return [{ type: "pending", toolCallId: one.call, reason: one.text, fingerprint: one.text }];
      case "decision":
        return [{ type: "decision", toolCallId: one.call, decision: { type: one.type } }];
      case "result": {
        const content = [{ type: "text" as const, text: one.text }];
        const result = { content, ...(one.terminates && { terminate: true }) };
        const head = {
          toolCallId: one.call,
          toolName: "look",
          isError: false,
          outcome: "ok",
        } as const;
        const message: ToolResultMessage = { role: "toolResult", ...head, content, timestamp: 7 };
        return [
          { type: "result", ...head, result },
          ...(one.hasMessage ? [{ type: "message" as const, message }] : []),
        ];
      }
      case "settings":
        return [
          {
            type: "settings",
            settings: { thinkingLevel: one.level, ...(one.tools && { tools: one.tools }) },
          },
        ];
      case "compaction":
        return this.#compact(one.first, one.text);
      case "queue": {
        const messages = one.texts.map((each, at) => ({
          id: `q${at}`,
          message: user(each).message,
        }));
        return [{ type: "queue", queue: one.queue, ids: messages.map(({ id }) => id), messages }];
      }
      case "title":
        return [{ type: "title", title: one.text }];
      case "label": {
        const entry = this.#pick(one.entry);
        return entry === null ? [] : [{ type: "label", entry, label: one.text }];
      }
      case "custom":
        return [{ type: "custom", kind: "note", data: one.data }];
      case "start":
        return [{ type: "start" }];
      case "end":
        return [{ type: "end", stop: "done" }];
    }
  }

  #compact(at: number, summary: string): EntryBody[] {
    const messages = new Set(this.#open.findIds("message"));
    const branch = this.#open.findBranch().filter((id) => messages.has(id));
    const first = branch[at % (branch.length || 1)];
    if (first === undefined) return [];
    const until = branch[branch.indexOf(first) + 2] ?? null;
    return [{ type: "compaction", first, until, message: user(summary).message }];
  }

  /** All that can be seen. */
  async look(): Promise<unknown> {
    const session = this.#open;
    const { header, leaf, entries } = session;
    const contexts = [];
    for (const id of [undefined, ...entries.map((entry) => entry.id).slice(-3)]) {
      const { unfinished, ...context } = await session.context(id);
      contexts.push({ ...context, unfinished: CALLS.map((each) => unfinished(each)) });
    }
    return {
      header: { ...header, ...this.#name(header.id), from: header.from && this.#from(header.from) },
      leaf,
      branch: session.findBranch(),
      entries: entries.map(({ id, parentId, type }) => ({ id, parentId, type })),
      read: await Promise.all(entries.map(({ id }) => session.read(id))),
      contexts,
      lists: await this.#list(),
    };
  }

  async #list(): Promise<unknown> {
    const all = await this.#storage.list();
    const times = all.map(({ updatedAt }) => updatedAt);
    const page = await this.#storage.listPage({ cwd: CWDS[0], limit: 100 });
    return {
      isOrdered: times.every((at, i) => at <= (times[i - 1] ?? at)),
      all: all.map((summary) => this.#summarize(summary)).sort((a, b) => a.name - b.name),
      page: page.sessions.map((summary) => this.#summarize(summary)),
    };
  }

  #summarize({
    path: _path,
    bytes: _bytes,
    id,
    ...rest
  }: Awaited<ReturnType<SessionStorage["list"]>>[number]) {
    return { ...rest, ...this.#name(id) };
  }

  #from({ session = "", ...rest }: NonNullable<Session["header"]["from"]>): unknown {
    return { ...rest, ...this.#name(session) };
  }

  /** Ids of forks are fresh. */
  #name(id: string): { id: string; name: number } {
    return { id: "", name: this.#ids.indexOf(id) };
  }
}

function user(content: string) {
  return { type: "message", message: { role: "user", content, timestamp: 1 } } as const;
}

function calling(text: string, ids: readonly string[]): AssistantMessage {
  return {
    role: "assistant",
    content: [
      { type: "text", text },
      ...ids.map((id) => ({ type: "toolCall" as const, id, name: "look", arguments: {} })),
    ],
    ...{ api: "scripted", provider: "scripted", model: "scripted", usage: {}, timestamp: 1 },
    stopReason: ids.length > 0 ? "toolUse" : "stop",
  };
}

async function playOnBoth(
  folder: string,
  open: () => Promise<Runs>,
  operations: readonly Operation[],
): Promise<void> {
  const runs = await open();
  // Each operation has a time, the same on both sides.
  let now = 1_000;
  const clock: Clock = { ...systemClock, now: () => now };
  const sides = [new Side(new SessionStore(folder, { clock })), new Side(runs.sessions({ clock }))];
  try {
    for (const side of sides) await side.begin();
    for (const one of operations) {
      now++;
      const [file, store] = await Promise.all(
        sides.map(async (side) => [await side.play(one), await side.look()]),
      );
      expect(store, JSON.stringify(one)).toEqual(file);
    }
  } finally {
    for (const side of sides) await side.close();
    await runs.close();
  }
}

describe("sessions of a store are those of files", { tags: "long" }, () => {
  const folder = mkdtempSync(join(tmpdir(), "gyre-same-"));
  let count = 0;
  afterAll(() => rmSync(folder, { recursive: true }));
  const operations = fc.array(operation, { minLength: 5, maxLength: 30 });

  it("whatever is done with them, on SQLite", async () => {
    const seed = pickSeed();
    const numRuns = countCases(10, 80, "GYRE_CASES");
    console.log(`sessions of files and of SQLite: GYRE_SEED=${seed} GYRE_CASES=${numRuns}`);
    await fc.assert(
      fc.asyncProperty(operations, async (given) => {
        const place = join(folder, String(++count));
        const open = () => openRuns(`file:${place}.db`, { synchronous: "normal" });
        await playOnBoth(place, open, given);
      }),
      { seed, numRuns, endOnFailure: false },
    );
  });

  describe("on Postgres", { tags: "postgres" }, () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.remove());

    it("whatever is done with them", async () => {
      const seed = pickSeed();
      const numRuns = countCases(3, 30, "GYRE_CASES");
      console.log(`sessions of files and of Postgres: GYRE_SEED=${seed} GYRE_CASES=${numRuns}`);
      await fc.assert(
        fc.asyncProperty(operations, async (given) => {
          const schema = `s${++count}`;
          await server.run(`create schema ${schema}`);
          const open = () => openRuns(server.url(), { schema, pool: 2 });
          await playOnBoth(join(folder, schema), open, given);
        }),
        { seed, numRuns, endOnFailure: false },
      );
    });
  });
});
