import { sse } from "../../testing/fake-service.ts";
import { createModel, type FormatFixture } from "../testing/format-fixture.ts";
import {
  toFields,
  type Fields,
  IMAGE_TYPES,
  isBlank,
  toList,
  type Problems,
  requestCheck,
} from "../testing/problems.ts";

// Pages of the Claude API documentation: "Create a Message", "Extended thinking", "Adaptive
// thinking", "Implement tool use", "Prompt caching", "Vision", "What's new in Claude 4.6",
// "Migrating to Claude Sonnet 5.5", "What's new in Claude Opus 5.5";
// what no page says, the service says in its errors.

const KEYS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "max_tokens",
  "stream",
  "system",
  "tools",
  "tool_choice",
  "temperature",
  "top_k",
  "top_p",
  "stop_sequences",
  "metadata",
  "thinking",
  "output_config",
  "service_tier",
  "cache_control",
  "container",
  "context_management",
  "mcp_servers",
  "inference_geo",
  "speed",
]);
const CALL_ID = /^[a-zA-Z0-9_-]{1,64}$/;
const SERVER_CALL_ID = /^srvtoolu_[a-zA-Z0-9_]+$/;
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const MAX_CACHE_MARKS = 4;
const MIN_BUDGET = 1_024;
/** Prefilling ended with Claude 4.6. */
const FIRST_WITHOUT_PREFILL = 406;
const CACHE_LIFETIMES = [undefined, "5m", "1h"];
const THINKING = ["thinking", "redacted_thinking"];
const THINKING_TYPES = ["enabled", "adaptive", "disabled", "between_tools"];
const FIRST_WITHOUT_TEMPERATURE = 407;
const FIRST_WITHOUT_BUDGET = 407;
const FIRST_WITH_XHIGH = 407;
const FIRST_WITHOUT_FORCED = 501;
const FIRST_WITH_BINDING = 501;
/** Models that think by default and have an off switch. */
const TAKES_DISABLED = /opus-4-[78]|(?:opus|sonnet)-5(?!-\d)|haiku-5-5/;
const CACHED = ["text", "image", "document", "tool_use", "tool_result", "search_result"];
const IN_RESULTS = ["text", "image", "document", "search_result", "tool_reference"];
const OF_USERS = ["text", "image", "document", "search_result", "tool_result", "container_upload"];
const OF_ASSISTANTS = ["text", ...THINKING, "tool_use", "compaction", "fallback"];
const SERVER_BLOCK = /^(server_tool_use|mcp_tool_use|[a-z_]+_tool_result)$/;

/** A request to Anthropic's Messages API. */
const check = requestCheck((problems, body, model) => {
  problems.onlyKeys(body, KEYS, "body");
  problems.text(body["model"], "model");
  const limit = body["max_tokens"];
  problems.must(Number.isInteger(limit) && Number(limit) >= 1, "max_tokens", "must be 1 or more");
  const turns = combined(problems, body["messages"]);
  checkTurns(problems, turns);
  checkSystem(problems, body["system"]);
  checkTools(problems, body, turns);
  checkThinking(problems, body, turns);
  checkGeneration(problems, body, model, toFields(body["tool_choice"])["type"]);
  const bound = turns.some(({ content }) =>
    content.some(({ type }) => THINKING.includes(String(type))),
  );
  checkBinding(problems, body["thinking"], bound, model);
  checkEnd(problems, turns, model);
  checkCacheMarks(problems, body);
});

interface Turn {
  role: unknown;
  at: string;
  content: Fields[];
}

/** The service takes neighbors of one role as one message. */
function combined(problems: Problems, messages: unknown): Turn[] {
  const turns: Turn[] = [];
  for (const [index, message] of problems.filled(messages, "messages").entries()) {
    const at = `messages[${index}]`;
    const { role, content } = problems.fields(message, at);
    problems.mustBeIn(role, ["user", "assistant"], at);
    const blocks =
      typeof content === "string"
        ? [{ type: "text", text: content }]
        : problems.filled(content, `${at}.content`).map(toFields);
    const last = turns.at(-1);
    if (last && last.role === role) last.content.push(...blocks);
    else turns.push({ role, at, content: blocks });
  }
  problems.must(turns[0]?.role === "user", "messages", "the first must be of the user");
  return turns;
}

