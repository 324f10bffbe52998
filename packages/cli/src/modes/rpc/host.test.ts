import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionPageRequest } from "@gyre/server";
import { SessionStore } from "@gyre/sessions";
import { MemorySessions } from "@gyre/sessions/memory";
import { scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { scriptedHarness } from "../../testing/acp-harness.ts";
import { RpcHost } from "./host.ts";

let home: string;
beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), "gyre-rpc-host-")));
});
afterEach(() => rm(home, { recursive: true, force: true }));

it("hosts sessions of any storage: one in memory is closed, listed and goes on", async () => {
  const store = new MemorySessions();
  const host = new RpcHost(
    {},
    () =>
      Promise.resolve({
        cwd: home,
        store,
        open: (options) =>
          scriptedHarness(
            { script: scriptedModel(["Green."]), cwd: home, stateFolder: home, tools: [] },
            options,
          ),
      }),
    { start: home },
  );
  await host.prepare();
  const created = await host.create({});
  await created.prompt?.({ text: "Which tea?" });
  expect(created.info?.()).not.toHaveProperty("file");
  await created.close();
  const { id } = created;
  expect(await host.list()).toMatchObject([{ id, firstPrompt: "Which tea?" }]);
  expect((await host.listPage({ limit: 10 })).sessions).toMatchObject([{ id }]);
  expect(await host.open(id.slice(0, 6))).toBeUndefined();
  const again = await host.open(id);
  expect(again?.agent.state.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  await again?.close();
});

it("renames, puts away, forks and finds sessions, open or not, of folders that are served", async () => {
  const store = new SessionStore(join(home, "sessions"));
  const other = await store.create({ cwd: "/elsewhere", id: "other" });
  await other.close();
  const host = new RpcHost(
    {},
    () =>
      Promise.resolve({
        cwd: home,
        store,
        open: (options) =>
          scriptedHarness(
            { script: scriptedModel(["Green."]), cwd: home, stateFolder: home, tools: [] },
            options,
          ),
      }),
    { start: home, ceilings: { roots: [home], mode: "ask", unsandboxed: false, secret: [] } },
  );
  const created = await host.create({});
  await created.prompt?.({ text: "Which tea?" });
  const { id } = created;
  await created.amend?.({ title: "Tea" });
  await expect(host.amend(id, { archived: true })).rejects.toMatchObject({ code: "session_busy" });
  const early = await host.fork(id, {});
  await created.close();
  expect(await host.amend(id, { archived: true })).toBe(true);
  const list = async (page: Omit<SessionPageRequest, "limit">): Promise<unknown> =>
    (await host.listPage({ limit: 9, ...page })).sessions.map((each) => each.id);
  expect(await list({ archived: true, query: "TEA" })).toEqual([id]);
  expect(await list({ archived: false, order: "updated" })).toEqual([early]);
  expect(await list({ cwd: home, query: "which" })).toHaveLength(2);
  // The server leaves out those of folders that are not served.
  const all = (await host.listPage({ limit: 9, allFolders: true })).sessions;
  expect(all.map((each) => each.id)).toContain("other");
  expect(all.filter((each) => host.isServed(each))).toHaveLength(2);
  expect(await host.describe(id)).toMatchObject({ id, title: "Tea", archived: true });
  expect(await host.describe("nosuch")).toBeUndefined();
  const found = await host.search({ text: "GREEN", limit: 9, archived: true });
  expect(found).toMatchObject({
    matches: [{ session: { id }, role: "assistant", excerpt: "Green." }],
  });
  expect(found).not.toHaveProperty("next");
  const short = await host.fork(id, { at: 1 });
  const [first] = (await host.listPage({ limit: 1 })).sessions;
  expect(first).toMatchObject({ id: short, cwd: home });
  await expect(host.fork(id, { at: 999 })).rejects.toMatchObject({ code: "invalid_request" });
  for (const answer of [host.amend("nosuch", { title: "x" }), host.amend(id.slice(0, 4), {})]) {
    expect(await answer).toBe(false);
  }
  expect(await host.fork("../nosuch", {})).toBeUndefined();
  for (const ask of [
    () => host.amend("other", { title: "x" }),
    () => host.fork("other", {}),
    () => host.listPage({ limit: 1, cwd: "/elsewhere" }),
    () => host.search({ text: "x", limit: 1, cwd: "/elsewhere" }),
  ]) {
    await expect(ask()).rejects.toMatchObject({ code: "invalid_request" });
  }
});
