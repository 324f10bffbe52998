import { estimateTokens, textOf, type ToolCall } from "@gyre/ai";
import { oneLine } from "../transcript/truncate.ts";
import { isLlmMessage, isToolResult, listCalls } from "../transcript/history.ts";
import type { CompactionFacts } from "../contract/compaction.ts";
import { present, type ToolEffects } from "../contract/presentation.ts";
import type { AgentMessage, AgentTool } from "../contract/types.ts";

const REQUEST_CHARS = 600;
/** The newest request is what is being worked on. */
const NEWEST_REQUEST_CHARS = 4_000;
const LINE_CHARS = 240;
const MAX_STEPS = 30;
const MAX_COMMANDS = 30;

const DECISION =
  /^\W*(?:decision|decided|agreed)\b|\b(?:I|we)(?:'ve| have)? (?:decided?|chose|choose|agreed)\b/i;

/** What a call does, as its tool says. Of a tool that does not say, nothing is known. */
export function classifyCall(
  { name, arguments: args }: Pick<ToolCall, "name" | "arguments">,
  findTool: (name: string) => AgentTool | undefined,
): ToolEffects {
  return present(() => findTool(name)?.presentation?.effects?.(args)) ?? {};
}

/** The facts of some messages, behind those that were known before. */
export function collectFacts(
  messages: readonly AgentMessage[],
  known: CompactionFacts | undefined,
  classify: (call: ToolCall) => ToolEffects,
): CompactionFacts {
  const requests = [...(known?.requests ?? [])];
  const changed = new Set(known?.changed);
  const decisions = new Set(known?.decisions);
  const commands = new Set(known?.commands);
  const steps = [...(known?.steps ?? [])];
  const failed = new Set(
    messages.map((each) => isToolResult(each) && each.isError && each.toolCallId),
  );
  for (const message of messages) {
    if (!isLlmMessage(message) || message.role === "toolResult") continue;
    if (message.role === "user") {
      const text = oneLine(textOf(message), NEWEST_REQUEST_CHARS);
      if (text !== "") requests.push(text);
      continue;
    }
    for (const call of listCalls(message)) {
      const { changes: paths = [], command } = classify(call);
      if (!failed.has(call.id)) for (const path of paths) moveToEnd(changed, path);
      if (command !== undefined) moveToEnd(commands, oneLine(command, LINE_CHARS));
    }
    const lines = textOf(message)
      .split("\n")
      .filter((line) => line.trim() !== "");
    const decided = lines.filter((line) => DECISION.test(line));
    for (const line of decided) decisions.add(oneLine(line, LINE_CHARS));
    if (decided.length === 0 && lines[0] !== undefined) steps.push(oneLine(lines[0], LINE_CHARS));
  }
  return {
    requests: requests.map((text, index) =>
      index < requests.length - 1 ? oneLine(text, REQUEST_CHARS) : text,
    ),
    changed: [...changed],
    decisions: [...decisions],
    commands: [...commands].slice(-MAX_COMMANDS),
    steps: steps.slice(-MAX_STEPS),
  };
}

type Section = keyof CompactionFacts;

/** In this order they get their share of the room, and what those before left of theirs. */
const SECTIONS: readonly (readonly [name: Section, title: string, share: number])[] = [
  ["changed", "Files changed:", 0.35],
  ["decisions", "Decisions:", 0.3],
  ["requests", "Requests of the user:", 0.2],
  ["commands", "Commands run:", 0.075],
  ["steps", "Steps:", 0.075],
];
const ENTRY_TOKENS = 2;
const TITLE_TOKENS = 6;

/** As many of the facts as there is room for: the oldest of each kind go first. */
export function fitFacts(facts: CompactionFacts, tokens: number): CompactionFacts {
  const fitted: Record<Section, readonly string[]> = { ...facts };
  let room = 0;
  for (const [name, , share] of SECTIONS) {
    const entries = facts[name];
    room += tokens * share;
    let first = entries.length;
    let left = room - TITLE_TOKENS;
    while (first > 0) {
      const next = ENTRY_TOKENS + estimateTokens(entries[first - 1] ?? "");
      if (next > left) break;
      left -= next;
      first--;
    }
    fitted[name] = entries.slice(first);
    if (entries.length > 0) room = left;
  }
  return fitted;
}

/** The facts as a list. */
export function formatFacts(facts: CompactionFacts): string {
  return SECTIONS.filter(([name]) => facts[name].length > 0)
    .map(([name, title]) => [title, ...facts[name].map((entry) => `- ${entry}`)].join("\n"))
    .join("\n\n");
}

function moveToEnd(set: Set<string>, value: string): void {
  set.delete(value);
  set.add(value);
}
