import { isRecord } from "@gyre/ai";
import type { AgentToolOptions } from "../agent/as-tool.ts";
import type { AgentOptions, ContinueOptions, PromptOptions } from "../agent/options.ts";
import type { AgentTool } from "../contract/types.ts";

/** Every name of an options type; the compiler finds one that is missing here. */
type Names<Options> = Readonly<Record<keyof Options, true>>;

const RUN = {
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

const NAMES: {
  readonly "new Agent": Names<AgentOptions>;
  readonly prompt: Names<PromptOptions & { output?: unknown }>;
  readonly continue: Names<ContinueOptions>;
  readonly tool: Names<AgentTool>;
  readonly asTool: Names<AgentToolOptions>;
} = {
  "new Agent": {
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
  },
  prompt: { ...RUN, images: true, attachments: true, whileRunning: true, output: true },
  continue: { ...RUN, decisions: true },
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
};

/**
 * Throws on what a compiler would find: a misspelled option, or a value of the wrong form. Names
 * that are near to none pass, since objects with more in them are spread into options.
 */
export function checkShape(kind: keyof typeof NAMES | "subscribe", options: unknown): void {
  if (kind === "subscribe") {
    if (typeof options === "function") return;
    throw new TypeError("A listener is a function: write agent.subscribe((event) => ...).");
  }
  if (!isRecord(options)) {
    throw new TypeError(`The options are missing: write ${kind}({ name, description }).`);
  }
  checkSpelling(kind, options);
  checkLists(options);
}

function checkSpelling(kind: keyof typeof NAMES, options: Readonly<Record<string, unknown>>): void {
  const known = NAMES[kind];
  for (const name in options) {
    if (name in known) continue;
    // Where the near one is given too, this is something else.
    const near = Object.keys(known).find((each) => isSlip(name, each) && !(each in options));
    if (near === undefined) continue;
    const owner = kind === "tool" ? ` of tool "${String(options["name"])}"` : ` of ${kind}`;
    throw new TypeError(`There is no option "${name}"${owner}. Did you mean ${near}?`);
  }
}

/** Whether two names differ by case, underscores and at most one slip of the keys. */
function isSlip(written: string, meant: string): boolean {
  const [a, b] = [written, meant].map((name) => name.toLowerCase().replaceAll("_", ""));
  if (a === undefined || b === undefined) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const left = a.slice(start, a.length - end);
  const right = b.slice(start, b.length - end);
  if (left.length <= 1 && right.length <= 1) return true;
  return left.length === 2 && left === [...right].reverse().join("");
}

/** Options that are lists, and what is in them. */
function checkLists(options: Readonly<Record<string, unknown>>): void {
  for (const name of ["middleware", "fallbackModels", "handoffs", "images", "attachments"]) {
    const list = options[name];
    if (list === undefined) continue;
    if (!Array.isArray(list)) throw new TypeError(`\`${name}\` is a list: write [one, another].`);
    for (const one of list as readonly unknown[]) checkItem(name, one);
  }
}

function checkItem(list: string, one: unknown): void {
  if (list === "middleware" && !isRecord(one)) {
    throw new TypeError(
      "A middleware is an object: write { tool: (call, next) => next() }, { model: ... } or { run: ... }.",
    );
  }
  if (list === "handoffs" && isRecord(one) && "asHandoff" in one) {
    throw new TypeError("An agent is no handoff: write agent.asHandoff({ name, description }).");
  }
  if (list === "images" && (!isRecord(one) || typeof one["data"] !== "string")) {
    throw new TypeError(
      'An image is { type: "image", mimeType, data }, with its bytes as base64: load an address with fetch().',
    );
  }
}
