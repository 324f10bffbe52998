import type { AgentMessage, AgentToolResult, Decision, QueueMode, QueueName } from "@gyre/agent";
import { readDecisions, userMessage } from "@gyre/agent";
import {
  errorMessage,
  isRecord,
  type JsonSchema,
  THINKING_LEVELS,
  type UserMessage,
} from "@gyre/ai";
import {
  type FieldRules,
  invalidRequest,
  isImageContent,
  isMessage,
  isText,
  isUserContent,
  createChoiceRule,
  parseFields,
  type Payload,
  ProtocolError,
} from "@gyre/protocol";
import type {
  SessionChanges,
  SessionListRequest,
  SessionPrompt,
  SessionSearchRequest,
} from "./session-host.ts";

// Parsers of requests, all strict: they throw `invalid_request` with the reason.

type Modes = NonNullable<SessionChanges["modes"]>;

const QUEUE_MODE = createChoiceRule<QueueMode>(["one-at-a-time", "all"]);
const MODES: FieldRules<Modes> = {
  steering: QUEUE_MODE,
  followUp: QUEUE_MODE,
  permission: { what: "a name", is: isText },
};
const CHANGES: FieldRules<Omit<SessionChanges, "modes"> & { modes: Payload }> = {
  model: { what: "a name", is: isText },
  thinkingLevel: createChoiceRule(THINKING_LEVELS),
  systemPrompt: { what: "a string", is: isText },
  tools: { what: "a list of names", is: isNames },
  modes: { what: "an object", is: isRecord },
};

/** `{text, images?, attachments?}` */
export function parsePrompt(payload: Payload): SessionPrompt {
  const { text = "", images, attachments, output } = payload;
  if (typeof text !== "string") throw invalidRequest('"text" is a string.');
  if (output !== undefined) {
    throw new ProtocolError("not_implemented", '"output" is not served here.');
  }
  if (images !== undefined && (!Array.isArray(images) || !images.every(isImageContent))) {
    throw invalidRequest('"images" is a list of {type: "image", data, mimeType}.');
  }
  if (attachments !== undefined && !isUserContent(attachments)) {
    throw invalidRequest('"attachments" is a list of texts, images and files.');
  }
  if (text === "" && !images?.length && !attachments?.length) {
    throw invalidRequest("The prompt is empty: give a text, an image or a file.");
  }
  return {
    text,
    ...(images !== undefined && { images }),
    ...(attachments !== undefined && { attachments }),
  };
}

/** `{session, sha256, offset?}` */
export function parseFileRequest({ session, sha256, offset = 0 }: Payload): {
  session: string;
  sha256: string;
  offset: number;
} {
  if (typeof session !== "string") throw invalidRequest('"session" is the id of a session.');
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) {
    throw invalidRequest('"sha256" is a SHA-256 in hexadecimal.');
  }
  if (typeof offset !== "number" || !Number.isSafeInteger(offset) || offset < 0) {
    throw invalidRequest('"offset" is a whole number of bytes.');
  }
  return { session, sha256, offset };
}

/** The same as a message for a queue. */
export function parseMessage(payload: Payload, now: number): UserMessage {
  const { text, images = [], attachments = [] } = parsePrompt(payload);
  return userMessage(text, now, [...attachments, ...images]);
}

/** `{decisions: {callId: {type: "approve" | "deny" | "result" | "wait"}}}`, of calls that wait where that is known. */
export function parseDecisions(
  { decisions }: Payload,
  waiting: readonly string[] | undefined,
): Record<string, Decision> {
  const ids = isRecord(decisions) ? Object.keys(decisions) : [];
  const unknown = waiting && ids.find((id) => !waiting.includes(id));
  if (unknown !== undefined) throw invalidRequest(`No call "${unknown}" waits for a decision.`);
  const made: Record<string, Decision> = {};
  for (const [id, decision] of Object.entries(checkDecisions(decisions))) {
    made[id] = pickDecision(id, decision);
  }
  return made;
}

function checkDecisions(decisions: unknown): Readonly<Record<string, Decision>> {
  try {
    return readDecisions(decisions);
  } catch (error) {
    throw invalidRequest(errorMessage(error));
  }
}

/** What a client may say of it. */
function pickDecision(id: string, decision: Decision): Decision {
  switch (decision.type) {
    case "approve": {
      const { type, fingerprint, args, keep, direct } = decision;
      return {
        type,
        ...(fingerprint !== undefined && { fingerprint }),
        ...(args && { args }),
        ...(keep && { keep }),
        ...(direct !== undefined && { direct }),
      };
    }
    case "deny":
    case "wait": {
      const { type, reason } = decision;
      return { type, ...(typeof reason === "string" && { reason }) };
    }
    case "result":
      return { type: decision.type, result: parseResult(decision.result, `for "${id}"`) };
    default:
      return decision satisfies never;
  }
}

