import {
  addImage,
  blocks,
  choice,
  readImage,
  isRecord,
  type Json,
  modelIn,
  parsed,
  record,
  records,
  seal,
  string,
  SYSTEM_PARTS,
  joinTexts,
  type RequestToolChoice,
  type RequestImage,
  readTool,
  Turns,
} from "./parts.ts";

/**
 * What a request sends to a model, whichever format it is written in: enough of it to say
 * it again in another way, and to compare two requests that ought to say the same.
 */
export interface ModelRequest {
  model: string;
  system: string;
  /** Where the system prompt stands: a field's name, or the role of a message. */
  systemAs: string;
  /** The first turn may be either's; two turns of one role never follow each other. */
  turns: RequestTurn[];
  tools: RequestTool[];
  /** Types of the tools that the service itself runs. */
  serviceTools: string[];
  /** Absent: the model may choose. */
  toolChoice?: RequestToolChoice;
  /** The request asks for thinking, or for thinking that is sealed. */
  thinks: boolean;
}

export interface RequestTurn {
  role: "user" | "assistant";
  texts: RequestText[];
  images: RequestImage[];
  thinking: RequestThinking[];
  calls: RequestCall[];
  results: RequestResult[];
  /** Blocks of tools that the service ran. */
  service: Json[];
  /** Kinds of what is there too and has no place here: documents, sounds. */
  other: string[];
}

/** A seal is what the service wants back beside it, unread: a signature, citations. */
export interface RequestText {
  text: string;
  seal?: string;
}

export interface RequestThinking extends RequestText {
  /** All of it, where text and seal are only a part. */
  raw?: unknown;
  redacted?: boolean;
}

export interface RequestCall {
  /** Empty where the format has none. */
  id: string;
  name: string;
  arguments: unknown;
  seal?: string;
}

export interface RequestResult {
  id: string;
  name?: string;
  text: string;
  images: RequestImage[];
  isError: boolean;
}

export interface RequestTool {
  name: string;
  description: string;
  parameters: Json;
}

/** Reads a request; `path` is where it went, which names the model where the body does not. */
type RequestReader = (body: Json, path: string) => ModelRequest;

const READERS: Readonly<Record<string, RequestReader>> = {
  "anthropic-messages": readAnthropic,
  "openai-completions": readChat,
  "openai-responses": readResponses,
  "google-generative-ai": readGoogle,
  "bedrock-converse-stream": readBedrock,
  "bedrock-invoke-stream": readBedrock,
  ollama: readChat,
};

/** What a request in one of our API formats sends. Throws where there is no reader for it. */
export function readRequest(api: string, body: Json, path: string): ModelRequest {
  // Bedrock's other operation takes the format of the model's maker.
  const format = "anthropic_version" in body ? "anthropic-messages" : api;
  const reader = READERS[format];
  if (!reader) throw new Error(`There is no reader for requests of "${api}".`);
  return reader(body, path);
}

function readAnthropic(body: Json, path: string): ModelRequest {
  const turns = new Turns();
  for (const { role, content } of records(body["messages"])) {
    const turn = turns.of(role === "assistant" ? "assistant" : "user");
    for (const block of blocks(content)) readAnthropicBlock(turn, block);
  }
  const tools = records(body["tools"]);
  const { type, name } = record(body["tool_choice"]);
  return {
    model: modelIn(body, path),
    turns: turns.list,
    ...choice(type === "tool" ? { name: string(name) } : type),
    system: joinTexts(body["system"], SYSTEM_PARTS),
    systemAs: body["system"] === undefined ? "" : "system",
    tools: tools.flatMap(({ input_schema, ...tool }) =>
      input_schema === undefined ? [] : [readTool(tool, input_schema)],
    ),
    serviceTools: tools.flatMap((tool) => (tool["input_schema"] ? [] : [string(tool["type"])])),
    thinks: isRecord(body["thinking"]),
  };
}

