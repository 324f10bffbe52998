import { estimateTokens, type Model, type ToolCall, type ToolResultMessage } from "@gyre/ai";
import type { ContextConfig } from "../contract/compaction.ts";
import { warn } from "../contract/contain.ts";
import type { AgentToolResult } from "../contract/types.ts";
import { truncateMiddle, oneLine } from "../transcript/truncate.ts";
import { contextLimits } from "./compaction.ts";
import type { ContextHost } from "./host.ts";
import { ContextMemory } from "./memory.ts";
import { Summaries } from "./summaries.ts";

export const DEFAULT_MAX_RESULT_TOKENS = 12_000;
/** Share of the trigger that a result may take, where that is less. */
const MAX_RESULT_SHARE = 0.5;
/** Shares of a short form for the beginning, the end and the lines that report errors. */
const HEAD_SHARE = 0.15;
const TAIL_SHARE = 0.2;
const ERROR_SHARE = 0.15;
/** Lines that a summary must not lose a word of. */
const ERROR_LINE =
  /\b(?:error|fail(?:ed|ure|s)?|fatal|exception|panic|traceback|assert\w*)\b|^\s*(?:E\d|✗|✖|×)/i;
/** Tokens of the note on what was left out. */
const NOTE_TOKENS = 250;
const MAX_PURPOSE_CHARS = 400;
const MAX_KEY_CHARS = 80;
const MAX_NAME_CHARS = 40;
/** Longest description of how to read a result back. */
const MAX_HINT_CHARS = 160;

/** The last line of a short form says how to read the whole back. */
const KEPT = /\[(?:The whole result|It) is kept: (.+)\]$/;
/** How far from the end that line may begin. */
const KEPT_CHARS = 200;

/**
 * A result that is not too long for the transcript (R24): the same, or a summary of it, or
 * its beginning and end. A result that a journal has recorded comes out the same again.
 */
export function capResult(
  host: ContextHost,
  call: ToolCall,
  result: AgentToolResult,
): AgentToolResult | Promise<AgentToolResult> {
  const { context } = host.config;
  if (!context) return result;
  const most = maxResultTokens(context, host.model);
  const text = joinTexts(result);
  // A token has at least about a character.
  if (text.length <= most) return result;
  const tokens = estimateTokens(text);
  return tokens <= most
    ? result
    : shortenResult(host, context, call, result, { text, tokens, most });
}

