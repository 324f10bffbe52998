import { sse } from "../../testing/fake-service.ts";
import { createModel, type FormatFixture } from "../testing/format-fixture.ts";
import {
  toFields,
  type Fields,
  isFields,
  toList,
  type Problems,
  requestCheck,
} from "../testing/problems.ts";

// "Generating content" and "Caching" (for Content and Part) in the Gemini API reference,
// "Function calling", "Thought signatures", "Thinking" and "Image understanding" in its
// guides; the order of turns, the service says in its errors.

const KEYS: ReadonlySet<string> = new Set([
  "contents",
  "systemInstruction",
  "tools",
  "toolConfig",
  "safetySettings",
  "generationConfig",
  "cachedContent",
  "labels",
  "serviceTier",
  "store",
]);
const CONFIG_KEYS: ReadonlySet<string> = new Set([
  "stopSequences",
  "responseMimeType",
  "responseSchema",
  "responseJsonSchema",
  "responseModalities",
  "candidateCount",
  "maxOutputTokens",
  "temperature",
  "topP",
  "topK",
  "seed",
  "presencePenalty",
  "frequencyPenalty",
  "responseLogprobs",
  "logprobs",
  "speechConfig",
  "thinkingConfig",
  "imageConfig",
  "mediaResolution",
]);
/** What a part holds: one of these. */
const DATA = [
  "text",
  "inlineData",
  "fileData",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
  "toolCall",
  "toolResponse",
];
const METADATA_KEYS = [
  "thought",
  "thoughtSignature",
  "partMetadata",
  "videoMetadata",
  "mediaResolution",
];
const MODEL_ONLY_KEYS = ["functionCall", "executableCode", "codeExecutionResult", "toolCall"];
const FUNCTION_NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/;
/** Placeholders accepted instead of a signature. */
const NO_SIGNATURES: readonly unknown[] = [
  "skip_thought_signature_validator",
  "context_engineering_is_the_way_to_go",
];
const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
/** "Document", "Audio" and "Video understanding". */
const MEDIA_TYPES = [
  ...IMAGE_TYPES,
  "application/pdf",
  "text/plain",
  ...["wav", "mp3", "mpeg", "aiff", "aac", "ogg", "flac"].map((type) => `audio/${type}`),
  ...["mp4", "mpeg", "mov", "quicktime", "avi", "x-flv", "mpg", "webm", "wmv", "3gpp"].map(
    (type) => `video/${type}`,
  ),
];
/** "Function calling with multimodal responses". */
const RESULT_TYPES = ["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"];
const MODES = ["AUTO", "ANY", "NONE", "VALIDATED"];
const LEVELS = ["MINIMAL", "LOW", "MEDIUM", "HIGH"];
/** From this generation on calls must be signed. */
const SIGNED_SINCE = 3;

/** A request to the Gemini API. `model` is the id in the address. */
const check = requestCheck((problems, body, model) => {
  problems.onlyKeys(body, KEYS, "body");
  const contents = problems.filled(body["contents"], "contents").map((content, index) => {
    const { parts, role } = problems.fields(content, `contents[${index}]`);
    const list = problems.filled(parts, `contents[${index}].parts`).map(toFields);
    return { role, parts: list, at: `contents[${index}]` };
  });
  for (const content of contents) {
    problems.mustBeIn(content.role, ["user", "model"], content.at);
    for (const part of content.parts) checkPart(problems, part, content);
  }
  problems.must(contents[0]?.role === "user", "contents", "the first must be of the user");
  problems.must(contents.at(-1)?.role === "user", "contents", "the last must be of the user");
  checkTurns(problems, contents);
  if (isSigning(model)) checkSignatures(problems, contents);
  const system = body["systemInstruction"];
  if (system !== undefined) problems.filled(toFields(system)["parts"], "systemInstruction");
  checkTools(problems, body);
  checkConfig(problems, body["generationConfig"]);
});

interface Content {
  role: unknown;
  parts: Fields[];
  at: string;
}

function checkPart(problems: Problems, part: Fields, { at, role }: Content): void {
  problems.onlyKeys(part, new Set([...DATA, ...METADATA_KEYS]), at);
  const held = DATA.filter((key) => part[key] !== undefined);
  problems.must(held.length === 1, at, `a part holds one thing, not ${held.length}`);
  const [kind = ""] = held;
  const signature = part["thoughtSignature"];
  const isModel = role === "model";
  problems.must(isModel || !MODEL_ONLY_KEYS.includes(kind), at, `${kind} is of models`);
  problems.must(!isModel || kind !== "functionResponse", at, "a model answers no call");
  problems.must(isModel || !("thought" in part), at, "only models think");
  if (signature !== undefined) {
    problems.must(isModel, at, "only models sign");
    if (!NO_SIGNATURES.includes(signature)) problems.base64(signature, `${at} signature`);
  }
  if (kind === "text") {
    const isFilled = problems.text(part["text"], at) !== "" || signature !== undefined;
    problems.must(isFilled, at, "text must not be empty");
  } else if (kind === "inlineData") checkInline(problems, part, MEDIA_TYPES, at);
  else if (kind === "fileData") checkFileData(problems, part, at);
  else if (kind === "functionCall") checkCall(problems, toFields(part["functionCall"]), at);
  else if (kind === "functionResponse") {
    checkResponse(problems, toFields(part["functionResponse"]), at);
  }
}