/** `{content, details?, isError?, terminate?}`. Usage is not accepted from a client. */
export function parseResult(value: unknown, whose: string): AgentToolResult {
  if (!isRecord(value) || !isUserContent(value["content"])) {
    throw invalidRequest(`The result ${whose} has "content", a list of texts, images and files.`);
  }
  const { content, details, isError, terminate } = value;
  return {
    content,
    ...(details !== undefined && { details }),
    ...(typeof isError === "boolean" && { isError }),
    ...(typeof terminate === "boolean" && { terminate }),
  };
}

/** How many tools a client may register. */
export const MAX_CLIENT_TOOLS = 128;
/** The names of tools that every service accepts. */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** A tool as a client describes it. */
export interface ToolSpec {
  name: string;
  description: string;
  parameters: JsonSchema;
  concurrent?: boolean;
  timeoutMs?: number;
}

/** A client that knows the name of another can take over its tools, so it must be hard to guess. */
const MIN_CLIENT_CHARS = 16;
const MAX_CLIENT_CHARS = 128;

function isSecretName(name: unknown): name is string {
  return (
    typeof name === "string" && name.length >= MIN_CLIENT_CHARS && name.length <= MAX_CLIENT_CHARS
  );
}

/** `{tools: [{name, description, parameters, concurrent?, timeoutMs?}], client?, calls?}` */
export function parseTools({ tools, client: clientName, calls }: Payload): {
  tools: ToolSpec[];
  clientName: string | undefined;
  calls: string[] | undefined;
} {
  if (!Array.isArray(tools))
    throw invalidRequest('"tools" is a list of {name, description, parameters}.');
  if (tools.length > MAX_CLIENT_TOOLS)
    throw invalidRequest(`"tools" has at most ${MAX_CLIENT_TOOLS} entries.`);
  if (clientName !== undefined && !isSecretName(clientName)) {
    const size = `${MIN_CLIENT_CHARS} to ${MAX_CLIENT_CHARS} characters`;
    throw invalidRequest(`"client" is a secret of the client, ${size}: a random UUID, say.`);
  }
  if (calls !== undefined && !isNames(calls)) {
    throw invalidRequest('"calls" is a list of names of calls.');
  }
  return { tools: tools.map(parseTool), clientName, calls };
}

