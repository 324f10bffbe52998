import { createInProcessClient, type Message, type Model } from "@gyre/ai";
import { createProviders } from "@gyre/ai/providers";
import { describe, expect, it } from "vitest";
import { generate } from "../generate.ts";
import { defineTool } from "../index.ts";
import { Agent } from "./agent.ts";
import { OutputError } from "./output.ts";

// Agents whose service has structured output: responses as the documentation of the services has them.

const SCHEMA = {
  type: "object",
  properties: { place: { type: "string" }, degrees: { type: "number" }, note: { type: "string" } },
  required: ["place", "degrees"],
} as const;
const GPT: Model = { id: "gpt-4.1", name: "GPT", api: "openai-responses", provider: "openai" };
const CHAT: Model = { ...GPT, api: "openai-completions" };
const CLAUDE: Model = {
  id: "claude-sonnet-4-5",
  name: "Sonnet",
  api: "anthropic-messages",
  provider: "anthropic",
};
const GROQ: Model = { ...CHAT, id: "llama", provider: "groq" };
const ROME = '{"place":"Rome","degrees":24,"note":null}';

type Event = object | "[DONE]";

const gpt = (text: string, status = "completed", part: object = { type: "output_text", text }) => {
  const item = { type: "message", id: "msg_1", role: "assistant", content: [part] };
  return [
    { type: "response.created", response: { id: "resp_1" } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
    ...[...text].map((delta) => ({
      type: "response.output_text.delta",
      output_index: 0,
      content_index: 0,
      delta,
    })),
    { type: "response.output_item.done", output_index: 0, item },
    {
      type: `response.${status}`,
      response: {
        id: "resp_1",
        status,
        output: [item],
        ...(status === "incomplete" && { incomplete_details: { reason: "max_output_tokens" } }),
      },
    },
  ];
};

const chat = (delta: object, finish_reason = "stop"): Event[] => [
  { choices: [{ index: 0, delta }] },
  { choices: [{ index: 0, delta: {}, finish_reason }] },
  "[DONE]",
];

const claude = (text: string, stop_reason = "end_turn"): Event[] => [
  { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 9 } },
  { type: "message_stop" },
];

function serve(...answers: (readonly Event[])[]) {
  const bodies: string[] = [];
  const fetch = async (_: unknown, init: { body?: unknown } = {}): Promise<Response> => {
    bodies.push(String(init.body));
    const events = answers[Math.min(bodies.length, answers.length) - 1] ?? [];
    const text = events
      .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
      .join("");
    return new Response(text, { headers: { "content-type": "text/event-stream" } });
  };
  const registry = createProviders({ fetch, getApiKey: () => "a-key-of-ours-0123" });
  return { protocol: createInProcessClient(registry), bodies };
}

const textOfLast = (messages: readonly Message[]): string => JSON.stringify(messages.at(-1));

