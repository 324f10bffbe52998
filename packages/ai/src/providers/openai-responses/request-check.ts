import { sse } from "../../testing/fake-service.ts";
import { createModel, type FormatFixture } from "../testing/format-fixture.ts";
import {
  checkImageUrl,
  toFields,
  type Fields,
  isBlank,
  toList,
  type Problems,
  requestCheck,
} from "../testing/problems.ts";

// "Create a model response" in OpenAI's API reference, "Reasoning models" and "Function
// calling" in its guides; how items and their ids go together, the service says in its errors.

const KEYS: ReadonlySet<string> = new Set([
  "model",
  "input",
  "background",
  "context_management",
  "conversation",
  "include",
  "instructions",
  "max_output_tokens",
  "max_tool_calls",
  "metadata",
  "moderation",
  "parallel_tool_calls",
  "previous_response_id",
  "prompt",
  "prompt_cache_key",
  "prompt_cache_retention",
  "reasoning",
  "safety_identifier",
  "service_tier",
  "store",
  "stream",
  "stream_options",
  "temperature",
  "text",
  "tool_choice",
  "tools",
  "top_logprobs",
  "top_p",
  "truncation",
  "user",
]);
const MAX_ID_CHARS = 64;
const MIN_OUTPUT_TOKENS = 16;
const ID = /^[a-zA-Z0-9_-]{1,64}$/;
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const INPUT_PARTS = ["input_text", "input_image", "input_file"];
/** How ids of items begin, by their type. */
const PREFIXES: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  computer_call: "cu",
  web_search_call: "ws",
  file_search_call: "fs",
  code_interpreter_call: "ci",
  image_generation_call: "ig",
  mcp_call: "mcp",
  mcp_list_tools: "mcpl",
};
const OTHER_ITEMS = [
  "function_call_output",
  "computer_call_output",
  "compaction",
  "tool_search_call",
  "tool_search_output",
];
/** Models that think. */
const THINKS = /^(o\d|gpt-[5-9])/;

/** A request to OpenAI's Responses API that keeps nothing at the service. */
const check = requestCheck((problems, body, model) => {
  problems.onlyKeys(body, KEYS, "body");
  problems.text(body["model"], "model");
  const items =
    typeof body["input"] === "string" ? [] : problems.filled(body["input"], "input").map(toFields);
  const ids = items.flatMap(({ id }) => (id === undefined ? [] : [id]));
  problems.distinct(ids, "ids of items");
  for (const [index, item] of items.entries()) {
    checkItem(problems, item, `input[${index}]`);
    if (item["type"] === "reasoning") checkReasoning(problems, items, index);
  }
  checkCalls(problems, items);
  checkTools(problems, body);
  checkParameters(problems, body, THINKS.test(model));
});

function checkItem(problems: Problems, item: Fields, at: string): void {
  const type = typeof item["type"] === "string" ? item["type"] : "message";
  const prefix = PREFIXES[type];
  problems.must(prefix !== undefined || OTHER_ITEMS.includes(type), at, `unknown item ${type}`);
  if (item["id"] !== undefined && item["id"] !== null) {
    const id = problems.matches(item["id"], ID, at);
    problems.must(id.startsWith(prefix ?? ""), at, `id of ${type} must begin with ${prefix}`);
  }
  if (type === "message") checkMessage(problems, item, at);
  if (type === "function_call") {
    problems.matches(item["call_id"], ID, at);
    problems.matches(item["name"], TOOL_NAME, at);
    problems.argumentsJson(item["arguments"], `${at}.arguments`);
  }
  if (type === "computer_call_output") checkScreenshot(problems, item, at);
  if (type === "function_call_output") {
    problems.matches(item["call_id"], ID, at);
    const { output } = item;
    if (typeof output !== "string") checkParts(problems, output, INPUT_PARTS, at);
  }
}

/** "Computer use": a picture by its address or id, and checks that have ids. */
function checkScreenshot(problems: Problems, item: Fields, at: string): void {
  problems.matches(item["call_id"], ID, at);
  const output = problems.fields(item["output"], `${at}.output`);
  problems.mustBeIn(output["type"], ["computer_screenshot"], at);
  if (output["file_id"] === undefined) checkImageUrl(problems, output["image_url"], at);
  for (const check of toList(item["acknowledged_safety_checks"]).map(toFields)) {
    problems.text(check["id"], `${at}.acknowledged_safety_checks`);
  }
}

function checkMessage(problems: Problems, item: Fields, at: string): void {
  const { content, role } = item;
  problems.mustBeIn(role, ["user", "assistant", "system", "developer"], at);
  if (typeof content === "string") {
    problems.must(content !== "", at, "content must not be empty");
    return;
  }
  const parts = role === "assistant" ? ["output_text", "refusal"] : INPUT_PARTS;
  checkParts(problems, content, role === "user" ? parts : withoutImages(parts), at);
}

function withoutImages(parts: readonly string[]): string[] {
  return parts.filter((part) => part !== "input_image");
}

function checkParts(
  problems: Problems,
  content: unknown,
  allowed: readonly string[],
  at: string,
): void {
  for (const part of problems.filled(content, `${at}.content`).map(toFields)) {
    problems.mustBeIn(part["type"], allowed, at);
    if (part["type"] === "input_image") {
      if (part["file_id"] === undefined) checkImageUrl(problems, part["image_url"], at);
      else problems.matches(part["file_id"], /^file-/, at);
    }
    if (part["type"] === "input_file") checkFile(problems, part, at);
    if (part["type"] === "output_text" && part["annotations"] !== undefined) {
      problems.must(Array.isArray(part["annotations"]), at, "annotations must be a list");
    }
    if ("text" in part) problems.must(problems.text(part["text"], at) !== "", at, "is empty");
  }
}

