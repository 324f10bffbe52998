import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../client/client.ts";
import type {
  AssistantContent,
  Context,
  FileContent,
  Message,
  Model,
  StopReason,
  Tool,
  ToolCall,
  UserContent,
} from "../messages/messages.ts";
import {
  fakeService,
  sendRequest,
  createAnswers,
  createResult,
  createPrompt,
} from "../testing/fake-service.ts";
import { createModel } from "./testing/format-fixture.ts";
import { findFormat, FORMATS } from "./testing/formats.ts";
import { requestCheckFor } from "./testing/request-checks.ts";
import { validateTranscript } from "../messages/transcript.ts";
import { hasFeature } from "./services/claude-models.ts";
import { toWellFormed } from "../messages/transform-messages.ts";
import { countCases } from "../../../../tests/support/cases.ts";

/** How many transcripts for each property and model. */
const RUNS = countCases(15, 60, "GYRE_RUNS");

const TARGETS: readonly Model[] = FORMATS.flatMap(({ models }) => models);
/** The format whose blocks and signatures a model has. */
function findShape(model: Model): string {
  const format = FORMATS.find(({ api }) => api === model.api);
  return format?.findShape?.(model) ?? model.api;
}

const ELSEWHERE = createModel("elsewhere", "elsewhere", "another");
const AUTHORS: readonly Model[] = [
  ...TARGETS,
  createModel("openai-completions", "gateway", "gemini-3-flash"),
  ELSEWHERE,
];

const TOOLS: readonly Tool[] = [
  {
    name: "read_file",
    description: "Reads a file",
    parameters: { type: "object", properties: { path: { type: "string" } } },
  },
  { name: "edit", description: "", parameters: { type: "object", properties: {} } },
];

// What a transcript is made of: a plan, of which a number makes every piece one of its kind.

const TEXTS: Readonly<Record<string, (n: number) => string>> = {
  plain: (n) => `Words #${n}#`,
  empty: () => "",
  blank: () => " \n\t",
  half: (n) => `\udc00half \ud83d of #${n}#`,
  emoji: (n) => `👩‍🚀 日本 #${n}#`,
  spaced: (n) => `  spaced #${n}# \n\n`,
  quoted: (n) => `{"a": "\\ud83d #${n}#"}\u2028</text>`,
  huge: (n) => `long #${n}# ${"and on ".repeat(400)}`,
};

const IDS: Readonly<Record<string, (n: number) => string>> = {
  anthropic: (n) => `toolu_${n}`,
  responses: (n) => `call_${n}|fc_${n}`,
  nine: (n) => `c${String(n).padStart(8, "0")}`,
  long: (n) => `${"long-".repeat(40)}${n}`,
  longer: (n) => `${n}${"-long".repeat(13)}`,
  unicode: (n) => `ид-${n}-\ud83d`,
  blank: (n) => " ".repeat(n + 1),
  alike: (n) => `same${".:/|"[n % 4]}${n >> 2}`,
  /** There can be only one. */
  none: () => "",
  dashed: (n) => `chatcmpl-tool-${n}`,
};

const NAMES = [
  "read_file",
  "edit",
  "search",
  "functions.read",
  "read file",
  "",
  "1st",
  "é",
  "x".repeat(90),
];

const ARGUMENTS: readonly Record<string, unknown>[] = [
  {},
  { path: "a.txt", lines: [1, 2, { from: null }] },
  { "half \ud83d": "half \udc00", deep: [{ "\udfff": ["\ud800"] }] },
  { text: '"quoted" \\ud83d 👩‍🚀', number: 1e21 },
];

const IMAGES = [
  { mimeType: "image/png", data: "aVBO" },
  { mimeType: "image/jpeg", data: "/9j/AA==" },
  { mimeType: "image/gif", data: "R0lG" },
  { mimeType: "image/svg+xml", data: "PHN2Zz4=" },
  { mimeType: "image/heic", data: "AAAA" },
  { mimeType: "image/png", data: "" },
];

