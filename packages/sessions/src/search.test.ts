import { writeFile } from "node:fs/promises";
import { afterAll, expect, it } from "vitest";
import { MemorySessions } from "./memory-sessions.ts";
import { SessionStore } from "./store.ts";
import { temporaryPaths } from "./testing/folder.ts";

const newPath = temporaryPaths("search", afterAll);

function user(content: string) {
  return { type: "message", message: { role: "user", content, timestamp: 1 } } as const;
}

it("reads so much for a page, goes on within a session, and does not repeat it", async () => {
  const storage = new MemorySessions();
  for (const id of ["old", "long"]) {
    const session = await storage.create({ cwd: "/tea", id, createdAt: id === "old" ? 1 : 2 });
    for (let i = 0; i < 5_000; i++) await session.append(user(`Message ${i}`));
    await session.append(user(`Pu-erh in ${id}`));
    await session.close();
  }
  const pages: string[][] = [];
  for (let after: string | undefined; ;) {
    const request = { text: "pu-erh", limit: 9, ...(after !== undefined && { after }) };
    const { matches, next } = await storage.search(request);
    pages.push(matches.map(({ entry, session }) => `${session.id} ${entry}`));
    if (next === undefined) break;
    after = next;
  }
  // 4,000 messages a page.
  expect(pages).toEqual([[], ["long 5001"], ["old 5001"]]);
});

it("names sessions that cannot be read, and goes on behind those that are gone", async () => {
  const store = new SessionStore(newPath());
  for (const id of ["a", "b", "c"]) {
    const session = await store.create({ cwd: "/tea", id, createdAt: id.charCodeAt(0) });
    await session.append(user(`Tea ${id}`));
    await session.close();
  }
  await writeFile((await store.find("b")).path, '{"type":"session","version":99,"id":"b"}\n');
  const first = await store.search({ text: "tea", limit: 1 });
  expect(first).toMatchObject({ matches: [{ excerpt: "Tea c" }], unreadable: [] });
  const rest = await store.search({ text: "tea", limit: 9, after: first.next ?? "" });
  expect(rest).toMatchObject({ matches: [{ excerpt: "Tea a" }], unreadable: ["b"] });
  await store.remove("b");
  const gone = await store.search({ text: "tea", limit: 9, after: first.next ?? "" });
  expect(gone.matches.map(({ session }) => session.id)).toContain("a");
  const signal = AbortSignal.abort(new Error("Enough."));
  await expect(store.search({ text: "tea", limit: 1, signal })).rejects.toThrow("Enough.");
});
