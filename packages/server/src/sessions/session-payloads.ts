import type { AgentMessage, AgentToolResult, Decision, QueueMode, QueueName } from "@gyre/agent";
import { userMessage } from "@gyre/agent";
import type { ImageContent, JsonSchema, ThinkingLevel, UserContent, UserMessage } from "@gyre/ai";
import { isRecord, type Payload, ProtocolError } from "@gyre/protocol";
import type { SessionChanges, SessionPrompt } from "./session-host.ts";

// What clients send, read strictly: everything here throws `invalid_request`, and says why.

const LEVELS: ReadonlySet<unknown> = new Set<ThinkingLevel>([
  "off",
  "minimal",
  "low",
  "medium",
  "high",
  "xhigh",
]);
const QUEUE_MODES: ReadonlySet<unknown> = new Set<QueueMode>(["one-at-a-time", "all"]);
const CHANGES: ReadonlySet<string> = new Set<keyof SessionChanges>([
  "model",
  "thinkingLevel",
  "systemPrompt",
  "tools",
  "modes",
]);
const MODES: ReadonlySet<string> = new Set<keyof NonNullable<SessionChanges["modes"]>>([
  "steering",
  "followUp",
  "permission",
]);

export function wrong(what: string): ProtocolError {
  return new ProtocolError("invalid_request", what);
}

/** `{text, images?}` */
export function promptIn(payload: Payload): SessionPrompt {
  const { text = "", images, output } = payload;
  if (typeof text !== "string") throw wrong('"text" is a string.');
  if (output !== undefined) {
    throw new ProtocolError("not_implemented", '"output" is not served here.');
  }
  if (images !== undefined && (!Array.isArray(images) || !images.every(isImage))) {
    throw wrong('"images" is a list of {type: "image", data, mimeType}.');
  }
  if (text === "" && (images === undefined || images.length === 0)) {
    throw wrong("The prompt is empty: give a text or an image.");
  }
  return { text, ...(images !== undefined && { images }) };
}

/** The same as a message that can wait in a queue. */
export function messageIn(payload: Payload, now: number): UserMessage {
  const { text, images = [] } = promptIn(payload);
  return userMessage(text, now, images);
}

/** `{decisions: {callId: {type: "approve" | "deny" | "result" | "wait"}}}`, of calls that wait. */
export function decisionsIn(
  { decisions }: Payload,
  waiting: readonly string[],
): Record<string, Decision> {
  if (!isRecord(decisions)) throw wrong('"decisions" is an object, by the ids of calls.');
  const made: Record<string, Decision> = {};
  for (const [id, decision] of Object.entries(decisions)) {
    if (!waiting.includes(id)) throw wrong(`No call "${id}" waits for a decision.`);
    made[id] = decisionOf(id, decision);
  }
  return made;
}

function decisionOf(id: string, value: unknown): Decision {
  if (!isRecord(value)) throw wrong(`The decision on "${id}" is an object with a "type".`);
  const { type, fingerprint, reason, result } = value;
  const why = typeof reason === "string" ? { reason } : {};
  switch (type) {
    case "approve":
      return { type, ...(typeof fingerprint === "string" && { fingerprint }) };
    case "deny":
    case "wait":
      return { type, ...why };
    case "result":
      return { type, result: resultIn(result, `for "${id}"`) };
    default:
      throw wrong(`The decision on "${id}" is one of approve, deny, result and wait.`);
  }
}

/** `{content, details?, isError?, terminate?}`. What it cost is not taken from a client. */
export function resultIn(value: unknown, whose: string): AgentToolResult {
  if (!isRecord(value) || !isContent(value["content"])) {
    throw wrong(`The result ${whose} has "content", a list of texts and images.`);
  }
  const { content, details, isError, terminate } = value;
  return {
    content,
    ...(details !== undefined && { details }),
    ...(typeof isError === "boolean" && { isError }),
    ...(typeof terminate === "boolean" && { terminate }),
  };
}

/** Tools that a client may lend at a time. */
export const MAX_LENT_TOOLS = 128;
/** What every service takes as the name of a tool. */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** A tool as a client tells of it. */
export interface ToolSpec {
  name: string;
  description: string;
  parameters: JsonSchema;
  concurrent?: boolean;
  timeoutMs?: number;
}

/** `{tools: [{name, description, parameters, concurrent?, timeoutMs?}], lender?}` */
export function toolsIn({ tools, lender }: Payload): {
  tools: ToolSpec[];
  lender: string | undefined;
} {
  if (!Array.isArray(tools)) throw wrong('"tools" is a list of {name, description, parameters}.');
  if (tools.length > MAX_LENT_TOOLS) throw wrong(`"tools" has at most ${MAX_LENT_TOOLS} entries.`);
  if (lender !== undefined && typeof lender !== "string") throw wrong('"lender" is a name.');
  return { tools: tools.map(toolIn), lender };
}

