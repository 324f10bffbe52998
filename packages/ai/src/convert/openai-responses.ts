import {
  type Exported,
  type ExportOptions,
  Importer,
  type Imported,
  type ImportOptions,
  toList,
  type Loose,
  Losses,
  noteAnswer,
  parseOr,
  readCall,
  readFileUrl,
  textBlock,
  textField,
  writeArguments,
  writeFile,
} from "./shared.ts";
import { describeFile, fileName, isImage, toFileUrl } from "../files/file-facts.ts";
import { toFile } from "../files/files.ts";
import { isRecord } from "../common/records.ts";
import type { AssistantContent, Message, UserContent } from "../messages/messages.ts";

type InputPart =
  | { type: "input_text"; text: string }
  | { type: "input_image"; image_url: string; detail: "auto" }
  | { type: "input_image"; file_id: string; detail: "auto" }
  | { type: "input_file"; file_id: string }
  | { type: "input_file"; file_url: string; filename?: string }
  | { type: "input_file"; file_data: string; filename: string };

/** An item of OpenAI's Responses API, as `toOpenAiResponses` writes it. */
export type OpenAiResponsesItem =
  | { type: "message"; role: "system" | "user" | "assistant"; content: string | InputPart[] }
  | {
      type: "message";
      role: "assistant";
      id: string;
      status: "completed";
      content: { type: "output_text"; text: string; annotations: [] }[];
    }
  | { type: "reasoning"; id: string; summary: { type: "summary_text"; text: string }[] }
  | { type: "function_call"; id?: string; call_id: string; name: string; arguments: string }
  | { type: "function_call_output"; call_id: string; output: string | InputPart[] };

/**
 * Reads items of OpenAI's Responses API, input and output. Adjacent items of the model are one
 * answer. Reasoning, ids and items of the service's own tools are kept, so that the API gets them
 * back.
 */
export function fromOpenAiResponses(
  items: readonly object[],
  options: ImportOptions = {},
): Imported {
  const importer = new Importer("openai-responses", "openai", options);
  let answer: AssistantContent[] = [];
  const flush = (): void => {
    importer.assistant(answer);
    answer = [];
  };
  items.forEach((given, index) => {
    const item = given as Loose;
    importer.losses.at(index);
    const blocks = readAnswerItem(item, importer.losses);
    if (blocks) return void answer.push(...blocks);
    flush();
    readInputItem(importer, item);
  });
  flush();
  return importer.end();
}

/** The blocks of an item of the model; nothing for one of the user or a tool. */
function readAnswerItem(item: Loose, losses: Losses): AssistantContent[] | undefined {
  const { type = "message", role } = item;
  const id = textField(item, "id");
  if (type === "message") return role === "assistant" ? readAnswerText(item, losses) : undefined;
  if (type === "reasoning") {
    const texts = [...toList(item["summary"]), ...toList(item["content"])];
    const thinking = texts.flatMap((part) => textField(part, "text") ?? []).join("\n\n");
    return [{ type: "thinking", thinking, signature: JSON.stringify(item) }];
  }
  if (type === "function_call") {
    const name = textField(item, "name") ?? "unknown";
    return [readCall(textField(item, "call_id") ?? "", name, item["arguments"], id)];
  }
  if (typeof type !== "string" || !/_call$|^mcp_|^compaction$/.test(type)) return undefined;
  return [{ type: "serviceTool", id: id ?? "", name: type, raw: { ...item } }];
}

function readAnswerText(item: Loose, losses: Losses): AssistantContent[] {
  const { content } = item;
  const id = textField(item, "id");
  const phase = textField(item, "phase");
  const proof =
    id === undefined ? {} : { signature: JSON.stringify({ id, ...(phase && { phase }) }) };
  if (typeof content === "string") return [{ ...textBlock(content), ...proof }];
  return toList(content).flatMap((part): AssistantContent[] => {
    const refusal = textField(part, "refusal");
    if (refusal !== undefined) losses.add("that an answer is a refusal");
    if (isRecord(part) && toList(part["annotations"]).length > 0)
      losses.add("annotations of a text");
    const text = textField(part, "text") ?? refusal;
    return text === undefined ? [] : [{ ...textBlock(text), ...proof }];
  });
}

function readInputItem(importer: Importer, item: Loose): void {
  const { type = "message", role, content } = item;
  const { losses } = importer;
  if (type === "function_call_output") {
    const { output } = item;
    const blocks = typeof output === "string" ? [textBlock(output)] : readParts(output, losses);
    importer.result(textField(item, "call_id") ?? "", blocks);
  } else if (type !== "message") losses.add(`an item of the type ${String(type)}`);
  else if (role === "system" || role === "developer") {
    const texts = readParts(
      typeof content === "string" ? [{ type: "input_text", text: content }] : content,
      losses,
    );
    importer.system(
      texts.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n"),
    );
  } else importer.user(typeof content === "string" ? content : readParts(content, losses));
}

