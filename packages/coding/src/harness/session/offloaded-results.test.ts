import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentMessage } from "@gyre/agent";
import { createSession, openSession } from "@gyre/sessions";
import { expect, it, onTestFinished } from "vitest";
import { OffloadedResults } from "./offloaded-results.ts";

function sessionPath(): string {
  const folder = mkdtempSync(join(tmpdir(), "gyre-kept-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "s.jsonl");
}

function result(toolCallId: string, text: string): AgentMessage {
  const content = [{ type: "text" as const, text }];
  return { role: "toolResult", toolCallId, toolName: "t", content, isError: false, timestamp: 1 };
}

it("keeps in memory where nothing is written down", async () => {
  const results = new OffloadedResults({ session: undefined });
  expect(await results.store("a", "long")).toBe('read it with the path "kept:a"');
  expect([await results.read("a"), await results.read("b")]).toEqual(["long", undefined]);
});

it("keeps in the session, and finds it there in another process", async () => {
  const path = sessionPath();
  const session = await createSession(path, { cwd: "/" });
  const results = new OffloadedResults({ session }, [result("a", "short")]);
  await results.store("a", "the whole");
  await results.store("b", "another");
  await session.close();
  const again = await openSession(path, { readOnly: true });
  const later = new OffloadedResults({ session: again }, [result("a", "short")]);
  expect([await later.read("a"), await later.read("b"), await later.read("c")]).toEqual([
    "the whole",
    "another",
    undefined,
  ]);
  await again.close();
});

it("does not keep a second time what the conversation has whole", async () => {
  const path = sessionPath();
  const session = await createSession(path, { cwd: "/" });
  const results = new OffloadedResults({ session });
  results.observe(result("call|1", "all of it"));
  await results.store("call_1", "all of it");
  expect(session.entries).toEqual([]);
  expect(await results.read("call_1")).toBe("all of it");
  await session.close();
});

it("finds a result that a compaction has taken out of the conversation", async () => {
  const path = sessionPath();
  const session = await createSession(path, { cwd: "/" });
  await session.append({
    type: "result",
    toolCallId: "call|9",
    toolName: "t",
    result: { content: [{ type: "text", text: "old and long" }] },
    isError: false,
  });
  const results = new OffloadedResults({ session });
  expect(await results.read("call_9")).toBe("old and long");
  await session.close();
});
