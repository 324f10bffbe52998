import { call, scriptedModel } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { Agent } from "../agent/agent.ts";
import { contextBreakdown } from "./breakdown.ts";
import { tool } from "../testing/play.ts";

it("lists what the next request is made of", async () => {
  const model = scriptedModel([
    call("read", { path: "a" }),
    call("shell", { command: "b" }),
    "Done",
  ]);
  const agent = new Agent({
    protocol: model,
    model: { ...model.model, contextWindow: 10_000 },
    instructions: "word ".repeat(100),
    tools: [
      tool("read", () => "word ".repeat(500), {
        presentation: { kind: "read", effects: () => ({ reads: true }) },
      }),
      tool("shell", () => "word ".repeat(200)),
    ],
  });
  await agent.prompt("Go");
  const parts = contextBreakdown(agent.state);
  expect(parts).toMatchObject({ system: 104, files: 512, results: 212, trigger: 8_000 });
  expect(parts.tools).toBeGreaterThan(20);
  expect(parts.messages).toBeGreaterThan(20);
  expect(parts.window).toBe(10_000);
  const { system, tools, files, results, messages, total, free } = parts;
  expect(total).toBe(system + tools + files + results + messages);
  expect(free).toBe(8_000 - total);
});

it("counts what is sent in place of something, and knows no window where there is none", () => {
  const compaction = {
    from: 0,
    to: 2,
    message: { role: "user", content: "Sum", timestamp: 0 },
  } as const;
  const messages = Array.from({ length: 3 }, () => ({
    role: "user" as const,
    content: "word ".repeat(100),
    timestamp: 0,
  }));
  const parts = contextBreakdown({ messages, compaction });
  expect(parts.messages).toBe(109);
  expect(parts).not.toHaveProperty("window");
});

it("counts messages of the application's own as what convertMessage makes of them", () => {
  const note = { role: "note", content: "word ".repeat(100), timestamp: 0 } as const;
  expect(contextBreakdown({ messages: [note] }).messages).toBe(0);
  const shown = contextBreakdown(
    { messages: [note] },
    { convertMessage: () => ({ ...note, role: "user" }) },
  );
  expect(shown.messages).toBeGreaterThan(100);
});
