import type { StreamOptions } from "../../client/client.ts";
import type {
  AssistantContent,
  Message,
  Model,
  ToolResultMessage,
  UserContent,
} from "../../messages/messages.ts";
import { isImage } from "../../files/file-facts.ts";
import { toFile } from "../../files/files.ts";
import { toJsonSchema } from "../../schema/schema.ts";
import { isNewer, quirk, chooseThinking } from "./models.ts";
import { transformPrepared, type MessageConstraints } from "../../messages/transform-messages.ts";
import { isDecisionAcknowledged } from "../../messages/safety-checks.ts";
import type { Part } from "./parts.ts";
import type { ApiRequest, RequestContext } from "../http/format.ts";
import { authHeaders } from "../http/headers.ts";
import { joinUrl } from "../http/url.ts";

/** What the service takes in place of a signature on a call that another model made. */
const NO_SIGNATURE = "skip_thought_signature_validator";

const RULES: MessageConstraints = {
  ids: { pattern: /^[\w.:-]+$/, maxLength: 64 },
  names: { pattern: /^[a-zA-Z_][\w.:-]*$/, maxLength: 64 },
  unsignedThinking: "keep",
};
/** What may be part of a result, with its contents; other files follow it. */
const RESULT_TYPES = new Set([
  "image/png",
  "image/jpeg",
  "image/webp",
  "application/pdf",
  "text/plain",
]);

