import {
  type AssistantContent,
  type AssistantMessage,
  type Cost,
  isRecord,
  type StopReason,
  type ThinkingContent,
  type ToolCall,
  type ToolResultMessage,
  type Usage,
  type UserContent,
  type UserMessage,
} from "@gyre/ai";
import { type Fields, parseFields } from "../format/body.ts";

/** Called with a part that cannot be imported. */
export type Skip = (type: string, why: string) => void;

export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** What a service or the user said: a text, or blocks of text and images. */
export function userContent(value: unknown, skip: Skip): string | UserContent[] {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) {
    skip("content", "It is neither a text nor a list of blocks.");
    return "";
  }
  return value.flatMap((block: unknown): UserContent[] => {
    if (isRecord(block)) {
      const data = text(block["data"]);
      const mimeType = text(block["mimeType"]);
      const content = text(block["text"]);
      if (block["type"] === "text" && content !== undefined)
        return [{ type: "text", text: content }];
      if (block["type"] === "image" && data !== undefined && mimeType !== undefined) {
        return [{ type: "image", data, mimeType }];
      }
    }
    skip(blockName(block), "A block of this kind cannot be in a message of the user or a tool.");
    return [];
  });
}

export function userMessage(content: UserMessage["content"], timestamp: number): UserMessage {
  return { role: "user", content, timestamp };
}

/**
 * The prompt that messages of the role "system" make together: their texts, then the newest of
 * each section, by name. One that is null was taken out.
 */
export function systemPrompt(messages: readonly Fields[]): string {
  const sections = new Map<string, unknown>();
  for (const { sections: changes } of messages) {
    for (const [name, section] of Object.entries(isRecord(changes) ? changes : {})) {
      sections.set(name, section);
    }
  }
  const texts = messages
    .flatMap(({ content }) => content)
    .map((part) => (isRecord(part) ? part["text"] : part));
  return [...texts, ...sections.values()].filter((part) => text(part)).join("\n\n");
}

/** A command that the user ran beside the conversation, in words for the model. */
export function commandText(fields: Fields): string {
  const exitCode = count(fields["exitCode"]);
  const output = text(fields["output"]) ?? "";
  const notes = [
    fields["cancelled"] === true ? "cancelled" : "",
    exitCode === undefined || exitCode === 0 ? "" : `exit code ${exitCode}`,
    fields["truncated"] === true ? "the output was cut" : "",
    output === "" ? "no output" : "",
  ].filter((note) => note !== "");
  return [
    "[The user ran a command]",
    `$ ${text(fields["command"]) ?? ""}`,
    ...(output === "" ? [] : [output]),
    ...(notes.length === 0 ? [] : [`[${notes.join("; ")}]`]),
  ].join("\n");
}

/** How the wires of pi are called here, where the names differ. */
const WIRES: Readonly<Record<string, string>> = {
  "azure-openai-responses": "openai-responses",
  "google-vertex": "google-generative-ai",
};

const STOPS: Readonly<Record<string, StopReason>> = {
  stop: "stop",
  length: "length",
  toolUse: "toolUse",
  error: "error",
  aborted: "aborted",
  // Its end is not in the file.
  pending: "aborted",
  deferred: "aborted",
};

/** Gives the id under which a call is known here. */
export type NameCall = (id: string, callId: string) => string;

export function assistantMessage(
  fields: Fields,
  timestamp: number,
  nameCall: NameCall,
  skip: Skip,
): AssistantMessage {
  const name = text(fields["api"]) ?? "unknown";
  const api = WIRES[name] ?? name;
  const model = text(fields["model"]) ?? "unknown";
  const servedModel = text(fields["responseModel"]);
  const responseId = text(fields["responseId"]);
  const errorMessage = text(fields["errorMessage"]);
  const content = assistantContent(fields["content"], api, nameCall, skip);
  const calls = content.some((block) => block.type === "toolCall");
  return {
    role: "assistant",
    content,
    api,
    provider: text(fields["provider"]) ?? "unknown",
    model,
    ...(servedModel !== undefined && servedModel !== model && { servedModel }),
    ...(responseId !== undefined && { responseId }),
    usage: parseUsage(fields["usage"]),
    stopReason: STOPS[text(fields["stopReason"]) ?? ""] ?? (calls ? "toolUse" : "stop"),
    ...(errorMessage !== undefined && { errorMessage }),
    timestamp,
  };
}

function assistantContent(
  value: unknown,
  api: string,
  nameCall: NameCall,
  skip: Skip,
): AssistantContent[] {
  if (typeof value === "string") return value === "" ? [] : [{ type: "text", text: value }];
  if (!Array.isArray(value)) {
    skip("content", "It is neither a text nor a list of blocks.");
    return [];
  }
  const content: AssistantContent[] = [];
  const details: unknown[] = [];
  for (const block of value as unknown[]) {
    const mapped = isRecord(block) ? assistantBlock(block, api, nameCall) : undefined;
    if (mapped) content.push(mapped);
    else skip(blockName(block), "A block of this kind cannot be in an answer.");
    if (mapped?.type === "toolCall" && isRecord(block)) details.push(...sealedDetail(block, api));
  }
  return details.length === 0 ? content : withDetails(content, JSON.stringify(details));
}

