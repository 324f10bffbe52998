// A walk through the library as its users have it: nothing but the two packages and
// what every platform has. Runs on Node, in a page and in a worker.
import { Agent, agentLoop, defineTool, userMessage } from "@gyre/agent";
import { PartialJsonParser } from "@gyre/ai";
import { call, say, scriptedModel, stall } from "@gyre/ai/testing";

/**
 * @param {unknown} actual
 * @param {unknown} expected
 * @param {string} what
 */
function expectSame(actual, expected, what) {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (got !== wanted) throw new Error(`${what}: expected ${wanted}, got ${got}`);
}

const add = defineTool({
  name: "add",
  description: "Adds two numbers",
  parameters: /** @type {const} */ ({
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  }),
  execute: ({ a, b }) => String(a + b),
});

/** Its schema has a keyword that only the full validator knows, which is loaded for it. */
const strict = defineTool({
  name: "strict",
  description: "Takes a name and nothing else",
  parameters: /** @type {const} */ ({
    type: "object",
    properties: { name: { type: "string" } },
    unevaluatedProperties: false,
  }),
  execute: () => "taken",
});

/**
 * @param {ReturnType<typeof scriptedModel>} protocol
 * @param {string} prompt
 * @param {import("@gyre/agent").AgentTool[]} tools
 * @param {AbortSignal} [signal]
 */
function startLoop(protocol, prompt, tools, signal) {
  const config = { model: protocol.model, protocol };
  return agentLoop([userMessage(prompt, Date.now())], { messages: [], tools }, config, signal);
}

async function loopWithTool() {
  const model = scriptedModel([[say("I add."), call("add", { a: 19, b: 23 })], "It is 42."], {
    chunkSize: 3,
  });
  const stream = startLoop(model, "What is 19 + 23?", [add]);
  let updates = 0;
  let last = "";
  for await (const event of stream) {
    last = event.type;
    if (event.type === "message_update") updates += 1;
    if (event.type === "tool_execution_end") {
      expectSame(event.result.content, [{ type: "text", text: "42" }], "the tool's result");
    }
  }
  expectSame(last, "agent_end", "the last event");
  if (updates < 5) throw new Error(`expected the answer in pieces, got ${updates} updates`);
  const roles = (await stream.result()).map(({ role }) => role);
  expectSame(roles, ["user", "assistant", "toolResult", "assistant"], "the messages");
  model.assertComplete();
}

async function fullValidator() {
  const model = scriptedModel([call("strict", { name: "a", other: 1 }), "Sorry."]);
  const stream = startLoop(model, "Go", [strict]);
  const errors = (await stream.result()).flatMap((message) =>
    message.role === "toolResult" ? [message.isError] : [],
  );
  expectSame(errors, [true], "arguments that do not fit");
}

async function abort() {
  const model = scriptedModel([[say("One mom"), stall()]]);
  const controller = new AbortController();
  const stream = startLoop(model, "Wait", [], controller.signal);
  let stop = "";
  for await (const event of stream) {
    if (event.type === "message_update") controller.abort();
    if (event.type === "agent_end") stop = event.stop;
  }
  expectSame(stop, "aborted", "the end of an aborted run");
}

async function agent() {
  const model = scriptedModel([call("add", { a: 1, b: 2 }), "Three.", "Bye."]);
  const one = new Agent({ model: model.model, tools: [add], protocol: model });
  one.followUp("And then?");
  const end = await one.prompt("What is 1 + 2?");
  expectSame(end?.stop, "done", "the end of the agent's run");
  expectSame(one.state.messages.length, 6, "the agent's messages");
}

function partialJson() {
  const parser = new PartialJsonParser();
  parser.feed('{"path": "a.t');
  expectSame(parser.value, { path: "a.t" }, "JSON that has not ended");
  parser.feed('xt", "lines": [1, 2]}');
  expectSame(parser.end(), { ok: true, value: { path: "a.txt", lines: [1, 2] } }, "whole JSON");
}

/** @type {Readonly<Record<string, () => void | Promise<void>>>} */
const stops = { loopWithTool, fullValidator, abort, agent, partialJson };

/**
 * Visits every stop. Rejects with what went wrong, and where.
 *
 * @returns {Promise<string[]>} the names of the stops
 */
export async function tour() {
  for (const [name, visit] of Object.entries(stops)) {
    try {
      await visit();
    } catch (error) {
      throw new Error(`${name}: ${String(error)}`, { cause: error });
    }
  }
  return Object.keys(stops);
}
