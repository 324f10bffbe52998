// What runs in an edge runtime: the tour, an agent that asks a service by HTTP and streams its
// answer, and the error that a name in place of a model gets there.
import { Agent } from "@gyre/agent";
import { ApiRegistry, createInProcessClient } from "@gyre/ai";
import { anthropicMessages } from "@gyre/ai/providers/anthropic-messages";
import { tour } from "./tour.mjs";

/** @type {import("@gyre/ai").Model} */
const model = {
  id: "claude-sonnet-4-5",
  name: "Claude Sonnet 4.5",
  api: "anthropic-messages",
  provider: "anthropic",
};

/** @param {string} service its address */
export async function visit(service) {
  const stops = await tour();
  const registry = new ApiRegistry();
  const apiKey = "sk-ant-for-this-check-alone";
  registry.register(anthropicMessages({ getApiKey: () => apiKey, getBaseUrl: () => service }));
  const agent = new Agent({ model, protocol: createInProcessClient(registry) });
  const parts = agent.run("Say good day.").textStream[Symbol.asyncIterator]();
  /** @type {ReadableStream<string>} */
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
  const text = await new Response(body.pipeThrough(new TextEncoderStream())).text();
  const named = new Agent({ model: "anthropic/claude-sonnet-4-5" });
  const error = await named.prompt("Hi").then(() => "none", String);
  return { stops, text, error };
}
