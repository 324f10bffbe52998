import { estimateTokens, textOf, type ToolCall, type ToolResultMessage } from "@gyre/ai";
import type { ContextConfig } from "../contract/compaction.ts";
import { contain } from "../contract/contain.ts";
import type { AgentToolResult } from "../contract/types.ts";
import { cutMiddle, oneLine } from "../transcript/truncate.ts";
import { contextLimits } from "./compaction.ts";
import type { ContextHost } from "./host.ts";
import { askForSummary } from "./summaries.ts";

export const DEFAULT_MAX_RESULT_TOKENS = 12_000;
/** Of the trigger, where that is less. */
const MAX_RESULT_SHARE = 0.5;
/** What a note on what was left out takes. */
const NOTE_TOKENS = 250;
const MAX_KEY_CHARS = 80;
const MAX_NAME_CHARS = 40;
/** How to read something back is told in as many characters. */
const MAX_HINT_CHARS = 160;

/** The last line of a short form says how to read the whole back. */
const KEPT = /\[(?:The whole result|It) is kept: (.+)\]$/;
/** As far from the end as it may begin. */
const KEPT_CHARS = 200;

/**
 * A result that is not too long for the transcript (R24): the same, or a summary of it, or
 * its beginning and end. What is the same when done again is what a journal has recorded.
 */
export function capResult(
  host: ContextHost,
  call: ToolCall,
  result: AgentToolResult,
): AgentToolResult | Promise<AgentToolResult> {
  const { context } = host.config;
  if (!context) return result;
  const most = maxResultTokens(host, context);
  const text = textOf(result);
  // A token has at least about a character.
  if (text.length <= most) return result;
  const tokens = estimateTokens(text);
  return tokens <= most ? result : shorter(host, context, call, result, { text, tokens, most });
}

async function shorter(
  host: ContextHost,
  context: ContextConfig,
  call: ToolCall,
  result: AgentToolResult,
  { text, tokens, most }: { text: string; tokens: number; most: number },
): Promise<AgentToolResult> {
  const kept = await keepWhole(host, context, call.id, text);
  const where = kept ? `[The whole result is kept: ${kept}]` : "[The rest was not kept.]";
  const room = Math.max(most / 2, most - NOTE_TOKENS);
  const summary = await summaryOf(host, context, text, room);
  const short =
    summary === undefined
      ? cutMiddle(text, room, `[Here a part of ${tokens} tokens in all is left out.]`)
      : `Summary of a result of ${tokens} tokens:\n\n${summary}`;
  const rest = result.content.filter(({ type }) => type !== "text");
  return { ...result, content: [{ type: "text", text: `${short}\n\n${where}` }, ...rest] };
}

async function summaryOf(
  host: ContextHost,
  context: ContextConfig,
  text: string,
  room: number,
): Promise<string | undefined> {
  const { summarise } = context;
  if (!summarise || host.canceled) return undefined;
  const given = askForSummary(host, context, (signal) => summarise(text, signal, "result"));
  // A tool's result is not lost with its summary, nor when the run is stopped meanwhile.
  const { summary } = await given.catch(() => ({ summary: undefined }));
  return summary !== undefined && estimateTokens(summary) <= room ? summary : undefined;
}

/** The line that is sent in place of an old result, or of a fresh one that must be cut. */
export async function shortForm(
  host: ContextHost,
  context: ContextConfig,
  message: ToolResultMessage,
  tokens: number,
): Promise<string> {
  const text = textOf(message);
  const kept =
    KEPT.exec(text.slice(-KEPT_CHARS))?.[1] ??
    (await keepWhole(host, context, message.toolCallId, text));
  return shortText(message, tokens, kept);
}

/** The same, given how the whole can be read back. Always the same for the same result. */
export function shortText(message: ToolResultMessage, tokens: number, kept?: string): string {
  const { toolName, isError } = message;
  const text = textOf(message);
  const back = kept ? `[It is kept: ${kept}]` : "[Call the tool again if you need it.]";
  const size = estimateTokens(text);
  const failed = isError ? ", an error," : "";
  const what = `Result of ${oneLine(toolName, MAX_NAME_CHARS)}${failed} of ${size} tokens`;
  if (tokens === 0) return `[${what}, left out to save space.] ${back}`;
  return `${cutMiddle(text, tokens, "[Here a part is left out.]")}\n\n[${what}, cut to save space.] ${back}`;
}

async function keepWhole(
  host: ContextHost,
  { keep }: ContextConfig,
  callId: string,
  text: string,
): Promise<string | undefined> {
  if (!keep) return undefined;
  const key = callId.replaceAll(/[^\w-]/g, "_").slice(0, MAX_KEY_CHARS);
  try {
    const hint = await host.hook("keep", () => keep(key, text));
    return oneLine(hint || `under the key "${key}"`, MAX_HINT_CHARS);
  } catch (error) {
    contain("keep failed", () => {
      throw error;
    });
    return undefined;
  }
}

function maxResultTokens(host: ContextHost, context: ContextConfig): number {
  const { trigger } = contextLimits(context, host.model);
  return context.maxResultTokens ?? Math.min(DEFAULT_MAX_RESULT_TOKENS, trigger * MAX_RESULT_SHARE);
}