describe("output of a service that has it", () => {
  it("is the text of the response, without a tool and without a second request", async () => {
    const { bodies, protocol } = serve(gpt(ROME));
    const end = await new Agent({ model: GPT, protocol }).prompt("Rome?", { output: SCHEMA });
    expect(end.output).toEqual({ place: "Rome", degrees: 24 });
    expect(end.stop).toBe("done");
    expect(bodies).toHaveLength(1);
    expect(bodies[0]).toContain('"format":{"type":"json_schema"');
    expect(bodies[0]).not.toContain("final_answer");
  });

  it("is asked for again with what is wrong, in the same form", async () => {
    const { bodies, protocol } = serve(
      claude('{"place":"Rome","degrees":"warm"}'),
      claude('{"place":"Rome","degrees":24}'),
    );
    const agent = new Agent({ model: CLAUDE, protocol });
    const end = await agent.prompt("Rome?", { output: SCHEMA });
    expect(end.output).toEqual({ place: "Rome", degrees: 24 });
    expect(bodies[1]).toContain("/degrees: expected number");
    expect(bodies[1]).toContain('"output_config":{"format"');
    expect(bodies[1]).not.toContain('"tools"');
  });

  it("is unwrapped where the answer is not an object", async () => {
    const { bodies, protocol } = serve(gpt('{"answer":["green","black"]}'));
    const output = { type: "array", items: { type: "string" } } as const;
    const end = await generate({ model: GPT, protocol, prompt: "Teas?", output });
    expect(end.output).toEqual(["green", "black"]);
    expect(bodies[0]).toContain('"required":["answer"]');
  });

  it("comes after calls of tools, whose results the model has seen", async () => {
    const call = {
      type: "function_call",
      id: "fc_1",
      call_id: "c1",
      name: "look",
      arguments: "{}",
    };
    const { bodies, protocol } = serve(
      [
        { type: "response.created", response: { id: "resp_0" } },
        { type: "response.output_item.done", output_index: 0, item: call },
        { type: "response.completed", response: { id: "resp_0", output: [call] } },
      ],
      gpt(ROME),
    );
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: { type: "object" },
      execute: () => "24 degrees",
    });
    const agent = new Agent({ model: GPT, protocol, tools: [look] });
    const end = await agent.prompt("Rome?", { output: SCHEMA });
    expect(end.output.degrees).toBe(24);
    expect(bodies[1]).toContain("24 degrees");
    expect(bodies[1]).toContain('"json_schema"');
  });

  it("is a call of the tool where a fallback model has no other way", async () => {
    const failing = { type: "error", error: { type: "overloaded_error", message: "Busy" } };
    const answer = JSON.stringify({ place: "Rome", degrees: 24 });
    const { bodies, protocol } = serve(
      [failing],
      chat(
        {
          tool_calls: [
            { index: 0, id: "c1", function: { name: "final_answer", arguments: answer } },
          ],
        },
        "tool_calls",
      ),
    );
    const agent = new Agent({
      model: CLAUDE,
      protocol,
      fallbackModels: [GROQ],
      retry: { maxRetries: 0 },
    });
    const end = await agent.prompt("Rome?", { output: SCHEMA });
    expect(end.output.place).toBe("Rome");
    expect(bodies[0]).not.toContain("final_answer");
    expect(bodies[1]).toContain("final_answer");
  });

  it.each<[string, Model, readonly Event[]]>([
    ["Responses", GPT, gpt("", "completed", { type: "refusal", refusal: "I cannot say." })],
    ["chat completions", CHAT, chat({ refusal: "I cannot say." })],
  ])(
    "is an error with the words of a refusal, which is not repeated: %s",
    async (_, model, body) => {
      const { bodies, protocol } = serve(body);
      const run = generate({ model, protocol, prompt: "Rome?", output: SCHEMA });
      await expect(run).rejects.toThrow("The model refused: I cannot say.");
      await expect(run).rejects.toBeInstanceOf(OutputError);
      expect(bodies).toHaveLength(1);
    },
  );

  it("is an error of the model where Claude refuses", async () => {
    const { bodies, protocol } = serve(claude("", "refusal"));
    await expect(
      generate({ model: CLAUDE, protocol, prompt: "Rome?", output: SCHEMA }),
    ).rejects.toThrow(/refus/i);
    expect(bodies).toHaveLength(1);
  });

  it("is asked for again where it was cut off, and names the limit if it always is", async () => {
    const cut = gpt('{"place":"Ro', "incomplete");
    const twice = serve(cut, gpt(ROME));
    const end = await generate({
      model: GPT,
      protocol: twice.protocol,
      prompt: "Rome?",
      output: SCHEMA,
    });
    expect(end.output.degrees).toBe(24);
    expect(twice.bodies[1]).toContain("It was cut off at the limit of its length (maxTokens).");
    const always = serve(cut);
    await expect(
      generate({ model: GPT, protocol: always.protocol, prompt: "Rome?", output: SCHEMA }),
    ).rejects.toThrow("cut off at the limit of its length (maxTokens)");
    expect(always.bodies).toHaveLength(4);
  });

  it("is asked for again where it is no JSON, and is an error in the end", async () => {
    const { bodies, protocol } = serve(gpt('{"place": Rome}'));
    await expect(
      generate({ model: GPT, protocol, prompt: "Rome?", output: SCHEMA }),
    ).rejects.toThrow("It was neither a call nor JSON.");
    expect(bodies).toHaveLength(4);
  });

  it("is asked for again after a resume with the transcript", async () => {
    const first = serve(gpt("{}"));
    const agent = new Agent({ model: GPT, protocol: first.protocol, limits: { maxTurns: 1 } });
    const cut = await agent.prompt("Rome?", { output: SCHEMA });
    expect(() => cut.output).toThrow(OutputError);
    const second = serve(gpt(ROME));
    const messages = JSON.parse(JSON.stringify(agent.state.messages)) as Message[];
    const resumed = new Agent({ model: GPT, protocol: second.protocol, messages });
    const end = await resumed.prompt("Go on.", { output: SCHEMA });
    expect(end.output.place).toBe("Rome");
    expect(textOfLast(resumed.state.messages as Message[])).toContain("Rome");
  });
});

describe("outputStream", () => {
  const collect = async (values: AsyncIterable<unknown>): Promise<string[]> => {
    const seen: string[] = [];
    for await (const value of values) seen.push(JSON.stringify(value));
    return seen;
  };

  it("has the answer as far as it has come, from text", async () => {
    const { protocol } = serve(gpt('{"place":"Rome","degrees":24}'));
    const run = new Agent({ model: GPT, protocol }).run("Rome?", { output: SCHEMA });
    const seen = await collect(run.outputStream);
    expect(seen).toContain('{"place":"Rome"}');
    expect(seen.at(-1)).toBe('{"place":"Rome","degrees":24}');
  });

  it("has it from a call, and without the wrapper", async () => {
    const answer = JSON.stringify({ answer: [1, 2] });
    const call = { index: 0, id: "c1", function: { name: "final_answer", arguments: answer } };
    const { protocol } = serve(chat({ tool_calls: [call] }, "tool_calls"));
    const output = { type: "array", items: { type: "number" } } as const;
    const run = new Agent({ model: GROQ, protocol }).run("Two?", { output });
    expect((await collect(run.outputStream)).at(-1)).toBe("[1,2]");
    expect(await run.output()).toEqual([1, 2]);
  });

  it("has nothing of prose, nor of a run without a schema", async () => {
    const prose = serve(chat({ content: "I do not know." }));
    const run = new Agent({ model: GROQ, protocol: prose.protocol, limits: { maxTurns: 1 } }).run(
      "Two?",
      { output: SCHEMA },
    );
    expect(await collect(run.outputStream)).toEqual([]);
    const plain = serve(gpt(ROME));
    const other = new Agent({ model: GPT, protocol: plain.protocol }).run("Rome?");
    expect(await collect(other.outputStream)).toEqual([]);
  });
});
