import { type AgentMessage, isLlmMessage, type PendingCall } from "@gyre/agent";
import {
  type AssistantMessage,
  type FileContent,
  MAX_INLINE_BYTES,
  toBase64,
  type ToolResultMessage,
  type UserContent,
} from "@gyre/ai";
import type { EntryBody } from "../format/entry.ts";
import { isSame } from "../format/same.ts";
import type { SessionStorage } from "../format/storage.ts";
import { type Session, SessionError, type SessionErrorCode } from "../format/types.ts";
import { createJournal } from "../journal.ts";

/** What a test gets: a storage of its own, and hooks for what only the storage can arrange. */
export interface StorageUnderTest {
  /** Without any sessions. */
  storage: SessionStorage;
  /**
   * Ends the process in the middle of its work: nothing is closed, and what had not settled may be
   * lost or half written. Returns the storage as the next process finds it.
   */
  crash?: () => SessionStorage | Promise<SessionStorage>;
  /** Opens a session as a process does that takes it over while its writer is suspended. */
  takeOver?: (id: string) => Promise<Session>;
  /** The next append fails, for want of room, say. */
  failNextAppend?: (session: Session) => void | Promise<void>;
  dispose?: () => void | Promise<void>;
}

/** `it` of vitest and jest, `test` of `node:test`, `Deno.test`. */
export type RegisterTest = (name: string, run: () => Promise<void>) => unknown;

const CWD = "/home/ada/tea";

/**
 * Registers the tests that every storage of sessions has to pass. `create` is called for each of
 * them. A test whose hook is absent has nothing to check, and passes.
 */
export function describeSessionStorage(
  it: RegisterTest,
  create: () => StorageUnderTest | Promise<StorageUnderTest>,
): void {
  for (const [name, test] of Object.entries(TESTS)) {
    it(name, async () => {
      const under = await create();
      try {
        await test(under);
      } finally {
        await under.dispose?.();
      }
    });
  }
}

type Test = (under: StorageUnderTest) => Promise<void>;