function checkTurns(problems: Problems, turns: readonly Turn[]): void {
  const calls = turns.flatMap(({ content }) => listCallIds(content));
  problems.distinct(calls, "ids of tool_use");
  for (const [index, turn] of turns.entries()) {
    const { at, content, role } = turn;
    for (const [place, block] of content.entries()) {
      checkBlock(problems, block, role, `${at}.content[${place}]`);
    }
    const asked = role === "user" ? listCallIds(turns[index - 1]?.content ?? []) : [];
    const results = content.filter(({ type }) => type === "tool_result");
    const answered = results.map((result) => result["tool_use_id"]);
    problems.distinct(answered, `${at} tool_use_id`);
    for (const id of answered) {
      problems.must(asked.includes(id), at, `result of ${String(id)}, which was not called before`);
    }
    for (const id of asked) problems.must(answered.includes(id), at, `no result of ${String(id)}`);
    const leading = content.slice(0, results.length);
    const first = leading.every(({ type }) => type === "tool_result");
    problems.must(first, at, "results must come first");
    if (role === "assistant") checkServerBlocks(problems, turn, index === turns.length - 1);
  }
  const last = turns.at(-1);
  const open = last?.role === "assistant" ? listCallIds(last.content) : [];
  problems.must(open.length === 0, "messages", "ends with calls that have no results");
}

function listCallIds(content: readonly Fields[]): unknown[] {
  return content.filter(({ type }) => type === "tool_use").map((block) => block["id"]);
}

/**
 * What the service ran has its result in the same message, but where it paused, or waits for
 * a call that its code made ("Programmatic tool calling").
 */
function checkServerBlocks(problems: Problems, { at, content }: Turn, isLast: boolean): void {
  const mayWait = isLast || listCallIds(content).length > 0;
  const seen: unknown[] = [];
  const answered = content.map((block) => block["tool_use_id"]);
  for (const block of content) {
    if (block["type"] === "server_tool_use" || block["type"] === "mcp_tool_use") {
      seen.push(block["id"]);
      const whole = mayWait || answered.includes(block["id"]);
      problems.must(whole, at, `${String(block["id"])} of the service has no result`);
    } else if (SERVER_BLOCK.test(String(block["type"]))) {
      const id = block["tool_use_id"];
      problems.must(seen.includes(id), at, `result of the service for ${String(id)} without a use`);
    }
  }
}

function checkBlock(problems: Problems, block: Fields, role: unknown, at: string): void {
  const type = String(block["type"]);
  const isServer = role === "assistant" && SERVER_BLOCK.test(type);
  if (!isServer) problems.mustBeIn(type, role === "user" ? OF_USERS : OF_ASSISTANTS, at);
  switch (type) {
    case "text":
      problems.must(!isBlank(block["text"]), at, "text must not be blank");
      break;
    case "image":
      checkImage(problems, block, at);
      break;
    case "document":
      checkDocument(problems, block, at);
      break;
    case "thinking":
      problems.text(block["thinking"], at);
      problems.must(!isBlank(block["signature"]), at, "thinking needs its signature");
      break;
    case "redacted_thinking":
      problems.must(!isBlank(block["data"]), at, "needs its data");
      break;
    case "tool_use":
      problems.matches(block["id"], CALL_ID, at);
      problems.matches(block["name"], TOOL_NAME, at);
      problems.fields(block["input"], `${at}.input`);
      break;
    case "server_tool_use":
      problems.matches(block["id"], SERVER_CALL_ID, at);
      break;
    case "tool_result":
      checkResult(problems, block, at);
      break;
  }
}

function checkImage(problems: Problems, block: Fields, at: string): void {
  const source = problems.fields(block["source"], at);
  problems.mustBeIn(source["type"], ["base64", "url", "file"], at);
  if (checkElsewhere(problems, source, at)) return;
  problems.mustBeIn(source["media_type"], IMAGE_TYPES, at);
  problems.base64(source["data"], at);
}

/** Whether the contents are not in the request. */
function checkElsewhere(problems: Problems, source: Fields, at: string): boolean {
  if (source["type"] === "url") problems.matches(source["url"], /^https:/, at);
  if (source["type"] === "file") problems.matches(source["file_id"], /./, at);
  return source["type"] === "url" || source["type"] === "file";
}

/** "PDF support" and "Citations": a PDF, or plain text. */
function checkDocument(problems: Problems, block: Fields, at: string): void {
  const { source: given, title, type: _, cache_control: __, citations: ___, ...rest } = block;
  problems.onlyKeys(rest, new Set(["context"]), at);
  if (title !== undefined) problems.must(!isBlank(title), at, "title must not be blank");
  const source = problems.fields(given, at);
  problems.mustBeIn(source["type"], ["base64", "text", "url", "file", "content"], at);
  if (checkElsewhere(problems, source, at)) return;
  if (source["type"] === "text") {
    problems.mustBeIn(source["media_type"], ["text/plain"], at);
    problems.must(!isBlank(source["data"]), at, "text must not be blank");
  } else if (source["type"] === "base64") {
    problems.mustBeIn(source["media_type"], ["application/pdf"], at);
    problems.base64(source["data"], at);
  }
}

