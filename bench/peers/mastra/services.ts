import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import type { MastraLanguageModel } from "@mastra/core/agent";
import type { HttpWork } from "../peer.ts";
import { quietAgent } from "./agent.ts";

export function anthropic(work: HttpWork): Promise<void> {
  const client = createAnthropic({ baseURL: `${work.baseUrl}/v1`, apiKey: "key" });
  return read(work, client("claude-sonnet-4-5"));
}

export function openai(work: HttpWork): Promise<void> {
  const client = createOpenAI({ baseURL: work.baseUrl, apiKey: "key" });
  return read(work, client.chat("gpt-4o"));
}

async function read(
  { signal, text }: HttpWork,
  model: { specificationVersion: "v4" },
): Promise<void> {
  // It takes models of V4 as they are; its type of them asks for what its wrapper adds.
  const agent = quietAgent(model as MastraLanguageModel);
  const stream = await agent.stream("go", signal ? { abortSignal: signal } : {});
  for await (const chunk of stream.fullStream) {
    if (chunk.type === "text-delta") text(chunk.payload.text);
    else if (chunk.type === "error") throw chunk.payload.error;
    else if (chunk.type === "abort") throw new Error("The run was aborted.");
  }
}
