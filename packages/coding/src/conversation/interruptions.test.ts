import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, type AgentTool } from "@gyre/agent";
import { call, scriptedModel, type ScriptStep, stall } from "@gyre/ai/testing";
import { createSession, createJournal, openSession, type Session } from "@gyre/sessions";
import { afterEach, beforeEach, expect, it } from "vitest";
import { recordInterruptions, wasInterrupted } from "./interruptions.ts";

let folder = "";
let session: Session | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-interrupted-"));
});
afterEach(async () => {
  await session?.close();
  await rm(folder, { recursive: true, force: true });
});

/** An agent that writes its session, and a tool that reports when it began and stopped. */
async function started(script: readonly ScriptStep[]) {
  const model = scriptedModel(script);
  const path = join(folder, "session.jsonl");
  session = await createSession(path, { cwd: folder });
  let begin = (): void => {};
  const begun = new Promise<void>((settle) => (begin = settle));
  const wait: AgentTool = {
    name: "wait",
    description: "",
    parameters: { type: "object", properties: {} },
    execute: (_args, { signal }) =>
      new Promise((settle) => {
        const content = [{ type: "text" as const, text: "Ended in its own words." }];
        signal.addEventListener("abort", () => settle({ content }), { once: true });
        begin();
      }),
  };
  const agent = new Agent({
    protocol: model,
    sink: createJournal(session),
    model: model.model,
    tools: [wait],
  });
  recordInterruptions({ agent, session });
  return { agent, begun };
}

/** The session as the next process finds it. */
async function found(): Promise<boolean> {
  const { path = "" } = session ?? {};
  await session?.close();
  session = await openSession(path);
  const { messages } = await session.context();
  const agent = new Agent({ messages });
  return wasInterrupted({ agent, session });
}

it("an answer that was stopped is an interruption", async () => {
  const { agent } = await started([["Well", stall()]]);
  agent.subscribe((event) => {
    if (event.type === "message_update") agent.abort();
  });
  await agent.prompt("Go.");
  expect(await found()).toBe(true);
});

it("a call that was stopped is one, whatever it says itself", async () => {
  const { agent, begun } = await started([call("wait", {})]);
  const end = agent.prompt("Go.");
  await begun;
  agent.abort();
  await end;
  expect(agent.state.messages.at(-1)).toMatchObject({ role: "toolResult" });
  expect(await found()).toBe(true);
});

it("is over when something was said since", async () => {
  const { agent, begun } = await started([call("wait", {}), "Yes."]);
  const end = agent.prompt("Go.");
  await begun;
  agent.abort();
  await end;
  await agent.prompt("Go on.");
  expect(await found()).toBe(false);
});

it("a prompt that nothing came of does not count: the program was killed", async () => {
  await started([]);
  const message = { role: "user", content: "Go.", timestamp: 0 } as const;
  await session?.append({ type: "message", message });
  expect(await found()).toBe(false);
});

it("a session in which nothing was said has none", async () => {
  await started([]);
  expect(await found()).toBe(false);
});
