import { type ContextBreakdown, contextBreakdown } from "@gyre/agent";
import { totalTokens, type Usage } from "@gyre/ai";
import { dollars } from "./dollars.ts";
import type { Harness } from "../harness/harness.ts";
import { isMode, isThinkingLevel, MODES, modelValue, THINKING } from "./choices.ts";

/** One line on each command that editors and the terminal have in common. */
export const COMMAND_ABOUTS = {
  model: "show the models, or take another one",
  thinking: "show how much it thinks, or change that",
  mode: "show what it may do without asking, or change that",
  cost: "show what this session has used",
  context: "show what the next request is made of",
  session: "show where this session is kept",
  title: "name this session",
} as const;

/** What to write behind the names of some. */
export const COMMAND_HINTS = {
  model: "name of a model",
  thinking: listed(Object.keys(THINKING)),
  mode: Object.keys(MODES).join(", "),
  title: "the name",
} as const;

/** The parts of a request, as people know them. */
type ContextPart = keyof Pick<
  ContextBreakdown,
  "system" | "tools" | "files" | "results" | "messages"
>;
export const CONTEXT_PARTS: readonly ContextPart[] = [
  "system",
  "tools",
  "files",
  "results",
  "messages",
];

/** Takes another model; what to say of it. Throws what to tell the user. */
export async function takeModel(name: string, harness: Harness): Promise<string> {
  return `The model is ${modelValue(await harness.setModel(name))} now.`;
}

/** Takes another level, or says which it is. Throws what to tell the user. */
export async function thinkingText(level: string, harness: Harness): Promise<string> {
  if (level === "") return `Thinking is ${harness.agent.state.thinkingLevel}.`;
  if (!isThinkingLevel(level)) {
    throw new Error(`There is no level "${level}". There is: ${Object.keys(THINKING).join(", ")}.`);
  }
  await harness.setThinking(level);
  return `Thinking is ${level} now.`;
}

/** Takes another mode, or says which it is. Throws what to tell the user. */
export async function modeText(mode: string, harness: Harness): Promise<string> {
  if (mode === "") return `The mode is ${harness.mode}. ${MODES[harness.mode].description}`;
  if (!isMode(mode)) {
    throw new Error(`There is no mode "${mode}". There is: ${Object.keys(MODES).join(", ")}.`);
  }
  await harness.setMode(mode);
  return `The mode is ${mode} now. ${MODES[mode].description}`;
}

/** What was used, as a sentence. */
export function usageText(usage: Usage): string {
  return `${count(totalTokens(usage))} tokens, for ${costOf(usage)}.`;
}

/** What it cost, as far as that is known. */
export function costOf({ cost }: Usage): string {
  return cost ? dollars(cost.total) : "a price that is not known";
}

/** The share of the input that came from a cache, 0 to 1; nothing where there was none. */
export function cacheShare({
  input = 0,
  cacheRead = 0,
  cacheWrite = 0,
}: Usage): number | undefined {
  const all = input + cacheRead + cacheWrite;
  return all > 0 ? cacheRead / all : undefined;
}

/** What the next request is made of, as a sentence and a table. */
export function contextText(harness: Harness): string {
  const parts = contextBreakdown(harness.agent.state, {});
  const rows = CONTEXT_PARTS.map((name) => `| ${name} | ${count(parts[name])} |`);
  return [contextSentence(parts), "", "| part | tokens |", "|---|---|", ...rows].join("\n");
}

/** How large it is, and how much room is left. */
export function contextSentence({ total, free, trigger }: ContextBreakdown): string {
  return `About ${count(total)} tokens; ${count(free)} more until it is compacted at ${count(trigger)}.`;
}

/** A number as people write it. */
export function count(value: number): string {
  return value.toLocaleString("en");
}

/** `a, b or c`. */
function listed(names: readonly string[]): string {
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1) ?? ""}`;
}
