import type {
  AssistantContent,
  AssistantMessage,
  Message,
  Model,
  TextContent,
} from "../messages/messages.ts";
import { isOwn, toWellFormed } from "../messages/transform-messages.ts";
import { CitedSources, formatSource } from "./citations.ts";
import { listServiceTools, type ServiceToolSource, type ServiceToolUse } from "./read.ts";

/** How much another service is shown of what a tool gave. */
export const MAX_SHOWN_CHARS = 2_000;
/** How many results of a search. */
export const MAX_SHOWN_SOURCES = 20;

/** Whether a message has what only its own service can read: tools that it ran, or citations. */
export function hasServiceParts({ content }: AssistantMessage): boolean {
  return content.some((block) => block.type === "serviceTool" || "citations" in block);
}

/**
 * Writes what other services ran and cited as text that every model can read, with its sources.
 * Messages of `model` itself stay as they are: their service wants its blocks back.
 */
export function withServiceTexts(messages: readonly Message[], model: Model): Message[] {
  return messages.map((message) =>
    message.role === "assistant" && !isOwn(message, model) && hasServiceParts(message)
      ? { ...message, content: toTexts(message) }
      : message,
  );
}

function toTexts(message: AssistantMessage): AssistantContent[] {
  const sources = new CitedSources();
  const uses = new Map(listServiceTools(message).map((use) => [use.id, use]));
  const content = message.content.flatMap((block): AssistantContent[] => {
    if (block.type === "text") {
      const { citations, signature: _, ...rest } = block;
      return [{ ...rest, text: sources.mark(block.text, citations) }];
    }
    if (block.type !== "serviceTool") return [block];
    // The request and its result are one text, where the request stood.
    const use = uses.get(block.id);
    uses.delete(block.id);
    return use ? [{ type: "text", text: describeUse(use) }] : [];
  });
  if (sources.list.length === 0) return content;
  const list = sources.list.map((source, index) => `[${index + 1}] ${formatSource(source)}`);
  const last = content.findLastIndex(({ type }) => type === "text");
  return content.map((block, index) =>
    index === last ? appendText(block, `\n\nSources:\n${list.join("\n")}`) : block,
  );
}

function appendText(block: AssistantContent, more: string): AssistantContent {
  return block.type === "text"
    ? ({ ...block, text: block.text + toWellFormed(more) } satisfies TextContent)
    : block;
}

/** What a tool of a service was asked and what it gave, as text. */
export function describeUse(use: ServiceToolUse): string {
  const failed = use.error === undefined ? "" : ` It failed: ${shorten(use.error)}`;
  const ended = failed === "" && !use.isDone ? " There is no result." : failed;
  return `[${shorten(describeWork(use))}${ended}]`;
}

function describeWork(use: ServiceToolUse): string {
  switch (use.kind) {
    case "webSearch":
      return `The service searched the web for ${quoteAll(use.queries)}.${listFound(use.sources)}`;
    case "fileSearch":
      return `The service searched files for ${quoteAll(use.queries)}.${listFound(use.sources)}`;
    case "webFetch":
      return `The service read ${use.urls.join(", ") || "a page"}.${listFound(use.sources)}`;
    case "codeExecution": {
      const code = use.code === undefined ? "code." : `this code:\n${use.code}`;
      const output = use.output === undefined ? "" : `\nIts output:\n${use.output || "(none)"}`;
      return `The service ran ${code}${output}`;
    }
    case "imageGeneration":
      return `The service made an image${use.prompt === undefined ? "." : `: ${use.prompt}`}`;
    case "mcp": {
      const at = use.server === undefined ? "" : ` of ${use.server}`;
      return `The service called ${use.tool}${at}${showValue(" with ", use.input)}.${showValue(" It gave:\n", use.output)}`;
    }
    case "other":
      return `The service ran its tool ${use.name}${showValue(" with ", use.input)}.${showValue(" It gave: ", use.output)}`;
  }
}

function quoteAll(queries: readonly string[]): string {
  return queries.map((query) => `"${query}"`).join(", ") || "something";
}

function listFound(sources: readonly ServiceToolSource[] | undefined): string {
  if (!sources) return "";
  if (sources.length === 0) return " It found nothing.";
  const shown = sources.slice(0, MAX_SHOWN_SOURCES);
  const more = sources.length - shown.length;
  const lines = shown.map((source) => `- ${formatSource(source)}`);
  return ` It found:\n${lines.join("\n")}${more > 0 ? `\n- (and ${more} more)` : ""}`;
}

/** What only the service that wrote it can read. */
const SEALED = /^(encrypted_\w+|signature|thoughtSignature)$/;

function showValue(before: string, value: unknown): string {
  if (value === undefined) return "";
  const readable = (key: string, item: unknown): unknown => (SEALED.test(key) ? undefined : item);
  return before + (typeof value === "string" ? value : JSON.stringify(value, readable));
}

function shorten(text: string): string {
  const clean = toWellFormed(text);
  if (clean.length <= MAX_SHOWN_CHARS) return clean;
  return `${toWellFormed(clean.slice(0, MAX_SHOWN_CHARS))}… (${clean.length} characters in all)`;
}
