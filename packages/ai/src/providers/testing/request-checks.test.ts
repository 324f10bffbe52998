import { describe, expect, it } from "vitest";
import { requestCheckFor } from "./request-checks.ts";

type Fields = Record<string, unknown>;
/** What is wrong, the request with it, and a word of what the check says. */
type Wrong = readonly [what: string, body: Fields, says: string];

const PNG = "aVBO";
const HALF = "\ud83d";
const SCHEMA = { type: "object", properties: {} };

function refuses(api: string, provider: string, model: string, cases: readonly Wrong[]): void {
  it.each(cases)("refuses %s", (_, body, says) => {
    expect(requestCheckFor({ api, provider })(body, model).join("\n")).toContain(says);
  });
}

function takes(api: string, provider: string, model: string, ...bodies: readonly Fields[]): void {
  it("takes a request that is as it should be", () => {
    const check = requestCheckFor({ api, provider });
    for (const body of bodies) expect(check(body, model)).toEqual([]);
  });
}

it("says where a format has no check", () => {
  expect(() => requestCheckFor({ api: "other", provider: "x" })).toThrow('"other"');
});

describe("Anthropic", () => {
  const user = (...content: unknown[]): Fields => ({ role: "user", content });
  const assistant = (...content: unknown[]): Fields => ({ role: "assistant", content });
  const text = (words: string): Fields => ({ type: "text", text: words });
  const use = (id = "toolu_1", name = "look"): Fields => ({
    type: "tool_use",
    id,
    name,
    input: {},
  });
  const result = (id = "toolu_1", more: Fields = {}): Fields => ({
    type: "tool_result",
    tool_use_id: id,
    content: "ok",
    ...more,
  });
  const image = (media_type = "image/png", data = PNG): Fields => ({
    type: "image",
    source: { type: "base64", media_type, data },
  });
  const tools = [{ name: "look", description: "", input_schema: SCHEMA }];
  const of = (messages: unknown, more: Fields = {}): Fields => ({
    model: "claude-sonnet-4-5",
    max_tokens: 4_096,
    messages,
    ...more,
  });
  const hi = [user(text("Hi"))];
  const turn = [...hi, assistant(use()), user(result(), text("And?"))];
  const enabled = { type: "enabled", budget_tokens: 1_024 };
  const server = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} };
  const cache_control = { type: "ephemeral" };
  const thought = { type: "thinking", thinking: "Hm", signature: "s" };

  takes(
    "anthropic-messages",
    "anthropic",
    "claude-sonnet-4-5",
    of(hi),
    of([{ role: "user", content: "Hi" }, ...hi]),
    of(turn, { tools, tool_choice: { type: "auto" }, thinking: enabled }),
    of([...hi, assistant(thought, use()), user(result())], { tools, thinking: enabled }),
    of([...hi, assistant(text("Well,"))]),
    of([...hi, assistant(server)]),
    of([user(image(), { ...text("?"), cache_control })]),
  );
  refuses("anthropic-messages", "anthropic", "claude-sonnet-4-5", [
    ["a key that it does not know", of(hi, { stop: [] }), "unknown key"],
    ["no limit", of(hi, { max_tokens: undefined }), "max_tokens"],
    ["no messages", of([]), "not empty"],
    ["half of a pair", of([user(text(`a${HALF}`))]), "surrogate"],
    ["half of a pair in a key", of(hi, { metadata: { [HALF]: 1 } }), "surrogate"],
    ["a number that is not one", of(hi, { temperature: Number.NaN }), "finite"],
    ["an assistant first", of([assistant(text("Hi")), ...hi]), "first must be of the user"],
    ["another role", of([{ role: "system", content: "x" }]), "none of user"],
    ["blank text", of([user(text(" "))]), "blank"],
    ["a blank system prompt", of(hi, { system: [text(" ")] }), "blank"],
    ["an unknown block", of([user({ type: "thing" })]), "none of"],
    ["a type of image", of([user(image("image/heic"))]), "none of image/png"],
    ["an image that is no base64", of([user(image("image/png", "?"))]), "base64"],
    ["a call without a result", of([...hi, assistant(use()), ...hi], { tools }), "no result of"],
    ["a call at the end", of([...hi, assistant(use())], { tools }), "ends with calls"],
    ["a result without a call", of([user(result())], { tools }), "not called"],
    [
      "words before results",
      of([...hi, assistant(use()), user(text("So"), result())], { tools }),
      "results must come first",
    ],
    [
      "an id twice",
      of([...turn, assistant(use()), user(result())], { tools }),
      "toolu_1 comes twice",
    ],
    [
      "an id of other letters",
      of([...hi, assistant(use("a|b")), user(result("a|b"))], { tools }),
      "a|b",
    ],
    [
      "a name of other letters",
      of([...hi, assistant(use("a", "a.b")), user(result("a"))], { tools }),
      "a.b",
    ],
    ["calls without tools", of(turn), "must be there"],
    [
      "an image in an error",
      of(
        [...hi, assistant(use()), user(result("toolu_1", { is_error: true, content: [image()] }))],
        {
          tools,
        },
      ),
      "text alone",
    ],
    [
      "thinking without a signature",
      of([...hi, assistant({ ...thought, signature: "" }, text("x")), ...hi]),
      "signature",
    ],
    ["thinking at the end", of([...hi, assistant(thought), ...hi]), "last block"],
    ["a small budget", of(hi, { thinking: { ...enabled, budget_tokens: 10 } }), "1024 or more"],
    ["a budget above the limit", of(hi, { thinking: enabled, max_tokens: 1_000 }), "less than"],
    ["a temperature with thinking", of(hi, { thinking: enabled, temperature: 0 }), "temperature"],
    [
      "a forced call with thinking",
      of(hi, { tools, tool_choice: { type: "any" }, thinking: enabled }),
      "cannot force",
    ],
    [
      "thinking in a turn that began without",
      of([...hi, assistant(use()), user(result())], { tools, thinking: enabled }),
      "begin with thinking",
    ],
    ["white space at the end", of([...hi, assistant(text("So "))]), "white space"],
    [
      "a tool of the service without its result",
      of([...hi, assistant(server), ...hi]),
      "has no result",
    ],
    [
      "a result of the service without a use",
      of([...hi, assistant({ type: "web_search_tool_result", tool_use_id: "srvtoolu_1" }), ...hi]),
      "without a use",
    ],
    [
      "five marks",
      of(Array.from({ length: 5 }, () => user({ ...text("x"), cache_control }))),
      "more than 4",
    ],
    ["a schema of no object", of(hi, { tools: [{ ...tools[0], input_schema: {} }] }), "object"],
    ["a tool twice", of(hi, { tools: [...tools, ...tools] }), "twice"],
    ["a choice without tools", of(hi, { tool_choice: { type: "auto" } }), "together with tools"],
    [
      "a choice of another tool",
      of(hi, { tools, tool_choice: { type: "tool", name: "x" } }),
      "none of look",
    ],
  ]);
  refuses("anthropic-messages", "anthropic", "claude-opus-4-6", [
    ["a prefill for newer models", of([...hi, assistant(text("So"))]), "last must be of the user"],
    ["an effort that came later", of(hi, { output_config: { effort: "xhigh" } }), "no xhigh"],
  ]);
  refuses("anthropic-messages", "anthropic", "claude-opus-5-5", [
    ["a temperature", of(hi, { temperature: 0.5 }), "has its own"],
    ["a forced call", of(hi, { tools, tool_choice: { type: "any" } }), "cannot force"],
    ["not to think", of(hi, { thinking: { type: "disabled" } }), "thinking.type"],
    ["a word of another model", of(hi, { thinking: { type: "between_tools" } }), "thinking.type"],
    ["a budget", of(hi, { thinking: { type: "enabled", budget_tokens: 1024 } }), "no budget"],
    [
      "thinking that may not fit any more",
      of(
        [...hi, assistant({ type: "thinking", thinking: "Hm", signature: "s" }, text("So")), ...hi],
        {
          thinking: { type: "adaptive" },
        },
      ),
      "may not fit",
    ],
  ]);
  refuses("anthropic-messages", "anthropic", "claude-sonnet-5-5", [
    [
      "a control that takes adaptive thinking",
      of(hi, { thinking: { type: "between_tools", block_binding: {} } }),
      "only with adaptive",
    ],
  ]);
});

