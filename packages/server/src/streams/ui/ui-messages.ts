import { type AgentMessage, isLlmMessage, type PendingCall } from "@gyre/agent";
import {
  type AssistantContent,
  type FileContent,
  type ImageContent,
  isRecord,
  type Message,
  outcomeOf,
  toRecord,
  type ToolCall,
  type UserContent,
  type UserMessage,
} from "@gyre/ai";
import { type Part, PartReader } from "../common/part-reader.ts";
import { type UIMessage, UIMessageBuilder } from "./ui-message-builder.ts";
import {
  fromResultRecord,
  fromStepRecord,
  type MessageRecord,
  nameDropped,
  type OutputState,
  readRecord,
  RECORD_KEY,
  type UserRecord,
} from "./ui-records.ts";
import { UIWriter, type UIWriterOptions } from "./ui-writer.ts";

/** A call of a page's messages that has no result, and that a person was asked about. */
export interface UIQuestion {
  call: ToolCall;
  approvalId: string;
  /** Absent: not answered yet. It is the client's claim: see `ApprovalSigner`. */
  approved?: boolean;
  reason?: string;
}

/** A conversation as a page sent it. */
export interface UIConversation {
  messages: Message[];
  questions: UIQuestion[];
  /** Whether the client sent a system message: it is left out. */
  hasSystemMessage: boolean;
}

export interface UIMessagesOptions extends Omit<UIWriterOptions, "continues" | "isContinued"> {
  /** Calls that wait for a person, as a store has them: the page asks about those of the last message. */
  pending?: readonly PendingCall[] | undefined;
  /** Tools that the page runs itself: it is not asked about their calls. */
  clientTools?: readonly string[] | undefined;
}

/**
 * Messages as `useChat` keeps them, for a page that opens a conversation: the answers and results between two
 * messages of the user are one. `fromUIMessages` restores the transcript, all but error messages and
 * reports of a service, which are not sent.
 */
export function toUIMessages(
  messages: readonly AgentMessage[],
  { pending = [], clientTools = [], ...options }: UIMessagesOptions = {},
): UIMessage[] {
  const written: UIMessage[] = [];
  let open: { builder: UIMessageBuilder; reader: PartReader; writer: UIWriter } | undefined;
  messages.forEach((message, index) => {
    if (!isLlmMessage(message)) return;
    if (message.role === "user") {
      open = undefined;
      written.push(toUserMessage(message, String(index)));
      return;
    }
    if (!open) {
      const builder = new UIMessageBuilder(String(index));
      open = { builder, reader: new PartReader(), writer: new UIWriter(options) };
      written.push(builder.message);
    }
    const { builder, reader, writer } = open;
    for (const part of replay(reader, message)) {
      if (part.type !== "end") for (const chunk of writer.write(part)) builder.add(chunk);
    }
  });
  for (const { toolCall, reason } of pending) {
    const { id, name } = toolCall;
    if (clientTools.includes(name) || !open?.writer.hasCall(id)) continue;
    open.builder.add({ type: "tool-approval-request", approvalId: id, toolCallId: id, reason });
  }
  return written;
}

function replay(reader: PartReader, message: Exclude<Message, UserMessage>): Part[] {
  if (message.role === "assistant") return reader.read({ type: "message_end", message });
  const { toolCallId: id, toolName: name } = message;
  const result: Part = { type: "result", id, name, result: message, outcome: outcomeOf(message) };
  return [result, { type: "result_message", message }];
}

function toUserMessage({ content, timestamp }: UserMessage, id: string): UIMessage {
  const blocks: UserContent[] =
    typeof content === "string" ? [{ type: "text", text: content }] : content;
  const user: UserRecord = {
    timestamp,
    ...(typeof content !== "string" && { isList: true }),
  };
  const builder = new UIMessageBuilder(id);
  const reader = new PartReader();
  const writer = new UIWriter();
  // The blocks of a user's message are written as those of an answer are.
  const message = { ...fromStepRecord(undefined, blocks) };
  for (const part of reader.read({ type: "message_end", message })) {
    if (part.type === "step_start" || part.type === "step_end" || part.type === "end") continue;
    for (const chunk of writer.write(part)) builder.add(chunk);
  }
  const { parts } = builder.message;
  return { id, role: "user", metadata: { [RECORD_KEY]: { user } }, parts };
}

