import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scriptedModel } from "@gyre/ai/testing";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Harness, openHarness } from "./harness.ts";
import type { HarnessOptions } from "./types.ts";

let folder = "";
let harness: Harness | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-harness-"));
});
afterEach(async () => {
  await harness?.close();
  harness = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function open(settings: HarnessOptions["settings"] = {}): Promise<Harness> {
  const client = scriptedModel(["Hello."]);
  const { model } = client;
  harness = await openHarness({
    settings: { tools: ["read"], sandbox: "none", ...settings },
    cwd: folder,
    env: { XDG_STATE_HOME: folder, HOME: folder },
    approvals: "deny",
    warn: () => {},
    models: {
      client,
      fallbacks: [],
      current: () => Promise.resolve(model),
      find: () => Promise.resolve(model),
      list: () => Promise.resolve([model]),
    },
  });
  return harness;
}

it("keeps no events of a run for a reader that never comes", async () => {
  const opened = await open();
  const run = vi.spyOn(opened.agent, "run");
  const { end } = await opened.prompt({ text: "Hi" });
  expect(end.stop).toBe("done");
  expect(run.mock.results).toMatchObject([{ value: { detached: true } }]);
});

it("says where a rule that is wrong was written", async () => {
  await expect(open({ allow: ["shel(git*)"] })).rejects.toThrow(
    'A rule of "allow" in the settings, "shel(git*)", is wrong: there is no tool "shel". Did you mean shell?',
  );
});