function readAnthropicBlock(turn: RequestTurn, block: Json): void {
  const { type, signature, thinking, data, id, name, input, caller } = block;
  if (type === "text") {
    turn.texts.push({ text: string(block["text"]), ...seal(block["citations"]) });
  } else if (type === "thinking") {
    turn.thinking.push({ text: string(thinking), ...seal(signature) });
  } else if (type === "redacted_thinking") {
    turn.thinking.push({ text: "", redacted: true, ...seal(data) });
  } else if (type === "tool_use") {
    turn.calls.push({ id: string(id), name: string(name), arguments: input, ...seal(caller) });
  } else if (type === "tool_result") {
    const { content } = block;
    const isError = block["is_error"] === true;
    const images = records(content).flatMap(readImage);
    const text = joinTexts(content, "\n");
    turn.results.push({ id: string(block["tool_use_id"]), text, images, isError });
  } else if (type === "image") addImage(turn, block);
  else if (turn.role === "assistant") turn.service.push(block);
  else turn.other.push(string(type));
}

/** Chat completions, the older text completions, and Ollama's own format. */
function readChat(body: Json, path: string): ModelRequest {
  const turns = new Turns();
  const system: string[] = [];
  let systemAs = "";
  if (typeof body["prompt"] === "string") turns.of("user").texts.push({ text: body["prompt"] });
  for (const message of records(body["messages"])) {
    const { role, content } = message;
    if (role === "system" || role === "developer") {
      if (turns.list.length > 0) turns.of("user").other.push(`${role} in between`);
      system.push(joinTexts(content, SYSTEM_PARTS));
      systemAs = role;
    } else if (role === "tool") {
      const name = message["tool_name"] ?? message["name"];
      turns.of("user").results.push({
        id: string(message["tool_call_id"]),
        ...(typeof name === "string" && { name }),
        text: joinTexts(content, "\n"),
        images: [],
        isError: false,
      });
    } else readChatMessage(turns.of(role === "assistant" ? "assistant" : "user"), message);
  }
  const { type, function: named } = record(body["tool_choice"]);
  const chosen =
    type === "function" ? { name: string(record(named)["name"]) } : body["tool_choice"];
  return {
    model: modelIn(body, path),
    turns: turns.list,
    ...choice(chosen),
    system: system.join(SYSTEM_PARTS),
    systemAs,
    tools: records(body["tools"]).flatMap(({ function: declared }) =>
      isRecord(declared) ? [readTool(declared, declared["parameters"])] : [],
    ),
    serviceTools: records(body["tools"]).flatMap((tool) =>
      tool["function"] === undefined ? [string(tool["type"])] : [],
    ),
    thinks: ["reasoning_effort", "reasoning", "thinking", "think"].some((field) => body[field]),
  };
}

function readChatMessage(turn: RequestTurn, message: Json): void {
  const { content, reasoning_content, reasoning, reasoning_details, thinking } = message;
  const thought = reasoning_content ?? reasoning ?? thinking;
  if (Array.isArray(reasoning_details)) {
    // What else is said of the thinking says the same again.
    turn.thinking.push({ text: "", raw: reasoning_details, ...seal(reasoning_details) });
  } else if (typeof thought === "string") turn.thinking.push({ text: thought });
  for (const part of blocks(content)) {
    const { type, text } = part;
    if (type === "text") turn.texts.push({ text: string(text) });
    else if (type === "thinking") turn.thinking.push({ text: joinTexts(part["thinking"], "") });
    else if (type === "image_url") addImage(turn, part);
    else turn.other.push(string(type));
  }
  for (const data of Array.isArray(message["images"]) ? message["images"] : []) {
    turn.images.push({ mimeType: "image/png", data: string(data) });
  }
  for (const { id, function: called, extra_content } of records(message["tool_calls"])) {
    const { name, arguments: given } = record(called);
    turn.calls.push({
      id: string(id),
      name: string(name),
      arguments: parsed(given),
      ...seal(extra_content),
    });
  }
}