function parseTool(tool: unknown): ToolSpec {
  if (!isRecord(tool)) throw invalidRequest("A tool is an object.");
  const { name, description, parameters, concurrent, timeoutMs } = tool;
  if (typeof name !== "string" || !TOOL_NAME.test(name)) {
    throw invalidRequest('"name" of a tool has 1 to 64 letters, digits, "_" and "-".');
  }
  if (typeof description !== "string")
    throw invalidRequest(`"description" of "${name}" is a string.`);
  if (!isRecord(parameters) || parameters["type"] !== "object") {
    throw invalidRequest(`"parameters" of "${name}" is a JSON Schema of type "object".`);
  }
  if (timeoutMs !== undefined && (typeof timeoutMs !== "number" || timeoutMs <= 0)) {
    throw invalidRequest(`"timeoutMs" of "${name}" is a number above 0.`);
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
export function parseChanges(payload: Payload): SessionChanges {
  const unknown = Object.keys(payload).find((key) => !Object.hasOwn(CHANGES, key));
  if (unknown !== undefined) throw invalidRequest(`"${unknown}" cannot be changed.`);
  const { modes, ...changes } = parseFields(payload, CHANGES);
  return isRecord(modes) ? { ...changes, modes: parseModes(modes) } : changes;
}

function parseModes(modes: Payload): Modes {
  const unknown = Object.keys(modes).find((key) => !Object.hasOwn(MODES, key));
  if (unknown !== undefined) throw invalidRequest(`There is no mode "${unknown}".`);
  return parseFields(modes, MODES, "modes.");
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText);
}

/** A change of a queue. */
export type QueueEdit =
  | { op: "list"; queue: QueueName }
  | { op: "clear"; queue: QueueName }
  | { op: "edit"; queue: QueueName; id: string; message: UserMessage }
  | { op: "remove"; queue: QueueName; id: string }
  | { op: "move"; queue: QueueName; id: string; place: number };

/** `{queue, op, id?, text?, images?, place?}` */
export function parseQueueEdit(payload: Payload, now: number): QueueEdit {
  const { queue, op, id, place } = payload;
  if (queue !== "steering" && queue !== "followUp") {
    throw invalidRequest('"queue" is one of steering and followUp.');
  }
  if (op === "list" || op === "clear") return { op, queue };
  if (typeof id !== "string") throw invalidRequest('"id" is the name of a message that waits.');
  if (op === "edit") return { op, queue, id, message: parseMessage(payload, now) };
  if (op === "remove") return { op, queue, id };
  if (op !== "move") throw invalidRequest('"op" is one of list, clear, edit, remove and move.');
  if (typeof place !== "number" || !Number.isSafeInteger(place)) {
    throw invalidRequest('"place" is a whole number.');
  }
  return { op, queue, id, place };
}

/** How many sessions one page may have. */
export const MAX_PAGE = 1000;
const MAX_CURSOR_CHARS = 512;

const MAX_QUERY_CHARS = 1000;
const MAX_PATH_CHARS = 4096;
const MAX_TITLE_CHARS = 200;

const PAGE: FieldRules<Omit<SessionListRequest, "after" | "limit">> = {
  query: {
    what: `a string of at most ${MAX_QUERY_CHARS} characters`,
    is: isShort(MAX_QUERY_CHARS),
  },
  cwd: { what: "a folder", is: isShort(MAX_PATH_CHARS) },
  archived: { what: "true or false", is: (value) => typeof value === "boolean" },
  allFolders: { what: "true or false", is: (value) => typeof value === "boolean" },
  order: createChoiceRule(["created", "live", "updated"]),
};

/** `{limit?, cursor?, query?, cwd?, allFolders?, archived?, order?}`; nothing where none is there: all are asked for. */
export function parsePage(payload: Payload): SessionListRequest | undefined {
  const { limit, cursor } = payload;
  const filter = parseFields(payload, PAGE);
  if (limit === undefined && cursor === undefined && Object.keys(filter).length === 0) {
    return undefined;
  }
  if (typeof limit !== "number" || !Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw invalidRequest(`"limit" is a whole number from 1 to ${MAX_PAGE}.`);
  }
  if (filter["allFolders"] === true && filter["cwd"] !== undefined) {
    throw invalidRequest('"cwd" is one folder: leave it or "allFolders" out.');
  }
  if (cursor === undefined) return { ...filter, limit };
  if (typeof cursor !== "string" || cursor === "" || cursor.length > MAX_CURSOR_CHARS) {
    throw invalidRequest('"cursor" is "next" of the page before.');
  }
  return { ...filter, limit, after: cursor };
}

/** `{text, limit, cursor?, cwd?, archived?}` */
export function parseSearch({ text, ...payload }: Payload): SessionSearchRequest {
  if (typeof text !== "string" || text.trim() === "" || text.length > MAX_QUERY_CHARS) {
    throw invalidRequest(`"text" has 1 to ${MAX_QUERY_CHARS} characters.`);
  }
  const page = parsePage(payload);
  if (!page) throw invalidRequest(`"limit" is a whole number from 1 to ${MAX_PAGE}.`);
  const { query: _query, order: _order, allFolders: _all, ...request } = page;
  return { ...request, text };
}

/** `{session, title}` */
export function parseRename({ session, title }: Payload): { session: string; title: string } {
  const name = typeof title === "string" ? title.trim() : "";
  if (name === "" || name.length > MAX_TITLE_CHARS) {
    throw invalidRequest(`"title" has 1 to ${MAX_TITLE_CHARS} characters.`);
  }
  return { session: parseSessionId(session), title: name };
}

/** `{session, archived?}` */
export function parseArchive({ session, archived = true }: Payload): {
  session: string;
  archived: boolean;
} {
  if (typeof archived !== "boolean") throw invalidRequest('"archived" is true or false.');
  return { session: parseSessionId(session), archived };
}

/** `{session, at?}` */
export function parseFork({ session, at }: Payload): { session: string; at?: number } {
  const id = parseSessionId(session);
  if (at === undefined) return { session: id };
  if (typeof at !== "number" || !Number.isSafeInteger(at) || at < 1) {
    throw invalidRequest('"at" is the number of an entry, from 1 on.');
  }
  return { session: id, at };
}

function parseSessionId(id: unknown): string {
  if (typeof id === "string" && id !== "") return id;
  throw invalidRequest('"session" is the id of a session.');
}

function isShort(most: number): (value: unknown) => value is string {
  return (value): value is string => typeof value === "string" && value.length <= most;
}

/** `{messages}` */
export function parseMessages({ messages }: Payload): AgentMessage[] {
  if (!Array.isArray(messages)) throw invalidRequest('"messages" is a list.');
  const at = messages.findIndex((message) => !isMessage(message));
  if (at >= 0) throw invalidRequest(`Message ${at} of "messages" is not a message.`);
  return messages;
}
