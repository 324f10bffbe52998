import { sse } from "../../testing/fake-service.ts";
import { createModel, type FormatFixture } from "../testing/format-fixture.ts";
import {
  checkImageUrl,
  toFields,
  type Fields,
  isBlank,
  toList,
  type Problems,
  type RequestCheck,
  requestCheck,
} from "../testing/problems.ts";

// "Create chat completion" in OpenAI's API reference, "Function calling" and "Prompt
// caching" in its guides; for the others their own reference pages. What no page says, the
// services say in their errors.

const OPENAI_KEYS: readonly string[] = [
  "model",
  "messages",
  "audio",
  "frequency_penalty",
  "logit_bias",
  "logprobs",
  "max_completion_tokens",
  "max_tokens",
  "metadata",
  "modalities",
  "moderation",
  "n",
  "parallel_tool_calls",
  "prediction",
  "presence_penalty",
  "prompt_cache_key",
  "prompt_cache_retention",
  "reasoning_effort",
  "response_format",
  "safety_identifier",
  "seed",
  "service_tier",
  "stop",
  "store",
  "stream",
  "stream_options",
  "temperature",
  "tool_choice",
  "tools",
  "top_logprobs",
  "top_p",
  "user",
  "verbosity",
  "web_search_options",
];
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"];
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const MAX_TOOLS = 128;
const MAX_CACHE_KEY_CHARS = 64;
const MAX_CACHE_MARKS = 4;
/** Models of OpenAI that think take neither of these. */
const THINKS = /^(o\d|gpt-[5-9])/;

/** How a service differs from what OpenAI documents. */
interface Dialect {
  keys: ReadonlySet<string>;
  /** Of messages, beside role, content and what calls need. */
  messageKeys?: readonly string[];
  callKeys?: readonly string[];
  callId: RegExp;
  efforts: readonly unknown[];
  choices: readonly string[];
  userParts: readonly string[];
  assistantParts: readonly string[];
  tools?: boolean;
  /** "Built-in tools" in the documentation of a service: of another type, and nothing else. */
  builtIn?: readonly unknown[];
  /** A user may not speak right after a result. */
  assistantAfterResults?: boolean;
  /** User and assistant take turns, and a user begins. */
  alternates?: boolean;
  /** The assistant may not have the last word. */
  endsWithUser?: boolean;
  /** Results may carry the name of their tool. */
  resultName?: boolean;
  /** Calls carry the thinking that led to them, while the model thinks. */
  reasoningWithCalls?: boolean;
  thinks?: boolean;
  /** OpenAI's own models, and what they refuse. */
  own?: boolean;
}

const OPENAI: Dialect = {
  keys: new Set(OPENAI_KEYS),
  callId: /^.{1,40}$/s,
  efforts: EFFORTS,
  choices: ["none", "auto", "required"],
  userParts: ["text", "image_url", "input_audio", "file"],
  assistantParts: ["text", "refusal"],
};

function chatCheck(dialect: Dialect): RequestCheck {
  return requestCheck((problems, body, model) => {
    problems.onlyKeys(body, dialect.keys, "body");
    problems.text(body["model"], "model");
    const messages = problems.filled(body["messages"], "messages").map(toFields);
    const thinks = toFields(body["thinking"])["type"] === "enabled";
    for (const [index, message] of messages.entries()) {
      checkMessage(problems, message, { ...dialect, thinks }, `messages[${index}]`);
    }
    checkCalls(problems, messages);
    checkOrder(problems, messages, dialect);
    checkTools(problems, body, dialect);
    checkParameters(problems, body, dialect, model);
  });
}

const MESSAGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  system: ["role", "content", "name"],
  developer: ["role", "content", "name"],
  user: ["role", "content", "name"],
  assistant: ["role", "content", "name", "refusal", "audio", "tool_calls"],
  tool: ["role", "content", "tool_call_id"],
};

function checkMessage(problems: Problems, message: Fields, dialect: Dialect, at: string): void {
  const role = String(message["role"]);
  const known = MESSAGE_KEYS[role];
  if (!problems.must(known !== undefined, at, `unknown role ${role}`)) return;
  const extra = dialect.messageKeys ?? [];
  const named = role === "tool" && dialect.resultName ? ["name"] : [];
  problems.onlyKeys(message, new Set([...(known ?? []), ...extra, ...named]), at);
  if (role === "assistant") return checkAssistant(problems, message, dialect, at);
  const parts = role === "user" ? dialect.userParts : ["text"];
  checkContent(problems, message["content"], parts, at);
  if (named.length > 0 && "name" in message) problems.matches(message["name"], TOOL_NAME, at);
}