const TESTS: Readonly<Record<string, Test>> = {
  "a new session is open, empty, and has what it was given": async ({ storage }) => {
    const from = { session: "other", entry: 3 };
    const session = await storage.create({ cwd: CWD, id: "7k2m", from, createdAt: 5 });
    const { header } = session;
    same([header.id, header.cwd, header.createdAt, header.from], ["7k2m", CWD, 5, from]);
    same([session.readOnly, session.leaf, session.entries], [false, null, []]);
    same(session.findBranch(), []);
    const { messages, entries, pending, queued, settings } = await session.context();
    same([messages, entries, pending, settings], [[], [], [], {}]);
    same([queued.steering, queued.followUp], [[], []]);
    await session.close();
  },

  "ids are made where none is given, and differ": async ({ storage }) => {
    const [one, other] = [await storage.create({ cwd: CWD }), await storage.create({ cwd: CWD })];
    check(one.header.id !== "" && one.header.id !== other.header.id, "the ids are the same");
    await one.close();
    await other.close();
  },

  "an id that is taken is refused": async ({ storage }) => {
    await closed(storage, "7k2m");
    await rejects(storage.create({ cwd: CWD, id: "7k2m" }), "exists");
  },

  "entries are there for the next one that opens it, as they were": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    for (const body of BODIES) await session.append(body);
    const before = await readAll(session);
    await session.close();
    const again = await storage.open("7k2m");
    same(await readAll(again), before);
    same(
      before.map(({ id: _i, parentId: _p, timestamp: _t, ...body }) => body),
      BODIES,
    );
    same(again.leaf, session.leaf);
    await again.close();
  },

  "appends that are not waited for keep their order, and ids count up from 1": async ({
    storage,
  }) => {
    const session = await storage.create({ cwd: CWD });
    const texts = Array.from({ length: 50 }, (_, i) => `text ${i}`);
    const entries = await Promise.all(texts.map((text) => session.append(user(text))));
    same(
      entries.map(({ id, parentId }) => [id, parentId]),
      texts.map((_, i) => [i + 1, i === 0 ? null : i]),
    );
    same(contents((await session.context()).messages), texts);
    same(
      session.entries.map(({ id, type }) => [id, type]),
      texts.map((_, i) => [i + 1, "message"]),
    );
    await session.close();
  },

  "a caller that changes what it appended changes nothing that is stored": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD });
    const data = { leaves: ["green"] };
    const writing = session.append({ type: "custom", kind: "tea", data });
    data.leaves.push("black");
    await writing;
    const entry = await session.read(1);
    same(entry.type === "custom" && entry.data, { leaves: ["green"] });
    await session.close();
  },

  "what JSON cannot say is refused, and the session goes on": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD });
    await rejects(session.append({ type: "custom", kind: "x", data: 1n }), "write_failed");
    same((await session.append(user("a"))).id, 1);
    await session.close();
  },

  "what is about a call or a queue stands beside the branch": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD });
    await session.append(user("a"));
    await session.append({ type: "begin", toolCallId: "c1", toolName: "look" });
    await session.append({ type: "queue", queue: "steering", ids: [] });
    same(session.leaf, 1);
    const { parentId } = await session.append(user("b"));
    same([parentId, session.findBranch()], [1, [1, 4]]);
    same(session.findIds("message", "queue"), [1, 3, 4]);
    await session.close();
  },

  "a branch goes on elsewhere, and the other one stays": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    for (const text of ["a", "b", "c"]) await session.append(user(text));
    await session.branch(1);
    same(session.leaf, 1);
    await session.append(user("d"));
    same(contents((await session.context()).messages), ["a", "d"]);
    same(contents((await session.context(3)).messages), ["a", "b", "c"]);
    await session.branch(null);
    same((await session.context()).messages, []);
    await session.close();
    const again = await storage.open("7k2m");
    same([again.leaf, again.findBranch(3)], [null, [1, 2, 3]]);
    await rejects(again.branch(99), "not_found");
    await rejects(again.read(99), "not_found");
    await rejects(again.context(99), "not_found");
    await again.close();
  },

  "settings are what was set last, on the branch": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD });
    const model = { provider: "anthropic", id: "claude-sonnet-4-5" };
    await session.append({ type: "settings", settings: { thinkingLevel: "off", model } });
    await session.append({ type: "settings", settings: { thinkingLevel: "high" } });
    await session.append({ type: "title", title: "Tea" });
    const { settings, title } = await session.context();
    same([settings, title], [{ thinkingLevel: "high", model }, "Tea"]);
    same((await session.context(1)).settings, { thinkingLevel: "off", model });
    await session.close();
  },

  "a result is next to its call, whether its message came or not": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    await session.append(user("a"));
    await session.append({ type: "message", message: calling("c1", "c2"), begins: true });
    await session.append(RESULT);
    await session.append({ type: "message", message: RESULT_MESSAGE });
    await session.append({ ...RESULT, toolCallId: "c2" });
    await session.close();
    const again = await storage.open("7k2m");
    const { messages, unfinished } = await again.context();
    same(messages.at(-1), RESULT_MESSAGE);
    same(unfinished("c2"), { ...RESULT.result, outcome: "ok" });
    await again.close();
  },

  "calls wait, are decided and begin": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    await session.append({ type: "message", message: calling("c1", "c2", "c3"), begins: true });
    const [first] = (await session.context()).messages;
    check(first?.role === "assistant", "the message with the calls is missing");
    const { toolCall: _call, ...question } = QUESTION;
    await session.append({ type: "pending", toolCallId: "c1", ...question });
    await session.append({ type: "pending", toolCallId: "c2", ...question });
    await session.append({ type: "decision", toolCallId: "c2", decision: { type: "approve" } });
    await session.append({ type: "begin", toolCallId: "c3", toolName: "look" });
    await session.close();
    const again = await storage.open("7k2m");
    const { pending, unfinished } = await again.context();
    same(pending, [QUESTION]);
    same(unfinished("c1"), "not begun");
    same(unfinished("c2"), { type: "approve" });
    same(unfinished("c3"), undefined);
    await again.close();
  },

  "a run that did not end was cut off": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    await session.append(user("a"));
    await session.append({ type: "start" });
    await session.append({ type: "message", message: calling("c1"), begins: true });
    await session.append({ ...RESULT, result: { ...RESULT.result, terminate: true } });
    await session.close();
    const again = await storage.open("7k2m");
    const { interrupted } = await again.context();
    same([interrupted?.turns, interrupted?.terminated], [1, [RESULT.toolCallId]]);
    await again.append({ type: "end", stop: "aborted" });
    same((await again.context()).interrupted, undefined);
    await again.close();
  },

  "messages wait in the queues until they are delivered": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    const messages = ["q1", "q2"].map((id) => ({ id, message: user(id).message }));
    await session.append({ type: "queue", queue: "followUp", ids: ["q1", "q2"], messages });
    await session.append({ ...user("q1"), queued: "q1" });
    await session.close();
    const again = await storage.open("7k2m");
    same((await again.context()).queued.followUp, messages.slice(1));
    await again.close();
    const copy = await storage.fork("7k2m");
    same((await copy.context()).queued.followUp, []);
    await copy.close();
  },

  "a compaction stands for the messages that it names": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    for (const text of ["a", "b", "c", "d"]) await session.append(user(text));
    const { message } = user("In short.");
    await session.append({ type: "compaction", first: 2, until: 4, message });
    await session.close();
    const again = await storage.open("7k2m");
    const context = await again.context();
    same(contents(context.messages), ["a", "In short.", "d"]);
    same(context.entries, [1, 5, 4]);
    same(context.compaction, { from: 1, to: 2, message });
    await again.close();
  },

  "the journal of an agent writes to it": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    const journal = createJournal(session);
    const { message } = user("a");
    await journal({ type: "message_end", message });
    await journal({ type: "message_end", message: calling("c1") });
    await journal.ask("c1", { reason: "It orders tea." });
    await journal.decide({ c1: { type: "approve" } });
    await session.close();
    const again = await storage.open("7k2m");
    const { messages, pending, unfinished } = await again.context();
    same([messages.length, pending], [2, []]);
    same(unfinished("c1"), { type: "approve" });
    await again.close();
  },

  "large files come back, in whatever entry they are": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    const [one, two, three, small] = [large(1), large(2), large(3), large(4, 10)];
    const message = { role: "user", content: [one, small], timestamp: 1 } as const;
    await session.append({ type: "message", message: { ...message, content: [one, small] } });
    await session.append({ type: "message", message: calling("c1", "c2"), begins: true });
    const given = { ...RESULT, result: { content: [two] } };
    await session.append(given);
    const answer = { ...RESULT_MESSAGE, content: [two] };
    const { details: _, ...plain } = answer;
    await session.append({ type: "message", message: plain });
    await session.append({ ...given, toolCallId: "c2" });
    const queued = [{ id: "q1", message: { ...message, content: [three] } }];
    await session.append({ type: "queue", queue: "steering", ids: ["q1"], messages: queued });
    await session.close();
    const again = await storage.open("7k2m");
    const context = await again.context();
    same(content(context.messages[0]), [one, small]);
    same(content(context.messages[2]), [two]);
    same(context.unfinished("c2"), { ...given.result, outcome: "ok" });
    same(context.queued.steering, queued);
    await again.close();
  },

  "a caller that changes a large file after it was appended changes nothing": async ({
    storage,
  }) => {
    const session = await storage.create({ cwd: CWD });
    const blocks: UserContent[] = [large(1), { type: "text", text: "a" }];
    const message = { role: "user", content: blocks, timestamp: 1 } as const;
    const writing = session.append({ type: "message", message: { ...message, content: blocks } });
    blocks[1] = { type: "text", text: "changed" };
    blocks.push({ type: "text", text: "b" });
    await writing;
    same(content((await session.context()).messages[0]), [large(1), { type: "text", text: "a" }]);
    await session.close();
  },

  "a fork has the large files of its branch, also when the other session is gone": async ({
    storage,
  }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    const message = { role: "user", content: [large(1)], timestamp: 1 } as const;
    await session.append({ type: "message", message: { ...message, content: [large(1)] } });
    await session.append(user("b"));
    await session.close();
    const copy = await storage.fork("7k2m", { cwd: "/elsewhere" });
    const { id } = copy.header;
    await copy.close();
    await storage.remove("7k2m");
    const again = await storage.open(id);
    same(content((await again.context()).messages[0]), [large(1)]);
    await again.close();
  },

  "large files are there after a crash, if the entry is": async ({ storage, crash }) => {
    if (!crash) return;
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    const message = { role: "user", content: [large(1)], timestamp: 1 } as const;
    await session.append({ type: "message", message: { ...message, content: [large(1)] } });
    const next = await crash();
    const again = await next.open("7k2m", { readOnly: true });
    same(content((await again.context()).messages[0]), [large(1)]);
    await again.close();
  },

  "one writer at a time, and any number of readers": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    await session.append(user("a"));
    await rejects(storage.open("7k2m"), "locked");
    await rejects(storage.remove("7k2m"), "locked");
    const readers = [
      await storage.open("7k2m", { readOnly: true }),
      await storage.open("7k2m", { readOnly: true }),
    ];
    for (const reader of readers) {
      same([reader.readOnly, contents((await reader.context()).messages)], [true, ["a"]]);
      await rejects(reader.append(user("b")), "write_failed");
      await rejects(reader.branch(null), "write_failed");
      await reader.close();
    }
    // A reader that closes releases nothing of the writer's.
    await rejects(storage.open("7k2m"), "locked");
    await session.append(user("b"));
    await session.close();
    const again = await storage.open("7k2m");
    same(again.entries.length, 2);
    await again.close();
  },

  "close waits for what is being written, and nothing is written afterwards": async ({
    storage,
  }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    const writing = session.append(user("a"));
    await Promise.all([session.close(), session.close()]);
    same((await writing).id, 1);
    await rejects(session.append(user("b")), "write_failed");
    const again = await storage.open("7k2m");
    same(again.entries.length, 1);
    await again.close();
  },

  "sessions are found by the beginning of an id, and located by all of it": async ({ storage }) => {
    for (const id of ["7k2m", "7k3x", "9abc"]) await closed(storage, id);
    same([(await storage.find("7k2")).id, (await storage.find("7k3x")).id], ["7k2m", "7k3x"]);
    await rejects(storage.find("7k"), "ambiguous");
    await rejects(storage.open("7k"), "ambiguous");
    await rejects(storage.find(""), "not_found");
    await rejects(storage.find("zzz"), "not_found");
    await rejects(storage.open("zzz"), "not_found");
    await rejects(storage.fork("zzz"), "not_found");
    await rejects(storage.remove("zzz"), "not_found");
    await storage.prepare?.();
    for (const id of ["7k2", "", "../7k2m", "zzz"]) same(await storage.locate(id), undefined);
    const place = await storage.locate("9abc");
    check(place !== undefined, "a session is not located by its id");
    const session = await storage.open(place, { readOnly: true });
    same(session.header.id, "9abc");
    await session.close();
  },

  "a list has what a person chooses by, the last written first": async ({ storage }) => {
    for (const [at, id] of ["a1", "b2", "c3"].entries()) {
      const session = await storage.create({ cwd: CWD, id, createdAt: at + 1 });
      await session.append(user(`  Which\ntea ${id}?  `));
      await session.append(user("And then?"));
      await session.append({ type: "title", title: "Old" });
      await session.append({ type: "title", title: `Tea ${id}` });
      await session.close();
    }
    await closed(storage, "d4", `${CWD}/other`);
    same((await storage.list()).length, 4);
    const here = await storage.list({ cwd: CWD });
    same(here.map(({ id }) => id).sort(), ["a1", "b2", "c3"]);
    check(
      here.every(({ updatedAt }, i) => updatedAt <= (here[i - 1]?.updatedAt ?? updatedAt)),
      "the list is not in the order of the last writes",
    );
    same((await storage.list({ cwd: CWD, limit: 2 })).length, 2);
    const { cwd, createdAt, updatedAt, bytes, title, firstPrompt } = await storage.find("b2");
    same([cwd, createdAt, title, firstPrompt], [CWD, 2, "Tea b2", "Which tea b2?"]);
    check(updatedAt > createdAt && bytes > 0, "the time or the size is missing");
  },

  "pages go from the newest to the oldest, whatever is written meanwhile": async ({ storage }) => {
    for (const [at, id] of ["a1", "b2", "c3", "d4", "e5"].entries()) {
      await closed(storage, id, CWD, 1000 + at);
    }
    const first = await storage.listPage({ cwd: CWD, limit: 2 });
    same([ids(first.sessions), first.next !== undefined], [["e5", "d4"], true]);
    await closed(storage, "f6", CWD, 2000);
    const written = await storage.open("a1");
    await written.append(user("again"));
    await written.close();
    const after = first.next ?? "";
    const second = await storage.listPage({ cwd: CWD, limit: 2, after });
    same(ids(second.sessions), ["c3", "b2"]);
    const third = await storage.listPage({ cwd: CWD, limit: 2, after: second.next ?? "" });
    same([ids(third.sessions), third.next], [["a1"], undefined]);
    same(await storage.listPage({ cwd: `${CWD}/other`, limit: 2 }), { sessions: [] });
  },

  "pages of the last writes, of some words and of those put away are the list in parts": async ({
    storage,
  }) => {
    const titles = ["Green tea", "black TEA", "Coffee", "green coffee", "Water"];
    for (const [at, title] of titles.entries()) {
      const session = await storage.create({ cwd: CWD, id: `s${at}`, createdAt: 1000 + at });
      await session.append(user(`Which one, ${at}?`));
      await session.append({ type: "title", title });
      if (at % 2 === 0) await session.append({ type: "archive", archived: true });
      await session.close();
    }
    await closed(storage, "other", `${CWD}/other`, 2000);
    for (const order of ["updated", "created"] as const) {
      for (const options of [
        {},
        { cwd: CWD },
        { archived: true },
        { archived: false, cwd: CWD },
        { query: "GREEN" },
        { query: " one, te " },
        { query: "nothing of this" },
        { query: "coffee", archived: false },
      ]) {
        const paged: string[] = [];
        for (let after: string | undefined, pages = 0; pages < 9; pages++) {
          const request = { ...options, order, limit: 2, ...(after !== undefined && { after }) };
          const { sessions, next } = await storage.listPage(request);
          check(sessions.length <= 2, "a page has more than was asked for");
          paged.push(...ids(sessions));
          if (next === undefined) break;
          after = next;
        }
        const whole = ids(await storage.list(options));
        same(paged.toSorted(), whole.toSorted());
        if (order === "updated") same(paged, whole);
      }
    }
    same(ids(await storage.list({ query: "tea green" })), ["s0"]);
    same(ids((await storage.listPage({ limit: 9, archived: true })).sessions), ["s4", "s2", "s0"]);
    same(ids(await storage.list({ query: "which 3" })), ["s3"]);
  },

  "texts of messages are found, page by page, in any case": async ({ storage }) => {
    if (!storage.search) return;
    for (const [at, text] of ["Pu-erh", "coffee", "", "a\n  pu-ERH, 😀 of 2010"].entries()) {
      const session = await storage.create({ cwd: CWD, id: `s${at}`, createdAt: 1000 + at });
      await session.append(user(`Which one, ${at}?`));
      for (let i = 0; i < 3; i++) await session.append(user(`Then ${i}`));
      if (text !== "") await session.append(user(`I like ${text}`));
      if (text !== "") await session.append(user(`Again: ${text}`));
      await session.append({ type: "title", title: "pu-erh" });
      await session.close();
    }
    const found: unknown[] = [];
    for (let after: string | undefined, pages = 0; pages < 9; pages++) {
      const request = { text: " PU-erh ", limit: 1, ...(after !== undefined && { after }) };
      const { matches, next, unreadable } = await storage.search(request);
      check(matches.length <= 1 && unreadable.length === 0, "a page has too much");
      found.push(...matches.map(({ entry, excerpt, session }) => [session.id, entry, excerpt]));
      if (next === undefined) break;
      after = next;
    }
    same(found, [
      ["s3", 5, "I like a pu-ERH, 😀 of 2010"],
      ["s0", 5, "I like Pu-erh"],
    ]);
    same((await storage.search({ text: "which", cwd: `${CWD}/other`, limit: 9 })).matches, []);
    same((await storage.search({ text: " ", limit: 9 })).matches, []);
    same((await storage.search({ text: "one, 2", cwd: CWD, limit: 9 })).matches.length, 1);
  },

  "a session is put away until something is said in it, and its fork is not": async ({
    storage,
  }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    await session.append(user("a"));
    await session.append({ type: "archive", archived: true });
    same([session.leaf, (await session.read(2)).type], [1, "archive"]);
    await session.close();
    same((await storage.find("7k2m")).archived, true);
    const copy = await storage.fork("7k2m", { newId: "copy" });
    same([copy.header.id, copy.entries.length], ["copy", 1]);
    await copy.close();
    same((await storage.find("copy")).archived, undefined);
    await rejects(storage.fork("7k2m", { newId: "copy" }), "exists");
    for (const body of [user("b"), { type: "archive", archived: false } as const]) {
      const again = await storage.open("7k2m");
      await again.append({ type: "archive", archived: true });
      await again.append({ type: "title", title: "Tea" });
      same((await storage.find("7k2m")).archived, true);
      await again.append(body);
      await again.close();
      same((await storage.find("7k2m")).archived, undefined);
    }
  },

  "a fork has one branch, its calls, and numbers of its own": async ({ storage }) => {
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    await session.append(user("a"));
    await session.append(user("left behind"));
    await session.branch(1);
    await session.append({ type: "message", message: calling("c1"), begins: true });
    await session.append(RESULT);
    await session.append({ type: "message", message: RESULT_MESSAGE });
    await session.append(user("b"));
    // While it is written to: a fork reads.
    const copy = await storage.fork("7k2m");
    check(copy.header.id !== "7k2m" && !copy.readOnly, "the fork is not a session of its own");
    same(copy.header.from, { session: "7k2m", entry: 7 });
    same(copy.findBranch().length, 4);
    same((await copy.context()).messages, (await session.context()).messages);
    await copy.append(user("c"));
    same(contents((await session.context()).messages).at(-1), "b");
    await copy.close();
    const short = await storage.fork("7k2m", { entry: 1, cwd: `${CWD}/other` });
    same(contents((await short.context()).messages), ["a"]);
    same([short.header.cwd, short.header.from], [`${CWD}/other`, { session: "7k2m", entry: 1 }]);
    await short.close();
    const empty = await storage.fork("7k2m", { entry: null });
    same([empty.entries, empty.header.from], [[], { session: "7k2m" }]);
    await empty.close();
    await session.close();
  },

  "a session that is removed is gone, and its id is free": async ({ storage }) => {
    await closed(storage, "7k2m");
    await storage.remove("7k2m");
    await rejects(storage.open("7k2m"), "not_found");
    same([await storage.list(), await storage.locate("7k2m")], [[], undefined]);
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    same(session.entries, []);
    await session.close();
  },

  "after a crash all that had settled is there, and it goes on": async ({ storage, crash }) => {
    if (!crash) return;
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    for (const text of ["a", "b"]) await session.append(user(text));
    await session.append({ type: "message", message: calling("c1"), begins: true });
    const { toolCall: _call, ...question } = QUESTION;
    await session.append({ type: "pending", toolCallId: "c1", ...question });
    const unsettled = session.append({ type: "title", title: "Perhaps" });
    const next = await crash();
    await unsettled.catch(() => {});
    const again = await next.open("7k2m");
    const { messages, pending } = await again.context();
    same(contents(messages).slice(0, 2), ["a", "b"]);
    same(pending, [QUESTION]);
    const { id } = await again.append(user("c"));
    check(id === 5 || id === 6, `the entry after the crash has the id ${id}`);
    same(contents((await again.context()).messages).at(-1), "c");
    await again.close();
    // Only so that nothing is left open: what it does is of the process that has ended.
    await session.close().catch(() => {});
  },

  "a writer that was taken over writes nothing more": async ({ storage, takeOver }) => {
    if (!takeOver) return;
    const late = await storage.create({ cwd: CWD, id: "7k2m" });
    await late.append(user("a"));
    const writer = await takeOver("7k2m");
    await writer.append(user("b"));
    await rejects(late.append(user("late")), "lock_lost");
    await rejects(late.append(user("later")), "lock_lost");
    await late.close();
    // What the late one closes is not the lock of the other.
    await rejects(storage.open("7k2m"), "locked");
    await writer.append(user("c"));
    same(contents((await writer.context()).messages), ["a", "b", "c"]);
    await writer.close();
  },

  "an append that fails leaves the session as it was": async ({ storage, failNextAppend }) => {
    if (!failNextAppend) return;
    const session = await storage.create({ cwd: CWD, id: "7k2m" });
    await session.append(user("a"));
    await failNextAppend(session);
    await rejects(session.append(user("lost")), "write_failed");
    same([session.leaf, session.entries.length], [1, 1]);
    same((await session.append(user("b"))).id, 2);
    await session.close();
    const again = await storage.open("7k2m");
    same(contents((await again.context()).messages), ["a", "b"]);
    await again.close();
  },
};