/** "File inputs": one of the three, and a name with contents. */
function checkFile(problems: Problems, part: Fields, at: string): void {
  const given = ["file_data", "file_url", "file_id"].filter((name) => part[name] !== undefined);
  problems.must(given.length === 1, at, "a file has its contents, an address or an id");
  if (part["file_data"] !== undefined) {
    problems.matches(part["file_data"], /^data:[\w.+-]+\/[\w.+-]+;base64,[\w+/=]+$/, at);
    problems.must(!isBlank(part["filename"]), at, "contents need a filename");
  }
  if (part["file_url"] !== undefined) problems.matches(part["file_url"], /^https?:/, at);
  if (part["file_id"] !== undefined) problems.matches(part["file_id"], /^file-/, at);
}

/** A thought goes with what it led to, and is sealed or readable where nothing is kept. */
function checkReasoning(problems: Problems, items: readonly Fields[], index: number): void {
  const at = `input[${index}]`;
  const { content, encrypted_content: sealed, summary } = items[index] ?? {};
  problems.must(Array.isArray(summary), at, "needs its summary, if only an empty one");
  problems.must(!!sealed || toList(content).length > 0, at, "has nothing that can be read again");
  const next = items.slice(index + 1).find(({ type }) => type !== "reasoning");
  const isOurs = String(next?.["type"]).endsWith("_call_output") || next?.["role"] === "user";
  problems.must(next !== undefined && !isOurs, at, "comes without the item that it led to");
}

function checkCalls(problems: Problems, items: readonly Fields[]): void {
  const waiting = new Map<unknown, Fields>();
  const seen: unknown[] = [];
  for (const [index, item] of items.entries()) {
    const id = item["call_id"];
    if (item["type"] === "function_call" || item["type"] === "computer_call") {
      waiting.set(id, item);
      seen.push(id);
    } else if (item["type"] === "function_call_output" || item["type"] === "computer_call_output") {
      const call = waiting.get(id);
      const isFitting = `${String(call?.["type"])}_output` === item["type"];
      problems.must(isFitting, `input[${index}]`, `no call ${String(id)} waits for it`);
      waiting.delete(id);
      const done = toList(item["acknowledged_safety_checks"]).map((one) => toFields(one)["id"]);
      for (const { id: check } of toList(call?.["pending_safety_checks"]).map(toFields)) {
        problems.mustBeIn(check, done, `input[${index}].acknowledged_safety_checks`);
      }
    }
  }
  problems.distinct(seen, "call_id");
  problems.must(waiting.size === 0, "input", `no output for ${[...waiting.keys()].join()}`);
}

function checkTools(problems: Problems, body: Fields): void {
  const { tool_choice: choice, tools } = body;
  const names: unknown[] = [];
  if (tools !== undefined) {
    for (const tool of problems.filled(tools, "tools").map(toFields)) {
      if (tool["type"] !== "function") continue;
      problems.matches(tool["name"], TOOL_NAME, "tools");
      problems.objectSchema(tool["parameters"], `tools ${String(tool["name"])}`);
      names.push(tool["name"]);
    }
  }
  problems.distinct(names, "tools");
  if (choice === undefined) return;
  problems.must(tools !== undefined, "tool_choice", "only together with tools");
  if (typeof choice === "string") {
    return problems.mustBeIn(choice, ["none", "auto", "required"], "tool_choice");
  }
  const { name, type } = problems.fields(choice, "tool_choice");
  if (type === "function") problems.mustBeIn(name, names, "tool_choice");
}

function checkParameters(problems: Problems, body: Fields, thinks: boolean): void {
  const { max_output_tokens: limit, reasoning } = body;
  if (limit !== undefined) {
    problems.must(Number(limit) >= MIN_OUTPUT_TOKENS, "max_output_tokens", "is too small");
  }
  if (reasoning !== undefined) {
    problems.must(thinks, "reasoning", "only for models that think");
    const { effort = "medium" } = problems.fields(reasoning, "reasoning");
    problems.mustBeIn(effort, EFFORTS, "reasoning.effort");
  }
  problems.must(!thinks || body["temperature"] === undefined, "temperature", "not with thinking");
  for (const name of ["prompt_cache_key", "safety_identifier"]) {
    const value = body[name];
    if (value === undefined) continue;
    problems.must(problems.text(value, name).length <= MAX_ID_CHARS, name, "is too long");
  }
}

/** What the tests of all formats know of this one. */
export const fixture: FormatFixture = {
  check,
  models: [
    createModel("openai-responses", "openai", "gpt-5.1"),
    createModel("openai-responses", "openai", "gpt-4.1", { reasoning: false }),
  ],
  respond: (n, seal) => {
    const summary = [{ type: "summary_text", text: `Thought #${n}#` }];
    const content = [{ type: "output_text", text: `Said #${n}#`, annotations: [] }];
    const output = [
      { type: "reasoning", id: `rs_${n}`, summary, encrypted_content: seal },
      { type: "message", role: "assistant", id: `msg_${n}`, content },
      {
        type: "function_call",
        id: `fc_${n}`,
        call_id: `call_${n}`,
        name: "read_file",
        arguments: "{}",
      },
    ];
    return {
      body: sse(
        { type: "response.created", response: { id: `resp_${n}` } },
        ...output.map((item, output_index) => ({
          type: "response.output_item.done",
          output_index,
          item,
        })),
        { type: "response.completed", response: { id: `resp_${n}`, status: "completed", output } },
      ),
    };
  },
};
