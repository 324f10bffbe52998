import type { AssistantContent, ServiceToolContent } from "@gyre/ai";
import {
  CitedSources,
  formatSource,
  readServiceTool,
  type ServiceToolSource,
  type ServiceToolUse,
} from "@gyre/ai/service-tools";
import { shownLine } from "@gyre/coding/internal/text/shown-text";

/** How many results of a search are listed. */
const MAX_SOURCES = 5;
/** How many lines of code, and of its output. */
const MAX_LINES = 8;

/** A tool that the service ran, for people. */
export interface ServiceToolText {
  /** What it was asked, on one line; of a block that has only the result: its name. */
  title: string;
  /** What it gave: each on one line. */
  lines: readonly string[];
}

/** What a block of a service's tool says, for people. Safe for a terminal. */
export function serviceToolText(block: ServiceToolContent): ServiceToolText {
  const use = readServiceTool(block);
  const failed = use.error === undefined ? [] : [`failed: ${use.error}`];
  const lines = [...listGiven(use), ...failed].map(shownLine);
  const about = describeAsked(use);
  return { title: shownLine(about === "" ? use.name : `${use.name} ${about}`), lines };
}

function describeAsked(use: ServiceToolUse): string {
  switch (use.kind) {
    case "webSearch":
    case "fileSearch":
      return use.queries.map((query) => `"${query}"`).join(", ");
    case "webFetch":
      return use.urls.join(", ");
    case "imageGeneration":
      return use.prompt ?? "";
    case "mcp":
      return [use.server === undefined ? "" : `of ${use.server}`, formatInput(use.input)]
        .filter((part) => part !== "")
        .join(" ");
    case "codeExecution":
      return "";
    case "other":
      return formatInput(use.input);
  }
}

function formatInput(input: unknown): string {
  if (input === undefined) return "";
  return typeof input === "string" ? input : JSON.stringify(input);
}

function listGiven(use: ServiceToolUse): string[] {
  switch (use.kind) {
    case "webSearch":
    case "webFetch":
    case "fileSearch":
      return use.error === undefined && use.sources ? listSources(use.sources) : [];
    case "codeExecution":
      return [...cutLines(use.code), ...cutLines(use.output).map((line) => `> ${line}`)];
    case "mcp":
      return use.error === undefined ? cutLines(use.output) : [];
    case "imageGeneration":
    case "other":
      return [];
  }
}

function listSources(sources: readonly ServiceToolSource[]): string[] {
  const count = `${sources.length} ${sources.length === 1 ? "result" : "results"}`;
  const more = sources.length - MAX_SOURCES;
  return [
    count,
    ...sources.slice(0, MAX_SOURCES).map((source) => `- ${formatSource(source)}`),
    ...(more > 0 ? [`- and ${more} more`] : []),
  ];
}

function cutLines(text: string | undefined): string[] {
  const lines = (text ?? "").split("\n").filter((line) => line.trim() !== "");
  const more = lines.length - MAX_LINES;
  return more > 0 ? [...lines.slice(0, MAX_LINES), `(${more} more lines)`] : lines;
}

/** The text of an answer with numbers where it cites, and what it cites below. */
export function citedText(content: readonly AssistantContent[]): string {
  const sources = new CitedSources();
  const texts = content.map((block) =>
    block.type === "text" ? sources.mark(block.text, block.citations) : "",
  );
  return `${texts.join("").trim()}\n\nSources:\n${listCitedSources(content).join("\n")}`;
}

/** The sources that the texts of a message cite, in order of their numbers. Safe for a terminal. */
export function listCitedSources(content: readonly AssistantContent[]): string[] {
  return new CitedSources(content).list.map(
    (source, index) => `[${index + 1}] ${shownLine(formatSource(source))}`,
  );
}