function checkContent(
  problems: Problems,
  content: unknown,
  allowed: readonly string[],
  at: string,
): void {
  if (typeof content === "string") {
    problems.must(content !== "", at, "content must not be empty");
    return;
  }
  for (const part of problems.filled(content, `${at}.content`).map(toFields)) {
    problems.mustBeIn(part["type"], allowed, at);
    if (part["type"] === "text") problems.must(!isBlank(part["text"]), at, "text is blank");
    if (part["type"] === "image_url") {
      checkImageUrl(problems, problems.fields(part["image_url"], at)["url"], at);
    }
    // Mistral, which alone has these, has the id of a file beside its type.
    if (part["type"] === "file" && allowed.includes("document_url")) {
      problems.text(part["file_id"], at);
    } else checkFilePart(problems, part, at);
  }
}

const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+;base64,[\w+/=]+$/;
const ADDRESS = /^(?:https?:\/\/|data:[\w.+-]+\/[\w.+-]+;base64,[\w+/=]+$)/;

function checkFilePart(problems: Problems, part: Fields, at: string): void {
  switch (part["type"]) {
    case "file": {
      const { file_data, file_id, filename } = problems.fields(part["file"], at);
      const hasOne = (file_data === undefined) !== (file_id === undefined);
      problems.must(hasOne, at, "a file has its contents or an id");
      if (file_data === undefined) return;
      problems.must(!isBlank(filename), at, "contents need a filename");
      problems.matches(file_data, ADDRESS, at);
      return;
    }
    case "input_audio": {
      const audio = part["input_audio"];
      // At Mistral a text: the contents, or an address.
      if (typeof audio === "string") {
        problems.must(audio !== "", at, "audio is empty");
        return;
      }
      const { data, format } = problems.fields(audio, at);
      problems.base64(data, at);
      problems.mustBeIn(format, AUDIO_FORMATS, at);
      return;
    }
    case "video_url":
    case "audio_url":
      problems.matches(toFields(part[part["type"]])["url"], ADDRESS, at);
      return;
    case "document_url":
      problems.matches(part["document_url"], ADDRESS, at);
      return;
    case "file_url": {
      const url = problems.text(toFields(part["file_url"])["url"], at);
      problems.must(!DATA_URL.test(url), at, "contents go without the beginning of an address");
      problems.must(url !== "", at, "is empty");
    }
  }
}

const AUDIO_FORMATS = ["wav", "mp3", "aiff", "aac", "ogg", "flac", "m4a"];

function checkAssistant(problems: Problems, message: Fields, dialect: Dialect, at: string): void {
  const { content, tool_calls: calls } = message;
  const empty = content === null || content === undefined || content === "";
  problems.must(!empty || calls !== undefined, at, "needs a content or calls");
  if (!empty) checkContent(problems, content, dialect.assistantParts, at);
  if (calls === undefined) return;
  problems.must(dialect.tools !== false, at, "the service knows no calls");
  for (const call of problems.filled(calls, `${at}.tool_calls`).map(toFields)) {
    const callKeys = new Set(["id", "type", "function", ...(dialect.callKeys ?? [])]);
    problems.onlyKeys(call, callKeys, at);
    problems.mustBeIn(call["type"], ["function"], at);
    problems.matches(call["id"], dialect.callId, at);
    const { arguments: given, name } = problems.fields(call["function"], at);
    problems.matches(name, TOOL_NAME, at);
    problems.argumentsJson(given, `${at} arguments`);
  }
  if (!dialect.thinks || !dialect.reasoningWithCalls) return;
  const thought = message["reasoning_content"];
  problems.must(typeof thought === "string" && thought !== "", at, "needs reasoning_content");
}

/** Every call has its result, right after the message that made it. */
function checkCalls(problems: Problems, messages: readonly Fields[]): void {
  const ids = messages.flatMap((message) =>
    toList(message["tool_calls"]).map((call) => toFields(call)["id"]),
  );
  problems.distinct(ids, "ids of calls");
  let asked: unknown[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    if (message["role"] === "tool") {
      const id = message["tool_call_id"];
      problems.must(asked.includes(id), at, `${String(id)} is no call that waits`);
      asked = asked.filter((one) => one !== id);
      continue;
    }
    problems.must(asked.length === 0, at, `comes before the results of ${asked.join()}`);
    asked = toList(message["tool_calls"]).map((call) => toFields(call)["id"]);
  }
  problems.must(asked.length === 0, "messages", `ends without the results of ${asked.join()}`);
}