function user(content: string) {
  return { type: "message", message: { role: "user", content, timestamp: 1 } } as const;
}

/** A file that belongs into a store, unless it is smaller. */
function large(fill: number, bytes = MAX_INLINE_BYTES + fill): FileContent {
  const data = toBase64(new Uint8Array(bytes).fill(fill));
  return { type: "file", mediaType: "application/pdf", source: { type: "base64", data } };
}

function content(message: AgentMessage | undefined): unknown {
  return message && isLlmMessage(message) ? message.content : undefined;
}

function calling(...ids: readonly string[]): AssistantMessage {
  return {
    role: "assistant",
    content: ids.map((id) => ({ type: "toolCall", id, name: "look", arguments: { at: "shelf" } })),
    api: "scripted",
    provider: "scripted",
    model: "scripted",
    usage: {},
    stopReason: "toolUse",
    timestamp: 1,
  };
}

const QUESTION: PendingCall = {
  toolCall: { type: "toolCall", id: "c1", name: "look", arguments: { at: "shelf" } },
  reason: "It orders tea.",
  access: { kind: "order" },
  fingerprint: "f1",
};

const RESULT = {
  type: "result",
  toolCallId: "c1",
  toolName: "look",
  result: { content: [{ type: "text", text: "green" }], details: { tins: 2 } },
  isError: false,
  outcome: "ok",
} satisfies EntryBody;

