import { createInProcessClient, type Model } from "@gyre/ai";
import { createProviders } from "@gyre/ai/providers";
import { describe, expect, it } from "vitest";
import { Agent, type AgentOptions, defineTool } from "../index.ts";

// An agent whose service keeps its responses: what the loop does with messages must not hide that they are the same.

const MODEL: Model = { id: "gpt-5.1", name: "GPT", api: "openai-responses", provider: "openai" };
const LOOK = defineTool({
  name: "look",
  description: "Looks.",
  parameters: { type: "object" },
  execute: () => "Warm.",
});

interface Sent {
  input: { type: string; role?: string }[];
  previous_response_id?: string;
}

/** A service that calls a tool first, and then answers. */
function serve() {
  const sent: Sent[] = [];
  const fetch = async (_: string, { body = "" }: { body?: string }): Promise<Response> => {
    sent.push(JSON.parse(body) as Sent);
    const nth = sent.length;
    const isCall = nth % 2 === 1;
    const thought = { type: "reasoning", id: `rs_${nth}`, summary: [], encrypted_content: "x" };
    const item = isCall
      ? {
          type: "function_call",
          id: `fc_${nth}`,
          call_id: `call_${nth}`,
          name: "look",
          arguments: "{}",
        }
      : {
          type: "message",
          id: `msg_${nth}`,
          content: [{ type: "output_text", text: `Hi ${nth}` }],
        };
    const output = [thought, item];
    const events = [
      { type: "response.created", response: { id: `resp_${nth}` } },
      { type: "response.completed", response: { id: `resp_${nth}`, status: "completed", output } },
    ];
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return new Response(text, { headers: { "content-type": "text/event-stream" } });
  };
  const registry = createProviders({ fetch, getApiKey: () => "a-key-of-ours-0123" });
  const protocol = createInProcessClient(registry);
  const create = (options: Partial<AgentOptions> = {}): Agent =>
    new Agent({
      model: MODEL,
      protocol,
      tools: [LOOK],
      providerOptions: { openai: { previousResponseId: "auto" } },
      ...options,
    });
  return { sent, create };
}

const summarize = ({ input, previous_response_id: previous }: Sent): unknown[] => [
  previous,
  ...input.map(({ role, type }) => role ?? type),
];

describe("an agent whose service keeps responses", () => {
  it("sends what is new, turn after turn and prompt after prompt, and after a resume", async () => {
    const { create, sent } = serve();
    const agent = create();
    await agent.prompt("How is Rome?");
    await agent.prompt("And Oslo?");
    const messages = JSON.parse(
      JSON.stringify(agent.state.messages),
    ) as typeof agent.state.messages;
    const resumed = create({ messages });
    await resumed.prompt("And Bern?");
    expect(sent.map(summarize)).toEqual([
      [undefined, "user"],
      ["resp_1", "function_call_output"],
      ["resp_2", "user"],
      ["resp_3", "function_call_output"],
      ["resp_4", "user"],
      ["resp_5", "function_call_output"],
    ]);
  });

  it("sends the whole transcript where a hook changes it", async () => {
    const { create, sent } = serve();
    const agent = create({ transformContext: async (messages) => messages.slice(-3) });
    await agent.prompt("How is Rome?");
    await agent.prompt("And Oslo?");
    expect(sent.map(({ previous_response_id: previous }) => previous)).toEqual([
      undefined,
      "resp_1",
      undefined,
      undefined,
    ]);
  });
});