/** The texts of a result, each on lines of its own. */
function joinTexts({ content }: Pick<AgentToolResult, "content">): string {
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

async function shortenResult(
  host: ContextHost,
  context: ContextConfig,
  call: ToolCall,
  result: AgentToolResult,
  { text, tokens, most }: { text: string; tokens: number; most: number },
): Promise<AgentToolResult> {
  const kept = await storeWhole(host, context, call.id, text);
  const where = kept ? `[The whole result is kept: ${kept}]` : "[The rest was not kept.]";
  const room = Math.max(most / 2, most - NOTE_TOKENS);
  const isPaged = host.toolbox.byName.get(call.name)?.presentation?.paged === true;
  const summary = isPaged ? undefined : await summarizeResult(host, context, call, text, room);
  const short =
    summary === undefined
      ? truncateMiddle(text, room, `[Here a part of ${tokens} tokens in all is left out.]`)
      : quoteAround(text, tokens, summary, room);
  const rest = result.content.filter(({ type }) => type !== "text");
  return {
    ...result,
    content: [{ type: "text", text: `${short}\n\n${where}` }, ...rest],
    shortened: { tokens, ...(summary !== undefined && { summary }) },
  };
}

/** A summary between the beginning and the end of the text, which stay as they are. */
function quoteAround(text: string, tokens: number, summary: string, room: number): string {
  const lines = text.split("\n");
  const head = takeLines(lines, room * HEAD_SHARE);
  const rest = lines.slice(head.length);
  const tail = takeLines(rest.toReversed(), room * TAIL_SHARE).reverse();
  const middle = rest.slice(0, rest.length - tail.length);
  const errors = takeLines(
    middle.filter((line) => ERROR_LINE.test(line)),
    room * ERROR_SHARE,
  );
  return [
    ...head,
    `[Of ${tokens} tokens, the middle is left out. Summary of the whole:]`,
    summary,
    ...(errors.length > 0 ? ["[Lines of the middle that report errors:]", ...errors] : []),
    "[The end:]",
    ...tail,
  ].join("\n");
}

/** The first lines that fit. */
function takeLines(lines: readonly string[], tokens: number): string[] {
  let used = 0;
  const end = lines.findIndex((line) => (used += estimateTokens(line) + 1) > tokens);
  return end < 0 ? [...lines] : lines.slice(0, end);
}

async function summarizeResult(
  host: ContextHost,
  context: ContextConfig,
  call: ToolCall,
  text: string,
  most: number,
): Promise<string | undefined> {
  const { summarize } = context;
  if (!summarize || host.canceled) return undefined;
  const room = most * (1 - HEAD_SHARE - TAIL_SHARE - ERROR_SHARE) - NOTE_TOKENS;
  const purpose = `the result of the call ${call.name} ${oneLine(JSON.stringify(call.arguments), MAX_PURPOSE_CHARS)}`;
  const summaries = new Summaries(new ContextMemory());
  summaries.begin([], undefined, 0, (signal) => summarize(text, signal, "result", purpose));
  // A tool's result is not lost with its summary, nor when the run is stopped meanwhile.
  const { summary } = await summaries.take(host, context).catch(() => ({ summary: undefined }));
  return summary !== undefined && estimateTokens(summary) <= room ? summary : undefined;
}

/** The line that is sent in place of an old result, or of a fresh one that must be cut. */
export async function makeShortForm(
  host: ContextHost,
  context: ContextConfig,
  message: ToolResultMessage,
  tokens: number,
): Promise<string> {
  const text = joinTexts(message);
  const kept =
    KEPT.exec(text.slice(-KEPT_CHARS))?.[1] ??
    (await storeWhole(host, context, message.toolCallId, text));
  return formatShortForm(message, tokens, kept);
}

/** The same, given how the whole can be read back. Always the same for the same result. */
export function formatShortForm(message: ToolResultMessage, tokens: number, kept?: string): string {
  const { toolName, isError } = message;
  const text = joinTexts(message);
  const back = kept ? `[It is kept: ${kept}]` : "[Call the tool again if you need it.]";
  const size = estimateTokens(text);
  const failed = isError ? ", an error," : "";
  const what = `Result of ${oneLine(toolName, MAX_NAME_CHARS)}${failed} of ${size} tokens`;
  if (tokens === 0) return `[${what}, left out to save space.] ${back}`;
  return `${truncateMiddle(text, tokens, "[Here a part is left out.]")}\n\n[${what}, cut to save space.] ${back}`;
}

async function storeWhole(
  host: ContextHost,
  { storeResult }: ContextConfig,
  callId: string,
  text: string,
): Promise<string | undefined> {
  if (!storeResult) return undefined;
  const key = callId.replaceAll(/[^\w-]/g, "_").slice(0, MAX_KEY_CHARS);
  try {
    const hint = await host.hooks.call("storeResult", () => storeResult(key, text));
    return oneLine(hint || `under the key "${key}"`, MAX_HINT_CHARS);
  } catch (error) {
    warn("storeResult failed", error);
    return undefined;
  }
}

/** The most tokens that a result may take in the transcript before it is shortened (R24). */
export function maxResultTokens(context: ContextConfig, model: Model): number {
  const { trigger } = contextLimits(context, model);
  return context.maxResultTokens ?? Math.min(DEFAULT_MAX_RESULT_TOKENS, trigger * MAX_RESULT_SHARE);
}
