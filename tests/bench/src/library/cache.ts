import {
  type AgentContext,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentTool,
  runAgentLoop,
} from "@gyre/agent";
import {
  type Context,
  estimateContextTokens,
  estimateMessageTokens,
  type Message,
  type Model,
} from "@gyre/ai";
import { call, manualClock, say, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import type { Case, Line } from "../measure/lines.ts";

/**
 * How much of each request is, byte for byte, the beginning of the request before: what a
 * service can take from its cache. Both sides play the same script; the naive one drops
 * the oldest turns as soon as the context is too large, and so moves its beginning with
 * every turn from then on.
 */

const TURNS = 300;
const WINDOW = 128_000;
const TRIGGER = WINDOW * 0.8;
const MOST_MISSED_PERCENT = 3;
/** A user asks something every so many turns. */
const TURNS_A_REQUEST = 30;
/** Words of a result: at the beginning of the session, and what each turn adds. */
const FIRST_RESULT_WORDS = 900;
const GROWTH_WORDS = 6;
const SYSTEM_WORDS = 2_000;
const TOOL_WORDS = 150;

const NAMES = ["read", "grep", "edit", "shell"] as const;
const VOCABULARY =
  "the parser keeps a list of open blocks and closes each when its end comes in".split(" ");

/** Always the same words for the same place. */
function words(count: number, seed: number): string {
  let state = seed * 2_654_435_761 + 1;
  const list: string[] = [];
  for (let i = 0; i < count; i++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    list.push(VOCABULARY[state % VOCABULARY.length] ?? "");
  }
  return list.join(" ");
}

function tools(): AgentTool[] {
  let made = 0;
  return NAMES.map((name, nth) => ({
    name,
    description: words(TOOL_WORDS, nth),
    parameters: { type: "object", properties: { path: { type: "string" } } },
    execute: () => {
      made++;
      const most = FIRST_RESULT_WORDS + made * GROWTH_WORDS;
      return words(Math.ceil(most * (0.2 + ((made * 7) % 10) / 10)), made);
    },
  }));
}

function turn(nth: number): ScriptStep {
  const name = NAMES[nth % NAMES.length] ?? "read";
  return [say(`${words(20, nth)}.`), call(name, { path: `src/file-${nth % 40}.ts` })];
}

interface Played {
  requests: { context: Context; sizes: number[] }[];
  compactions: number;
}

/** The whole session, and what was sent on the way. */
async function play(more: Partial<AgentLoopConfig>): Promise<Played> {
  const requests: Played["requests"] = [];
  const context: AgentContext = {
    systemPrompt: words(SYSTEM_WORDS, 1),
    messages: [],
    tools: tools(),
  };
  const messages: AgentMessage[] = [];
  let { compaction } = context;
  let compactions = 0;
  for (let first = 0; first < TURNS; first += TURNS_A_REQUEST) {
    const last = Math.min(TURNS, first + TURNS_A_REQUEST) - 1;
    const script = Array.from({ length: last - first }, (_, i) => turn(first + i));
    const model = scriptedModel([...script, `Done: ${words(30, first)}.`]);
    const window: Model = { ...model.model, contextWindow: WINDOW };
    const made = await runAgentLoop(
      [{ role: "user", content: `Request ${first}: ${words(60, first)}`, timestamp: 0 }],
      { ...context, messages, ...(compaction && { compaction }) },
      { model: window, clock: manualClock(), ...more },
      (event) => {
        if (event.type !== "compaction") return;
        compactions++;
        ({ compaction } = event);
      },
      undefined,
      (_, sent, options) => {
        const kept = { ...sent, messages: [...sent.messages] };
        requests.push({ context: kept, sizes: kept.messages.map(estimateMessageTokens) });
        return model.stream(window, sent, options);
      },
    );
    messages.push(...made);
  }
  return { requests, compactions };
}

/** Of all input tokens, the share that the request before began with, in percent. */
export function cachedPercent(requests: Played["requests"]): number {
  let all = 0;
  let cached = 0;
  let before: string[] = [];
  let headBefore = "";
  for (const { context, sizes } of requests) {
    const { messages, ...rest } = context;
    const head = JSON.stringify(rest);
    const bytes = messages.map((message) => JSON.stringify(message));
    const overhead = estimateContextTokens({ ...rest, messages: [] });
    all += overhead + sizes.reduce((sum, size) => sum + size, 0);
    if (head === headBefore) {
      cached += overhead;
      for (let i = 0; i < bytes.length && bytes[i] === before[i]; i++) cached += sizes[i] ?? 0;
    }
    before = bytes;
    headBefore = head;
  }
  return (100 * cached) / all;
}

/** The last turns that fit, and nothing else. */
function slidingWindow(messages: readonly AgentMessage[]): readonly AgentMessage[] {
  const sent = messages as readonly Message[];
  let tokens = sent.reduce((sum, message) => sum + estimateMessageTokens(message), 0);
  let from = 0;
  while (tokens > TRIGGER || sent[from]?.role === "toolResult") {
    const dropped = sent[from++];
    if (!dropped) break;
    tokens -= estimateMessageTokens(dropped);
  }
  return sent.slice(from);
}

async function cache(): Promise<Line[]> {
  const ours = await play({ context: {} });
  const naive = await play({ transformContext: slidingWindow });
  const largest = Math.max(...ours.requests.map(({ sizes }) => sizes.reduce((a, b) => a + b, 0)));
  if (ours.requests.length < TURNS || ours.compactions < 3 || largest > WINDOW) {
    throw new Error(
      `The benchmark is not measuring what it says: ${ours.requests.length} requests of up to ${largest} tokens, ${ours.compactions} compactions.`,
    );
  }
  const cached = cachedPercent(ours.requests);
  const percent = (value: number): string => `${value.toFixed(1)} % cached`;
  return [
    {
      what: `${TURNS} turns, 128k window, ${ours.compactions} compactions: not the prefix of the request before`,
      floor: percent(cachedPercent(naive.requests)),
      gyre: percent(cached),
      measured: 100 - cached,
      limit: MOST_MISSED_PERCENT,
      unit: " %",
    },
  ];
}

export const cacheCases: readonly Case[] = [{ name: "cache", run: cache }];
