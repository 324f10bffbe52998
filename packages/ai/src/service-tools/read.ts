import { isRecord, toRecord } from "../common/records.ts";
import type { AssistantMessage, ImageContent, ServiceToolContent } from "../messages/messages.ts";

/** A page, a file or a document that a tool of the service found. */
export interface ServiceToolSource {
  url?: string;
  title?: string;
  /** A passage, as far as the service shows it. */
  text?: string;
}

/** What every use of a tool of the service has. */
interface UseFacts {
  id: string;
  /** The service's own name for the tool. */
  name: string;
  /** False: the block says only that the tool was started. */
  isDone: boolean;
  /** What went wrong, in the service's own code or words: `max_uses_exceeded`. */
  error?: string;
}

/**
 * What a tool of the service was asked and what it gave, whichever service it was. `sources` of a
 * search are absent where the service does not show them. `other` is a tool that this version does
 * not know: its block has all that the service sent.
 */
export type ServiceToolUse = UseFacts &
  (
    | { kind: "webSearch"; queries: string[]; sources?: ServiceToolSource[] }
    | { kind: "webFetch"; urls: string[]; sources?: ServiceToolSource[] }
    | { kind: "codeExecution"; code?: string; output?: string; exitCode?: number }
    | { kind: "fileSearch"; queries: string[]; sources?: ServiceToolSource[] }
    | { kind: "imageGeneration"; prompt?: string; image?: ImageContent }
    | { kind: "mcp"; server?: string; tool: string; input?: unknown; output?: string }
    | { kind: "other"; input?: unknown; output?: unknown }
  );

type Fields = Readonly<Record<string, unknown>>;
type Kind = ServiceToolUse["kind"];

/** What services call their tools. */
const KINDS: readonly (readonly [RegExp, Kind])[] = [
  [
    /web_search|browser[._]search|x_(\w+_)?search|google_search|nova_grounding|^search$/i,
    "webSearch",
  ],
  [/web_fetch|url_context|open_page|browse_page|x_thread_fetch|visit|browser/i, "webFetch"],
  [/code_execution|code_interpreter|python|^shell/i, "codeExecution"],
  [/file_search|collections_search/i, "fileSearch"],
  [/image_generation/i, "imageGeneration"],
];

/**
 * Reads one block. Some services send the request and the result as two blocks with the same id, of
 * which this reads the one that it gets; `listServiceTools` joins them. Never throws, whatever is in
 * the block.
 */
export function readServiceTool(block: ServiceToolContent): ServiceToolUse {
  const { id, name } = block;
  const raw = toRecord(block.raw);
  const input = parse(block.input);
  const output = parse(block.output);
  const error = findError(raw, output);
  const kind = findKind(name, raw);
  const isDone = error !== undefined || isAnswered(block, raw, output);
  const facts: UseFacts = { id, name, isDone, ...(error !== undefined && { error }) };
  switch (kind) {
    case "webSearch":
    case "webFetch":
    case "fileSearch": {
      const asked = toRecord(input);
      const listed = findSources(raw["search_results"]);
      const given = findSources(asked["sources"] ?? output, kind);
      const sources = given ?? (listed?.length ? listed : undefined);
      const found = sources && { sources };
      if (kind !== "webFetch") {
        return { ...facts, kind, queries: listTexts(input, ["query", "queries", "q"]), ...found };
      }
      return { ...facts, kind, urls: listTexts(input, ["url", "urls"]), ...found };
    }
    case "codeExecution": {
      const { code, command, path } = toRecord(input);
      const text = [typeof input === "string" ? input : undefined, code, command, path].find(
        (value) => typeof value === "string",
      );
      return { ...facts, kind, ...(isText(text) && { code: text }), ...readOutput(output) };
    }
    case "imageGeneration": {
      const prompt = toRecord(input)["prompt"] ?? raw["revised_prompt"];
      const { output_format: format, result: data } = raw;
      const mimeType = `image/${isText(format) ? format : "png"}`;
      return {
        ...facts,
        kind,
        ...(isText(prompt) && { prompt }),
        ...(isText(data) && data !== "" && { image: { type: "image", data, mimeType } }),
      };
    }
    case "mcp": {
      const server = raw["server_name"] ?? raw["server_label"];
      const text = joinTexts(output);
      return {
        ...facts,
        kind,
        tool: name,
        ...(isText(server) && { server }),
        ...(input !== undefined && { input }),
        ...(text !== undefined && { output: text }),
      };
    }
    default:
      return {
        ...facts,
        kind,
        ...(input !== undefined && { input }),
        ...(output !== undefined && { output }),
      };
  }
}

/**
 * The tools that the service ran for a message, in order, each with its result where it has one. A
 * search of Gemini that stands in no block is in its report, and is listed last.
 */
