import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type StreamOptions, textOf } from "@gyre/ai";
import { call, type ScriptAnswer, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Harness, openHarness } from "../harness/harness.ts";
import type { Settings } from "../settings/settings.ts";

let folder = "";
let harness: Harness | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-requests-"));
});
afterEach(async () => {
  await harness?.close();
  harness = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function open(settings: Settings, script: ScriptStep[]): Promise<Harness> {
  const client = scriptedModel(script);
  const model = { ...client.model, contextWindow: 16_000 };
  harness = await openHarness({
    settings: { tools: ["read"], sandbox: "none", facts: false, ...settings },
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

describe("thinkingBudgets and cacheRetention", () => {
  const settings = { thinkingBudgets: { high: 12_345 }, cacheRetention: "long" } as const;

  it("are in every request, those of sub-agents included", async () => {
    const seen: StreamOptions[] = [];
    const see =
      (step: ScriptAnswer): ScriptStep =>
      (_context, options) => {
        seen.push(options);
        return step;
      };
    const opened = await open({ ...settings, tools: ["task"], mode: "full" }, [
      see([call("task", { description: "Look", prompt: "Look around." })]),
      see("Looked."),
      see("Done."),
    ]);
    await opened.prompt({ text: "Go" });
    const expected = { thinkingBudgets: { high: 12_345 }, cacheRetention: "long" };
    expect(seen).toMatchObject([expected, expected, expected]);
  });

  it("are left to the services where nothing is set", async () => {
    const seen: string[] = [];
    const opened = await open({}, [
      (_context, options) => {
        seen.push(...Object.keys(options));
        return "Done.";
      },
    ]);
    await opened.prompt({ text: "Go" });
    expect(seen.length).toBeGreaterThan(0);
    expect(seen).not.toContain("thinkingBudgets");
    expect(seen).not.toContain("cacheRetention");
  });
});

describe("steeringMode and followUpMode", () => {
  /** The texts of the user in each request, while two messages wait. */
  async function requests(settings: Settings, queue: "steer" | "followUp"): Promise<string[][]> {
    const seen: string[][] = [];
    const see =
      (step: ScriptAnswer, work = () => {}): ScriptStep =>
      ({ messages }) => {
        work();
        seen.push(messages.filter(({ role }) => role === "user").map((each) => textOf(each)));
        return step;
      };
    const opened = await open(settings, [
      see([call("read", { path: "nothing" })], () => {
        opened.agent[queue]("one");
        opened.agent[queue]("two");
      }),
      see("First."),
      see("Second."),
      see("Third."),
    ]);
    await opened.prompt({ text: "Go" });
    return seen.map((texts) => texts.slice(1));
  }

  it.each(["steer", "followUp"] as const)("%s: one message a turn by default", async (queue) => {
    const seen = await requests({}, queue);
    expect(seen).toContainEqual(["one"]);
    expect(seen.at(-1)).toEqual(["one", "two"]);
  });

  it("send all that waits at once if they are set so", async () => {
    const steering = await requests({ steeringMode: "all" }, "steer");
    expect(steering).toEqual([[], ["one", "two"]]);
    await harness?.close();
    const following = await requests({ followUpMode: "all" }, "followUp");
    expect(following).toEqual([[], [], ["one", "two"]]);
  });
});
