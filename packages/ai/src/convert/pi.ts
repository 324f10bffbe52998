import {
  type Exported,
  Importer,
  type Imported,
  type ImportOptions,
  toList,
  type Loose,
  Losses,
  readCall,
  textBlock,
  textField,
} from "./shared.ts";
import { isRecord } from "../common/records.ts";
import { describeFile, isImage } from "../files/file-facts.ts";
import type {
  AssistantContent,
  AssistantMessage,
  FileContent,
  ImageContent,
  Message,
  ToolResultMessage,
  UserContent,
  UserMessage,
} from "../messages/messages.ts";

type PiBlock =
  | { type: "text"; text: string; textSignature?: string }
  | { type: "thinking"; thinking: string; thinkingSignature?: string; redacted?: boolean }
  | { type: "image"; data: string; mimeType: string }
  | {
      type: "toolCall";
      id: string;
      name: string;
      arguments: Record<string, unknown>;
      thoughtSignature?: string;
    };

/** A message of pi, as `toPi` writes it. */
export type PiMessage =
  | UserMessage
  | ToolResultMessage
  | (Omit<AssistantMessage, "content" | "usage"> & { content: PiBlock[]; usage: PiUsage });

/** Tokens as pi counts them: what is not known is 0. */
export interface PiUsage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number };
}

/** The field that has the signature of a block in pi. */
const PROOFS = {
  text: "textSignature",
  thinking: "thinkingSignature",
  toolCall: "thoughtSignature",
};

/**
 * Reads messages of pi. Signatures, usage, model and time of each are kept. Messages of roles of
 * an application's own are lost. For session files, `importPiSession` of `@gyre/sessions/pi` knows more.
 */
export function fromPi(messages: readonly object[], options: ImportOptions = {}): Imported {
  const importer = new Importer("unknown", "unknown", options);
  messages.forEach((given, index) => {
    const message = given as Loose;
    const { role, content } = message;
    importer.losses.at(index);
    const before = importer.messages.length;
    const blocks = toList(content).flatMap((block) => readBlock(block, importer.losses));
    if (role === "system") importer.system(typeof content === "string" ? content : "");
    else if (role === "user") importer.user(typeof content === "string" ? content : users(blocks));
    else if (role === "assistant") importer.assistant(blocks);
    else if (role === "toolResult") {
      const name = textField(message, "toolName");
      const isError = message["isError"] === true;
      importer.result(textField(message, "toolCallId") ?? "", users(blocks), { isError, name });
    } else importer.losses.add(`a message of the role ${String(role)}`);
    const read = importer.messages[before];
    if (read) Object.assign(read, keepFields(message));
  });
  return importer.end();
}

const KEPT = [
  "api",
  "provider",
  "model",
  "stopReason",
  "errorMessage",
  "responseId",
  "timestamp",
  "details",
];

function keepFields(message: Loose): Loose {
  const fields = KEPT.flatMap((name) =>
    message[name] === undefined ? [] : [[name, message[name]]],
  );
  return {
    ...Object.fromEntries(fields),
    ...(isRecord(message["usage"]) && { usage: message["usage"] }),
  };
}

function users(blocks: readonly AssistantContent[]): UserContent[] {
  return blocks.flatMap((block) =>
    block.type === "text" || block.type === "image" ? [block] : [],
  );
}

function readBlock(block: unknown, losses: Losses): AssistantContent[] {
  if (!isRecord(block)) return [];
  const type = textField(block, "type");
  const proofName =
    type === "text" || type === "thinking" || type === "toolCall" ? PROOFS[type] : "";
  const signature = textField(block, proofName);
  const proof = signature === undefined ? {} : { signature };
  const text = textField(block, "text");
  if (type === "text" && text !== undefined) return [{ ...textBlock(text), ...proof }];
  if (type === "thinking") {
    const hidden = block["redacted"] === true ? { redacted: true } : {};
    return [{ type, thinking: textField(block, "thinking") ?? "", ...proof, ...hidden }];
  }
  if (type === "toolCall") {
    const id = textField(block, "id") ?? "";
    return [readCall(id, textField(block, "name") ?? "unknown", block["arguments"], signature)];
  }
  const data = textField(block, "data");
  if (type === "image" && data !== undefined) {
    return [{ type, data, mimeType: textField(block, "mimeType") ?? "image/png" }];
  }
  losses.add(`a block of the type ${type}`);
  return [];
}

/** Writes messages of pi. Tools that a service ran, the report of a service and why a run was redirected are lost. */
export function toPi(messages: readonly Message[]): Exported<PiMessage> {
  const losses = new Losses();
  const written = messages.map((message, index): PiMessage => {
    losses.at(index);
    if (message.role !== "assistant") return withoutFiles(message, losses);
    const { report, failure, ...rest } = message;
    if (report || failure) losses.add("the report of the service");
    const content = message.content.flatMap((block) => writeBlock(block, losses));
    return { ...rest, content, usage: writeUsage(message) };
  });
  return { messages: written, lost: losses.lines };
}

/** pi has images alone, with their contents. */
function withoutFiles<M extends UserMessage | ToolResultMessage>(message: M, losses: Losses): M {
  const { content } = message;
  if (typeof content === "string" || content.every(({ type }) => type !== "file")) return message;
  const known = content.flatMap((block): UserContent[] => {
    if (block.type !== "file") return [block];
    return writeImage(block, losses);
  });
  return { ...message, content: known };
}

function writeImage(file: FileContent, losses: Losses): ImageContent[] {
  const { mediaType: mimeType, source } = file;
  if (source.type === "base64" && isImage(file)) {
    return [{ type: "image", data: source.data, mimeType }];
  }
  losses.add(`a file (${describeFile(file)})`);
  return [];
}

function writeBlock(block: AssistantContent, losses: Losses): PiBlock[] {
  if (block.type === "serviceTool") {
    losses.add("a tool that the service ran");
    return [];
  }
  const { signature } = block;
  switch (block.type) {
    case "text":
      return [
        { ...textBlock(block.text), ...(signature !== undefined && { textSignature: signature }) },
      ];
    case "thinking": {
      const { type, thinking, redacted } = block;
      const proof = signature === undefined ? {} : { thinkingSignature: signature };
      return [{ type, thinking, ...proof, ...(redacted && { redacted }) }];
    }
    case "toolCall": {
      const { type, id, name, arguments: args } = block;
      const proof = signature === undefined ? {} : { thoughtSignature: signature };
      return [{ type, id, name, arguments: args, ...proof }];
    }
    case "image":
      return [{ type: "image", data: block.data, mimeType: block.mimeType }];
    case "file":
      return writeImage(block, losses);
  }
}

function writeUsage({ usage }: AssistantMessage): PiUsage {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0, cost } = usage;
  const totalTokens = usage.totalTokens ?? input + output + cacheRead + cacheWrite;
  const zero = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  return { input, output, cacheRead, cacheWrite, totalTokens, cost: { ...zero, ...cost } };
}