function checkOrder(problems: Problems, messages: readonly Fields[], dialect: Dialect): void {
  const roles = messages
    .map(({ role }) => role)
    .filter((role) => role !== "system" && role !== "developer");
  for (const [index, role] of roles.entries()) {
    const before = roles[index - 1];
    if (dialect.assistantAfterResults) {
      problems.must(role !== "user" || before !== "tool", "messages", "user right after tool");
    }
    if (!dialect.alternates) continue;
    const fits = index === 0 ? role === "user" : role !== before;
    problems.must(fits, "messages", `${String(role)} after ${String(before)}`);
  }
  const late = messages.findIndex(({ role }) => role === "system" || role === "developer");
  problems.must(late <= 0, "messages", "the system prompt must come first");
  if (!dialect.endsWithUser) return;
  problems.must(roles.at(-1) !== "assistant", "messages", "the assistant has the last word");
}

function checkTools(problems: Problems, body: Fields, dialect: Dialect): void {
  const { tool_choice: choice, tools } = body;
  problems.must(tools === undefined || dialect.tools !== false, "tools", "not known here");
  const names: unknown[] = [];
  if (tools !== undefined) {
    const list = problems.filled(tools, "tools").map(toFields);
    problems.must(list.length <= MAX_TOOLS, "tools", `more than ${MAX_TOOLS}`);
    for (const tool of list) {
      if (dialect.builtIn?.includes(tool["type"])) continue;
      problems.mustBeIn(tool["type"], ["function"], "tools");
      const { name, parameters } = problems.fields(tool["function"], "tools");
      problems.matches(name, TOOL_NAME, "tools");
      if (parameters !== undefined) problems.objectSchema(parameters, `tools ${String(name)}`);
      names.push(name);
    }
  }
  problems.distinct(names, "tools");
  if (choice === undefined) return;
  problems.must(tools !== undefined, "tool_choice", "only together with tools");
  if (typeof choice === "string") return problems.mustBeIn(choice, dialect.choices, "tool_choice");
  const { function: named, type } = problems.fields(choice, "tool_choice");
  problems.mustBeIn(type, ["function"], "tool_choice");
  problems.mustBeIn(toFields(named)["name"], names, "tool_choice");
}

function checkParameters(problems: Problems, body: Fields, dialect: Dialect, model: string): void {
  const { prompt_cache_key: key, reasoning_effort: effort } = body;
  if (effort !== undefined) problems.mustBeIn(effort, dialect.efforts, "reasoning_effort");
  const streams = body["stream"] === true || body["stream_options"] === undefined;
  problems.must(streams, "stream_options", "only together with stream");
  const limits = ["max_tokens", "max_completion_tokens"].filter((name) => name in body);
  problems.must(limits.length < 2, "max_tokens", "not together with max_completion_tokens");
  if (key !== undefined) {
    const fits = problems.text(key, "prompt_cache_key").length <= MAX_CACHE_KEY_CHARS;
    problems.must(fits, "prompt_cache_key", "is too long");
  }
  const marks = JSON.stringify(body["messages"] ?? []).split('"cache_control":').length - 1;
  problems.must(marks <= MAX_CACHE_MARKS, "cache_control", `more than ${MAX_CACHE_MARKS}`);
  if (!dialect.own || !THINKS.test(model)) return;
  problems.must(body["max_tokens"] === undefined, "max_tokens", "not for models that think");
  problems.must(body["temperature"] === undefined, "temperature", "not for models that think");
}

/** A request to OpenAI itself. */
const check = chatCheck({ ...OPENAI, own: true });

/** "Chat" in Mistral's API reference; the order of roles is in its errors (code 3230). */
const checkMistral = chatCheck({
  ...OPENAI,
  keys: new Set([
    "model",
    "messages",
    "frequency_penalty",
    "max_tokens",
    "metadata",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_mode",
    "random_seed",
    "reasoning_effort",
    "response_format",
    "safe_prompt",
    "stop",
    "stream",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
  ]),
  callId: /^[a-zA-Z0-9]{9}$/,
  efforts: ["none", "high"],
  choices: ["auto", "none", "any", "required"],
  userParts: ["text", "image_url", "document_url", "input_audio", "file"],
  assistantParts: ["text", "thinking"],
  assistantAfterResults: true,
  endsWithUser: true,
  resultName: true,
});

/** "API reference" and "Reasoning tokens" in OpenRouter's documentation. */
const checkOpenRouter = chatCheck({
  ...OPENAI,
  builtIn: ["openrouter:web_search", "openrouter:web_fetch"],
  keys: new Set([
    ...OPENAI_KEYS,
    "models",
    "provider",
    "reasoning",
    "route",
    "session_id",
    "min_p",
    "repetition_penalty",
    "top_a",
    "top_k",
    "transforms",
    "usage",
  ]),
  messageKeys: ["reasoning", "reasoning_details", "images", "cache_control"],
  userParts: ["text", "image_url", "input_audio", "file", "video_url"],
});

