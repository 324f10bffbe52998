import { Agent } from "@gyre/agent";
import { model } from "@gyre/ai/models";
import { createModelClient } from "@gyre/ai/node";
const agent = new Agent({
  model: model("litellm", "our-claude", { baseUrl: process.env["LITELLM_BASE_URL"] ?? "" }),
  protocol: createModelClient({ fetch: (input, init) => fetch(input, init) }),
  headers: { "x-team": "tea" },
  onPayload: (payload) => ({ ...payload, top_p: 0.9 }),
});
console.log((await agent.prompt("Which tea?", { temperature: 0, maxTokens: 50 })).text);
