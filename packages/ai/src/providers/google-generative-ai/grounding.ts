import { toRecord } from "../../common/records.ts";
import type { AssistantMessage, Citation, TextContent, Usage } from "../../messages/messages.ts";

/**
 * Puts the sources of a grounded response beside its texts. Gemini sends them once, after the text:
 * sources, and the passages that are based on each.
 */
export function addGrounding(message: AssistantMessage): void {
  const { groundingMetadata } = message.report?.details ?? {};
  if (!Array.isArray(groundingMetadata)) return;
  const texts = message.content.filter((block) => block.type === "text");
  for (const metadata of groundingMetadata) {
    const { groundingChunks, groundingSupports } = toRecord(metadata);
    const sources = toList(groundingChunks).map(readSource);
    const supports = toList(groundingSupports);
    if (supports.length === 0) cite(texts[0], sources.filter(isNamed));
    else for (const support of supports) citeSupport(texts, sources, toRecord(support));
  }
}

/**
 * What is billed beside tokens: each search of a model from Gemini 3 on, and one for all of them of an
 * older model. Places of a map have a price of their own.
 */
export function countSearches({ report }: AssistantMessage, isNewer: boolean): Usage {
  const all = toList(report?.details?.["groundingMetadata"]).map(toRecord);
  const queries = new Set(all.flatMap(({ webSearchQueries }) => toList(webSearchQueries)));
  const chunks = all.flatMap(({ groundingChunks }) => toList(groundingChunks));
  return {
    ...(queries.size > 0 && { webSearches: isNewer ? queries.size : 1 }),
    ...(chunks.some((chunk) => toRecord(chunk)["maps"]) && { unpricedTools: ["googleMaps"] }),
  };
}

function citeSupport(
  texts: readonly TextContent[],
  sources: readonly Citation[],
  { groundingChunkIndices, segment }: Record<string, unknown>,
): void {
  const { text: passage } = toRecord(segment);
  const named = toList(groundingChunkIndices).flatMap((index) => sources[Number(index)] ?? []);
  // Its places are bytes of all text parts together, which may be one block or several here.
  const block =
    typeof passage === "string" ? texts.find(({ text }) => text.includes(passage)) : undefined;
  if (!block || typeof passage !== "string") return cite(texts[0], named.filter(isNamed));
  const from = block.citations?.at(-1)?.start ?? 0;
  const later = block.text.indexOf(passage, from);
  const start = later < 0 ? block.text.indexOf(passage) : later;
  const end = start + passage.length;
  cite(
    block,
    named.filter(isNamed).map((source) => ({ ...source, start, end })),
  );
}

function cite(block: TextContent | undefined, citations: readonly Citation[]): void {
  if (block && citations.length > 0) (block.citations ??= []).push(...citations);
}

/** Of the web, of a map, of a file store. */
function readSource(chunk: unknown): Citation {
  const { maps, retrievedContext, web } = toRecord(chunk);
  const { text, title, uri } = toRecord(web ?? maps ?? retrievedContext);
  return {
    ...(typeof uri === "string" && { url: uri }),
    ...(typeof title === "string" && { title }),
    ...(typeof text === "string" && { text }),
  };
}

function isNamed({ title, url }: Citation): boolean {
  return url !== undefined || title !== undefined;
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
