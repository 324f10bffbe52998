import {
  type AssistantMessage,
  type Context,
  estimateContextTokens,
  estimateTokens,
  type Failure,
  type StreamOptions,
  type TranscriptProblem,
} from "@gyre/ai";
import {
  applyCompaction,
  type ContextConfig,
  contextLimits,
  onTopOf,
  planCompaction,
  readable,
  standIn,
  tokensOf,
} from "./compaction.ts";
import type { Outgoing } from "./history.ts";
import { messageOf, type Run } from "./run.ts";
import type { AgentMessage } from "./types.ts";

/** What is about to be sent is not what a service accepts: a fault of ours, or of a hook. */
export class InvalidTranscriptError extends Error {
  readonly failure: Failure = { kind: "invalid_transcript", retryable: false };
  readonly problems: readonly TranscriptProblem[];
  constructor(problems: readonly TranscriptProblem[]) {
    const list = problems.map(({ index, reason }) => `message ${index}: ${reason}`).join(" ");
    super(
      `The transcript is not valid, and was not sent (an error of the agent, or of convertToLlm or transformContext). ${list}`,
    );
    this.name = "InvalidTranscriptError";
    this.problems = problems;
  }
}

/** What the model is asked on. Throws what a callback threw, and on what no service would take. */
export function buildContext(run: Run): Context | Promise<Context> {
  const { context, transformContext, convertToLlm } = run.config;
  if (!context && !run.compaction && !transformContext && !convertToLlm) {
    return contextOf(run, run.history.outgoing());
  }
  return (async () => {
    if (context) await compact(run, context);
    const messages = compacted(run);
    const transformed = transformContext
      ? await run.hook("transformContext", () => transformContext(messages, run.signal))
      : messages;
    const converted = convertToLlm
      ? await run.hook("convertToLlm", () => convertToLlm(transformed))
      : transformed;
    return contextOf(run, run.history.outgoingFrom(converted));
  })();
}

function compacted(run: Run): readonly AgentMessage[] {
  const { messages } = run.history;
  return run.compaction ? applyCompaction(messages, run.compaction) : messages;
}

/** Makes the context smaller, if it is too large (R24). */
async function compact(run: Run, config: ContextConfig): Promise<void> {
  const messages = compacted(run);
  const correct = (estimated: number): number => run.calibration.correct(estimated);
  const overhead = overheadOf(run);
  const plan = planCompaction(messages, contextLimits(config, run.model), overhead, correct);
  if (!plan) return;
  const left = messages.slice(plan.from, plan.to);
  const { summary, reason } = await summaryOf(run, config, left, plan.target);
  const { from, to } = onTopOf(run.compaction, plan);
  run.compaction = { from, to, message: standIn(summary, run.clock.now()) };
  const estimated = compacted(run).reduce((sum, message) => sum + tokensOf(message), overhead);
  await run.emit({
    type: "compaction",
    before: plan.before,
    after: Math.round(correct(estimated)),
    reason,
    compaction: run.compaction,
  });
}

/** A summary that helps, or none: where nobody makes one, it fails, or it is too long. */
async function summaryOf(
  run: Run,
  { summarise }: ContextConfig,
  left: readonly AgentMessage[],
  target: number,
): Promise<{ summary?: string; reason: string }> {
  const reason = "The context had grown above its limit.";
  if (!summarise) return { reason };
  try {
    const summary = await run.hook("summarise", () => summarise(readable(left), run.signal));
    if (estimateTokens(summary) <= target / 4) return { summary, reason };
    return { reason: `${reason} The summary was too long, and is left out.` };
  } catch (error) {
    if (run.cancelled) throw error;
    return { reason: `${reason} There is no summary: ${messageOf(error)}` };
  }
}

/** What a request holds besides messages. */
function overheadOf(run: Run): number {
  const { systemPrompt, toolbox } = run;
  return estimateContextTokens({
    messages: [],
    tools: toolbox.specs,
    ...(systemPrompt && { systemPrompt }),
  });
}

function contextOf(run: Run, outgoing: Outgoing): Context {
  if (outgoing.problems.length > 0) throw new InvalidTranscriptError(outgoing.problems);
  if (outgoing.messages.length === 0) {
    throw new Error("There is no message to send to the model: the transcript is empty.");
  }
  const { transformContext, convertToLlm } = run.config;
  const last = outgoing.messages.at(-1);
  const isOwnWord = last?.role === "assistant" && last.stopReason !== "pause";
  // Functions of the application's own may mean it: some models go on with their own words.
  if (isOwnWord && !transformContext && !convertToLlm) {
    throw new Error("There is nothing to answer: the last message for the model is its own.");
  }
  const context: Context = { messages: outgoing.messages };
  if (run.systemPrompt) context.systemPrompt = run.systemPrompt;
  if (run.toolbox.specs.length > 0) context.tools = run.toolbox.specs;
  return context;
}

type PassedOn = Exclude<keyof StreamOptions, "apiKey" | "signal" | "thinkingLevel">;

/** What of the configuration is said to the service as it is: every option, but for three. */
const PASSED_ON: Record<PassedOn, true> = {
  temperature: true,
  maxTokens: true,
  sessionId: true,
  thinkingBudgets: true,
  cacheRetention: true,
  toolChoice: true,
  headers: true,
  maxRetryDelayMs: true,
  timeoutMs: true,
  metadata: true,
  onPayload: true,
  onResponse: true,
  clock: true,
};
const NAMES = Object.keys(PASSED_ON) as PassedOn[];

/** What is said about the request, but for its key and its signal. */
export function buildOptions({ config, thinkingLevel }: Run): StreamOptions {
  const options: Record<string, unknown> = {};
  for (const name of NAMES) if (config[name] !== undefined) options[name] = config[name];
  return thinkingLevel === undefined ? options : { ...options, thinkingLevel };
}

/** Learns from what the service counted how far our estimates are off. */
export function calibrate(run: Run, { usage }: AssistantMessage): void {
  if (usage.input === undefined) return;
  const reported = usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
  const estimated = compacted(run).reduce((sum, sent) => sum + tokensOf(sent), overheadOf(run));
  run.calibration.observe(estimated, reported);
}