export function listServiceTools(message: AssistantMessage): ServiceToolUse[] {
  const uses = new Map<string, ServiceToolContent>();
  for (const block of message.content) {
    if (block.type !== "serviceTool") continue;
    const before = uses.get(block.id);
    uses.set(block.id, before ? join(before, block) : block);
  }
  const read = [...uses.values()].map(readServiceTool);
  return read.some(({ kind }) => kind === "webSearch")
    ? read
    : [...read, ...readGrounding(message.report?.details ?? {})];
}

/** The request of a tool with the result that came in a block of its own. */
function join(asked: ServiceToolContent, result: ServiceToolContent): ServiceToolContent {
  return {
    ...asked,
    ...(result.input !== undefined && { input: result.input }),
    ...(result.output !== undefined && { output: result.output }),
    // What only the request says, such as the name of a server, stands.
    raw: { ...toRecord(asked.raw), ...toRecord(result.raw), type: toRecord(asked.raw)["type"] },
  };
}

function readGrounding({ groundingMetadata }: Fields): ServiceToolUse[] {
  const all = toList(groundingMetadata).map(toRecord);
  const queries = all.flatMap(({ webSearchQueries }) => toList(webSearchQueries).filter(isText));
  if (queries.length === 0) return [];
  const sources = all.flatMap(({ groundingChunks }) => findSources(groundingChunks) ?? []);
  return [
    {
      id: "google_search",
      name: "google_search",
      kind: "webSearch",
      isDone: true,
      queries: [...new Set(queries)],
      sources,
    },
  ];
}

function findKind(name: string, { type }: Fields): Kind {
  if (isText(type) && /^mcp_(tool_use|tool_result|call)$/.test(type)) return "mcp";
  return KINDS.find(([names]) => names.test(name))?.[1] ?? "other";
}

/** A request that waits for its result in another block has a type of its own. */
function isAnswered({ output }: ServiceToolContent, { status, type }: Fields, parsed: unknown) {
  if (parsed !== undefined || output !== undefined) return true;
  return isText(type) && type.endsWith("_call") && (status === undefined || status === "completed");
}

function findError(raw: Fields, output: unknown): string | undefined {
  const { error_code: code, error_message: message, outcome } = toRecord(output);
  if (isText(code)) return isText(message) && message !== "" ? `${code}: ${message}` : code;
  if (isText(outcome) && outcome !== "OUTCOME_OK") return outcome;
  const { error, is_error: failed, status } = raw;
  if (isText(error) && error !== "") return error;
  if (isRecord(error)) return isText(error["message"]) ? error["message"] : JSON.stringify(error);
  if (failed === true) return joinTexts(output) ?? "failed";
  return status === "failed" ? "failed" : undefined;
}

/** The lists that services put results into. */
const LISTS = ["results", "sources", "content", "groundingChunks", "urlMetadata"];

function findSources(value: unknown, kind?: Kind): ServiceToolSource[] | undefined {
  if (Array.isArray(value)) {
    return value.flatMap((one) => readSource(toRecord(one)) ?? []);
  }
  if (!isRecord(value)) return undefined;
  // A page that was read is a source by itself.
  const own = kind === "webFetch" ? readSource(value) : undefined;
  if (own) return [own];
  const list = LISTS.map((name) => value[name]).find(Array.isArray);
  return list && findSources(list);
}

function readSource(item: Fields): ServiceToolSource | undefined {
  const { content, retrievedContext, web } = item;
  const fields = { ...item, ...toRecord(web ?? retrievedContext) };
  const url = [fields["url"], fields["uri"], fields["retrievedUrl"]].find(isText);
  const title = [fields["title"], toRecord(content)["title"], fields["filename"], fields["name"]]
    .filter(isText)
    .find((text) => text !== "");
  if (url === undefined && title === undefined) return undefined;
  const text = [fields["text"], fields["snippet"]].find(isText);
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(text !== undefined && { text }),
  };
}

function readOutput(output: unknown): { output?: string; exitCode?: number } {
  const { return_code: exitCode, stderr, stdout, output: text } = toRecord(output);
  const texts = [stdout, stderr, text, joinTexts(output)].filter(isText);
  const all = texts.filter((one) => one !== "").join("\n");
  return {
    ...(texts.length > 0 && { output: all }),
    ...(typeof exitCode === "number" && { exitCode }),
  };
}

/** The text of a list of parts, or of a text. */
function joinTexts(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  const texts = value.flatMap((part) => {
    const { logs, text } = toRecord(part);
    return [text, logs].filter(isText);
  });
  return texts.length > 0 ? texts.join("\n") : undefined;
}

function listTexts(input: unknown, names: readonly string[]): string[] {
  if (isText(input)) return [input];
  if (Array.isArray(input)) return input.filter(isText);
  const fields = toRecord(input);
  const found = names.flatMap((name) => fields[name] ?? []);
  return [...new Set(found.filter(isText))];
}

/** Some services send JSON as text. */
function parse(value: unknown): unknown {
  if (!isText(value) || !/^\s*[[{]/.test(value)) return value ?? undefined;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    // It only looks like JSON.
    return value;
  }
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