describe("OpenAI chat", () => {
  const user = { role: "user", content: "Hi" };
  const call = (more: Fields = {}): Fields => ({
    id: "call_1",
    type: "function",
    function: { name: "look", arguments: "{}" },
    ...more,
  });
  const calls = (...tool_calls: Fields[]): Fields => ({
    role: "assistant",
    content: null,
    tool_calls,
  });
  const result = { role: "tool", tool_call_id: "call_1", content: "ok" };
  const tools = [{ type: "function", function: { name: "look", parameters: SCHEMA } }];
  const of = (messages: unknown, more: Fields = {}): Fields => ({
    model: "gpt-4.1",
    messages,
    ...more,
  });
  const url = (type: string): Fields => ({ url: `data:${type};base64,${PNG}` });
  const named = (name: string, given: string): Fields =>
    call({ function: { name, arguments: given } });

  takes(
    "openai-completions",
    "openai",
    "gpt-4.1",
    of([{ role: "system", content: "Be brief." }, user, user]),
    of([user, calls(call()), result, user], { tools, tool_choice: "auto" }),
    of([{ role: "user", content: [{ type: "image_url", image_url: url("image/png") }] }]),
  );
  refuses("openai-completions", "openai", "gpt-4.1", [
    ["a key that it does not know", of([user], { thinking: {} }), "unknown key"],
    ["a key of a message", of([{ ...user, reasoning: "x" }]), "unknown key"],
    ["another role", of([{ role: "model", content: "x" }]), "unknown role"],
    [
      "an assistant that says nothing",
      of([user, { role: "assistant", content: null }]),
      "content or calls",
    ],
    ["an empty text", of([user, { role: "assistant", content: "" }]), "content or calls"],
    ["an empty user", of([{ role: "user", content: "" }]), "empty"],
    ["calls without results", of([user, calls(call()), user]), "before the results"],
    ["calls at the end", of([user, calls(call())]), "ends without"],
    ["a result without a call", of([user, result]), "no call that waits"],
    ["a long id", of([user, calls(call({ id: "x".repeat(41) }))]), "does not match"],
    ["an id twice", of([user, calls(call(), call()), result, result]), "comes twice"],
    [
      "arguments that are no JSON",
      of([user, calls(named("look", "{")), result]),
      "JSON of an object",
    ],
    [
      "arguments that are a list",
      of([user, calls(named("look", "[]")), result]),
      "JSON of an object",
    ],
    [
      "half of a pair in arguments",
      of([user, calls(named("look", JSON.stringify({ a: HALF }))), result]),
      "surrogate",
    ],
    ["a name of other letters", of([user, calls(named("a.b", "{}")), result]), "a.b"],
    [
      "an image of the assistant",
      of([
        user,
        { role: "assistant", content: [{ type: "image_url", image_url: url("image/png") }] },
      ]),
      "none of text",
    ],
    [
      "a type of image",
      of([{ role: "user", content: [{ type: "image_url", image_url: url("image/heic") }] }]),
      "none of image/png",
    ],
    ["a system prompt in between", of([user, { role: "system", content: "x" }]), "come first"],
    ["a choice without tools", of([user], { tool_choice: "none" }), "together with tools"],
    ["an unknown choice", of([user], { tools, tool_choice: "any" }), "none of none"],
    ["an unknown effort", of([user], { reasoning_effort: "max" }), "max"],
    ["no tools", of([user], { tools: [] }), "not empty"],
    ["two limits", of([user], { max_tokens: 1, max_completion_tokens: 1 }), "not together"],
    ["a long key for the cache", of([user], { prompt_cache_key: "x".repeat(65) }), "too long"],
    ["options of a stream that is not one", of([user], { stream_options: {} }), "only together"],
  ]);
  refuses("openai-completions", "openai", "gpt-5.1", [
    ["an old limit for models that think", of([user], { max_tokens: 9 }), "that think"],
    ["a temperature for models that think", of([user], { temperature: 0 }), "that think"],
  ]);

  const short = call({ id: "aBcDeF123" });
  const answer = { ...result, tool_call_id: "aBcDeF123", name: "look" };
  takes("openai-completions", "mistral", "m", of([user, calls(short), answer]));
  refuses("openai-completions", "mistral", "m", [
    ["ids that are not of nine letters (Mistral)", of([user, calls(call()), result]), "{9}"],
    ["a user after a result (Mistral)", of([user, calls(short), answer, user]), "right after tool"],
    ["an assistant last (Mistral)", of([user, { role: "assistant", content: "x" }]), "last word"],
  ]);
  takes("openai-completions", "perplexity", "sonar", of([user]));
  refuses("openai-completions", "perplexity", "sonar", [
    ["neighbors of one role (Perplexity)", of([user, user]), "user after user"],
    ["tools (Perplexity)", of([user], { tools }), "not known here"],
    ["calls (Perplexity)", of([user, calls(call()), result]), "knows no calls"],
  ]);
  const thinking = { type: "enabled" };
  const thought = { ...calls(call()), reasoning_content: "Hm" };
  takes("openai-completions", "deepseek", "d", of([user, thought, result], { thinking }));
  refuses("openai-completions", "deepseek", "d", [
    [
      "calls without thinking (DeepSeek)",
      of([user, calls(call()), result], { thinking }),
      "reasoning_content",
    ],
  ]);
  const marks = Array.from({ length: 5 }, () => ({
    role: "user",
    content: [{ type: "text", text: "x", cache_control: {} }],
  }));
  refuses("openai-completions", "openrouter", "o", [
    ["five marks (OpenRouter)", of(marks), "more than 4"],
  ]);
});

