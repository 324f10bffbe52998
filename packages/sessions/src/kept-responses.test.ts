import { Agent } from "@gyre/agent";
import { createInProcessClient, type Model } from "@gyre/ai";
import { createProviders } from "@gyre/ai/providers";
import { afterAll, expect, it } from "vitest";
import { createSession, openSession } from "./file/session-file.ts";
import type { Session } from "./format/types.ts";
import { createJournal } from "./journal.ts";
import { temporaryPaths } from "./testing/folder.ts";

const newPath = temporaryPaths("kept-responses", afterAll);
const MODEL: Model = { id: "gpt-5.1", name: "GPT", api: "openai-responses", provider: "openai" };
const OUTPUT = {
  type: "object",
  properties: { mood: { type: "string" } },
  required: ["mood"],
} as const;

it("a session that is opened again goes on from the response that its service keeps", async () => {
  const sent: Record<string, unknown>[] = [];
  const fetch = async (_: string, { body = "" }: { body?: string }): Promise<Response> => {
    sent.push(JSON.parse(body) as Record<string, unknown>);
    const content = [{ type: "output_text", text: '{"mood":"good"}' }];
    const output = [{ type: "message", id: `msg_${sent.length}`, content }];
    const response = { id: `resp_${sent.length}`, status: "completed", output };
    const event = JSON.stringify({ type: "response.completed", response });
    return new Response(`data: ${event}\n\n`, {
      headers: { "content-type": "text/event-stream" },
    });
  };
  const registry = createProviders({ fetch, getApiKey: () => "a-key-of-ours-0123" });
  const ask = async (session: Session, text: string): Promise<unknown> => {
    const context = await session.context();
    const agent = new Agent({
      model: MODEL,
      protocol: createInProcessClient(registry),
      messages: context.messages,
      sink: createJournal(session, context),
      providerOptions: { openai: { previousResponseId: "auto" } },
    });
    const end = await agent.prompt(text, { output: OUTPUT });
    await session.close();
    return end.output;
  };
  const path = newPath();
  expect(await ask(await createSession(path, { cwd: "/w" }), "How are you?")).toEqual({
    mood: "good",
  });
  expect(await ask(await openSession(path), "And now?")).toEqual({ mood: "good" });
  expect(sent[1]).toMatchObject({
    previous_response_id: "resp_1",
    input: [{ role: "user", content: [{ text: "And now?" }] }],
    text: { format: { type: "json_schema" } },
  });
});