const FILES: readonly FileContent[] = [
  { type: "file", mediaType: "text/markdown", name: "a \ud83d.md", source: data("VGVh") },
  { type: "file", mediaType: "image/png", source: data("aVBO") },
  { type: "file", mediaType: "image/bmp", source: data("aVBO") },
  { type: "file", mediaType: "application/pdf", name: "(1)  a_b.pdf", source: data("JVBERg==") },
  { type: "file", mediaType: "application/pdf", source: { type: "url", url: "https://a.test/" } },
  { type: "file", mediaType: "image/*", source: { type: "id", id: "f", service: "nowhere" } },
  { type: "file", mediaType: "audio/mpeg", name: "", source: data("AAAA") },
  { type: "file", mediaType: "video/mp4", source: data("") },
  { type: "file", mediaType: "application/zip", source: data("UEsD") },
  {
    type: "file",
    mediaType: "application/pdf",
    source: { type: "stored", sha256: "a".repeat(64), size: 1 },
  },
];

function data(base64: string): FileContent["source"] {
  return { type: "base64", data: base64 };
}

const pickFrom = <T>(items: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...items);
const textKind = fc.oneof(
  { weight: 3, arbitrary: fc.constant("plain") },
  { weight: 5, arbitrary: pickFrom(Object.keys(TEXTS)) },
);
const nameKind = fc.oneof(
  { weight: 6, arbitrary: pickFrom(NAMES.slice(0, 3)) },
  { weight: 1, arbitrary: pickFrom(NAMES) },
);
const userBlocks = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ text: textKind }) },
    { weight: 1, arbitrary: fc.record({ image: pickFrom(IMAGES) }) },
    { weight: 1, arbitrary: fc.record({ file: pickFrom(FILES) }) },
  ),
  { maxLength: 3 },
);
const blockPlan = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant("text"), text: textKind, signed: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("thinking"),
      text: textKind,
      form: pickFrom(["signed", "unsigned", "redacted", "long", "summary"]),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("toolCall"),
      id: pickFrom(Object.keys(IDS)),
      name: nameKind,
      given: pickFrom(ARGUMENTS),
      signed: fc.boolean(),
      broken: fc.boolean(),
      result: userBlocks,
      isError: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("service"), form: pickFrom(["pair", "use", "bare"]) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("image"),
      image: pickFrom(IMAGES.slice(0, 2)),
      signed: fc.boolean(),
    }),
  },
);
type BlockPlan = typeof blockPlan extends fc.Arbitrary<infer T> ? T : never;
type UserPlan = typeof userBlocks extends fc.Arbitrary<infer T> ? T : never;

const userPlan = fc.record({ whole: fc.boolean(), blocks: userBlocks });
const answerPlan = (target: Model): fc.Arbitrary<AnswerPlan> =>
  fc.record({
    by: fc.oneof(
      { weight: 2, arbitrary: fc.constant(target) },
      { weight: 3, arbitrary: pickFrom(AUTHORS) },
    ),
    blocks: fc.oneof(
      fc.array(blockPlan, { minLength: 1, maxLength: 1 }),
      fc.array(blockPlan, { minLength: 1, maxLength: 4 }),
    ),
    failure: fc.option(pickFrom(["length", "error", "aborted"] as const), { freq: 3 }),
    shuffled: fc.boolean(),
  });

interface AnswerPlan {
  by: Model;
  blocks: BlockPlan[];
  failure: StopReason | null;
  shuffled: boolean;
}

/** Why a message that is sent as the last one ended: one service knows a word for it. */
function findPause({ api }: Model): StopReason {
  return api === "anthropic-messages" ? "pause" : "stop";
}

/** What may be left out of a request, or is thinking that is left out where it comes last. */
function isFleeting(plan: BlockPlan): boolean {
  return plan.type === "thinking" || ("text" in plan && ["empty", "blank"].includes(plan.text));
}

/** A valid transcript, and what is in it that must, or must not, be found in a request. */
interface Transcript {
  messages: Message[];
  /** Signatures: what only `by` can read. `kept`: `by` has to get it back. */
  seals: { by: Model; token: string; kept: boolean }[];
  /** Texts that may not get lost on the way to another model; `by` may leave out its own. */
  texts: { by: Model | undefined; text: string }[];
}

function transcriptFor(target: Model): fc.Arbitrary<Transcript> {
  const step = fc.oneof(
    { weight: 2, arbitrary: userPlan },
    { weight: 3, arbitrary: answerPlan(target) },
  );
  return fc
    .record({
      before: fc.array(step, { maxLength: 5 }),
      user: userPlan,
      after: fc.array(step, { maxLength: 3 }),
    })
    .map(({ before, user, after }) => new Writer().write([...before, user, ...after]));
}