/**
 * Reads the messages that `useChat` sends, and those of `toUIMessages`. They are the client's claim:
 * calls without a result are left open, and approvals are only listed. Parts that are not known are
 * left out. Never throws on what a client can send.
 */
export function fromUIMessages(messages: readonly unknown[]): UIConversation {
  const read: UIConversation = { messages: [], questions: [], hasSystemMessage: false };
  for (const given of messages) {
    const message = toRecord(given);
    const parts = (Array.isArray(message["parts"]) ? message["parts"] : []).filter(isRecord);
    const record = readRecord(message["metadata"]);
    if (message["role"] === "assistant") readAnswers(parts, record, read);
    else if (message["role"] === "user") read.messages.push(...readUser(parts, record));
    else read.hasSystemMessage = true;
  }
  return read;
}

type Loose = Readonly<Record<string, unknown>>;

function readUser(parts: readonly Loose[], { user }: MessageRecord): UserMessage[] {
  const blocks = parts.flatMap((part): UserContent[] => {
    const block = readBlock(part);
    return block && (block.type === "text" || block.type === "image" || block.type === "file")
      ? [block]
      : [];
  });
  if (blocks.length === 0) return [];
  const [first] = blocks;
  const isText = blocks.length === 1 && first?.type === "text" && !first.source;
  const { timestamp, isList } = isRecord(user) ? user : { timestamp: 0 };
  return [
    {
      role: "user",
      content: isText && !isList ? first.text : blocks,
      timestamp: typeof timestamp === "number" ? timestamp : 0,
    },
  ];
}

function readAnswers(
  parts: readonly Loose[],
  record: MessageRecord,
  { messages, questions }: UIConversation,
): void {
  let step = -1;
  let isOpen = false;
  let content: AssistantContent[] = [];
  let results: Message[] = [];
  const flush = (): void => {
    const head = findOwn(record.steps, String(step));
    // An answer that failed before it said anything is in the transcript, too.
    if (content.length > 0 || (isOpen && isRecord(head))) {
      messages.push(fromStepRecord(isOpen ? head : undefined, content), ...results);
    }
    isOpen = false;
    content = [];
    results = [];
  };
  for (const part of parts) {
    const { type } = part;
    if (type === "step-start") {
      flush();
      step++;
      isOpen = true;
    } else if (type === "data-steering" || type === "steering-message") {
      flush();
      messages.push(...readSteering(part));
    } else if (typeof type === "string" && (type === "dynamic-tool" || type.startsWith("tool-"))) {
      if (findOwn(record.dropped, nameDropped(step, String(part["toolCallId"])))) continue;
      const call = readCall(part, type, record);
      if (!call) continue;
      content.push(call);
      if (call.type !== "toolCall") continue;
      const result = readResult(part, call, record);
      if (result) results.push(result);
      else questions.push(...readQuestion(part, call));
    } else {
      const block = readBlock(part);
      if (block) content.push(block);
    }
  }
  flush();
}

function readSteering(part: Loose): UserMessage[] {
  const data = toRecord(part["data"]);
  const { content, timestamp } = data;
  const at = typeof timestamp === "number" ? timestamp : 0;
  if (typeof content === "string") return [{ role: "user", content, timestamp: at }];
  if (Array.isArray(content)) {
    const blocks = content.filter(isUserBlock);
    return blocks.length > 0 ? [{ role: "user", content: blocks, timestamp: at }] : [];
  }
  return readUser((Array.isArray(part["parts"]) ? part["parts"] : []).filter(isRecord), {});
}

function isUserBlock(value: unknown): value is UserContent {
  if (!isRecord(value)) return false;
  if (value["type"] === "text") return typeof value["text"] === "string";
  if (value["type"] === "file") return isRecord(value["source"]);
  return value["type"] === "image" && typeof value["data"] === "string";
}

/** A text, a thought or a file. */
function readBlock(part: Loose): Exclude<AssistantContent, ToolCall> | undefined {
  const { type, text, url } = part;
  const own = readOwn(part["providerMetadata"]);
  const proof = typeof own["signature"] === "string" ? { signature: own["signature"] } : {};
  if (type === "text" && typeof text === "string") {
    const { source } = own;
    if (!isRecord(source)) return { type, text, ...proof };
    const [kind, name, mark] = [source["kind"], source["name"], source["mark"]];
    const from = { kind: String(kind), name: String(name), mark: String(mark) };
    return { type, text, source: from, ...proof };
  }
  if (type === "reasoning" && typeof text === "string") {
    const redacted = own["redacted"] === true;
    return { type: "thinking", thinking: text, ...proof, ...(redacted && { redacted }) };
  }
  return type === "file" && typeof url === "string" ? readFile(part, url, own) : undefined;
}