function checkFileData(problems: Problems, part: Fields, at: string): void {
  const { fileUri, mimeType } = problems.fields(part["fileData"], at);
  problems.matches(fileUri, /^(?:https|gs):\/\//, at);
  if (mimeType !== undefined) problems.matches(mimeType, /^\w+\/[\w.+-]+$/, at);
}

function checkInline(problems: Problems, part: Fields, types: readonly string[], at: string): void {
  const { data, mimeType } = problems.fields(part["inlineData"], at);
  problems.mustBeIn(mimeType, types, at);
  problems.base64(data, at);
}

function checkCall(problems: Problems, call: Fields, at: string): void {
  problems.matches(call["name"], FUNCTION_NAME, at);
  if (call["args"] !== undefined) problems.fields(call["args"], `${at} args`);
}

function checkResponse(problems: Problems, answer: Fields, at: string): void {
  problems.matches(answer["name"], FUNCTION_NAME, at);
  problems.fields(answer["response"], `${at} response`);
  for (const part of toList(answer["parts"]).map(toFields)) {
    checkInline(problems, part, RESULT_TYPES, at);
  }
}

/** Calls are answered by the next content: all of them, in one, with nothing else in it. */
function checkTurns(problems: Problems, contents: readonly Content[]): void {
  for (const [index, { at, parts, role }] of contents.entries()) {
    const before = contents[index - 1];
    const calls = before ? held(before, "functionCall") : [];
    const answers = held({ role, parts, at }, "functionResponse");
    problems.must(answers.length === calls.length, at, `${calls.length} calls were to be answered`);
    const alone = answers.length === 0 || answers.length === parts.length;
    problems.must(alone, at, "answers must be alone in their turn");
    for (const [place, answer] of answers.entries()) {
      const call = calls[place];
      problems.must(answer["name"] === call?.["name"], at, "answers another function");
      problems.must(answer["id"] === call?.["id"], at, "answers another call");
    }
    const calling = held({ role, parts, at }, "functionCall").length > 0;
    problems.must(!calling || before?.role === "user", at, "a call must follow a user's turn");
  }
  const ids = contents.flatMap((content) =>
    held(content, "functionCall").flatMap(({ id }) => (id === undefined ? [] : [id])),
  );
  problems.distinct(ids, "ids of calls");
}

function held({ parts }: Content, kind: string): Fields[] {
  return parts.map((part) => part[kind]).filter(isFields);
}

function isSigning(model: string): boolean {
  const generation = /gemini-(\d+(?:\.\d+)?)/.exec(model)?.[1];
  return generation !== undefined && Number(generation) >= SIGNED_SINCE;
}

/** In the turn that goes on, the first call of each step has to be signed. */
function checkSignatures(problems: Problems, contents: readonly Content[]): void {
  const begin = contents.findLastIndex(
    (content) => content.role === "user" && held(content, "functionResponse").length === 0,
  );
  for (const { at, parts } of contents.slice(begin + 1)) {
    const call = parts.find(({ functionCall }) => functionCall !== undefined);
    const signed = !call || call["thoughtSignature"] !== undefined;
    problems.must(signed, at, "the first call of a step must be signed");
  }
}

function checkTools(problems: Problems, body: Fields): void {
  const declared = toList(body["tools"]).flatMap((tool) =>
    toList(toFields(tool)["functionDeclarations"]).map(toFields),
  );
  const names = declared.map(({ name }) => name);
  problems.distinct(names, "functionDeclarations");
  for (const { name, parameters, parametersJsonSchema } of declared) {
    const at = `functionDeclarations ${String(name)}`;
    problems.matches(name, FUNCTION_NAME, at);
    const both = parameters !== undefined && parametersJsonSchema !== undefined;
    problems.must(!both, at, "parameters are declared twice");
    if (parametersJsonSchema !== undefined) problems.objectSchema(parametersJsonSchema, at, []);
  }
  const config = toFields(body["toolConfig"])["functionCallingConfig"];
  if (config === undefined) return;
  const { allowedFunctionNames: allowed, mode } = problems.fields(config, "toolConfig");
  if (mode !== undefined) problems.mustBeIn(mode, MODES, "toolConfig");
  problems.must(declared.length > 0, "toolConfig", "only together with functions");
  if (allowed === undefined) return;
  problems.mustBeIn(mode, ["ANY", "VALIDATED"], "allowedFunctionNames");
  for (const name of toList(allowed)) problems.mustBeIn(name, names, "allowedFunctionNames");
}

function checkConfig(problems: Problems, value: unknown): void {
  if (value === undefined) return;
  const config = problems.fields(value, "generationConfig");
  problems.onlyKeys(config, CONFIG_KEYS, "generationConfig");
  if (config["thinkingConfig"] === undefined) return;
  const { thinkingBudget, thinkingLevel } = problems.fields(config["thinkingConfig"], "thinking");
  const both = thinkingBudget !== undefined && thinkingLevel !== undefined;
  problems.must(!both, "thinkingConfig", "has both a budget and a level");
  if (thinkingLevel !== undefined) {
    problems.mustBeIn(
      problems.text(thinkingLevel, "thinkingLevel").toUpperCase(),
      LEVELS,
      "thinkingLevel",
    );
  }
}

/** What the tests of all formats know of this one. */
export const fixture: FormatFixture = {
  check,
  models: [
    createModel("google-generative-ai", "google", "gemini-3-pro-preview"),
    createModel("google-generative-ai", "google", "gemini-2.5-flash"),
  ],
  respond: (n, seal) => ({
    body: sse({
      responseId: `r${n}`,
      candidates: [
        {
          content: {
            parts: [
              { text: `Thought #${n}#`, thought: true },
              { text: `Said #${n}#` },
              { functionCall: { name: "read_file", args: {} }, thoughtSignature: seal },
            ],
          },
          finishReason: "STOP",
        },
      ],
    }),
  }),
};
