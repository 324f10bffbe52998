import { type AgentMessage, type ContextBreakdown, contextBreakdown } from "@gyre/agent";
import { addUsage, totalTokens, type Usage } from "@gyre/ai";
import { type CommandPart, text } from "../conversation/command.ts";
import { toLlmMessage } from "../conversation/user-command.ts";
import { FREE_MARK } from "../text/markdown-text.ts";
import { costText, formatCount, usageSentence } from "../text/usage-text.ts";
import type { SlashCommand } from "./command-context.ts";

/** The parts of a request, each with a mark that distinguishes it without colors. */
const CONTEXT_MARKS = {
  system: "█",
  tools: "▓",
  files: "▒",
  results: "░",
  messages: "▄",
} as const satisfies Partial<Record<keyof ContextBreakdown, string>>;

/** `/context`: what the next request is made of, as a bar and a table. */
export const contextCommand: SlashCommand = {
  name: "context",
  about: "show what the next request is made of",
  allowWhileRunning: true,
  run: (_rest, { harness }) => ({
    show: contextParts(contextBreakdown(harness.agent.state, { convertMessage: toLlmMessage })),
  }),
};

export function contextParts(size: ContextBreakdown): readonly CommandPart[] {
  const { free, total, trigger } = size;
  const marks = Object.entries(CONTEXT_MARKS) as [keyof typeof CONTEXT_MARKS, string][];
  const row = (mark: string, name: string, value: number): string[] => [
    mark,
    name,
    formatCount(value),
    percent(value, trigger),
  ];
  return [
    text(
      `About ${formatCount(total)} tokens; ${formatCount(free)} more until it is compacted at ${formatCount(trigger)}.`,
    ),
    {
      type: "bar",
      segments: marks.map(([name, mark]) => ({ mark, value: size[name] })),
      whole: Math.max(trigger, total, 1),
    },
    {
      type: "table",
      columns: ["", "part", "tokens", "of the limit"],
      rows: [
        ...marks.map(([name, mark]) => row(mark, name, size[name])),
        row(FREE_MARK, "free", free),
      ],
    },
  ];
}

function percent(part: number, whole: number): string {
  const share = whole > 0 ? (part / whole) * 100 : 0;
  return `${share > 0 && share < 1 ? "<1" : Math.round(share)} %`;
}

/** What the answers of a conversation have used. */
export interface Spending {
  session: Usage;
  /** Since the last message of the user. */
  prompt: Usage;
  /** By service/id, in the order in which they were asked first. */
  models: ReadonlyMap<string, Usage>;
}

/** `/cost`: what the session and the last prompt have used, by model. */
export const costCommand: SlashCommand = {
  name: "cost",
  about: "show what this session has used",
  allowWhileRunning: true,
  run(_rest, { harness }) {
    const { session, prompt, models } = sumSpending(harness.agent.state.messages);
    const rows = [...models].map(([name, usage]) => [
      { code: name },
      formatCount(totalTokens(usage)),
      costText(usage),
      cacheText(usage),
    ]);
    const columns = ["model", "tokens", "cost", "from the cache"];
    return {
      show: [
        text(`The session: ${usageSentence(session)}${cacheSentence(session)}`),
        text(`Since your last message: ${usageSentence(prompt)}${cacheSentence(prompt)}`),
        ...(rows.length > 1 ? [{ type: "table", columns, rows } as const] : []),
      ],
    };
  },
};

/** What was used, by the answers of a transcript. */
export function sumSpending(messages: readonly AgentMessage[]): Spending {
  const models = new Map<string, Usage>();
  let session: Usage = {};
  let prompt: Usage = {};
  for (const message of messages) {
    if (message.role === "user") prompt = {};
    if (message.role !== "assistant") continue;
    const { provider, model, usage } = message;
    const name = `${provider}/${model}`;
    session = addUsage(session, usage);
    prompt = addUsage(prompt, usage);
    models.set(name, addUsage(models.get(name) ?? {}, usage));
  }
  return { session, prompt, models };
}

function cacheSentence(usage: Usage): string {
  return cacheShare(usage) === undefined ? "" : ` ${cacheText(usage)} of the input was cached.`;
}

function cacheText(usage: Usage): string {
  const share = cacheShare(usage);
  return share === undefined ? "-" : `${Math.round(share * 100)} %`;
}

/** The share of the input that came from a cache, 0 to 1; undefined where there was no input. */
function cacheShare({ input = 0, cacheRead = 0, cacheWrite = 0 }: Usage): number | undefined {
  const all = input + cacheRead + cacheWrite;
  return all > 0 ? cacheRead / all : undefined;
}