const DATA_URL = /^data:([^;,]+)(?:;[^;,]+)*;base64,([A-Za-z0-9+/=\s]*)$/;

function readFile(part: Loose, url: string, own: Loose): ImageContent | FileContent | undefined {
  const [, inUrl, data] = DATA_URL.exec(url) ?? [];
  const { block } = own;
  if (isRecord(block) && isUserBlock(block) && block.type !== "text") {
    if (block.type === "image") return { ...block, data: data ?? "" };
    const { source } = block;
    return source.type === "base64" ? { ...block, source: { ...source, data: data ?? "" } } : block;
  }
  const given = part["mediaType"];
  const mediaType = typeof given === "string" ? given : (inUrl ?? "application/octet-stream");
  const name = typeof part["filename"] === "string" ? { name: part["filename"] } : {};
  if (data === undefined) {
    return /^https?:/.test(url)
      ? { type: "file", mediaType, ...name, source: { type: "url", url } }
      : undefined;
  }
  if (mediaType.startsWith("image/") && !("name" in name)) {
    return { type: "image", data, mimeType: mediaType };
  }
  return { type: "file", mediaType, ...name, source: { type: "base64", data } };
}

function readCall(
  part: Loose,
  type: string,
  record: MessageRecord,
): Exclude<AssistantContent, ImageContent> | undefined {
  const named = type === "dynamic-tool" ? part["toolName"] : type.slice("tool-".length);
  const { toolCallId: id, input } = part;
  if (typeof id !== "string" || id === "" || typeof named !== "string" || named === "") {
    return undefined;
  }
  if (part["providerExecuted"] === true) {
    const { block } = readOwn(part["callProviderMetadata"]);
    const whole = isRecord(block) ? block : { id, name: named, input, output: part["output"] };
    const { id: own, name } = whole;
    return { ...whole, type: "serviceTool", id: String(own), name: String(name) };
  }
  const extra = toRecord(findOwn(record.calls, id));
  const failed = extra["argumentsError"];
  const isBroken = typeof failed === "string" || !isRecord(input);
  return {
    type: "toolCall",
    id,
    name: named,
    arguments: isRecord(input) ? input : {},
    ...pickTexts(extra, ["signature", "rawArguments"]),
    ...(extra["repaired"] === true && { repaired: true }),
    ...(isBroken && {
      argumentsError: typeof failed === "string" ? failed : "They are no JSON object.",
      ...(typeof extra["rawArguments"] !== "string" && {
        rawArguments: typeof input === "string" ? input : (JSON.stringify(input) ?? ""),
      }),
    }),
  };
}

function readResult(part: Loose, call: ToolCall, record: MessageRecord): Message | undefined {
  const { state } = part;
  if (!isOutputState(state) || part["preliminary"] === true) return undefined;
  const reason = toRecord(part["approval"])["reason"];
  const shown = {
    "output-available": part["output"],
    "output-error": part["errorText"],
    "output-denied": typeof reason === "string" ? reason : "Denied.",
  }[state];
  return fromResultRecord(call, state, shown, findOwn(record.results, call.id));
}

function isOutputState(state: unknown): state is OutputState {
  return state === "output-available" || state === "output-error" || state === "output-denied";
}

function readQuestion({ state, approval }: Loose, call: ToolCall): UIQuestion[] {
  const { id: approvalId, approved, reason } = toRecord(approval);
  if (typeof approvalId !== "string") return [];
  const isAnswered = state === "approval-responded" && typeof approved === "boolean";
  return [
    {
      call,
      approvalId,
      ...(isAnswered && { approved }),
      ...(isAnswered && typeof reason === "string" && { reason }),
    },
  ];
}

/** What this library wrote into a part. */
function readOwn(metadata: unknown): Loose {
  return toRecord(toRecord(metadata)[RECORD_KEY]);
}

/** Names come from the client: those that every object has are not in the record. */
function findOwn<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return isRecord(record) && Object.hasOwn(record, name) ? record[name] : undefined;
}

function pickTexts<Name extends string>(
  from: Loose,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const picked: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = from[name];
    if (typeof value === "string") picked[name] = value;
  }
  return picked;
}
