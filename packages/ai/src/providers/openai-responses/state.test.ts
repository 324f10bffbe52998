import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../../client/client.ts";
import type { OpenAIOptions } from "../../client/generation-options.ts";
import type { AssistantMessage, Message, Model, Tool } from "../../messages/messages.ts";
import {
  createPrompt,
  createResult,
  type FakeAnswer,
  fakeService,
  sse,
} from "../../testing/fake-service.ts";
import { createModel } from "../testing/format-fixture.ts";
import { requestCheckFor } from "../testing/request-checks.ts";
import { openaiResponses } from "./index.ts";

const MODEL = createModel("openai-responses", "openai", "gpt-5.1");
const LOOK: Tool = { name: "look", description: "Looks", parameters: { type: "object" } };

/** One response: a thought with a call, or a text. */
function respond(id: string, text?: string, response: object = { store: true }): FakeAnswer {
  const thought = {
    type: "reasoning",
    id: `rs_${id}`,
    summary: [],
    encrypted_content: `sealed-${id}`,
  };
  const item =
    text === undefined
      ? {
          type: "function_call",
          id: `fc_${id}`,
          call_id: `call_${id}`,
          name: "look",
          arguments: "{}",
        }
      : {
          type: "message",
          id: `msg_${id}`,
          role: "assistant",
          content: [{ type: "output_text", text, annotations: [] }],
        };
  const output = [thought, item];
  return {
    body: sse(
      { type: "response.created", response: { id: `resp_${id}`, status: "in_progress" } },
      ...output.map((item, output_index) => ({
        type: "response.output_item.done",
        output_index,
        item,
      })),
      {
        type: "response.completed",
        response: { id: `resp_${id}`, status: "completed", output, ...response },
      },
    ),
  };
}

const NOT_FOUND: FakeAnswer = {
  status: 400,
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    error: {
      message: "Previous response with id 'resp_a' not found.",
      type: "invalid_request_error",
      param: "previous_response_id",
      code: "previous_response_not_found",
    },
  }),
};

function open(openai: OpenAIOptions, ...answers: FakeAnswer[]) {
  const service = fakeService(...answers);
  const { stream } = openaiResponses({ fetch: service.fetch });
  const ask = async (
    messages: readonly Message[],
    model: Model = MODEL,
    more: StreamOptions = {},
  ): Promise<AssistantMessage> => {
    const options = { apiKey: "test-key-0123456789", providerOptions: { openai }, ...more };
    const answer = await stream(model, { messages, tools: [LOOK], systemPrompt: "Be." }, options);
    return answer.result();
  };
  const bodies = (): Record<string, unknown>[] => service.requests.map(({ body }) => body);
  return { ask, bodies };
}

const PROMPT = createPrompt("How is Rome?");
const SEEN = createResult("call_a", [{ type: "text", text: "Warm." }]);
const SEEN_ITEM = { type: "function_call_output", call_id: "call_a", output: "Warm." };

/** A message as a session file or the wire gives it back. */
function copy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

