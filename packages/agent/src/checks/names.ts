import type { GenerationOptions, RetryOptions } from "@gyre/ai";
import type { AgentToolOptions } from "../agent/as-tool.ts";
import type { AgentOptions, ContinueOptions, PromptOptions } from "../agent/options.ts";
import type { ContextConfig } from "../contract/compaction.ts";
import type { Middleware } from "../contract/middleware.ts";
import type { AgentTool, Limits, WatchdogOptions } from "../contract/types.ts";
import type { GenerateOptions } from "../generate.ts";

/** Every name of an options type; the compiler finds one that is missing here. */
type Names<Options> = Readonly<Record<keyof Options, true>>;

const GENERATION = {
  topP: true,
  topK: true,
  minP: true,
  seed: true,
  stopSequences: true,
  presencePenalty: true,
  frequencyPenalty: true,
  parallelToolCalls: true,
  strictTools: true,
  verbosity: true,
  userId: true,
  logprobs: true,
  cacheBreakpoints: true,
  outputFormat: true,
  serviceTools: true,
  providerOptions: true,
} as const satisfies Names<GenerationOptions>;

const RUN = {
  ...GENERATION,
  temperature: true,
  maxTokens: true,
  headers: true,
  limits: true,
  toolChoice: true,
  middleware: true,
  tools: true,
  caller: true,
  signal: true,
} as const;

const AGENT = {
  ...GENERATION,
  model: true,
  fallbackModels: true,
  fallbackOn: true,
  instructions: true,
  tools: true,
  name: true,
  handoffs: true,
  messages: true,
  thinkingLevel: true,
  thinkingBudgets: true,
  pending: true,
  interrupted: true,
  compaction: true,
  queued: true,
  protocol: true,
  streamFn: true,
  limits: true,
  maxIterations: true,
  steering: true,
  steeringMode: true,
  followUpMode: true,
  sink: true,
  sinkTimeoutMs: true,
  maxContinuations: true,
  onQueueChange: true,
  listenerTimeoutMs: true,
  onError: true,
  convertToLlm: true,
  transformContext: true,
  getApiKey: true,
  apiKey: true,
  prepareTurn: true,
  shouldStopAfterTurn: true,
  toolChoice: true,
  toolChoiceInEveryTurn: true,
  toolExecution: true,
  maxToolConcurrency: true,
  toolTimeoutMs: true,
  abortGraceMs: true,
  middleware: true,
  middlewareTimeoutMs: true,
  onLateResult: true,
  context: true,
  caller: true,
  retry: true,
  maxRetryDelayMs: true,
  timeoutMs: true,
  watchdog: true,
  hookTimeoutMs: true,
  unfinished: true,
  clock: true,
  generateId: true,
  random: true,
  temperature: true,
  maxTokens: true,
  headers: true,
  metadata: true,
  sessionId: true,
  cacheRetention: true,
  onPayload: true,
  onResponse: true,
} as const;

/** The places of options, and what each has. */
export const NAMES: {
  readonly "new Agent": Names<AgentOptions>;
  readonly prompt: Names<PromptOptions & { output?: unknown }>;
  readonly continue: Names<ContinueOptions & { output?: unknown }>;
  readonly tool: Names<AgentTool>;
  readonly asTool: Names<AgentToolOptions>;
  readonly generate: Names<GenerateOptions & { output?: unknown }>;
  readonly retry: Names<RetryOptions>;
  readonly limits: Names<Limits>;
  readonly context: Names<ContextConfig>;
  readonly watchdog: Names<WatchdogOptions>;
  readonly middleware: Names<Middleware>;
} = {
  "new Agent": AGENT,
  prompt: { ...RUN, images: true, attachments: true, whileRunning: true, output: true },
  continue: { ...RUN, decisions: true, output: true },
  tool: {
    name: true,
    description: true,
    parameters: true,
    label: true,
    execute: true,
    needsApproval: true,
    presentation: true,
    concurrent: true,
    idempotent: true,
    recover: true,
    timeoutMs: true,
    abortGraceMs: true,
  },
  asTool: {
    name: true,
    description: true,
    input: true,
    output: true,
    prompt: true,
    onEvent: true,
    needsApproval: true,
    timeoutMs: true,
    concurrent: true,
  },
  generate: { ...AGENT, prompt: true, signal: true, output: true },
  retry: { maxRetries: true, maxElapsedMs: true, baseDelayMs: true, maxDelayMs: true },
  limits: {
    maxTurns: true,
    maxIterations: true,
    maxTotalTokens: true,
    maxDurationMs: true,
    maxCostUsd: true,
    maxIdenticalCalls: true,
  },
  context: {
    triggerTokens: true,
    targetTokens: true,
    keepTurns: true,
    maxResultTokens: true,
    summarize: true,
    summaryWaitMs: true,
    storeResult: true,
    pinned: true,
    beforeCompaction: true,
    classifyCall: true,
    convertMessage: true,
  },
  watchdog: { firstByteMs: true, betweenBytesMs: true, contentMs: true },
  middleware: {
    run: true,
    late: true,
    withheld: true,
    firstContent: true,
    tool: true,
    model: true,
  },
};

export type Place = keyof typeof NAMES;
