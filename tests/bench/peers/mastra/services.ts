import { quietAgent } from "./agent.ts";
import type { HttpWork } from "../peer.ts";

type Model = Parameters<typeof quietAgent>[0];

/** Its documentation asks for its own router instead of a provider's package. */
export function anthropic(work: HttpWork): Promise<void> {
  // The router's address of a service; `url` stands for one that is like OpenAI's.
  process.env["ANTHROPIC_BASE_URL"] = `${work.baseUrl}/v1`;
  return read(work, { id: "anthropic/claude-sonnet-4-5", apiKey: "key" });
}

export function openai(work: HttpWork): Promise<void> {
  return read(work, { id: "openai/gpt-4o", url: work.baseUrl, apiKey: "key" });
}

async function read({ signal, text }: HttpWork, model: Model): Promise<void> {
  const stream = await quietAgent(model).stream("go", signal ? { abortSignal: signal } : {});
  for await (const chunk of stream.fullStream) {
    if (chunk.type === "text-delta") text(chunk.payload.text);
    else if (chunk.type === "error") throw chunk.payload.error;
    else if (chunk.type === "abort") throw new Error("The run was aborted.");
  }
}
