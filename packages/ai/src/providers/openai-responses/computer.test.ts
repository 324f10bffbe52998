import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../../client/client.ts";
import type { OpenAIOptions } from "../../client/generation-options.ts";
import type {
  AssistantMessage,
  Message,
  Model,
  Tool,
  ToolResultMessage,
  UserContent,
} from "../../messages/messages.ts";
import { acknowledgeSafetyChecks, listSafetyChecks } from "../../messages/safety-checks.ts";
import { createPrompt, createResult, fakeService, IMAGE, sse } from "../../testing/fake-service.ts";
import { createModel } from "../testing/format-fixture.ts";
import { findFormat } from "../testing/formats.ts";
import { requestCheckFor } from "../testing/request-checks.ts";

// "Computer use" in OpenAI's guides: what the service sends, and what it wants back.

const GPT = createModel("openai-responses", "openai", "gpt-5.4");
const OTHER_GPT = createModel("openai-responses", "openai", "gpt-5.6-sol");
const CLAUDE = createModel("anthropic-messages", "anthropic", "claude-sonnet-4-5");
const GEMINI = createModel("google-generative-ai", "google", "gemini-3-flash");

const COMPUTER: Tool = {
  name: "computer",
  description: "A screen",
  parameters: { type: "object", properties: {} },
};
const LOOK: Tool = { ...COMPUTER, name: "look" };

const THOUGHT = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "c2VhbGVk" };
const ACTIONS = [
  { type: "click", button: "left", x: 135, y: 193 },
  { type: "type", text: "tea" },
];
const CHECK = {
  id: "cu_sc_1",
  code: "malicious_instructions",
  message: "There may be malicious instructions on the screen.",
};
const CALL = {
  type: "computer_call",
  id: "cu_1",
  call_id: "call_1",
  actions: ACTIONS,
  pending_safety_checks: [] as object[],
  status: "completed",
};
/** What the older tool sends: one action. */
const { actions: _, ...REST } = CALL;
const OLDER_CALL = { ...REST, action: { type: "screenshot" } };
const CHECKED = { ...CALL, pending_safety_checks: [CHECK] };

function respond(...output: object[]): string {
  return sse(
    { type: "response.created", response: { id: "resp_1", status: "in_progress" } },
    ...output.flatMap((item, output_index) => [
      {
        type: "response.output_item.added",
        output_index,
        item: { ...item, actions: undefined, action: undefined, status: "in_progress" },
      },
      { type: "response.output_item.done", output_index, item },
    ]),
    {
      type: "response.completed",
      response: { id: "resp_1", status: "completed", output, store: true },
    },
  );
}

async function send(
  model: Model,
  body: string,
  messages: readonly Message[] = [],
  own: OpenAIOptions = { serviceTools: [{ type: "computer" }] },
  more: StreamOptions = {},
) {
  const service = fakeService(body);
  const { stream } = findFormat(model.api).create({ fetch: service.fetch });
  const context = { messages: [createPrompt("Go"), ...messages], tools: [LOOK, COMPUTER] };
  const answer = await stream({ ...model, baseUrl: "https://api.example/v1" }, context, {
    apiKey: "test-key-0123456789",
    ...(model.provider === "openai" && { providerOptions: { openai: own } }),
    ...more,
  });
  const message = await answer.result();
  const sent = service.requests[0]?.body;
  return { message, sent: sent ?? {}, isSent: sent !== undefined };
}

async function hear(item: object, own?: OpenAIOptions): Promise<AssistantMessage> {
  return (await send(GPT, respond(THOUGHT, item), [], own)).message;
}

function result(content: UserContent[], more: Partial<ToolResultMessage> = {}): ToolResultMessage {
  return createResult("call_1", content, { toolName: "computer", ...more });
}

const SCREEN = { type: "computer_screenshot", image_url: "data:image/png;base64,aGk=" };
const DONE = respond({
  type: "message",
  id: "msg_1",
  role: "assistant",
  content: [{ type: "output_text", text: "Done", annotations: [] }],
});

/** The items that a request has after the prompt; the request is one that the service takes. */
async function replay(messages: readonly Message[], own?: OpenAIOptions): Promise<unknown[]> {
  const { message, sent } = await send(GPT, DONE, messages, own);
  expect(message.errorMessage).toBeUndefined();
  expect(requestCheckFor(GPT)(sent, GPT.id)).toEqual([]);
  return Array.isArray(sent["input"]) ? sent["input"].slice(1) : [];
}