describe("OpenAI Responses", () => {
  const user = { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] };
  const call = { type: "function_call", id: "fc_1", call_id: "c1", name: "look", arguments: "{}" };
  const output = { type: "function_call_output", call_id: "c1", output: "ok" };
  const checks = [{ id: "sc_1" }];
  const screenCall = {
    ...{ type: "computer_call", id: "cu_1", call_id: "c1", actions: [{ type: "wait" }] },
    pending_safety_checks: checks,
  };
  const screen = {
    ...{ type: "computer_call_output", call_id: "c1" },
    output: { type: "computer_screenshot", image_url: `data:image/png;base64,${PNG}` },
  };
  const thought = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "s" };
  const assistant = (id: string): Fields => ({
    type: "message",
    role: "assistant",
    id,
    content: [{ type: "output_text", text: "So", annotations: [] }],
  });
  const tools = [{ type: "function", name: "look", parameters: SCHEMA }];
  const of = (input: unknown, more: Fields = {}): Fields => ({ model: "gpt-5.1", input, ...more });
  const image = { type: "input_image", image_url: `data:image/png;base64,${PNG}` };

  takes(
    "openai-responses",
    "openai",
    "gpt-5.1",
    of("Hi"),
    of([user, thought, call, output], { tools, tool_choice: "required" }),
    of([user, screenCall, { ...screen, acknowledged_safety_checks: checks }]),
    of([user, thought, assistant("msg_1"), { ...user, content: [image] }], {
      reasoning: { effort: "low" },
    }),
  );
  refuses("openai-responses", "openai", "gpt-5.1", [
    ["a key that it does not know", of("Hi", { messages: [] }), "unknown key"],
    ["no items", of([]), "not empty"],
    ["an unknown item", of([{ type: "thing" }]), "unknown item"],
    ["a call without an output", of([user, call]), "no output for c1"],
    ["an output without a call", of([user, output]), "waits for it"],
    ["an output of another kind", of([user, screenCall, output]), "waits for it"],
    ["no screenshot", of([user, screenCall, { ...screen, output: "Done" }]), "must be an object"],
    ["an open safety check", of([user, screenCall, screen]), "acknowledged_safety_checks"],
    ["a call twice", of([call, { ...call, id: "fc_2" }, output]), "comes twice"],
    ["an id twice", of([user, assistant("msg_1"), assistant("msg_1")]), "comes twice"],
    ["an id of another kind", of([user, assistant("rs_1")]), "begin with msg"],
    ["a long id", of([user, assistant(`msg_${"x".repeat(64)}`)]), "does not match"],
    ["a long call_id", of([{ ...call, call_id: "x".repeat(65) }]), "does not match"],
    ["arguments that are no JSON", of([{ ...call, arguments: "{" }, output]), "JSON of an object"],
    ["a thought alone", of([user, thought]), "without the item"],
    ["a thought before a user", of([thought, user]), "without the item"],
    [
      "a thought that is kept nowhere",
      of([{ ...thought, encrypted_content: null }, call, output]),
      "read again",
    ],
    [
      "an image of the assistant",
      of([{ ...assistant("msg_1"), content: [image] }]),
      "none of output_text",
    ],
    ["an empty text", of([{ ...user, content: [{ type: "input_text", text: "" }] }]), "empty"],
    ["a choice without tools", of("Hi", { tool_choice: "auto" }), "together with tools"],
    [
      "a choice of another tool",
      of("Hi", { tools, tool_choice: { type: "function", name: "x" } }),
      "none of look",
    ],
    ["a small limit", of("Hi", { max_output_tokens: 1 }), "too small"],
    ["a temperature for models that think", of("Hi", { temperature: 0 }), "temperature"],
    ["a long key for the cache", of("Hi", { prompt_cache_key: "x".repeat(65) }), "too long"],
  ]);
  refuses("openai-responses", "openai", "gpt-4.1", [
    ["reasoning of a model that does not think", of("Hi", { reasoning: {} }), "that think"],
  ]);
});

