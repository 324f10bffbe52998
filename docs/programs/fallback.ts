import { Agent } from "@gyre/agent";
import { findModel, model } from "@gyre/ai/models";
const agent = new Agent({
  model: findModel("anthropic/claude-sonnet-4-5"),
  fallbackModels: [model("vllm", "Qwen/Qwen3-8B")],
  retry: { maxRetries: 2, baseDelayMs: 1 },
});
const end = await agent.prompt("Which tea?");
console.log(end.text, end.finalMessage?.model);
