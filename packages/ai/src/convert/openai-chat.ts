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
  readCall,
  readFileData,
  readFileUrl,
  resultText,
  textBlock,
  textField,
  writeArguments,
  writeFile,
} from "./shared.ts";
import { describeFile, fileKind, fileName, toFileUrl } from "../files/file-facts.ts";
import { toFile } from "../files/files.ts";
import type {
  AssistantContent,
  FileContent,
  Message,
  ToolCall,
  UserContent,
} from "../messages/messages.ts";
import { isRecord } from "../common/records.ts";

/** A message of OpenAI's chat completions, as `toOpenAiChat` writes it. */
export type OpenAiChatMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: string | OpenAiChatPart[] }
  | {
      role: "assistant";
      content: string | { type: "text"; text: string }[] | null;
      tool_calls?: {
        id: string;
        type: "function";
        function: { name: string; arguments: string };
      }[];
    }
  | { role: "tool"; tool_call_id: string; content: string };

export type OpenAiChatPart =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string } }
  | { type: "input_audio"; input_audio: { data: string; format: "wav" | "mp3" } }
  | { type: "file"; file: { file_id: string } | { filename: string; file_data: string } };

/**
 * Reads messages of OpenAI's chat completions. Calls of custom tools are lost. Whether a result is an error is not known there.
 */
export function fromOpenAiChat(messages: readonly object[], options: ImportOptions = {}): Imported {
  const importer = new Importer("openai-completions", "openai", options);
  messages.forEach((message, index) => {
    importer.losses.at(index);
    readMessage(importer, message as Loose);
  });
  return importer.end();
}

function readMessage(importer: Importer, message: Loose): void {
  const { role, content } = message;
  const { losses } = importer;
  if (role === "system" || role === "developer") importer.system(readTexts(content));
  else if (role === "user") {
    importer.user(typeof content === "string" ? content : readParts(content, losses));
  } else if (role === "assistant") importer.assistant(readAnswer(message, losses));
  else if (role === "tool") {
    const blocks = typeof content === "string" ? [textBlock(content)] : readParts(content, losses);
    importer.result(textField(message, "tool_call_id") ?? "", blocks);
  } else losses.add(`a message of the role ${String(role)}`);
}

function readTexts(content: unknown): string {
  if (typeof content === "string") return content;
  return toList(content)
    .flatMap((part) => textField(part, "text") ?? [])
    .join("\n");
}

function readParts(content: unknown, losses: Losses): UserContent[] {
  return toList(content).flatMap((part): UserContent[] => {
    const type = textField(part, "type");
    const text = textField(part, "text");
    if (type === "text" && text !== undefined) return [textBlock(text)];
    const file = readFilePart(part);
    if (!file) losses.add(`a part of the type ${type}`);
    return file ? [file] : [];
  });
}

function readFilePart(part: unknown): UserContent | undefined {
  if (!isRecord(part)) return undefined;
  const url = textField(part["image_url"], "url");
  if (url !== undefined) return readFileUrl(url, "image");
  const sound = textField(part["input_audio"], "data");
  if (sound !== undefined) {
    const format = textField(part["input_audio"], "format");
    return readFileData(sound, { mediaType: format === "mp3" ? "audio/mpeg" : `audio/${format}` });
  }
  const name = textField(part["file"], "filename");
  const data = textField(part["file"], "file_data");
  if (data !== undefined) return readFileUrl(data, "application/pdf", { name });
  const id = textField(part["file"], "file_id");
  if (id === undefined) return undefined;
  return writeFile({ type: "id", id, service: "openai" }, { mediaType: "application/pdf", name });
}

function readAnswer(message: Loose, losses: Losses): AssistantContent[] {
  const { content } = message;
  const thinking = textField(message, "reasoning_content");
  const refusal = textField(message, "refusal");
  const texts = typeof content === "string" ? [content] : readAnswerTexts(content, losses);
  if (refusal !== undefined) losses.add("that an answer is a refusal");
  if (isRecord(message["audio"])) losses.add("the audio of an answer");
  const calls = toList(message["tool_calls"]).flatMap((call): ToolCall[] => {
    const id = textField(call, "id");
    const asked = isRecord(call) ? call["function"] : undefined;
    const name = textField(asked, "name");
    if (id !== undefined && name !== undefined && isRecord(asked)) {
      return [readCall(id, name, asked["arguments"])];
    }
    losses.add("a call of a custom tool");
    return [];
  });
  return [
    ...(thinking ? [{ type: "thinking" as const, thinking }] : []),
    ...[...texts, ...(refusal ? [refusal] : [])].filter((text) => text !== "").map(textBlock),
    ...calls,
  ];
}