/** "Create chat completion", "Thinking mode" and "Tool calls" in DeepSeek's documentation. */
const checkDeepSeek = chatCheck({
  ...OPENAI,
  keys: new Set([...OPENAI_KEYS, "thinking"]),
  messageKeys: ["reasoning_content", "prefix"],
  efforts: ["low", "high", "max"],
  reasoningWithCalls: true,
});

/** "Create chat completion" in Perplexity's API reference; it has no tools of ours. */
const checkPerplexity = chatCheck({
  ...OPENAI,
  keys: new Set([
    "model",
    "messages",
    "max_tokens",
    "stream",
    "stream_options",
    "stop",
    "temperature",
    "top_p",
    "response_format",
    "reasoning_effort",
    "search_mode",
    "web_search_options",
    "stream_mode",
  ]),
  tools: false,
  userParts: ["text", "image_url", "file_url"],
  alternates: true,
  endsWithUser: true,
});

/** "Chat completions" in Groq's API reference. */
const checkGroq = chatCheck({
  ...OPENAI,
  keys: new Set([...OPENAI_KEYS, "reasoning_format", "include_reasoning", "documents"]),
  messageKeys: ["reasoning"],
  efforts: [null, "none", "default", "low", "medium", "high"],
  userParts: ["text", "image_url"],
  builtIn: ["browser_search", "code_interpreter"],
});

/** Reference pages of services and servers that run open models. */
const checkOpenModels = chatCheck({
  ...OPENAI,
  keys: new Set([...OPENAI_KEYS, "min_p", "repetition_penalty", "top_k"]),
  userParts: ["text", "image_url", "input_audio", "audio_url", "video_url"],
});

/** "Chat completion" in the reference of Z.ai. */
const checkZai = chatCheck({
  ...OPENAI,
  keys: new Set([
    "model",
    "messages",
    "max_tokens",
    "reasoning_effort",
    "response_format",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "thinking",
    "tool_choice",
    "tool_stream",
    "tools",
    "top_p",
    "user_id",
  ]),
  userParts: ["text", "image_url", "video_url", "file_url"],
});

/** "Use the vision models" in the documentation of Moonshot: contents, never an address. */
const checkMoonshot = chatCheck({
  ...OPENAI,
  keys: new Set([...OPENAI_KEYS, "thinking"]),
  messageKeys: ["reasoning_content", "name"],
  userParts: ["text", "image_url", "video_url"],
});

/** Services of this format that document images alone. */
const checkImagesAlone = chatCheck({ ...OPENAI, userParts: ["text", "image_url"] });

/** What the tests of all formats know of this one. */
export const fixture: FormatFixture = {
  check,
  serviceChecks: {
    deepseek: checkDeepSeek,
    fireworks: checkOpenModels,
    llamacpp: checkOpenModels,
    lmstudio: checkOpenModels,
    together: checkOpenModels,
    vllm: checkOpenModels,
    zai: checkZai,
    groq: checkGroq,
    moonshot: checkMoonshot,
    xai: checkImagesAlone,
    cerebras: checkImagesAlone,
    huggingface: checkImagesAlone,
    "github-models": checkImagesAlone,
    "azure-openai": chatCheck({ ...OPENAI, userParts: ["text", "image_url", "input_audio"] }),
    mistral: checkMistral,
    openrouter: checkOpenRouter,
    perplexity: checkPerplexity,
  },
  models: [
    createModel("openai-completions", "openai", "gpt-5.1"),
    createModel("openai-completions", "openai", "gpt-4.1", { reasoning: false, input: ["text"] }),
    createModel("openai-completions", "mistral", "mistral-large-latest"),
    createModel("openai-completions", "openrouter", "anthropic/claude-sonnet-4.5"),
    createModel("openai-completions", "deepseek", "deepseek-chat"),
    createModel("openai-completions", "groq", "qwen/qwen3-32b"),
    createModel("openai-completions", "perplexity", "sonar-pro"),
  ],
  respond: (n, seal, { provider }) => {
    const call = {
      index: 0,
      id: `chatcmpl-tool-${n}`,
      function: { name: "read_file", arguments: "{}" },
    };
    const detail = { type: "reasoning.encrypted", data: seal, index: 0 };
    const deltas = [
      {
        reasoning: `Thought #${n}#`,
        ...(provider === "openrouter" && { reasoning_details: [detail] }),
      },
      { content: `Said #${n}#` },
      { tool_calls: [call] },
    ];
    return {
      body: sse(
        ...deltas.map((delta) => ({ id: `c${n}`, choices: [{ index: 0, delta }] })),
        { id: `c${n}`, choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
        "[DONE]",
      ),
    };
  },
};
