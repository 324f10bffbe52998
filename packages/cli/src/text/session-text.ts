import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import { type AssistantContent, describeFile, type UserContent } from "@gyre/ai";
import { CitedSources, describeUse, readServiceTool } from "@gyre/ai/service-tools";
import type { Entry } from "@gyre/sessions";
import { exitText } from "@gyre/coding/internal/conversation/user-command";
import { sanitize } from "@gyre/tools";
import { listCitedSources } from "./service-tool-text.ts";

const KIB = 1024;
const UNITS = ["B", "KB", "MB", "GB"] as const;
/** Below this, a size is shown with one digit after the point. */
const WITH_FRACTION_BELOW = 10;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** What is older is shown by its date. */
const RELATIVE_DAYS = 14;
const DATE_CHARS = "2030-01-31".length;
const UNKNOWN_TIME = "an unknown time";
const TIME_CHARS = "2030-01-31T12:30:59".length;

/** `512 B`, `3.4 KB`, `120 MB`. */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= KIB && unit < UNITS.length - 1) {
    value /= KIB;
    unit++;
  }
  const digits = unit > 0 && value < WITH_FRACTION_BELOW ? 1 : 0;
  return `${value.toFixed(digits)} ${UNITS[unit] ?? ""}`;
}

/** How long ago something was, in one unit; after two weeks, its date. */
export function agoText(time: number, now: number): string {
  const age = Math.max(0, now - time);
  if (age < MINUTE_MS) return "just now";
  if (age < HOUR_MS) return `${Math.floor(age / MINUTE_MS)} min ago`;
  if (age < DAY_MS) return `${Math.floor(age / HOUR_MS)} h ago`;
  const days = Math.floor(age / DAY_MS);
  if (days <= RELATIVE_DAYS) return days === 1 ? "1 day ago" : `${days} days ago`;
  return formatIso(time)?.slice(0, DATE_CHARS) ?? UNKNOWN_TIME;
}

/** A time to the second, for people. */
export function timeText(time: number): string {
  const iso = formatIso(time);
  return iso ? `${iso.slice(0, TIME_CHARS).replace("T", " ")} UTC` : UNKNOWN_TIME;
}

function formatIso(time: number): string | undefined {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

/** An entry for people; nothing for one that says nothing to them. Safe for a terminal. */
export function entryText(entry: Entry): string {
  switch (entry.type) {
    case "message":
      return messageText(entry.message);
    case "compaction":
      return section(
        "compaction",
        entry.message
          ? `Sent in place of earlier messages:\n\n${contentText(entry.message.content)}`
          : `Results sent in a shorter form: ${Object.keys(entry.shortened ?? {}).length}`,
      );
    case "settings": {
      const { model, thinkingLevel, mode } = entry.settings;
      const parts = [
        model && `model ${model.provider}/${model.id}`,
        thinkingLevel && `thinking ${thinkingLevel}`,
        mode && `mode ${mode}`,
      ].filter((part) => part !== undefined);
      return parts.length === 0 ? "" : `--- ${sanitize(parts.join(", "), ONE_LINE)}\n`;
    }
    case "title":
      return `--- title: ${sanitize(entry.title, ONE_LINE)}\n`;
    case "archive":
    case "label":
    case "leaf":
    case "custom":
    case "result":
    case "begin":
    case "pending":
    case "decision":
    case "queue":
    case "start":
    case "end":
      return "";
  }
}

const ONE_LINE = { keepNewlines: false };

/** A message for people; nothing for one that says nothing to them. Safe for a terminal. */
export function messageText(message: AgentMessage): string {
  if (message.role === "userCommand") {
    const aside = message.aside ? ", not sent to the model" : "";
    return section(`user ran ${message.command} (${exitText(message)}${aside})`, message.output);
  }
  if (!isLlmMessage(message)) return "";
  switch (message.role) {
    case "user":
      return section("user", contentText(message.content));
    case "toolResult": {
      const title = `result of ${message.toolName}${message.isError ? " (error)" : ""}`;
      return section(title, contentText(message.content));
    }
    case "assistant": {
      const error = message.errorMessage ?? "";
      const ended =
        message.stopReason === "error" || message.stopReason === "aborted"
          ? [`[${message.stopReason}${error === "" ? "" : `: ${error}`}]`]
          : [];
      const blocks = readBlocks(message.content);
      const sources = new CitedSources();
      const texts = blocks.map((block) =>
        block.type === "text" ? sources.mark(block.text, block.citations) : blockText(block),
      );
      const cited = listCitedSources(blocks).join("\n");
      const parts = [...texts, ...(cited === "" ? [] : [cited]), ...ended];
      return section(`assistant (${message.provider}/${message.model})`, parts.join("\n\n"));
    }
  }
}

function section(title: string, text: string): string {
  const body = sanitize(text).trimEnd();
  return `=== ${sanitize(title, ONE_LINE)}\n\n${body === "" ? "(nothing)" : body}\n`;
}

function contentText(content: string | readonly UserContent[]): string {
  return typeof content === "string" ? content : readBlocks(content).map(blockText).join("\n");
}

/** What was written by hand or by another program may lack its content. */
function readBlocks<T>(content: readonly T[]): readonly T[] {
  return Array.isArray(content) ? content : [];
}

function blockText(block: AssistantContent): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "thinking":
      return block.redacted ? "[thinking, hidden by the service]" : `[thinking]\n${block.thinking}`;
    case "image":
      return `[image: ${block.mimeType}]`;
    case "file":
      return `[file: ${describeFile(block)}]`;
    case "toolCall":
      return `[calls ${block.name} ${block.rawArguments ?? JSON.stringify(block.arguments)}]`;
    case "serviceTool":
      return describeUse(readServiceTool(block));
  }
}
