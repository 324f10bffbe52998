import { ChatAnthropic } from "@langchain/anthropic";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { HumanMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";
import type { HttpWork } from "../peer.ts";
import type { Read } from "./converse.ts";

const common = { model: "bench", apiKey: "key", maxRetries: 0 };

export function anthropic(work: HttpWork, read: Read): Promise<void> {
  return ask(work, read, new ChatAnthropic({ ...common, anthropicApiUrl: work.baseUrl }));
}

/** Chat completions are what this class speaks by default. */
export function openai(work: HttpWork, read: Read): Promise<void> {
  const configuration = { baseURL: work.baseUrl };
  return ask(work, read, new ChatOpenAI({ ...common, configuration }));
}

function ask({ signal, text }: HttpWork, read: Read, model: BaseChatModel): Promise<void> {
  const settings = {
    recursionLimit: Number.MAX_SAFE_INTEGER,
    configurable: { thread_id: "bench" },
    ...(signal ? { signal } : {}),
  };
  const sink = { text, argument: () => {}, state: () => {}, event: undefined };
  return read(createAgent({ model }), { messages: [new HumanMessage("go")] }, settings, sink);
}