describe("the computer of OpenAI", () => {
  it("stands in for the tool of the application", async () => {
    const { sent } = await send(GPT, DONE, [], undefined, { toolChoice: { name: "computer" } });
    expect(sent["tools"]).toMatchObject([{ type: "function", name: "look" }, { type: "computer" }]);
    expect(sent["tool_choice"]).toEqual({ type: "computer" });
    expect(sent["truncation"]).toBeUndefined();
  });

  it("has an older form", async () => {
    const preview = { width: 1024, height: 768, environment: "browser" } as const;
    const serviceTools = [{ type: "computer", preview }] as const;
    const { sent } = await send(GPT, DONE, [], { serviceTools });
    expect(sent["tools"]).toMatchObject([
      { name: "look" },
      {
        type: "computer_use_preview",
        display_width: 1024,
        display_height: 768,
        environment: "browser",
      },
    ]);
    expect(sent["truncation"]).toBe("auto");
    const own: OpenAIOptions = { truncation: "disabled", serviceTools };
    expect((await send(GPT, DONE, [], own)).sent["truncation"]).toBe("disabled");
  });

  it.each<[string, unknown, string]>([
    ["an unknown tool", { type: "bash" }, 'OpenAI has no tool "bash". It has computer.'],
    [
      "an unknown field",
      { type: "computer", width: 1 },
      'the tool "computer" of OpenAI has no "width". Leave it out. It has preview.',
    ],
  ])("is not sent with %s", async (_what, tool, says) => {
    const own = { serviceTools: [tool] } as unknown as OpenAIOptions;
    const { isSent, message } = await send(GPT, DONE, [], own);
    expect(isSent).toBe(false);
    expect(message.errorMessage).toContain(says);
  });

  it("is called as the tool of the application", async () => {
    const message = await hear(CALL);
    expect(message.stopReason).toBe("toolUse");
    expect(message.content).toMatchObject([
      { type: "thinking" },
      { type: "toolCall", id: "call_1", name: "computer", arguments: { actions: ACTIONS } },
    ]);
    const older = await hear(OLDER_CALL);
    expect(older.content[1]).toMatchObject({ arguments: { actions: [{ type: "screenshot" }] } });
  });

  it("is called once, also where ids are others in the last event", async () => {
    const output = [{ ...CALL, id: "cu_9", call_id: "call_1" }];
    const body = sse(
      { type: "response.created", response: { id: "resp_1" } },
      { type: "response.output_item.done", output_index: 0, item: CALL },
      { type: "response.completed", response: { status: "completed", output } },
    );
    const { message } = await send(GPT, body);
    expect(message.content.filter(({ type }) => type === "toolCall")).toHaveLength(1);
  });

  it("is called twice where two calls are alike but for what they do", async () => {
    const second = { ...CALL, id: "cu_2", call_id: "call_2", actions: [{ type: "wait" }] };
    const body = sse(
      { type: "response.created", response: { id: "resp_1" } },
      { type: "response.output_item.done", output_index: 0, item: CALL },
      { type: "response.completed", response: { status: "completed", output: [CALL, second] } },
    );
    const { message } = await send(GPT, body);
    expect(message.content).toMatchObject([{ id: "call_1" }, { id: "call_2" }]);
  });

  it("does nothing where a response broke off in a call", async () => {
    const body = sse(
      { type: "response.created", response: { id: "resp_1" } },
      { type: "response.output_item.added", output_index: 0, item: REST },
    );
    const { message } = await send(GPT, body);
    expect(message.failure?.kind).toBe("incomplete");
    expect(message.stopReason).toBe("error");
  });

  it.each([CALL, OLDER_CALL])("gets its call back with a screenshot", async (call) => {
    const items = await replay([await hear(call), result([IMAGE])]);
    expect(items).toEqual([
      THOUGHT,
      call,
      { type: "computer_call_output", call_id: "call_1", output: SCREEN },
    ]);
  });

  it("gets the last picture as the screenshot, and all else beside it", async () => {
    const before: UserContent = { ...IMAGE, data: "b2xk" };
    const items = await replay([
      await hear(CALL),
      result([before, { type: "text", text: "Slow" }, IMAGE]),
    ]);
    expect(items.slice(2)).toMatchObject([
      { type: "computer_call_output", output: SCREEN },
      {
        role: "user",
        content: [
          { type: "input_image", image_url: "data:image/png;base64,b2xk" },
          { type: "input_text", text: "Slow" },
        ],
      },
    ]);
  });

  it("gets a call that no screenshot answers as that of a function", async () => {
    const denied = result([{ type: "text", text: "Denied." }], {
      isError: true,
      outcome: "denied",
    });
    expect(await replay([await hear(CHECKED), denied])).toMatchObject([
      { type: "function_call", call_id: "call_1", name: "computer" },
      { type: "function_call_output", call_id: "call_1", output: "Denied." },
    ]);
  });

  it("goes on from what the service has kept, unless the call was denied", async () => {
    const own: OpenAIOptions = {
      serviceTools: [{ type: "computer" }],
      previousResponseId: "auto",
    };
    const heard = await hear(CALL, own);
    const { sent } = await send(GPT, DONE, [heard, result([IMAGE])], own);
    expect(sent["previous_response_id"]).toBe("resp_1");
    expect(sent["input"]).toMatchObject([{ type: "computer_call_output", output: SCREEN }]);
    const denied = result([{ type: "text", text: "Denied." }], { isError: true });
    const { sent: whole } = await send(GPT, DONE, [heard, denied], own);
    expect(whole["previous_response_id"]).toBeUndefined();
    expect(whole["input"]).toHaveLength(3);
  });

  it("keeps its calls over a transcript as text", async () => {
    const messages: Message[] = [await hear(CHECKED), result([IMAGE], { details: accept() })];
    const copy = JSON.parse(JSON.stringify(messages)) as Message[];
    expect(await replay(copy)).toEqual(await replay(messages));
  });

  it.each([CLAUDE, GEMINI, OTHER_GPT])("is read by others: $id", async (model) => {
    const messages = [await hear(CHECKED), result([IMAGE], { details: accept() })];
    const { sent } = await send(model, "", messages, {});
    expect(requestCheckFor(model)(sent, model.id)).toEqual([]);
    const text = JSON.stringify(sent);
    expect(text).toContain("computer");
    expect(text).toContain("135");
    expect(text).toContain("aGk=");
    expect(text).not.toMatch(/computer_call|c2VhbGVk/);
  });
});

