import {
  addImage,
  choice,
  readImage,
  isRecord,
  type Json,
  modelIn,
  record,
  records,
  seal,
  string,
  SYSTEM_PARTS,
  joinTexts,
  readTool,
  Turns,
} from "./parts.ts";
import type { ModelRequest, RequestTurn } from "./request-transcript.ts";

/** Google's format, with names in either spelling. */
export function readGoogle(snake: Json, path: string): ModelRequest {
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
export function readBedrock(body: Json, path: string): ModelRequest {
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