describe("Google", () => {
  const user = (...parts: Fields[]): Fields => ({ role: "user", parts });
  const model = (...parts: Fields[]): Fields => ({ role: "model", parts });
  const hi = user({ text: "Hi" });
  const call = (name = "look", more: Fields = {}): Fields => ({
    functionCall: { name, args: {} },
    thoughtSignature: "c2ln",
    ...more,
  });
  const answer = (name = "look"): Fields => ({ functionResponse: { name, response: {} } });
  const of = (contents: unknown, more: Fields = {}): Fields => ({ contents, ...more });
  const image = (mimeType: string): Fields => ({ inlineData: { mimeType, data: PNG } });
  const tools = [{ functionDeclarations: [{ name: "look", parametersJsonSchema: SCHEMA }] }];
  const calling = (functionCallingConfig: Fields): Fields => ({
    tools,
    toolConfig: { functionCallingConfig },
  });

  takes(
    "google-generative-ai",
    "google",
    "gemini-3-pro",
    of(
      [hi, model(call()), user(answer())],
      calling({ mode: "ANY", allowedFunctionNames: ["look"] }),
    ),
    of([user(image("image/png")), model({ text: "", thoughtSignature: "c2ln" }), hi]),
    of([
      hi,
      model(call("look", { thoughtSignature: "skip_thought_signature_validator" })),
      user(answer()),
      hi,
    ]),
  );
  refuses("google-generative-ai", "google", "gemini-3-pro", [
    ["a key that it does not know", of([hi], { messages: [] }), "unknown key"],
    ["another role", of([{ role: "assistant", parts: [{ text: "x" }] }]), "none of user"],
    ["a model first", of([model({ text: "x" }), hi]), "first must be"],
    ["a model last", of([hi, model({ text: "x" })]), "last must be"],
    ["no parts", of([user()]), "not empty"],
    ["an empty part", of([user({})]), "holds one thing"],
    ["two things in a part", of([user({ text: "x", ...image("image/png") })]), "holds one thing"],
    ["an empty text", of([user({ text: "" })]), "empty"],
    ["a call without an answer", of([hi, model(call()), hi]), "1 calls"],
    ["too many answers", of([hi, model(call()), user(answer(), answer())]), "1 calls"],
    ["words among answers", of([hi, model(call()), user(answer(), { text: "x" })]), "alone"],
    ["an answer of another name", of([hi, model(call()), user(answer("x"))]), "another function"],
    [
      "a call after a model",
      of([hi, model({ text: "x" }), model(call()), user(answer())]),
      "must follow",
    ],
    ["a call of the user", of([user(call()), user(answer())]), "of models"],
    ["a name of other letters", of([hi, model(call("a b")), user(answer("a b"))]), "a b"],
    [
      "a signature that is not one",
      of([hi, model(call("look", { thoughtSignature: "?" })), user(answer())]),
      "base64",
    ],
    [
      "a call that is not signed",
      of([hi, model({ functionCall: { name: "look" } }), user(answer())]),
      "must be signed",
    ],
    ["a type of image", of([user(image("image/gif"))]), "none of image/png"],
    ["thinking of the user", of([user({ text: "x", thought: true })]), "only models think"],
    ["a mode that it does not know", of([hi], calling({ mode: "SOME" })), "none of AUTO"],
    [
      "a choice of another tool",
      of([hi], calling({ mode: "ANY", allowedFunctionNames: ["x"] })),
      "none of look",
    ],
    ["a key of the options", of([hi], { generationConfig: { max_tokens: 1 } }), "unknown key"],
    [
      "a budget and a level",
      of([hi], {
        generationConfig: { thinkingConfig: { thinkingBudget: 1, thinkingLevel: "LOW" } },
      }),
      "both",
    ],
  ]);
});