function checkResult(problems: Problems, block: Fields, at: string): void {
  problems.matches(block["tool_use_id"], CALL_ID, at);
  const { content } = block;
  if (content === undefined || typeof content === "string") return;
  for (const part of toList(content).map(toFields)) {
    problems.mustBeIn(part["type"], IN_RESULTS, `${at}.content`);
    if (part["type"] === "text") problems.must(!isBlank(part["text"]), at, "text is blank");
    if (part["type"] === "image") checkImage(problems, part, at);
    if (part["type"] === "document") checkDocument(problems, part, at);
    const fits = block["is_error"] !== true || part["type"] === "text";
    problems.must(fits, at, "an error may hold text alone");
  }
}

function checkSystem(problems: Problems, system: unknown): void {
  if (system === undefined || typeof system === "string") return;
  for (const block of toList(system).map(toFields)) {
    problems.mustBeIn(block["type"], ["text"], "system");
    problems.must(!isBlank(block["text"]), "system", "text must not be blank");
  }
}

function checkTools(problems: Problems, body: Fields, turns: readonly Turn[]): void {
  const tools = toList(body["tools"]).map(toFields);
  const names = tools.flatMap(({ name }) => (name === undefined ? [] : [name]));
  problems.distinct(names, "tools");
  for (const [index, tool] of tools.entries()) {
    const own = tool["type"] === undefined || tool["type"] === "custom";
    if (!own) continue;
    problems.matches(tool["name"], TOOL_NAME, `tools[${index}]`);
    problems.objectSchema(tool["input_schema"], `tools[${index}].input_schema`);
  }
  const uses = turns.some(({ content }) =>
    content.some(({ type }) => type === "tool_use" || type === "tool_result"),
  );
  problems.must(!uses || tools.length > 0, "tools", "must be there when messages have calls");
  const choice = body["tool_choice"];
  if (choice === undefined) return;
  const { name, type } = problems.fields(choice, "tool_choice");
  problems.must(tools.length > 0, "tool_choice", "only together with tools");
  problems.mustBeIn(type, ["auto", "any", "none", "tool"], "tool_choice");
  if (type === "tool") problems.mustBeIn(name, names, "tool_choice");
}

function checkThinking(problems: Problems, body: Fields, turns: readonly Turn[]): void {
  if (body["thinking"] === undefined) return;
  checkClaudeThinking(
    problems,
    { ...body, forced: ["any", "tool"].includes(String(toFields(body["tool_choice"])["type"])) },
    body["max_tokens"],
  );
  if (toFields(body["thinking"])["type"] !== "enabled") return;
  const last = turns.at(-1);
  // Anything else than results that the user says begins another turn.
  const inTurn =
    last?.role === "assistant" || last?.content.every(({ type }) => type === "tool_result");
  const answer = turns.findLast(({ role }) => role === "assistant");
  const begins = String(answer?.content[0]?.["type"]);
  const fits = !inTurn || !answer || THINKING.includes(begins);
  problems.must(fits, answer?.at ?? "", "the turn that goes on must begin with thinking");
}

/** What is said about thinking to a Claude model, here or behind another service. */
export function checkClaudeThinking(problems: Problems, body: Fields, limit: unknown): void {
  const thinking = problems.fields(body["thinking"], "thinking");
  problems.mustBeIn(thinking["type"], THINKING_TYPES, "thinking.type");
  if (thinking["type"] === "disabled") return;
  const heat = body["temperature"];
  problems.must(heat === undefined || heat === 1, "temperature", "not with thinking");
  problems.must(body["top_k"] === undefined, "top_k", "not with thinking");
  problems.must(body["forced"] !== true, "tool_choice", "cannot force a call with thinking");
  if (thinking["type"] !== "enabled") return;
  const budget = Number(thinking["budget_tokens"]);
  problems.must(budget >= MIN_BUDGET, "budget_tokens", `must be ${MIN_BUDGET} or more`);
  problems.must(budget < Number(limit), "budget_tokens", "must be less than max_tokens");
}

function checkEnd(problems: Problems, turns: readonly Turn[], model: string): void {
  for (const { at, content, role } of turns) {
    const end = String(content.at(-1)?.["type"]);
    const fits = role !== "assistant" || !THINKING.includes(end);
    problems.must(fits, at, "the last block must not be thinking");
  }
  const last = turns.at(-1);
  if (last?.role !== "assistant") return;
  const end = toFields(last.content.at(-1));
  if (end["type"] === "text") {
    problems.must(!/\s$/.test(String(end["text"])), last.at, "must not end in white space");
  }
  // A turn that the service paused ends in what it runs, and is not prefilled.
  const paused = last.content.some(({ type }) => SERVER_BLOCK.test(String(type)));
  problems.must(paused || takesPrefill(model), last.at, "the last must be of the user");
}

