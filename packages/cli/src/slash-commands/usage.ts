import { type ContextBreakdown, contextBreakdown } from "@gyre/agent";
import { totalTokens, type Usage } from "@gyre/ai";
import { type Cell, type CommandPart, text } from "@gyre/coding/internal/conversation/command";
import { toLlmMessage } from "@gyre/coding/internal/conversation/user-command";
import type { Purpose } from "@gyre/coding/internal/harness/session/spending";
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
    show: contextParts(
      contextBreakdown(harness.agent.state, {
        convertMessage: toLlmMessage,
        triggerTokens: harness.compactAt,
      }),
    ),
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

const PURPOSE_NAMES: Readonly<Record<Purpose, string>> = {
  answers: "answers",
  summaries: "summaries",
  sideQuestions: "side questions",
  subAgents: "sub-agents",
};

/** `/cost`: what the session and the last prompt have used, by purpose and by model. */
export const costCommand: SlashCommand = {
  name: "cost",
  aliases: ["usage"],
  about: "show what this session has used",
  allowWhileRunning: true,
  run(_rest, { harness }) {
    const { session, prompt, purposes, models } = harness.spending;
    const kinds = [...purposes].map(([purpose, usage]) => [PURPOSE_NAMES[purpose], usage] as const);
    const names = [...models].map(([code, usage]) => [{ code }, usage] as const);
    return {
      show: [
        text(`The session: ${usageSentence(session)}${cacheSentence(session)}`),
        text(`Since your last message: ${usageSentence(prompt)}${cacheSentence(prompt)}`),
        ...formatTable("for", kinds),
        ...formatTable("model", names),
      ],
    };
  },
};

/** A table of what each has used; nothing where there is but one. */
function formatTable(
  what: string,
  used: Iterable<readonly [Cell, Usage]>,
): Extract<CommandPart, { type: "table" }>[] {
  const rows = [...used].map(([name, usage]) => [
    name,
    formatCount(totalTokens(usage)),
    costText(usage),
    cacheText(usage),
  ]);
  const columns = [what, "tokens", "cost", "from the cache"];
  return rows.length > 1 ? [{ type: "table", columns, rows }] : [];
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