describe("Bedrock", () => {
  const user = (...content: Fields[]): Fields => ({ role: "user", content });
  const assistant = (...content: Fields[]): Fields => ({ role: "assistant", content });
  const hi = user({ text: "Hi" });
  const use = (toolUseId = "t1", name = "look"): Fields => ({
    toolUse: { toolUseId, name, input: {} },
  });
  const result = (more: Fields = {}): Fields => ({
    toolResult: { toolUseId: "t1", content: [{ text: "ok" }], ...more },
  });
  const image = (format: string): Fields => ({ image: { format, source: { bytes: PNG } } });
  const toolConfig = { tools: [{ toolSpec: { name: "look", inputSchema: { json: SCHEMA } } }] };
  const of = (messages: unknown, more: Fields = {}): Fields => ({ messages, ...more });
  const point = { cachePoint: { type: "default" } };
  const thought = { reasoningContent: { reasoningText: { text: "Hm", signature: "s" } } };
  const thinking = (more: Fields): Fields => ({
    additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1_024 } },
    inferenceConfig: { maxTokens: 2_000, ...more },
  });
  const claude = "anthropic.claude-sonnet-4-5";

  takes(
    "bedrock-converse-stream",
    "amazon-bedrock",
    claude,
    of([hi, assistant(thought, use()), user(result(), { text: "And?" }, point)], { toolConfig }),
    of([user(image("png")), assistant({ text: "So" }), hi], thinking({})),
  );
  refuses("bedrock-converse-stream", "amazon-bedrock", claude, [
    ["a key that it does not know", of([hi], { model: "x" }), "unknown key"],
    ["neighbors of one role", of([hi, hi]), "take turns"],
    ["an assistant first", of([assistant({ text: "x" })]), "take turns"],
    ["blank text", of([user({ text: " " })]), "blank"],
    ["two things in a block", of([user({ text: "x", ...image("png") })]), "holds one thing"],
    ["a type of image", of([user(image("heic"))]), "none of png"],
    ["a call without a result", of([hi, assistant(use()), hi], { toolConfig }), "no result of t1"],
    ["a call at the end", of([hi, assistant(use())], { toolConfig }), "ends with calls"],
    ["a result without a call", of([user(result())], { toolConfig }), "no call t1"],
    ["calls without tools", of([hi, assistant(use()), user(result())]), "needed when"],
    ["an id of other letters", of([hi, assistant(use("a|b")), hi], { toolConfig }), "a|b"],
    [
      "a name of other letters",
      of([hi, assistant(use("t1", "a.b")), user(result())], { toolConfig }),
      "a.b",
    ],
    [
      "an image in an error",
      of([hi, assistant(use()), user(result({ status: "error", content: [image("png")] }))], {
        toolConfig,
      }),
      "text alone",
    ],
    [
      "an empty error",
      of([hi, assistant(use()), user(result({ status: "error", content: [] }))], { toolConfig }),
      "not empty",
    ],
    [
      "thinking without a signature",
      of([
        hi,
        assistant({ reasoningContent: { reasoningText: { text: "x" } } }, { text: "x" }),
        hi,
      ]),
      "signature",
    ],
    ["thinking at the end", of([hi, assistant(thought), hi]), "end in thinking"],
    ["five points", of([user({ text: "x" }, point, point, point, point, point)]), "more than 4"],
    ["a point first", of([user(point)]), "follow something"],
    ["a budget above the limit", of([hi], thinking({ maxTokens: 10 })), "less than"],
    ["a temperature with thinking", of([hi], thinking({ temperature: 0 })), "temperature"],
    [
      "thinking in a turn that began without",
      of([hi, assistant(use()), user(result())], { toolConfig, ...thinking({}) }),
      "begin with thinking",
    ],
    ["white space at the end", of([hi, assistant({ text: "So " })]), "white space"],
    ["no tools", of([hi], { toolConfig: { tools: [] } }), "not empty"],
    [
      "a choice of another tool",
      of([hi], { toolConfig: { ...toolConfig, toolChoice: { tool: { name: "x" } } } }),
      "none of look",
    ],
  ]);
  refuses("bedrock-converse-stream", "amazon-bedrock", "anthropic.claude-opus-4-6-v1", [
    ["a prefill for newer models", of([hi, assistant({ text: "So" })]), "last must be of the user"],
  ]);
});