/** What an application does once a person has approved the call. */
function accept(): object {
  return acknowledgeSafetyChecks({ pending_safety_checks: [CHECK] });
}

describe("a safety check", () => {
  it("is an argument of the call, for the person that approves it", async () => {
    const { content } = await hear(CHECKED);
    const call = content[1];
    expect(call).toMatchObject({ arguments: { pending_safety_checks: [CHECK] } });
    expect(listSafetyChecks(call?.type === "toolCall" && call.arguments)).toEqual([CHECK]);
  });

  it("is acknowledged by the result that says so", async () => {
    const items = await replay([await hear(CHECKED), result([IMAGE], { details: accept() })]);
    expect(items[2]).toEqual({
      type: "computer_call_output",
      call_id: "call_1",
      output: SCREEN,
      acknowledged_safety_checks: [CHECK],
    });
  });

  it.each<[string, unknown]>([
    ["no details", undefined],
    ["other details", { note: "clicked" }],
    ["another check", { acknowledgedSafetyChecks: ["cu_sc_2"] }],
    ["details that are no list", { acknowledgedSafetyChecks: true }],
  ])("is never acknowledged by a result with %s", async (_what, details) => {
    const messages = [await hear(CHECKED), result([IMAGE], { details })];
    const { isSent, message } = await send(GPT, DONE, messages);
    expect(isSent).toBe(false);
    expect(message.failure).toEqual({ kind: "bad_request", retryable: false });
    expect(message.errorMessage).toContain(
      'The call "call_1" of the computer has a safety check that its result does not acknowledge: There may be malicious instructions on the screen.',
    );
  });

  it.each([undefined, null, "", { pending_safety_checks: {} }, { safety_decision: "no" }])(
    "is not found in other arguments",
    (args) => {
      expect(listSafetyChecks(args)).toEqual([]);
      expect(acknowledgeSafetyChecks(args)).toEqual({ acknowledgedSafetyChecks: [] });
    },
  );

  it("is one decision of Gemini, which gets the answer with the result", async () => {
    const decision = { decision: "require_confirmation", explanation: "A purchase." };
    const args = { x: 1, y: 2, safety_decision: decision };
    expect(listSafetyChecks(args)).toEqual([
      { id: "safety_decision", code: "require_confirmation", message: "A purchase." },
    ]);
    const answered = (details: unknown): Message[] => [
      {
        ...{ role: "assistant", api: GEMINI.api, provider: GEMINI.provider, model: GEMINI.id },
        ...{ usage: {}, stopReason: "toolUse", timestamp: 0 },
        content: [{ type: "toolCall", id: "call_1", name: "click_at", arguments: args }],
      },
      result([IMAGE], { toolName: "click_at", details }),
    ];
    const approved = await send(GEMINI, "", answered(acknowledgeSafetyChecks(args)));
    expect(JSON.stringify(approved.sent)).toContain('"safety_acknowledgement":"true"');
    const silent = await send(GEMINI, "", answered(undefined));
    expect(JSON.stringify(silent.sent)).not.toContain("safety_acknowledgement");
  });
});