function readParts(content: unknown, losses: Losses): UserContent[] {
  return toList(content).flatMap((part): UserContent[] => {
    const text = textField(part, "text");
    if (text !== undefined) return [textBlock(text)];
    const file = readFilePart(part);
    if (!file) losses.add(`a part of the type ${textField(part, "type")}`);
    return file ? [file] : [];
  });
}

function readFilePart(part: unknown): UserContent | undefined {
  const image = textField(part, "image_url");
  if (image !== undefined) return readFileUrl(image, "image");
  const url = textField(part, "file_data") ?? textField(part, "file_url");
  const name = textField(part, "filename");
  if (url !== undefined) return readFileUrl(url, "application/pdf", { name });
  const id = textField(part, "file_id");
  if (id === undefined) return undefined;
  const mediaType = textField(part, "type") === "input_image" ? "image/*" : "application/pdf";
  return writeFile({ type: "id", id, service: "openai" }, { mediaType, name });
}

/**
 * Writes items for OpenAI's Responses API. Thinking of other services, images of answers, and
 * whether a result is an error are lost.
 */
export function toOpenAiResponses(
  messages: readonly Message[],
  { systemPrompt }: ExportOptions = {},
): Exported<OpenAiResponsesItem> {
  const losses = new Losses();
  const items = messages.flatMap((message, index): OpenAiResponsesItem[] => {
    losses.at(index);
    if (message.role === "user") {
      const { content } = message;
      const parts = typeof content === "string" ? content : writeParts(content, losses);
      return [{ type: "message", role: "user", content: parts }];
    }
    if (message.role === "assistant") {
      noteAnswer(message, losses);
      const isOurs = message.api === "openai-responses";
      return message.content.flatMap((block) => writeBlock(block, isOurs, losses));
    }
    if (message.isError) losses.add("that a result is an error");
    const { content, toolCallId: call_id } = message;
    const [first] = content;
    const isText = content.length === 1 && first?.type === "text";
    const output = isText ? first.text : writeParts(content, losses);
    return [{ type: "function_call_output", call_id, output }];
  });
  const system = { type: "message", role: "system", content: systemPrompt ?? "" } as const;
  return { messages: systemPrompt ? [system, ...items] : items, lost: losses.lines };
}

function writeParts(content: readonly UserContent[], losses: Losses): InputPart[] {
  return content.flatMap((block): InputPart[] => {
    if (block.type === "text") return [{ type: "input_text", text: block.text }];
    const file = toFile(block);
    const { name, source } = file;
    const isPicture = isImage(file);
    if (source.type === "base64" || source.type === "url") {
      const url = toFileUrl(file);
      if (isPicture) return [{ type: "input_image", image_url: url, detail: "auto" }];
      const named = name === undefined ? {} : { filename: name };
      if (source.type === "url") return [{ type: "input_file", file_url: url, ...named }];
      return [{ type: "input_file", file_data: url, filename: fileName(file) }];
    }
    if (source.type === "id" && source.service === "openai") {
      const { id: file_id } = source;
      if (isPicture) return [{ type: "input_image", file_id, detail: "auto" }];
      return [{ type: "input_file", file_id }];
    }
    losses.add(`a file (${describeFile(file)})`);
    return [];
  });
}

function writeBlock(
  block: AssistantContent,
  isOurs: boolean,
  losses: Losses,
): OpenAiResponsesItem[] {
  const proof = isOurs && "signature" in block ? block.signature : undefined;
  if ("signature" in block && block.signature !== undefined && !isOurs) losses.add("a signature");
  switch (block.type) {
    case "text": {
      const id = textField(parseOr(proof ?? ""), "id");
      if (id === undefined) return [{ type: "message", role: "assistant", content: block.text }];
      const content = [{ type: "output_text" as const, text: block.text, annotations: [] as [] }];
      return [{ type: "message", role: "assistant", id, status: "completed", content }];
    }
    case "toolCall": {
      const { id: call_id, name } = block;
      const id = proof === undefined ? {} : { id: proof };
      return [{ type: "function_call", ...id, call_id, name, arguments: writeArguments(block) }];
    }
    case "thinking": {
      const item = parseOr(proof ?? "");
      if (isReasoning(item)) return [item];
      losses.add("thinking");
      return [];
    }
    default:
      losses.add(
        block.type === "serviceTool"
          ? "a tool that the service ran"
          : `the ${block.type} of an answer`,
      );
      return [];
  }
}

function isReasoning(value: unknown): value is Extract<OpenAiResponsesItem, { type: "reasoning" }> {
  return isRecord(value) && value["type"] === "reasoning" && typeof value["id"] === "string";
}