function readResponses(body: Json, path: string): ModelRequest {
  const turns = new Turns();
  const { input, instructions } = body;
  const system = typeof instructions === "string" ? [instructions] : [];
  let systemAs = system.length > 0 ? "instructions" : "";
  if (typeof input === "string") turns.of("user").texts.push({ text: input });
  for (const item of records(input)) {
    const { role, content } = item;
    if (role === "system" || role === "developer") {
      if (turns.list.length > 0) turns.of("user").other.push(`${role} in between`);
      system.push(joinTexts(content, SYSTEM_PARTS));
      systemAs = role;
    } else readItem(turns, item);
  }
  const tools = records(body["tools"]);
  const { type, name } = record(body["tool_choice"]);
  return {
    model: modelIn(body, path),
    turns: turns.list,
    ...choice(type === "function" ? { name: string(name) } : body["tool_choice"]),
    system: system.join(SYSTEM_PARTS),
    systemAs,
    tools: tools.flatMap((tool) =>
      tool["type"] === "function" ? [readTool(tool, tool["parameters"])] : [],
    ),
    serviceTools: tools.flatMap((tool) =>
      tool["type"] === "function" ? [] : [string(tool["type"])],
    ),
    thinks:
      isRecord(body["reasoning"]) || JSON.stringify(body["include"] ?? "").includes("encrypted"),
  };
}

function readItem(turns: Turns, item: Json): void {
  const { type, call_id, content, name, output, role, summary } = item;
  if (type === "function_call") {
    turns.of("assistant").calls.push({
      id: string(call_id),
      name: string(name),
      arguments: parsed(item["arguments"]),
    });
  } else if (type === "function_call_output") {
    const text = joinTexts(output, "\n");
    const images = records(output).flatMap(readImage);
    turns.of("user").results.push({ id: string(call_id), text, images, isError: false });
  } else if (type === "reasoning") {
    const { encrypted_content } = item;
    const text = joinTexts(summary, "\n\n");
    turns.of("assistant").thinking.push({ text, raw: item, ...seal(encrypted_content) });
  } else if (type === "message" || role !== undefined) {
    const turn = turns.of(role === "assistant" ? "assistant" : "user");
    for (const part of blocks(content)) {
      if (typeof part["text"] === "string") turn.texts.push({ text: part["text"] });
      else if (part["type"] === "input_image") addImage(turn, part);
      else turn.other.push(string(part["type"]));
    }
  } else turns.of("assistant").service.push(item);
}

/** Google's format, with names in either spelling. */
function readGoogle(snake: Json, path: string): ModelRequest {
  const body = camelCased(snake);
  const turns = new Turns();
  for (const { role, parts } of records(body["contents"])) {
    for (const part of records(parts)) {
      readPart(turns.of(role === "model" ? "assistant" : "user"), part);
    }
  }
  const tools = records(body["tools"]);
  const { mode, allowedFunctionNames } = record(
    record(body["toolConfig"])["functionCallingConfig"],
  );
  const [only] = Array.isArray(allowedFunctionNames) ? allowedFunctionNames : [];
  return {
    model: modelIn(body, path),
    turns: turns.list,
    ...choice(typeof only === "string" ? { name: only } : mode),
    system: joinTexts(record(body["systemInstruction"])["parts"], SYSTEM_PARTS),
    systemAs: body["systemInstruction"] === undefined ? "" : "systemInstruction",
    tools: tools.flatMap(({ functionDeclarations }) =>
      records(functionDeclarations).map((tool) =>
        readTool(tool, tool["parametersJsonSchema"] ?? lowerCaseTypes(tool["parameters"])),
      ),
    ),
    serviceTools: tools.flatMap((tool) =>
      Object.keys(tool).filter((kind) => kind !== "functionDeclarations"),
    ),
    thinks: isRecord(record(body["generationConfig"])["thinkingConfig"]),
  };
}

function readPart(turn: RequestTurn, part: Json): void {
  const { text, thought, thoughtSignature, functionCall, functionResponse, inlineData } = part;
  const sealed = seal(thoughtSignature);
  if (isRecord(functionCall)) {
    const { id, name, args } = functionCall;
    turn.calls.push({ id: string(id), name: string(name), arguments: args ?? {}, ...sealed });
  } else if (isRecord(functionResponse)) {
    const { id, name, response, parts } = functionResponse;
    const { output, result, error } = record(response);
    const value = output ?? result ?? error ?? response;
    turn.results.push({
      id: string(id),
      name: string(name),
      text: typeof value === "string" ? value : JSON.stringify(value),
      images: records(parts).flatMap(readImage),
      isError: error !== undefined,
    });
  } else if (isRecord(inlineData)) addImage(turn, part);
  else if (typeof text === "string") {
    (thought === true ? turn.thinking : turn.texts).push({ text, ...sealed });
  } else if (turn.role === "assistant") turn.service.push(part);
  else turn.other.push(Object.keys(part).join());
}

