import type { Model } from "@gyre/ai";
import { call, callAll, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { Agent, type AgentOptions, approval, defineTool, type Handoff } from "../index.ts";

const refund = defineTool({
  name: "refund",
  description: "Refunds an order.",
  parameters: { type: "object", properties: { order: { type: "string" } } },
  execute: () => "Refunded.",
});
const look = defineTool({
  name: "look",
  description: "Looks an order up.",
  parameters: { type: "object" },
  execute: () => "A lamp.",
});
const refunds: Handoff = {
  name: "refunds",
  description: "Refunds orders.",
  instructions: "You refund.",
  tools: [refund],
};
const sales: Handoff = { name: "sales", instructions: "You sell.", to: ["main"] };

function make(
  steps: readonly ScriptStep[],
  options: AgentOptions = {},
): { agent: Agent; model: ReturnType<typeof scriptedModel> } {
  const model = scriptedModel(steps);
  const agent = new Agent({
    protocol: model,
    model: model.model,
    instructions: "You triage.",
    tools: [look],
    handoffs: [refunds, sales],
    ...options,
  });
  return { agent, model };
}

/** What each request was made with. */
const listRequests = ({ calls }: ReturnType<typeof scriptedModel>): unknown[] =>
  calls.map(({ systemPrompt, tools = [] }) => [systemPrompt, ...tools.map(({ name }) => name)]);

const TRIAGE = ["You triage.", "look", "transfer_to_refunds", "transfer_to_sales"];
const REFUNDS = ["You refund.", "refund", "transfer_to_main", "transfer_to_sales"];

describe("a handoff", () => {
  it("gives the conversation to another from the next turn on, also in the next run", async () => {
    const { agent, model } = make([
      call("transfer_to_refunds", { reason: "wants money back" }),
      call("refund", { order: "7" }),
      "Done.",
      "Refunded, as I wrote.",
    ]);
    expect(agent.activeAgent).toBe("main");
    const end = await agent.prompt("I want my money back.");
    expect(end.text).toBe("Done.");
    expect(agent.activeAgent).toBe("refunds");
    expect(agent.state).toMatchObject({ systemPrompt: "You refund.", tools: [refund] });
    await agent.prompt("And now?");
    expect(listRequests(model)).toEqual([TRIAGE, REFUNDS, REFUNDS, REFUNDS]);
  });

  it("is in the transcript: an agent that is made with the messages goes on as the same", async () => {
    const { agent } = make([call("transfer_to_refunds"), "Which order?"]);
    await agent.prompt("Money back!");
    const kept = JSON.parse(JSON.stringify(agent.state.messages)) as typeof agent.state.messages;
    const { agent: later, model } = make(["Refunded."], { messages: kept });
    expect(later.activeAgent).toBe("refunds");
    await later.prompt("Order 7.");
    expect(listRequests(model)).toEqual([REFUNDS]);
    later.clearMessages();
    expect(later.activeAgent).toBe("main");
    expect(later.state).toMatchObject({ systemPrompt: "You triage.", tools: [look] });
  });

  it("can be given back, and on to those that `to` names alone", async () => {
    const { agent, model } = make([
      call("transfer_to_sales"),
      call("transfer_to_refunds"),
      call("transfer_to_main"),
      "Hello again.",
    ]);
    await agent.prompt("Hi");
    expect(agent.activeAgent).toBe("main");
    expect(listRequests(model)).toEqual([
      TRIAGE,
      ["You sell.", "transfer_to_main"],
      ["You sell.", "transfer_to_main"],
      TRIAGE,
    ]);
    expect(agent.state.messages[4]).toMatchObject({
      outcome: "unknown_tool",
      content: [{ text: expect.stringMatching(/transfer_to_refunds not found/) as string }],
    });
  });

  it("changes model and thinking level where the other has its own", async () => {
    const small: Model = { ...scriptedModel([]).model, id: "small" };
    const fast: Handoff = { name: "fast", model: small, thinkingLevel: "low" };
    const { agent, model } = make([call("transfer_to_fast"), call("transfer_to_main"), "Done."], {
      handoffs: [fast],
      thinkingLevel: "high",
    });
    await agent.prompt("Hi");
    expect(model.calls.map(({ model: { id } }) => id)).toEqual(["scripted", "small", "scripted"]);
    expect(model.calls.map(({ options }) => options.thinkingLevel)).toEqual([
      "high",
      "low",
      "high",
    ]);
  });

  it("keeps what was changed of the one that is left", async () => {
    const { agent, model } = make([
      "Hello.",
      call("transfer_to_refunds"),
      call("transfer_to_main"),
      "Back.",
    ]);
    await agent.prompt("Hi");
    agent.setSystemPrompt("You triage well.");
    await agent.prompt("Money back!");
    expect(model.calls.map(({ systemPrompt }) => systemPrompt)).toEqual([
      "You triage.",
      "You triage well.",
      "You refund.",
      "You triage well.",
    ]);
    expect(refunds).toEqual({
      name: "refunds",
      description: "Refunds orders.",
      instructions: "You refund.",
      tools: [refund],
    });
  });

  it("does not happen where the call is denied", async () => {
    const { agent } = make([call("transfer_to_refunds"), "I stay."], {
      middleware: [approval(() => ({ deny: "not now" }))],
    });
    await agent.prompt("Hi");
    expect(agent.activeAgent).toBe("main");
  });

  it("of two in one message the last holds", async () => {
    const { agent } = make([
      callAll([
        ["transfer_to_refunds", {}],
        ["transfer_to_sales", {}],
      ]),
      "Hello.",
    ]);
    await agent.prompt("Hi");
    expect(agent.activeAgent).toBe("sales");
  });

  it("ends the tools that the prompt alone had, and keeps the form of its answer", async () => {
    const output = { type: "object", properties: { ok: { type: "boolean" } } } as const;
    const { agent, model } = make([
      call("transfer_to_refunds"),
      call("final_answer", { ok: true }),
    ]);
    const end = await agent.prompt("Hi", { tools: [], output });
    expect(end.output).toEqual({ ok: true });
    expect(listRequests(model)).toEqual([
      ["You triage.", "transfer_to_refunds", "transfer_to_sales", "final_answer"],
      [...REFUNDS, "final_answer"],
    ]);
  });

  it("goes to an agent that was made as one", async () => {
    const own = new Agent({ instructions: "You refund.", tools: [refund] });
    const { agent, model } = make([call("transfer_to_refunds"), "Done."], {
      handoffs: [own.asHandoff({ name: "refunds", description: "Refunds." })],
    });
    await agent.prompt("Hi");
    expect(model.calls.at(-1)).toMatchObject({ systemPrompt: "You refund." });
  });

  it("an agent with handoffs goes on as the one in charge where it is a tool", async () => {
    const { agent, model } = make([call("transfer_to_refunds"), "Done.", "Still refunds."]);
    await agent.prompt("Hi");
    const desk = agent.asTool({ name: "desk", description: "The help desk." });
    const boss = scriptedModel([call("desk", { prompt: "Go on" }), "Done."]);
    await new Agent({ protocol: boss, model: boss.model, tools: [desk] }).prompt("Hi");
    expect(listRequests(model).at(-1)).toEqual(REFUNDS);
  });
});

describe("a handoff to an unknown agent", () => {
  it("is an error where the agents are given", () => {
    expect(() => make([], { handoffs: [{ name: "sales", to: ["mian"] }] })).toThrow(
      'Agent "sales" transfers to "mian", and no agent of `handoffs` has that name. Did you mean main?',
    );
    expect(() => make([], { handoffs: [refunds, refunds] })).toThrow(/are named "refunds"/);
    expect(() => make([], { name: "sales" })).toThrow(/The first is "sales", its `name`/);
  });

  it("is an error where a transcript names one that is no longer there", async () => {
    const { agent } = make([call("transfer_to_refunds"), "Which order?"]);
    await agent.prompt("Money back!");
    const { messages } = agent.state;
    expect(() => make([], { messages, handoffs: [sales] })).toThrow(
      'The transcript was transferred to "refunds", and no agent of `handoffs` has that name. There are main, sales.',
    );
  });

  it("a tool of the application may have a name that begins as theirs do", async () => {
    const bank = { ...look, name: "transfer_to_bank" };
    const { agent } = make([call("transfer_to_bank"), "Sent."], { tools: [bank] });
    await agent.prompt("Pay");
    expect(agent.activeAgent).toBe("main");
    expect(make([], { messages: agent.state.messages }).agent.activeAgent).toBe("main");
  });
});
