import { type AgentTool, defineTool } from "@gyre/agent";
import { call, say, scriptedModel, type ScriptAnswer } from "@gyre/ai/testing";
import { askTool, defineAgent, type DurableAgent, type DurableAgentOptions } from "@gyre/durable";

const TURNS = 3;
const STREAM_MS = 8_000;

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: { type: "object", properties: { to: { type: "string" } } },
  execute: ({ to }) => `paid ${to}`,
});

function define(
  name: string,
  answer: (turn: number) => ScriptAnswer,
  tools: readonly AgentTool[],
): DurableAgent {
  return defineAgent({ name, version: "1", open: () => createOptions(answer, tools) });
}

function createOptions(
  answer: (turn: number) => ScriptAnswer,
  tools: readonly AgentTool[],
): DurableAgentOptions {
  // Another worker may have got the answers before.
  const model = scriptedModel(
    ({ messages }) => answer(messages.filter(({ role }) => role === "assistant").length),
    { keepCalls: false },
  );
  return { model: model.model, protocol: model, tools, instructions: "Work." };
}

/** The options of `payer`, for an agent that is not durable. */
export function createPayer(): DurableAgentOptions {
  return createOptions(callPay, [pay]);
}

function callPay(turn: number): ScriptAnswer {
  return turn < TURNS ? call("pay", { to: `a${turn}` }) : "Done.";
}

/**
 * `payer`: 4 model calls and 3 tools that are not idempotent. `signer`: a tool that needs approval.
 * `talker`: an answer that takes 8 s. `asker`: waits for an answer. `report` is called when a tool
 * begins and when a model is asked.
 */
export function createAgents(report: (what: string) => void = () => {}): DurableAgent[] {
  const sign = defineTool({
    name: "sign",
    description: "Signs.",
    parameters: { type: "object" },
    needsApproval: true,
    execute: () => {
      report("tool");
      return "signed";
    },
  });
  return [
    define("payer", callPay, [pay]),
    define("signer", (turn) => (turn === 0 ? call("sign", {}, "sign-1") : "Done."), [sign]),
    define(
      "talker",
      () => {
        report("model");
        return [say("I am "), { delayMs: STREAM_MS }, say("done.")];
      },
      [],
    ),
    define("asker", (turn) => (turn === 0 ? call("ask", { question: "Which?" }) : "Done."), [
      askTool(),
    ]),
  ];
}
