import type { AgentToolResult } from "@gyre/agent";
import {
  addUsage,
  type AssistantMessage,
  complete,
  isRecord,
  type Message,
  type Model,
  type ProtocolClient,
  toRecord,
  type Usage,
} from "@gyre/ai";
import { CitedSources, formatSource, listServiceTools } from "@gyre/ai/service-tools";
import { fromSource, sanitize } from "@gyre/ai/text";
import type { ToolEnv } from "../../contract/env.ts";
import { textResult } from "../../text/text.ts";
import {
  MAX_SEARCH_BYTES,
  MAX_SEARCH_RESULTS,
  MAX_SERVICE_SEARCHES,
  QUERY_MARK,
  SEARCH_TIMEOUT_MS,
  type WebSearchOptions,
} from "./tool.ts";

/** A service may pause a search and wants to be asked again. */
const MAX_PAUSES = 3;
const MS_PER_SECOND = 1_000;
const SNIPPET_CHARS = 500;

/** Lets the service of a model search. What the requests cost counts into the run. */
export async function askService(
  client: ProtocolClient,
  model: Model,
  query: string,
  signal: AbortSignal,
): Promise<AgentToolResult> {
  const prompt = `Search the web for this, and report what the results say, with facts and figures, without advice:\n${query}`;
  const messages: Message[] = [{ role: "user", content: prompt, timestamp: 0 }];
  const content: AssistantMessage["content"] = [];
  let usage: Usage = {};
  for (let pauses = 0; ; pauses++) {
    const message = await complete(
      client,
      toSearchModel(model),
      { messages },
      {
        signal,
        serviceTools: [{ type: "webSearch", ...limitUses(model) }],
      },
    );
    signal.throwIfAborted();
    usage = addUsage(usage, message.usage);
    content.push(...message.content);
    if (message.stopReason === "error")
      throw new Error(message.errorMessage ?? "The search failed.");
    if (message.stopReason !== "pause" || pauses === MAX_PAUSES) {
      return toResult(query, { ...message, content }, usage);
    }
    messages.push(message);
  }
}

/** xAI has its search in one of its two formats. */
function toSearchModel(model: Model): Model {
  return model.provider === "xai" ? { ...model, api: "openai-responses" } : model;
}

/** Not every service takes a limit. */
function limitUses({ api }: Model): { maxUses?: number } {
  return api.startsWith("anthropic") ? { maxUses: MAX_SERVICE_SEARCHES } : {};
}

function toResult(query: string, message: AssistantMessage, usage: Usage): AgentToolResult {
  const sources = new CitedSources();
  const texts = message.content.flatMap((block) =>
    block.type === "text" ? [sources.mark(block.text, block.citations)] : [],
  );
  const uses = listServiceTools(message);
  const failed = uses.flatMap(({ error }) => error ?? []);
  for (const use of uses) {
    if (use.kind === "webSearch") for (const source of use.sources ?? []) sources.add(source);
  }
  const answer = texts.join("");
  if (answer.trim() === "" && failed.length > 0) {
    throw new Error(`The search failed: ${failed.join(", ")}. Try again later.`);
  }
  const list = sources.list
    .slice(0, MAX_SEARCH_RESULTS)
    .map((source, index) => `[${index + 1}] ${formatSource(source)}`);
  const text = [answer, list.join("\n")].filter((part) => part !== "").join("\n\n");
  return { ...createResult(query, text, sources.list.length), usage };
}

function createResult(query: string, text: string, found: number): AgentToolResult {
  if (text.trim() === "") return textResult("Nothing was found.", { found: 0 });
  const name = sanitize(`search for ${query}`, { keepNewlines: false });
  return textResult([fromSource({ kind: "web", name }, text)], { found });
}

type Engine = Extract<WebSearchOptions, { url: string }>;

/** Asks a search engine. */
export async function askEngine(
  { clock }: Pick<ToolEnv, "clock">,
  { fetch = globalThis.fetch, headers, url }: Engine,
  query: string,
  signal: AbortSignal,
): Promise<AgentToolResult> {
  const late = new AbortController();
  const { host } = new URL(url);
  const cancel = clock.after(SEARCH_TIMEOUT_MS, () => {
    const seconds = SEARCH_TIMEOUT_MS / MS_PER_SECOND;
    late.abort(new Error(`${host} took longer than ${seconds} s. Try again later.`));
  });
  const either = AbortSignal.any([signal, late.signal]);
  try {
    const response = await fetch(url.replaceAll(QUERY_MARK, encodeURIComponent(query)), {
      headers: { accept: "application/json", ...headers },
      redirect: "error",
      signal: either,
    });
    const text = await readText(response, host);
    if (!response.ok) throw new Error(`${host} answered ${response.status}. Check webSearch.`);
    const results = readResults(text, host).slice(0, MAX_SEARCH_RESULTS);
    const lines = results.map(({ snippet, title, url: at }, index) =>
      [`[${index + 1}] ${title}`, at, snippet.slice(0, SNIPPET_CHARS)]
        .filter((line) => line !== "")
        .join("\n"),
    );
    return createResult(query, lines.join("\n\n"), results.length);
  } catch (error) {
    // What breaks because of the abort says less than the abort.
    throw either.aborted ? either.reason : error;
  } finally {
    cancel();
  }
}

async function readText(response: Response, host: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_SEARCH_BYTES) {
      throw new Error(`${host} answered with more than ${MAX_SEARCH_BYTES} bytes.`);
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

interface Result {
  title: string;
  url: string;
  snippet: string;
}

/** The results, where SearXNG, Brave, Tavily, Serper and Google have them, and what they call their parts. */
function readResults(text: string, host: string): Result[] {
  const body = parseBody(text, host);
  const lists = [body["results"], toRecord(body["web"])["results"], body["organic"], body["items"]];
  const list = Array.isArray(body) ? body : lists.find(Array.isArray);
  if (!list) throw new Error(`${host} answered without a list of results. Check webSearch.`);
  return list.filter(isRecord).flatMap((one) => {
    const url = pick(one, ["url", "link", "href"]);
    const title = pick(one, ["title", "name"]) || url;
    const snippet = pick(one, ["content", "snippet", "description", "text"]);
    return url === "" ? [] : [{ title, url, snippet }];
  });
}

function parseBody(text: string, host: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw new Error(`${host} did not answer with JSON. Check webSearch: it may need format=json.`);
  }
}

function pick(one: Record<string, unknown>, names: readonly string[]): string {
  const found = names.map((name) => one[name]).find((value) => typeof value === "string");
  return typeof found === "string" ? found.trim() : "";
}
