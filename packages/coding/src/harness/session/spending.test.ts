import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AssistantMessage } from "@gyre/ai";
import { createSession, openSession, type Session, type SessionFile } from "@gyre/sessions";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { PaymentLog, readSpending } from "./spending.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-spending-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const MANY = 600;

const answer = (nth: number): AssistantMessage => ({
  role: "assistant",
  content: [{ type: "text", text: `Answer ${nth}.` }],
  api: "scripted",
  provider: "scripted",
  model: nth % 2 === 0 ? "even" : "odd",
  usage: { input: nth, cost: { total: 0.1 } },
  stopReason: "stop",
  timestamp: nth,
});

async function addAnswers(session: Session, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, nth) =>
      session.append({ type: "message", message: answer(nth) }),
    ),
  );
}

const createLog = (session: Session): PaymentLog =>
  new PaymentLog(
    () => session,
    (text) => expect.fail(text),
  );

/** Opens a session, counts, adds an answer and closes it, as a run of the program does. */
async function work(session: SessionFile): Promise<{ reads: number; paid: number | undefined }> {
  const read = vi.spyOn(session, "read");
  const spending = await readSpending(session, undefined);
  const reads = read.mock.calls.length;
  await addAnswers(session, 1);
  await createLog(session).saveTotal(spending);
  await session.close();
  return { reads, paid: spending.session.input };
}

const sum = (count: number): number => (count * (count - 1)) / 2;

it("reads a long session once: later openings begin behind the sums that were kept", async () => {
  const path = join(folder, "a.jsonl");
  const session = await createSession(path, { cwd: folder });
  await session.append({ type: "custom", kind: "other", data: {} });
  await addAnswers(session, MANY);
  expect(await work(session)).toEqual({ reads: MANY + 2, paid: sum(MANY) });
  expect(await work(await openSession(path))).toEqual({ reads: 3, paid: sum(MANY) });
  expect(await work(await openSession(path))).toEqual({ reads: 4, paid: sum(MANY) });
});

it("keeps every sum, to the last digit", async () => {
  const path = join(folder, "a.jsonl");
  const session = await createSession(path, { cwd: folder });
  await addAnswers(session, MANY);
  const data = { purpose: "summaries", model: "scripted/even", usage: { output: 7 } };
  await session.append({ type: "custom", kind: "usage", data });
  const spending = await readSpending(session, undefined);
  await addAnswers(session, 1);
  await createLog(session).saveTotal(spending);
  spending.addMessage(answer(0));
  const { session: paid, prompt, purposes, models } = spending;
  const restored = await readSpending(session, undefined);
  expect(restored).toEqual({ session: paid, prompt, purposes, models, total: undefined });
  expect([...restored.models.keys()]).toEqual(["scripted/even", "scripted/odd"]);
  await session.close();
});

it("writes no sums of a short session, nor to one that has not grown or cannot be written", async () => {
  const path = join(folder, "a.jsonl");
  const session = await createSession(path, { cwd: folder });
  await addAnswers(session, 3);
  await work(session);

  const long = await openSession(path);
  expect(long.findIds("custom")).toEqual([]);
  await addAnswers(long, MANY);
  await createLog(long).saveTotal(await readSpending(long, undefined));
  expect(long.findIds("custom")).toEqual([]);
  const before = await readSpending(long, undefined);
  await addAnswers(long, 1);
  await long.close();
  const readOnly = await openSession(path, { readOnly: true });
  await createLog(readOnly).saveTotal(before);
  expect(readOnly.findIds("custom")).toEqual([]);
  await readOnly.close();
});

it("takes no sums of another session: a fork counts what is on its branch", async () => {
  const session = await createSession(join(folder, "a.jsonl"), { cwd: folder });
  await addAnswers(session, 1);
  const { leaf } = session;
  await addAnswers(session, MANY);
  await session.branch(leaf);
  const spending = await readSpending(session, undefined);
  await addAnswers(session, 2);
  await createLog(session).saveTotal(spending);
  const fork = await session.fork(join(folder, "b.jsonl"));
  expect(fork.findIds("custom")).toHaveLength(1);
  expect((await readSpending(fork, undefined)).session.input).toBe(1);
  await createLog(fork).saveTotal(spending);
  expect(fork.findIds("custom")).toHaveLength(1);
  await fork.close();
  await session.close();
});

it.each([
  null,
  "much",
  {},
  { until: 1 },
  { session: "S", until: 1, paid: { input: 1 }, prompt: {}, purposes: { answers: 3 }, models: {} },
  { session: "S", until: 9_999, paid: { input: 1 }, prompt: {}, purposes: {}, models: {} },
])("reads all entries where the sums are damaged: %j", async (data) => {
  const session = await createSession(join(folder, "a.jsonl"), { cwd: folder, id: "S" });
  await addAnswers(session, 4);
  await session.append({ type: "custom", kind: "usageTotal", data });
  expect((await readSpending(session, undefined)).session.input).toBe(sum(4));
  await session.close();
});