function toolIn(tool: unknown): ToolSpec {
  if (!isRecord(tool)) throw wrong("A tool is an object.");
  const { name, description, parameters, concurrent, timeoutMs } = tool;
  if (typeof name !== "string" || !TOOL_NAME.test(name)) {
    throw wrong('"name" of a tool has 1 to 64 letters, digits, "_" and "-".');
  }
  if (typeof description !== "string") throw wrong(`"description" of "${name}" is a string.`);
  if (!isRecord(parameters) || parameters["type"] !== "object") {
    throw wrong(`"parameters" of "${name}" is a JSON Schema of type "object".`);
  }
  if (timeoutMs !== undefined && (typeof timeoutMs !== "number" || timeoutMs <= 0)) {
    throw wrong(`"timeoutMs" of "${name}" is a number above 0.`);
  }
  return {
    name,
    description,
    parameters,
    ...(typeof concurrent === "boolean" && { concurrent }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
}

/** `{model?, thinkingLevel?, systemPrompt?, tools?, modes?}` */
export function changesIn(payload: Payload): SessionChanges {
  const { model, thinkingLevel, systemPrompt, tools, modes } = payload;
  const unknown = Object.keys(payload).find((key) => !CHANGES.has(key));
  if (unknown !== undefined) throw wrong(`"${unknown}" is nothing that can be changed.`);
  if (model !== undefined && typeof model !== "string") throw wrong('"model" is a name.');
  if (thinkingLevel !== undefined && !isLevel(thinkingLevel)) {
    throw wrong(`"thinkingLevel" is one of ${[...LEVELS].join(", ")}.`);
  }
  if (systemPrompt !== undefined && typeof systemPrompt !== "string") {
    throw wrong('"systemPrompt" is a string.');
  }
  if (tools !== undefined && !isStrings(tools)) throw wrong('"tools" is a list of names.');
  return {
    ...(model !== undefined && { model }),
    ...(thinkingLevel !== undefined && { thinkingLevel }),
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(tools !== undefined && { tools }),
    ...(modes !== undefined && { modes: modesIn(modes) }),
  };
}

function modesIn(modes: unknown): NonNullable<SessionChanges["modes"]> {
  if (!isRecord(modes)) throw wrong('"modes" is an object.');
  const { steering, followUp, permission } = modes;
  const unknown = Object.keys(modes).find((key) => !MODES.has(key));
  if (unknown !== undefined) throw wrong(`There is no mode "${unknown}".`);
  if (steering !== undefined && !isQueueMode(steering)) throw wrong(queueMode("steering"));
  if (followUp !== undefined && !isQueueMode(followUp)) throw wrong(queueMode("followUp"));
  if (permission !== undefined && typeof permission !== "string") {
    throw wrong('"modes.permission" is a name.');
  }
  return {
    ...(steering !== undefined && { steering }),
    ...(followUp !== undefined && { followUp }),
    ...(permission !== undefined && { permission }),
  };
}

function queueMode(name: string): string {
  return `"modes.${name}" is one of ${[...QUEUE_MODES].join(", ")}.`;
}

/** What is to be done with a message that waits. */
export type QueueEdit =
  | { op: "list" | "clear"; queue: QueueName }
  | { op: "edit"; queue: QueueName; id: string; message: UserMessage }
  | { op: "remove"; queue: QueueName; id: string }
  | { op: "move"; queue: QueueName; id: string; place: number };

/** `{queue, op, id?, text?, images?, place?}` */
export function queueEditIn(payload: Payload, now: number): QueueEdit {
  const { queue, op, id, place } = payload;
  if (queue !== "steering" && queue !== "followUp") {
    throw wrong('"queue" is one of steering and followUp.');
  }
  if (op === "list" || op === "clear") return { op, queue };
  if (typeof id !== "string") throw wrong('"id" is the name of a message that waits.');
  if (op === "edit") return { op, queue, id, message: messageIn(payload, now) };
  if (op === "remove") return { op, queue, id };
  if (op !== "move") throw wrong('"op" is one of list, clear, edit, remove and move.');
  if (typeof place !== "number" || !Number.isSafeInteger(place)) {
    throw wrong('"place" is a whole number.');
  }
  return { op, queue, id, place };
}

/** `{messages}` */
export function messagesIn({ messages }: Payload): AgentMessage[] {
  if (!Array.isArray(messages)) throw wrong('"messages" is a list.');
  const at = messages.findIndex((message) => !isMessage(message));
  if (at >= 0) throw wrong(`Message ${at} of "messages" is no message.`);
  return messages as AgentMessage[];
}

function isMessage(value: unknown): boolean {
  if (!isRecord(value) || typeof value["timestamp"] !== "number") return false;
  const { role, content } = value;
  if (role === "user") return typeof content === "string" || isContent(content);
  if (role === "toolResult") {
    const { toolCallId, toolName, isError } = value;
    const isNamed = typeof toolCallId === "string" && typeof toolName === "string";
    return isNamed && typeof isError === "boolean" && isContent(content);
  }
  if (role !== "assistant") return false;
  const { api, provider, model, usage, stopReason } = value;
  if (!isStrings([api, provider, model, stopReason]) || !isRecord(usage)) return false;
  return Array.isArray(content) && content.every(isAssistantBlock);
}

function isAssistantBlock(block: unknown): boolean {
  if (!isRecord(block)) return false;
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string";
    case "thinking":
      return typeof block["thinking"] === "string";
    case "toolCall":
      return isStrings([block["id"], block["name"]]) && isRecord(block["arguments"]);
    case "serviceTool":
      return isStrings([block["id"], block["name"]]);
    default:
      return isImage(block);
  }
}

function isContent(value: unknown): value is UserContent[] {
  return (
    Array.isArray(value) &&
    value.every((block) => {
      if (isImage(block)) return true;
      return isRecord(block) && block["type"] === "text" && typeof block["text"] === "string";
    })
  );
}

function isImage(value: unknown): value is ImageContent {
  if (!isRecord(value) || value["type"] !== "image") return false;
  return isStrings([value["data"], value["mimeType"]]);
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isLevel(value: unknown): value is ThinkingLevel {
  return LEVELS.has(value);
}

function isQueueMode(value: unknown): value is QueueMode {
  return QUEUE_MODES.has(value);
}