/** What newer Claude models refuse that the older ones take, here or behind another service. */
export function checkGeneration(
  problems: Problems,
  { output_config, temperature, thinking }: Fields,
  model: string,
  choice: unknown,
): void {
  const generation = parseGeneration(model);
  const type = toFields(thinking)["type"];
  const { effort } = toFields(output_config);
  const fits = temperature === undefined || generation < FIRST_WITHOUT_TEMPERATURE;
  problems.must(fits, "temperature", "this model has its own");
  const free = choice !== "any" && choice !== "tool";
  problems.must(free || generation < FIRST_WITHOUT_FORCED, "tool_choice", "cannot force a call");
  const known = effort !== "xhigh" || generation >= FIRST_WITH_XHIGH;
  problems.must(known, "output_config.effort", "this model has no xhigh");
  if (generation < FIRST_WITHOUT_BUDGET) return;
  problems.must(type !== "enabled", "thinking.type", "this model takes no budget");
  if (type === "disabled") problems.matches(model, TAKES_DISABLED, "thinking.type");
  if (type === "between_tools") problems.matches(model, /sonnet-5-5/, "thinking.type");
}

/**
 * Thinking that comes back fits only as long as nothing before it has changed, which a request cannot
 * show: newer models have to be asked to leave out what does not fit.
 */
export function checkBinding(
  problems: Problems,
  thinking: unknown,
  hasThinking: boolean,
  model: string,
): void {
  const { block_binding, type } = toFields(thinking);
  const binds = parseGeneration(model) >= FIRST_WITH_BINDING;
  const drops = toFields(block_binding)["prefix_mismatch_behavior"] === "drop_block";
  const fits = block_binding === undefined || (binds && type === "adaptive");
  problems.must(fits, "thinking.block_binding", "only with adaptive thinking of newer models");
  // Notes between calls are sent back, where the client knows that they fit.
  const mayFit = drops || type === "between_tools";
  problems.must(!hasThinking || !binds || mayFit, "thinking", "may not fit what is before it");
}

/** Whether a Claude model goes on with what the assistant is said to have begun. */
export function takesPrefill(model: string): boolean {
  return parseGeneration(model) < FIRST_WITHOUT_PREFILL;
}

/** 406 for a Claude 4.6. */
function parseGeneration(model: string): number {
  const [, major = "0", minor = "0"] =
    /claude-[a-z]+-(\d+)(?:[-.](\d{1,2}))?(?!\d)/.exec(model) ?? [];
  return Number(major) * 100 + Number(minor);
}

function checkCacheMarks(problems: Problems, body: Fields): void {
  let marks = 0;
  const look = (value: unknown, at: string): void => {
    if (Array.isArray(value)) {
      for (const item of value) look(item, at);
      return;
    }
    const fields = toFields(value);
    const mark = fields["cache_control"];
    if (mark !== undefined) {
      marks++;
      const { ttl, type } = problems.fields(mark, at);
      problems.mustBeIn(type, ["ephemeral"], at);
      problems.mustBeIn(ttl, CACHE_LIFETIMES, at);
      const kind = fields["type"] ?? "tool_use";
      problems.mustBeIn(kind, [...CACHED, "custom"], `${at} cache_control`);
    }
    if (fields["type"] === "tool_use") return;
    if (fields["content"] !== undefined) look(fields["content"], at);
  };
  look(body["tools"], "tools");
  look(body["system"], "system");
  look(body["messages"], "messages");
  problems.must(marks <= MAX_CACHE_MARKS, "cache_control", `more than ${MAX_CACHE_MARKS}`);
}

/** What the tests of all formats know of this one. */
export const fixture: FormatFixture = {
  check,
  models: [
    createModel("anthropic-messages", "anthropic", "claude-sonnet-4-5"),
    createModel("anthropic-messages", "anthropic", "claude-opus-4-6"),
    createModel("anthropic-messages", "anthropic", "claude-opus-5"),
    createModel("anthropic-messages", "anthropic", "claude-sonnet-5-5"),
  ],
  respond: (n, seal) => ({
    body: sse(
      { type: "message_start", message: { id: `msg_${n}`, content: [] } },
      ...[
        { type: "thinking", thinking: `Thought #${n}#`, signature: seal },
        { type: "text", text: `Said #${n}#` },
        { type: "tool_use", id: `toolu_${n}`, name: "read_file", input: { path: "a" } },
      ].flatMap((content_block, index) => [
        { type: "content_block_start", index, content_block },
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta: { stop_reason: "tool_use" } },
      { type: "message_stop" },
    ),
  }),
};