/** Writes a transcript by its plan. Signatures are of the shape that each format's reader makes. */
class Writer {
  #count = 0;
  /** A call without an id was written. */
  #unnamed = false;
  readonly #transcript: Transcript = { messages: [], seals: [], texts: [] };

  write(plan: readonly (AnswerPlan | { whole: boolean; blocks: UserPlan })[]): Transcript {
    for (const [index, step] of plan.entries()) {
      if ("by" in step) this.#answer(step, index === plan.length - 1);
      else this.#user(step.whole, step.blocks);
    }
    return this.#transcript;
  }

  #user(whole: boolean, plan: UserPlan): void {
    // A file that is asked about and not taken is an error; in results it never is.
    const sent = plan.filter((block) => !("file" in block) || block.file === FILES[0]);
    const content = this.#userContent(sent);
    const [first] = content;
    const isText = whole && content.length === 1 && first?.type === "text";
    const message: Message = { role: "user", content: isText ? first.text : content, timestamp: 0 };
    if (validateTranscript([message]).length > 0) message.content = this.#text("plain", undefined);
    this.#transcript.messages.push(message);
  }

  #userContent(plan: UserPlan): UserContent[] {
    return plan.map((block) => {
      if ("file" in block) return block.file;
      return "text" in block
        ? { type: "text", text: this.#text(block.text, undefined) }
        : { type: "image", ...block.image };
    });
  }

  #answer({ by, blocks, failure, shuffled }: AnswerPlan, isLast: boolean): void {
    const results: Message[] = [];
    const content = blocks.flatMap((plan, index) => {
      const ends = blocks.slice(index).every(isFleeting);
      return this.#block(plan, by, ends, results);
    });
    const calls = content.some(({ type }) => type === "toolCall");
    const usual = calls ? "toolUse" : "stop";
    const reason = isLast && !calls ? findPause(by) : (failure ?? usual);
    const message = createAnswers(by)(content, { stopReason: reason });
    if (content.every((block) => block.type === "text" && block.text === "")) {
      content.push({ type: "text", text: this.#text("plain", by) });
    }
    this.#transcript.messages.push(message, ...(shuffled ? results.reverse() : results));
  }

  #text(kind: string, by: Model | undefined): string {
    const text = TEXTS[kind]?.(this.#count++) ?? "";
    if (text.trim() !== "") this.#transcript.texts.push({ by, text });
    return text;
  }

  #token(by: Model, kept = true): string {
    const token = btoa(
      `sealed ${String(this.#count++).padStart(6, "0")} ${"x".repeat(this.#count % 3)}`,
    );
    this.#transcript.seals.push({ by, token, kept });
    return token;
  }

  #block(plan: BlockPlan, by: Model, ends: boolean, results: Message[]): AssistantContent[] {
    switch (plan.type) {
      case "text": {
        const { isFilled, text } = this.#textAndState(plan.text, by);
        const signature = plan.signed ? this.#textSignature(by, isFilled) : undefined;
        return [{ type: "text", text, ...(signature !== undefined && { signature }) }];
      }
      case "thinking":
        return [this.#thinking(plan, by, ends)];
      case "toolCall":
        return [this.#call(plan, by, results)];
      case "service":
        return this.#service(plan.form, by);
      default: {
        const { image, signed } = plan;
        const isSigned = signed && findShape(by) === "google-generative-ai";
        return [{ type: "image", ...image, ...(isSigned && { signature: this.#token(by) }) }];
      }
    }
  }

  #textAndState(kind: string, by: Model): { text: string; isFilled: boolean } {
    const text = this.#text(kind, by);
    return { text, isFilled: text.trim() !== "" };
  }

  #textSignature(by: Model, isFilled: boolean): string | undefined {
    switch (findShape(by)) {
      case "google-generative-ai":
        return this.#token(by);
      case "anthropic-messages":
        return JSON.stringify([
          {
            type: "web_search_result_location",
            cited_text: "x",
            encrypted_index: this.#token(by, isFilled),
          },
        ]);
      case "bedrock-converse-stream":
        return JSON.stringify([{ title: this.#token(by, isFilled), location: {} }]);
      case "openai-responses":
        return JSON.stringify({ id: `msg_${this.#count++}`, phase: "commentary" });
      default:
        return undefined;
    }
  }

  #thinking(
    { form, text: kind }: Extract<BlockPlan, { form: unknown; text: unknown }>,
    by: Model,
    ends: boolean,
  ): AssistantContent {
    const redacted = form === "redacted" && findShape(by) !== "ollama";
    const text = redacted ? "" : (TEXTS[kind]?.(this.#count++) ?? "");
    const signature =
      form === "unsigned" ? undefined : this.#thinkingSignature(form, text, by, ends);
    if (text.trim() !== "") this.#transcript.texts.push({ by, text });
    return {
      type: "thinking",
      thinking: text,
      ...(signature !== undefined && { signature }),
      ...(redacted && signature !== undefined && { redacted }),
    };
  }

  #thinkingSignature(form: string, text: string, by: Model, ends: boolean): string | undefined {
    switch (findShape(by)) {
      case "anthropic-messages":
      case "bedrock-converse-stream":
        return this.#token(by, !ends);
      case "google-generative-ai":
        return this.#token(by);
      case "openai-responses": {
        const id = `rs_${this.#count++}${form === "long" ? "x".repeat(400) : ""}`;
        const summary = text === "" ? [] : [{ type: "summary_text", text }];
        const sealed = form !== "summary" && { encrypted_content: this.#token(by, false) };
        return JSON.stringify({ id, type: "reasoning", summary, ...sealed });
      }
      case "openai-completions": {
        if (by.provider !== "openrouter") return undefined;
        const sealed = { type: "reasoning.encrypted", data: this.#token(by, false), index: 1 };
        return JSON.stringify([
          ...(text === "" ? [] : [{ type: "reasoning.text", text, index: 0 }]),
          sealed,
        ]);
      }
      default:
        return undefined;
    }
  }

  #call(plan: Extract<BlockPlan, { given: unknown }>, by: Model, results: Message[]): ToolCall {
    const id = IDS[plan.id === "none" && this.#unnamed ? "dashed" : plan.id]?.(this.#count++) ?? "";
    if (id === "") this.#unnamed = true;
    const { broken, name } = plan;
    const signature = plan.signed ? this.#callSignature(by) : undefined;
    results.push({
      role: "toolResult",
      toolCallId: id,
      toolName: name,
      content: this.#userContent(plan.result),
      isError: plan.isError,
      timestamp: 0,
    });
    return {
      type: "toolCall",
      id,
      name,
      arguments: broken ? {} : plan.given,
      ...(broken && { rawArguments: '{"a', argumentsError: "It ends early." }),
      ...(signature !== undefined && { signature }),
    };
  }

  #callSignature(by: Model): string | undefined {
    if (findShape(by) === "google-generative-ai") return this.#token(by);
    if (findShape(by) === "openai-responses") return `fc_${this.#count++}`;
    if (by.provider !== "gateway") return undefined;
    return JSON.stringify({ google: { thought_signature: this.#token(by) } });
  }

  #service(form: string, by: Model): AssistantContent[] {
    const n = this.#count++;
    const input = { query: `about ${n}` };
    const type = "serviceTool";
    if (form === "bare") return [{ type, id: `s${n}`, name: "web_search", input, output: "Found" }];
    switch (findShape(by)) {
      case "anthropic-messages": {
        const id = `srvtoolu_${n}`;
        const use = { type: "server_tool_use", id, name: "web_search", input };
        const output = [{ type: "web_search_result", encrypted_content: this.#token(by, false) }];
        const result = { type: "web_search_tool_result", tool_use_id: id, content: output };
        const blocks: AssistantContent[] = [
          { type, id, name: "web_search", input, raw: use },
          { type, id, name: "web_search", output, raw: result },
        ];
        return form === "pair" ? blocks : blocks.slice(0, 1);
      }
      case "bedrock-converse-stream": {
        const use = { toolUseId: `srv_${n}`, name: "nova_grounding", type: "server_tool_use" };
        const content = [{ text: "Found" }];
        const result = { toolUseId: `srv_${n}`, type: "nova_grounding_result", content };
        return [
          { type, id: use.toolUseId, name: use.name, input, raw: { toolUse: { ...use, input } } },
          { type, id: use.toolUseId, name: use.name, output: content, raw: { toolResult: result } },
        ];
      }
      case "google-generative-ai": {
        const code = { language: "PYTHON", code: `print(${n})` };
        const raw = { executableCode: code, thoughtSignature: this.#token(by) };
        const outcome = { outcome: "OUTCOME_OK", output: `${n}` };
        return [
          { type, id: `code_${n}`, name: "code_execution", input: code, raw },
          {
            type,
            id: `code_${n}`,
            name: "code_execution",
            output: outcome,
            raw: { codeExecutionResult: outcome },
          },
        ];
      }
      case "openai-responses": {
        const id = `ws_${n}`;
        const kind = form === "use" ? "shell_call" : "web_search_call";
        const raw = { type: kind, id, status: "completed", action: input };
        return [{ type, id, name: "web_search", input, raw }];
      }
      case "elsewhere":
      case "ollama":
      case "openai-completions":
        return [
          { type, id: `search_${n}`, name: "search", input, raw: { type: "search", index: 0 } },
        ];
      default:
        return [{ type, id: `search_${n}`, name: "search", input, output: "Found" }];
    }
  }
}

const optionsPlan: fc.Arbitrary<StreamOptions> = fc
  .record({
    thinkingLevel: pickFrom(["off", "minimal", "low", "medium", "high", "xhigh"] as const),
    cacheRetention: pickFrom(["none", "short", "long"] as const),
    toolChoice: pickFrom([undefined, "auto", "none", "required", { name: "read_file" }] as const),
    maxTokens: pickFrom([undefined, 10, 5_000, 60_000]),
    temperature: pickFrom([undefined, 0.5]),
    thinkingBudgets: pickFrom([undefined, { low: 1, high: 100_000 }]),
    sessionId: pickFrom([undefined, "one", "s".repeat(100)]),
  })
  .map(({ toolChoice, maxTokens, temperature, thinkingBudgets, sessionId, ...options }) => ({
    ...options,
    ...(thinkingBudgets !== undefined && { thinkingBudgets }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(sessionId !== undefined && { sessionId }),
  }));
const contextPlan: fc.Arbitrary<Partial<Context>> = fc.record(
  { tools: fc.constant(TOOLS), systemPrompt: pickFrom(["Be brief.", " ", "half \ud83d"]) },
  { requiredKeys: [] },
);

type Body = Record<string, unknown>;

/** The body that is really sent. */
async function bodyFor(
  model: Model,
  context: Partial<Context>,
  options: StreamOptions = {},
): Promise<Body> {
  const { create } = findFormat(model.api);
  const { message, request } = await sendRequest(create, model, fakeService(""), context, options);
  expect(message.stopReason, message.errorMessage).toBe("error");
  return request.body;
}

function isBy(by: Model | undefined, model: Model): boolean {
  return by?.api === model.api && by.provider === model.provider && by.id === model.id;
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const item of Object.values(value)) deepFreeze(item);
  return Object.freeze(value);
}

function stringsIn(value: unknown, found: string[] = []): string[] {
  if (typeof value === "string") found.push(value);
  else if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) stringsIn(item, found);
  }
  return found;
}

/** Every value under a key, in order. */
function valuesAt(value: unknown, key: string, found: unknown[] = []): unknown[] {
  if (typeof value !== "object" || value === null) return found;
  for (const [name, item] of Object.entries(value)) {
    if (name === key) found.push(item);
    else valuesAt(item, key, found);
  }
  return found;
}

const LISTS = ["messages", "contents", "input"];

function wireMessages(body: Body): Body[] {
  const list = LISTS.map((key) => body[key]).find(Array.isArray) ?? [];
  return list as Body[];
}

/** Calls and results in a request, each in order; nothing where the format sends no ids. */
interface WireCalls {
  calls: string[];
  results: { id: string; strings: string[] }[];
}

function idAt(call: Body, key: string): string {
  const id = call[key];
  return typeof id === "string" ? id : "";
}

function callsIn(body: Body, model: Model): WireCalls | undefined {
  const { id, provider } = model;
  const messages = wireMessages(body);
  const blocks = messages.flatMap((item) =>
    Array.isArray(item["content"]) ? (item["content"] as Body[]) : [item],
  );
  const found = (calls: Body[], key: string, results: Body[], resultKey: string): WireCalls => ({
    calls: calls.map((call) => idAt(call, key)),
    results: results.map((result) => ({ id: idAt(result, resultKey), strings: stringsIn(result) })),
  });
  const ofType = (type: string): Body[] => blocks.filter((block) => block["type"] === type);
  const under = (key: string): Body[] => valuesAt(messages, key) as Body[];
  const ours = (use: Body): boolean => use["type"] === undefined;
  switch (findShape(model)) {
    case "anthropic-messages":
      return found(ofType("tool_use"), "id", ofType("tool_result"), "tool_use_id");
    case "openai-responses":
      return found(ofType("function_call"), "call_id", ofType("function_call_output"), "call_id");
    case "bedrock-converse-stream": {
      const results = under("toolResult").filter(ours);
      return found(under("toolUse").filter(ours), "toolUseId", results, "toolUseId");
    }
    case "google-generative-ai":
      if (id.includes("gemini-2")) return undefined;
      return found(under("functionCall"), "id", under("functionResponse"), "id");
    case "ollama":
    case "openai-completions": {
      if (provider === "perplexity") return undefined;
      const results = messages.filter(({ role }) => role === "tool");
      return found(under("tool_calls").flat(), "id", results, "tool_call_id");
    }
    default:
      return undefined;
  }
}

function callIds(messages: readonly Message[]): string[] {
  return messages.flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []))
      : [],
  );
}

/** A turn of its own with one call. */
function turnWith(id: string): Message[] {
  const call: ToolCall = { type: "toolCall", id, name: "edit", arguments: {} };
  return [
    createPrompt("Edit"),
    createAnswers(ELSEWHERE)([call], { stopReason: "toolUse" }),
    createResult(id, [], { toolName: "edit" }),
  ];
}

/** The messages of a request without marks for caches, each as its role and its parts. */
function comparable(body: Body): { rest: string; parts: unknown[] }[] {
  return wireMessages(body)
    .filter(({ role }) => role !== "system" && role !== "developer")
    .map((message) => {
      const { content, parts, ...rest } = message;
      const list = parts ?? content;
      const all =
        typeof list === "string" ? [{ type: "text", text: list }] : ((list ?? []) as Body[]);
      return {
        rest: JSON.stringify(rest),
        parts: all.filter((part) => !("cachePoint" in part)).map(withoutMark),
      };
    });
}

function withoutMark(part: Body): Body {
  const { cache_control: _, ...rest } = part;
  return rest;
}

function textOfPart(part: unknown): string | undefined {
  const { text } = part as { text?: unknown };
  return typeof text === "string" ? text : undefined;
}

/** Whether a message is the same, or was only added to at its end. */
function goesOn(
  before: { rest: string; parts: unknown[] },
  after: typeof before | undefined,
): boolean {
  if (!after || before.rest !== after.rest) return false;
  return before.parts.every((part, index) => {
    const now = after.parts[index];
    if (JSON.stringify(part) === JSON.stringify(now)) return true;
    const text = textOfPart(part);
    return (
      index === before.parts.length - 1 && text !== undefined && !!textOfPart(now)?.startsWith(text)
    );
  });
}

describe.each(TARGETS)("any transcript for $provider $id over $api", { tags: "long" }, (target) => {
  const check = requestCheckFor(target);
  const transcript = transcriptFor(target);

  it("is what the generator says: valid", () => {
    fc.assert(
      fc.property(transcript, ({ messages }) => {
        expect(validateTranscript(messages)).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it("is taken by the service, and left as it was", async () => {
    await fc.assert(
      fc.asyncProperty(
        transcript,
        contextPlan,
        optionsPlan,
        async ({ messages }, context, options) => {
          const asked = deepFreeze({ ...context, messages });
          const { toolChoice, ...rest } = options;
          const chosen = { ...rest, ...(context.tools && toolChoice && { toolChoice }) };
          const body = await bodyFor(target, asked, chosen);
          expect(check(body, target.id)).toEqual([]);
          expect(Number(body["max_tokens"] ?? 0)).toBeLessThanOrEqual(target.maxTokens ?? 0);
          expect(JSON.stringify(await bodyFor(target, asked, chosen))).toBe(JSON.stringify(body));
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("keeps signatures to those who made them, and every text", async () => {
    await fc.assert(
      fc.asyncProperty(transcript, async ({ messages, texts, seals }) => {
        // Thinking that is bound to what was before it goes back only where thinking is on.
        const body = await bodyFor(target, { messages }, { thinkingLevel: "high" });
        const strings = stringsIn(body);
        for (const { by, kept, token } of seals) {
          const found = strings.some((text) => text.includes(token));
          if (!isBy(by, target)) expect(found, `${token} of ${by.id}`).toBe(false);
          else if (kept) expect(strings, `${token} of its own`).toContain(token);
        }
        for (const { by, text } of texts) {
          if (isBy(by, target)) continue;
          const words = toWellFormed(text).trim();
          expect(
            strings.some((string) => string.includes(words)),
            words,
          ).toBe(true);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("keeps ids one-to-one, and each result with its call", async () => {
    await fc.assert(
      fc.asyncProperty(transcript, fc.boolean(), async ({ messages: given }, first) => {
        const before = callsIn(await bodyFor(target, { messages: given }), target);
        // Another call may have the very id that stands for one that did not fit.
        const stranger = before?.calls.find((id) => !callIds(given).includes(id));
        const turn = stranger === undefined ? [] : turnWith(stranger);
        const messages = first ? [...turn, ...given] : [...given, ...turn];
        const found = callsIn(await bodyFor(target, { messages }), target);
        if (!found) return;
        const calls = callIds(messages);
        expect(found.calls).toHaveLength(calls.length);
        expect(new Set(found.calls).size).toBe(calls.length);
        expect(found.results.map(({ id }) => id)).toEqual(found.calls);
        for (const message of messages) {
          if (message.role !== "toolResult") continue;
          const wireId = found.calls[calls.indexOf(message.toolCallId)];
          const strings = found.results.find(({ id }) => id === wireId)?.strings ?? [];
          for (const block of message.content) {
            if (block.type !== "text") continue;
            const words = toWellFormed(block.text).trim();
            expect(
              strings.some((string) => string.includes(words)),
              words,
            ).toBe(true);
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("is written the same when it goes on", async () => {
    await fc.assert(
      fc.asyncProperty(transcript, fc.nat(), async ({ messages }, at) => {
        const cuts = messages
          .map((_, index) => messages.slice(0, index + 1))
          .filter(
            (part) => validateTranscript(part).length === 0 && part.at(-1)?.role !== "assistant",
          );
        const part = cuts[at % Math.max(1, cuts.length)];
        if (!part) return;
        const before = comparable(await bodyFor(target, { messages: part, tools: TOOLS }));
        const after = comparable(await bodyFor(target, { messages, tools: TOOLS }));
        for (const [index, message] of before.entries()) {
          if (index < before.length - 1) expect(after[index]).toEqual(message);
          else expect(goesOn(message, after[index]), `message ${index}`).toBe(true);
        }
      }),
      { numRuns: RUNS },
    );
  });
});

describe("a conversation that goes from service to service and back", { tags: "long" }, () => {
  it("is taken by each, and brings each its own signatures back", async () => {
    const hops = fc
      .array(pickFrom(TARGETS), { minLength: 2, maxLength: 3 })
      .chain((models) => fc.array(pickFrom(models), { minLength: 3, maxLength: 6 }));
    await fc.assert(
      fc.asyncProperty(hops, optionsPlan, async (models, options) => {
        const messages: Message[] = [createPrompt("Begin")];
        const seals: { by: Model; seal: string }[] = [];
        for (const [n, model] of models.entries()) {
          const seal = btoa(`sealed hop ${n};`);
          const { create, respond } = findFormat(model.api);
          const context = deepFreeze({ messages: [...messages], tools: TOOLS });
          const { message, request } = await sendRequest(
            create,
            model,
            fakeService(respond(n, seal, model)),
            context,
            options,
          );
          expect(message.stopReason, message.errorMessage).toBe("toolUse");
          expect(requestCheckFor(model)(request.body, model.id)).toEqual([]);
          const sent = JSON.stringify(request.body);
          // Notes between calls are sent back: nothing before them changes here.
          const mayFit = ["drop_block", "between_tools"].some((word) => sent.includes(word));
          const withheld = hasFeature(model, "bindsThinking") && !mayFit;
          for (const { by, seal: earlier } of seals) {
            expect(sent.includes(earlier), `${earlier} of ${by.id}`).toBe(
              isBy(by, model) && !withheld,
            );
          }
          for (let past = 0; past < n; past++) expect(sent).toContain(`Said #${past}#`);
          if (JSON.stringify(message).includes(seal)) seals.push({ by: model, seal });
          const call = message.content.find((block) => block.type === "toolCall");
          const read: UserContent[] = [{ type: "text", text: `Read #${n}#` }];
          messages.push(message, createResult(call?.id ?? "", read, { toolName: "read_file" }));
        }
        expect(validateTranscript(messages)).toEqual([]);
      }),
      { numRuns: 5 * RUNS },
    );
  });
});
