import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
