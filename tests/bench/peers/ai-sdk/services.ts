import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import type { LanguageModel } from "ai";
import type { HttpWork } from "../peer.ts";
import type { Stream } from "./converse.ts";

/** Asks `model` for an answer to "go", without retries. */
export type Ask = (model: LanguageModel, signal?: AbortSignal) => Stream | Promise<Stream>;

export function anthropic(work: HttpWork, ask: Ask): Promise<void> {
  const client = createAnthropic({ baseURL: `${work.baseUrl}/v1`, apiKey: "key" });
  return read(work, ask, client("claude-sonnet-4-5"));
}

export function openai(work: HttpWork, ask: Ask): Promise<void> {
  const client = createOpenAI({ baseURL: work.baseUrl, apiKey: "key" });
  return read(work, ask, client.chat("gpt-4o"));
}

async function read(work: HttpWork, ask: Ask, model: LanguageModel): Promise<void> {
  const { stream } = await ask(model, work.signal);
  for await (const part of stream) {
    if (part.type === "text-delta") work.text(part.text);
    else if (part.type === "error") throw part.error;
    else if (part.type === "abort") throw new Error(`The run was aborted: ${part.reason}`);
  }
}