const RESULT_MESSAGE: ToolResultMessage = {
  role: "toolResult",
  toolCallId: "c1",
  toolName: "look",
  content: [{ type: "text", text: "green" }],
  details: { tins: 2 },
  isError: false,
  outcome: "ok",
  timestamp: 7,
};

/** One of each type. */
const BODIES: readonly EntryBody[] = [
  { type: "settings", settings: { thinkingLevel: "high", tools: ["look"], mode: "ask" } },
  user('Which tea? 🍵 \u2028 \\ "'),
  { type: "message", message: calling("c1"), begins: true },
  { type: "pending", toolCallId: "c1", reason: "It orders tea.", fingerprint: "f1" },
  { type: "decision", toolCallId: "c1", decision: { type: "approve" } },
  { type: "begin", toolCallId: "c1", toolName: "look" },
  RESULT,
  { type: "message", message: RESULT_MESSAGE },
  {
    type: "queue",
    queue: "steering",
    ids: ["q1"],
    messages: [{ id: "q1", message: user("q").message }],
  },
  { type: "compaction", first: 2, until: 8, message: user("In short.").message },
  { type: "title", title: "Tea" },
  { type: "label", entry: 2, label: "here" },
  { type: "custom", kind: "notes", data: { text: "Buy tea.", list: [1, null, true] } },
];

async function closed(
  storage: SessionStorage,
  id: string,
  cwd = CWD,
  createdAt?: number,
): Promise<void> {
  const session = await storage.create({ id, cwd, ...(createdAt !== undefined && { createdAt }) });
  await session.close();
}

function readAll(session: Session) {
  return Promise.all(session.entries.map(({ id }) => session.read(id)));
}

function contents(messages: readonly AgentMessage[]): unknown[] {
  return messages.map((message) => ("content" in message ? message.content : undefined));
}

function ids(sessions: readonly { id: string }[]): string[] {
  return sessions.map(({ id }) => id);
}

function check(isTrue: boolean, what: string): asserts isTrue {
  if (!isTrue) throw new Error(what);
}

function same(actual: unknown, expected: unknown): void {
  if (isSame(actual, expected)) return;
  throw new Error(`Expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}.`);
}

async function rejects(promise: Promise<unknown>, code: SessionErrorCode): Promise<void> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof SessionError && error.code === code) return;
    const got = error instanceof SessionError ? error.code : String(error);
    throw new Error(`Expected a SessionError "${code}", got ${got}.`, { cause: error });
  }
  throw new Error(`Expected a SessionError "${code}", and there was none.`);
}