/** The format of Bedrock's Converse operations. */
function readBedrock(body: Json, path: string): ModelRequest {
  const turns = new Turns();
  for (const { role, content } of records(body["messages"])) {
    const turn = turns.of(role === "assistant" ? "assistant" : "user");
    for (const block of records(content)) readBedrockBlock(turn, block);
  }
  const { tools, toolChoice } = record(body["toolConfig"]);
  const { any, tool } = record(toolChoice);
  const extra = record(body["additionalModelRequestFields"]);
  return {
    model: modelIn(body, path),
    turns: turns.list,
    ...choice(isRecord(tool) ? { name: string(tool["name"]) } : any && "required"),
    system: joinTexts(body["system"], SYSTEM_PARTS),
    systemAs: records(body["system"]).length > 0 ? "system" : "",
    tools: records(tools).flatMap(({ toolSpec }) =>
      isRecord(toolSpec) ? [readTool(toolSpec, record(toolSpec["inputSchema"])["json"])] : [],
    ),
    serviceTools: records(tools).flatMap(({ systemTool }) =>
      isRecord(systemTool) ? [string(systemTool["name"])] : [],
    ),
    thinks: Object.keys(extra).some((field) => /thinking|reasoning/.test(field)),
  };
}

function readBedrockBlock(turn: RequestTurn, block: Json): void {
  const { text, image, toolUse, toolResult, reasoningContent, cachePoint } = block;
  if (cachePoint !== undefined) return;
  if (typeof text === "string") turn.texts.push({ text });
  else if (isRecord(image)) addImage(turn, block);
  else if (isRecord(toolUse)) {
    const { toolUseId, name, input } = toolUse;
    turn.calls.push({ id: string(toolUseId), name: string(name), arguments: input });
  } else if (isRecord(toolResult)) {
    const { toolUseId, content, status } = toolResult;
    const parts = records(content).map((part) =>
      part["json"] === undefined ? part : { text: JSON.stringify(part["json"]) },
    );
    turn.results.push({
      id: string(toolUseId),
      text: joinTexts(parts, "\n"),
      images: parts.flatMap(readImage),
      isError: status === "error",
    });
  } else if (isRecord(reasoningContent)) {
    const { reasoningText, redactedContent } = reasoningContent;
    const thought = record(reasoningText);
    turn.thinking.push({
      text: string(thought["text"]),
      ...(redactedContent !== undefined && { redacted: true }),
      ...seal(thought["signature"] ?? redactedContent),
    });
  } else {
    turn.other.push(Object.keys(block).join());
    const { text: guarded } = record(block["guardContent"]);
    if (isRecord(guarded)) turn.texts.push({ text: string(guarded["text"]) });
  }
}

/** What an application wrote itself, and is not to be respelled. */
const AS_WRITTEN = new Set(["args", "response", "parameters", "parametersJsonSchema"]);

function camelCased(value: Json): Json {
  const fields = Object.entries(value).map(([name, inner]): [string, unknown] => {
    const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (AS_WRITTEN.has(camel)) return [camel, inner];
    if (isRecord(inner)) return [camel, camelCased(inner)];
    const items = Array.isArray(inner);
    return [camel, items ? inner.map((item) => (isRecord(item) ? camelCased(item) : item)) : inner];
  });
  return Object.fromEntries(fields);
}

/** In this dialect of JSON Schema the types are in capitals. */
function lowerCaseTypes(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(lowerCaseTypes);
  if (!isRecord(schema)) return schema;
  const fields = Object.entries(schema).map(([name, inner]): [string, unknown] => [
    name,
    name === "type" && typeof inner === "string" ? inner.toLowerCase() : lowerCaseTypes(inner),
  ]);
  return Object.fromEntries(fields);
}