function assistantBlock(
  block: Fields,
  api: string,
  nameCall: NameCall,
): AssistantContent | undefined {
  switch (block["type"]) {
    case "text": {
      const content = text(block["text"]);
      if (content === undefined) return undefined;
      return { type: "text", text: content, ...signed(textProof(block["textSignature"], api)) };
    }
    case "thinking": {
      const thinking = text(block["thinking"]);
      if (thinking === undefined) return undefined;
      const proof = KEEPS_THINKING_PROOF.has(api) ? block["thinkingSignature"] : undefined;
      const redacted = block["redacted"] === true;
      return { type: "thinking", thinking, ...signed(proof), ...(redacted && { redacted }) };
    }
    case "toolCall":
      return toolCall(block, api, nameCall);
    default:
      return undefined;
  }
}

/** Responses have an id for the call and one for the item; pi keeps both in one string. */
const ID_SEPARATOR = "|";

function toolCall(block: Fields, api: string, nameCall: NameCall): ToolCall | undefined {
  const id = text(block["id"]);
  const name = text(block["name"]);
  if (id === undefined || name === undefined) return undefined;
  const given = block["arguments"];
  const cut = api.endsWith("-responses") ? id.indexOf(ID_SEPARATOR) : -1;
  const proof = cut < 0 ? undefined : id.slice(cut + ID_SEPARATOR.length);
  return {
    type: "toolCall",
    id: nameCall(id, cut < 0 ? id : id.slice(0, cut)),
    name,
    ...(isRecord(given)
      ? { arguments: given }
      : {
          arguments: {},
          rawArguments: typeof given === "string" ? given : (JSON.stringify(given) ?? ""),
          argumentsError: "They are no JSON object.",
        }),
    ...signed(api === "google-generative-ai" ? block["thoughtSignature"] : proof),
  };
}

/** Where a thought's proof is the same string here. Elsewhere pi notes the name of a field in it. */
const KEEPS_THINKING_PROOF: ReadonlySet<string> = new Set([
  "anthropic-messages",
  "bedrock-converse-stream",
  "google-generative-ai",
  "openai-responses",
]);

function signed(proof: unknown): { signature?: string } {
  return typeof proof === "string" && proof !== "" ? { signature: proof } : {};
}

/** The id of the item that a text was of: alone in older files, else with the phase, as JSON. */
function textProof(proof: unknown, api: string): string | undefined {
  if (typeof proof !== "string" || proof === "") return undefined;
  if (api === "google-generative-ai") return proof;
  if (api !== "openai-responses") return undefined;
  const parsed = parseFields(proof);
  if (!parsed) return JSON.stringify({ id: proof });
  const { id, phase } = parsed;
  return JSON.stringify({ id, phase });
}

/** Chat services seal thoughts in details; pi keeps one beside the call that it was made for. */
function sealedDetail(block: Fields, api: string): Fields[] {
  const proof = api === "openai-completions" ? text(block["thoughtSignature"]) : undefined;
  const detail = proof === undefined ? undefined : parseFields(proof);
  return detail ? [detail] : [];
}

/** Here the details belong to a thought. */
function withDetails(content: AssistantContent[], signature: string): AssistantContent[] {
  const index = content.findIndex((block) => block.type === "thinking");
  const thought = content[index];
  const sealed: ThinkingContent =
    thought?.type === "thinking"
      ? { ...thought, signature }
      : { type: "thinking", thinking: "", signature, redacted: true };
  return thought ? content.with(index, sealed) : [sealed, ...content];
}

export function toolResult(
  fields: Fields,
  toolCallId: string,
  timestamp: number,
  skip: Skip,
): ToolResultMessage {
  const content = userContent(fields["content"], skip);
  const details = fields["details"];
  return {
    role: "toolResult",
    toolCallId,
    toolName: text(fields["toolName"]) ?? "unknown",
    content: typeof content === "string" ? [{ type: "text", text: content }] : content,
    ...(details !== undefined && details !== null && { details }),
    isError: fields["isError"] === true,
    timestamp,
  };
}

const TOKENS = ["input", "output", "cacheRead", "cacheWrite", "reasoning", "totalTokens"] as const;
const PRICED = ["input", "output", "cacheRead", "cacheWrite"] as const;

/** pi writes 0 for figures that it does not know: where all are 0, none is known. */
function parseUsage(value: unknown): Usage {
  if (!isRecord(value)) return {};
  const usage: Usage = {};
  for (const name of TOKENS) {
    const tokens = count(value[name]);
    if (tokens !== undefined) usage[name] = tokens;
  }
  const cost = parseCost(value["cost"]);
  if (cost) usage.cost = cost;
  return cost || TOKENS.some((name) => usage[name]) ? usage : {};
}

/** A total of 0 is that of a model without a price, which is not a price of 0. */
function parseCost(value: unknown): Cost | undefined {
  const total = isRecord(value) ? count(value["total"]) : undefined;
  if (!isRecord(value) || !total) return undefined;
  const cost: Cost = { total };
  for (const name of PRICED) {
    const price = count(value[name]);
    if (price !== undefined) cost[name] = price;
  }
  return cost;
}

function blockName(block: unknown): string {
  const type = isRecord(block) ? text(block["type"]) : undefined;
  return `block ${type ?? typeof block}`;
}