function readAnswerTexts(content: unknown, losses: Losses): string[] {
  return toList(content).flatMap((part) => {
    const refusal = textField(part, "refusal");
    if (refusal !== undefined) losses.add("that an answer is a refusal");
    return textField(part, "text") ?? refusal ?? [];
  });
}

/**
 * Writes messages for OpenAI's chat completions. Thinking, signatures, images of results and
 * answers, tools of a service, and whether a result is an error are lost. Texts of an
 * answer come before its calls.
 */
export function toOpenAiChat(
  messages: readonly Message[],
  { systemPrompt }: ExportOptions = {},
): Exported<OpenAiChatMessage> {
  const losses = new Losses();
  const written = messages.flatMap((message, index): OpenAiChatMessage[] => {
    losses.at(index);
    if (message.role === "user") {
      return [{ role: "user", content: writeUser(message.content, losses) }];
    }
    if (message.role === "assistant") {
      noteAnswer(message, losses);
      return writeAnswer(message.content, losses);
    }
    if (message.isError) losses.add("that a result is an error");
    if (message.content.length > 1) losses.add("where the texts of a result end");
    return [
      { role: "tool", tool_call_id: message.toolCallId, content: resultText(message, losses) },
    ];
  });
  const system = systemPrompt ? [{ role: "system" as const, content: systemPrompt }] : [];
  return { messages: [...system, ...written], lost: losses.lines };
}

function writeUser(
  content: string | readonly UserContent[],
  losses: Losses,
): string | OpenAiChatPart[] {
  if (typeof content === "string") return content;
  return content.flatMap((block) =>
    block.type === "text" ? [textBlock(block.text)] : writeFilePart(toFile(block), losses),
  );
}

function writeFilePart(file: FileContent, losses: Losses): OpenAiChatPart[] {
  const { mediaType, source } = file;
  const kind = fileKind(mediaType);
  const isHere = source.type === "base64";
  if (kind === "image" && (isHere || source.type === "url")) {
    return [{ type: "image_url", image_url: { url: toFileUrl(file) } }];
  }
  const format = /mpeg|mp3/.test(mediaType) ? "mp3" : "wav";
  if (kind === "audio" && isHere && /wav|mpeg|mp3/.test(mediaType)) {
    return [{ type: "input_audio", input_audio: { data: source.data, format } }];
  }
  if (kind === "pdf" && isHere) {
    return [{ type: "file", file: { filename: fileName(file), file_data: toFileUrl(file) } }];
  }
  if (source.type === "id" && source.service === "openai" && kind === "pdf") {
    return [{ type: "file", file: { file_id: source.id } }];
  }
  losses.add(`a file (${describeFile(file)})`);
  return [];
}

function writeAnswer(content: readonly AssistantContent[], losses: Losses): OpenAiChatMessage[] {
  const texts: { type: "text"; text: string }[] = [];
  const calls: ToolCall[] = [];
  for (const block of content) {
    if (block.type === "text") texts.push(textBlock(block.text));
    else if (block.type === "toolCall") calls.push(block);
    else losses.add(LOST[block.type]);
    if ("signature" in block && block.signature !== undefined) losses.add("a signature");
  }
  if (texts.length === 0 && calls.length === 0) return [];
  const [only] = texts;
  return [
    {
      role: "assistant",
      content: texts.length > 1 ? texts : (only?.text ?? null),
      ...(calls.length > 0 && {
        tool_calls: calls.map((call) => ({
          id: call.id,
          type: "function" as const,
          function: { name: call.name, arguments: writeArguments(call) },
        })),
      }),
    },
  ];
}

const LOST = {
  thinking: "thinking",
  image: "the image of an answer",
  file: "the file of an answer",
  serviceTool: "a tool that the service ran",
} as const;