describe("Ollama", () => {
  const user = { role: "user", content: "Hi" };
  const call = (given: unknown, name = "look"): Fields => ({
    role: "assistant",
    content: "",
    tool_calls: [{ id: "c1", function: { name, arguments: given } }],
  });
  const result = { role: "tool", content: "ok", tool_name: "look", tool_call_id: "c1" };
  const of = (messages: unknown, more: Fields = {}): Fields => ({ model: "m", messages, ...more });
  const tool = { type: "function", function: { name: "look", parameters: SCHEMA } };

  takes(
    "ollama",
    "ollama",
    "m",
    of([user, call({}), result], { tools: [tool], think: "high" }),
    of([{ role: "user", content: "", images: [PNG] }]),
  );
  refuses("ollama", "ollama", "m", [
    ["a key that it does not know", of([user], { max_tokens: 1 }), "unknown key"],
    ["a key of a message", of([{ ...user, name: "x" }]), "unknown key"],
    ["another role", of([{ role: "model", content: "x" }]), "none of system"],
    ["a message that says nothing", of([{ role: "assistant", content: "" }]), "says nothing"],
    ["content that is no text", of([{ role: "user", content: [] }]), "must be a string"],
    ["arguments that are JSON", of([user, call("{}"), result]), "must be an object"],
    ["a call without a name", of([user, call({}, ""), result]), "needs a name"],
    ["a call without a result", of([user, call({}), user]), "before all calls"],
    ["a call at the end", of([user, call({})]), "ends with calls"],
    ["a result without a call", of([user, result]), "answers no call"],
    [
      "a result of another tool",
      of([user, call({}), { ...result, tool_name: "x" }]),
      "another tool",
    ],
    ["an image that is no base64", of([{ ...user, images: ["?"] }]), "base64"],
    ["an unknown level", of([user], { think: "xhigh" }), "none of"],
    [
      "a schema of no object",
      of([user], { tools: [{ ...tool, function: { name: "x" } }] }),
      "object",
    ],
  ]);
});