/** One request to `streamGenerateContent`. */
export function writeRequest(request: RequestContext): ApiRequest {
  const { baseUrl, context, model, options } = request;
  const body: Record<string, unknown> = {
    contents: toContents(transformPrepared(context.messages, model, RULES), model),
  };
  if (context.systemPrompt?.trim()) {
    body["systemInstruction"] = { parts: [{ text: context.systemPrompt }] };
  }
  Object.assign(body, toolParams(request));
  const generationConfig = generationOptions(model, options);
  if (Object.keys(generationConfig).length > 0) body["generationConfig"] = generationConfig;
  const id = model.id.replace(/^models\//, "");
  const url = joinUrl(baseUrl, `models/${id}:streamGenerateContent`);
  return {
    url: `${url}${url.includes("?") ? "&" : "?"}alt=sse`,
    headers: keyHeaders(request),
    body,
  };
}

/** Tokens of an account, as opposed to keys, go the usual way. */
export function keyHeaders(
  request: Pick<RequestContext, "apiKey" | "service">,
): Record<string, string> {
  const { apiKey = "", service } = request;
  const isToken =
    service.id === "google-vertex" ? !/^(AIza|AQ\.)/.test(apiKey) : apiKey.startsWith("ya29.");
  return authHeaders(request, isToken ? "bearer" : "x-goog-api-key");
}

/** The messages as this service takes them. */
export function formatMessages(messages: readonly Message[], model: Model): object[] {
  return toContents(transformPrepared(messages, model, RULES), model);
}

interface Content {
  role: "user" | "model";
  parts: Part[];
}

function toContents(messages: readonly Message[], model: Model): Content[] {
  const isNew = isNewer(model);
  const contents: Content[] = [];
  let files: Part[] = [];
  // The results of one turn stay together and alone: what belongs to them follows.
  const putFiles = (): void => {
    if (files.length > 0) append(contents, { role: "user", parts: files });
    files = [];
  };
  for (const message of messages) {
    if (message.role === "toolResult") {
      const { later, part } = toResultParts(message, isNew);
      append(contents, { role: "user", parts: [part] });
      files.push(...later);
      continue;
    }
    putFiles();
    append(contents, toContent(message, isNew));
  }
  putFiles();
  // A user has to begin, and to have the last word.
  if (contents[0]?.role === "model")
    contents.unshift(createUserContent("(The conversation goes on.)"));
  if (contents.at(-1)?.role === "model") contents.push(createUserContent("(Go on.)"));
  return contents;
}

function createUserContent(text: string): Content {
  return { role: "user", parts: [{ text }] };
}

/** Adds to the last content, if it is of the same kind. */
function append(contents: Content[], next: Content): void {
  const last = contents.at(-1);
  if (last?.role === next.role && isResults(last) === isResults(next)) {
    last.parts.push(...next.parts);
  } else contents.push(next);
}

function isResults({ parts }: Content): boolean {
  return parts[0]?.functionResponse !== undefined;
}

function toResultParts(message: ToolResultMessage, isNew: boolean): { part: Part; later: Part[] } {
  const { content, isError, toolCallId, toolName } = message;
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const files = content.flatMap((block) => (block.type === "text" ? [] : [toFile(block)]));
  const inside = files.filter(
    ({ mediaType, source }) =>
      isNew && source.type === "base64" && RESULT_TYPES.has(mediaType.toLowerCase()),
  );
  const outside = files.filter((file) => !inside.includes(file));
  const what = files.every(isImage) ? "images" : "files";
  const output = texts.length > 0 ? texts.join("\n") : `(The ${what} are the result.)`;
  return {
    part: {
      functionResponse: {
        ...(isNew && { id: toolCallId }),
        name: toolName,
        response: {
          ...(isError ? { error: output } : { output }),
          ...(isDecisionAcknowledged(message) && { safety_acknowledgement: "true" }),
        },
        ...(inside.length > 0 && { parts: inside.map(userPart) }),
      },
    },
    later:
      outside.length > 0
        ? [
            { text: `(${outside.every(isImage) ? "Images" : "Files"} that ${toolName} gave:)` },
            ...outside.map(userPart),
          ]
        : [],
  };
}

function toContent(message: Exclude<Message, ToolResultMessage>, isNew: boolean): Content {
  if (message.role === "assistant") {
    const parts = message.content.map((block) => assistantPart(block, isNew));
    // Newer models refuse a turn whose first call is not signed.
    const call = parts.find(({ functionCall }) => functionCall);
    if (call && isNew) call.thoughtSignature ??= NO_SIGNATURE;
    return { role: "model", parts };
  }
  const { content } = message;
  if (typeof content === "string") return createUserContent(content);
  return { role: "user", parts: content.map(userPart) };
}

function userPart(block: UserContent): Part {
  if (block.type === "text") return { text: block.text };
  const { mediaType: mimeType, source } = toFile(block);
  if (source.type === "url" || source.type === "id") {
    const fileUri = source.type === "url" ? source.url : source.id;
    return { fileData: { ...(!mimeType.endsWith("/*") && { mimeType }), fileUri } };
  }
  return { inlineData: { mimeType, data: source.type === "base64" ? source.data : "" } };
}

function assistantPart(block: AssistantContent, isNew: boolean): Part {
  switch (block.type) {
    case "text":
      return { text: block.text, ...signed(block) };
    case "thinking":
      return { text: block.thinking, thought: true, ...signed(block) };
    case "toolCall": {
      const { arguments: args, id, name } = block;
      return { functionCall: { ...(isNew && { id }), name, args }, ...signed(block) };
    }
    case "serviceTool":
      return block.raw as Part;
    case "image":
    case "file":
      return { ...userPart(block), ...signed(block) };
  }
}

function signed(block: AssistantContent): Pick<Part, "thoughtSignature"> {
  // Also images are signed here, though they are nowhere else.
  if (!("signature" in block) || typeof block.signature !== "string") return {};
  return { thoughtSignature: block.signature };
}

function toolParams({ context, model, options }: RequestContext): object {
  const declared = (context.tools ?? []).map(({ name, description, parameters }) => {
    const { $schema: _, ...schema } = toJsonSchema(parameters);
    return { name, description, parametersJsonSchema: { ...schema, type: "object" } };
  });
  if (declared.length === 0) return {};
  const functionCallingConfig = {
    ...callingMode(options),
    ...(quirk(model, "streamArguments") === true && { streamFunctionCallArguments: true }),
  };
  return {
    tools: [{ functionDeclarations: declared }],
    ...(Object.keys(functionCallingConfig).length > 0 && { toolConfig: { functionCallingConfig } }),
  };
}

function callingMode({ toolChoice }: StreamOptions): object {
  if (toolChoice === undefined) return {};
  if (typeof toolChoice === "object") {
    return { mode: "ANY", allowedFunctionNames: [toolChoice.name] };
  }
  return { mode: toolChoice === "required" ? "ANY" : toolChoice.toUpperCase() };
}

function generationOptions(model: Model, options: StreamOptions): Record<string, unknown> {
  const { maxTokens, temperature } = options;
  const thinkingConfig = chooseThinking(model, options);
  // Thinking counts as output: what is asked for is room for the answer on top of it.
  const budget = Math.max(0, thinkingConfig?.thinkingBudget ?? 0);
  return {
    ...(maxTokens !== undefined && {
      maxOutputTokens: Math.min(
        maxTokens + budget,
        Math.max(maxTokens, model.maxTokens ?? Infinity),
      ),
    }),
    ...(temperature !== undefined && { temperature }),
    ...(thinkingConfig && { thinkingConfig }),
  };
}