describe("previousResponseId", () => {
  it("sends what is new since the last response, over any number of turns", async () => {
    const { ask, bodies } = open(
      { previousResponseId: "auto" },
      respond("a"),
      respond("b", "Warm."),
      respond("c", "No."),
    );
    const first = await ask([PROMPT]);
    const second = await ask([PROMPT, first, SEEN].map(copy));
    const more = createPrompt("Rain?");
    const third = await ask([PROMPT, first, SEEN, second, more].map(copy));
    expect(third.stopReason).toBe("stop");
    const [one, two, three] = bodies();
    expect(one).toMatchObject({ store: true });
    expect(one).not.toHaveProperty("previous_response_id");
    expect(two).toMatchObject({ store: true, previous_response_id: "resp_a", input: [SEEN_ITEM] });
    // Neither is kept with the response: both are sent with each request.
    expect(two).toMatchObject({ instructions: "Be.", tools: [{ name: "look" }] });
    expect(three).toMatchObject({
      previous_response_id: "resp_b",
      input: [{ role: "user", content: [{ type: "input_text", text: "Rain?" }] }],
    });
    expect(requestCheckFor(MODEL)(one ?? {}, MODEL.id)).toEqual([]);
  });

  it("sends the whole transcript where the service does not know the response any more", async () => {
    const { ask, bodies } = open(
      { previousResponseId: "auto" },
      respond("a"),
      NOT_FOUND,
      respond("b", "Warm."),
    );
    const first = await ask([PROMPT]);
    const second = await ask([PROMPT, first, SEEN]);
    expect(second).toMatchObject({ stopReason: "stop", responseId: "resp_b" });
    const [, , again] = bodies();
    expect(again).not.toHaveProperty("previous_response_id");
    expect(again?.["input"]).toMatchObject([
      { role: "user" },
      { type: "reasoning", encrypted_content: "sealed-a" },
      { type: "function_call", call_id: "call_a" },
      SEEN_ITEM,
    ]);
  });

  it("passes on every other error with its text", async () => {
    const busy = { status: 400, body: JSON.stringify({ error: { message: "Odd model." } }) };
    const { ask, bodies } = open({ previousResponseId: "auto" }, respond("a"), busy);
    const first = await ask([PROMPT]);
    expect((await ask([PROMPT, first, SEEN])).errorMessage).toContain("Odd model.");
    expect(bodies()).toHaveLength(2);
  });

  it.each<[string, (transcript: Message[]) => Message[]]>([
    ["a prompt was edited", ([, ...rest]) => [createPrompt("How is Oslo?"), ...rest]],
    [
      "an answer was edited",
      (all) =>
        all.map((message) => {
          if (message.role !== "assistant") return message;
          const content = message.content.map((block) =>
            block.type === "toolCall" ? { ...block, arguments: { at: "Oslo" } } : block,
          );
          return { ...message, content };
        }),
    ],
    ["old messages were compacted", ([, ...rest]) => [createPrompt("(A summary.)"), ...rest]],
    ["a message was put before", (all) => [createPrompt("First"), ...all]],
  ])("sends all of it where %s", async (_, edit) => {
    const { ask, bodies } = open({ previousResponseId: "auto" }, respond("a"), respond("b", "Ok."));
    const first = await ask([PROMPT]);
    const edited = edit([PROMPT, first, SEEN]);
    await ask(edited);
    expect(bodies()[1]).not.toHaveProperty("previous_response_id");
    expect(JSON.stringify(bodies()[1]?.["input"])).toContain("function_call_output");
    expect(bodies()[1]?.["input"]).not.toHaveLength(1);
  });

  it("goes on from no response of another model, of another request, or that was not kept", async () => {
    const kept = open({ previousResponseId: "auto" }, respond("a"), respond("b", "Ok."));
    const first = await kept.ask([PROMPT]);
    await kept.ask([PROMPT, first, SEEN], { ...MODEL, id: "gpt-5.2" });
    expect(kept.bodies()[1]).not.toHaveProperty("previous_response_id");
    const plain = open({}, respond("a"));
    const unkept = await plain.ask([PROMPT]);
    expect(unkept).not.toHaveProperty("prefix");
    expect(plain.bodies()[0]).toMatchObject({ store: false });
    const refused = open({ store: true }, respond("a", "Hi", { store: false }));
    expect(await refused.ask([PROMPT])).not.toHaveProperty("prefix");
    const failed = { ...first, failure: { kind: "network" as const } };
    await kept.ask([PROMPT, failed, SEEN]);
    expect(kept.bodies()[2]).not.toHaveProperty("previous_response_id");
  });

  it("begins with a response that the transcript does not have", async () => {
    const { ask, bodies } = open(
      { previousResponseId: "resp_0" },
      respond("a"),
      NOT_FOUND,
      respond("b", "Ok."),
    );
    const first = await ask([PROMPT]);
    await ask([PROMPT, first, SEEN]);
    expect(bodies()[0]).toMatchObject({ previous_response_id: "resp_0" });
    expect(bodies()[1]).toMatchObject({ previous_response_id: "resp_a" });
    expect(bodies()[2]).toMatchObject({ previous_response_id: "resp_0" });
    expect(bodies()[2]?.["input"]).toHaveLength(4);
  });
});

describe("conversation", () => {
  it("is sent what it does not have", async () => {
    const { ask, bodies } = open({ conversation: "conv_1" }, respond("a"), respond("b", "Warm."));
    const first = await ask([PROMPT]);
    expect(first.report?.details).toMatchObject({ conversation: "conv_1" });
    await ask([PROMPT, first, SEEN].map(copy));
    expect(bodies()[0]).toMatchObject({ conversation: "conv_1", store: true });
    expect(bodies()[1]).toMatchObject({ conversation: "conv_1", input: [SEEN_ITEM] });
  });

  it("is sent all of a transcript that it has nothing of", async () => {
    const other = open({ conversation: "conv_1" }, respond("a"));
    const first = await other.ask([PROMPT]);
    const { ask, bodies } = open({ conversation: "conv_2" }, respond("b", "Warm."));
    await ask([PROMPT, first, SEEN]);
    expect(bodies()[0]?.["input"]).toHaveLength(4);
  });

  it("is an error where the transcript is another than what it has", async () => {
    const { ask, bodies } = open({ conversation: "conv_1" }, respond("a"));
    const first = await ask([PROMPT]);
    const message = await ask([createPrompt("How is Oslo?"), first, SEEN]);
    expect(message.errorMessage).toBe(
      'The option "providerOptions.openai.conversation" cannot be sent: the transcript was changed since the last answer in "conv_1", which the service has as it was. Use another conversation, or previousResponseId.',
    );
    expect(message.failure).toEqual({ kind: "bad_request", retryable: false });
    expect(bodies()).toHaveLength(1);
  });
});

describe("options that contradict each other", () => {
  it.each<[OpenAIOptions, string]>([
    [{ store: false, background: true }, "background"],
    [{ store: false, previousResponseId: "auto" }, "previousResponseId"],
    [{ conversation: "conv_1", store: false }, "conversation"],
    [{ previousResponseId: "auto", conversation: "conv_1" }, "conversation"],
    [{ previousResponseId: "" }, "previousResponseId"],
  ])("%j is an error that names one of them", async (options, name) => {
    const { ask, bodies } = open(options, respond("a"));
    const { errorMessage, failure } = await ask([PROMPT]);
    expect(errorMessage).toContain(`providerOptions.openai.${name}`);
    expect(failure).toEqual({ kind: "bad_request", retryable: false });
    expect(bodies()).toEqual([]);
  });

  it("takes what does not contradict", async () => {
    const { ask, bodies } = open({ background: false, store: false }, respond("a"));
    expect((await ask([PROMPT])).stopReason).toBe("toolUse");
    expect(bodies()[0]).toMatchObject({ store: false });
  });
});
