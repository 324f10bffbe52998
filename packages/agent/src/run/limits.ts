import {
  estimateMessageTokens,
  type AssistantMessage,
  type Model,
  totalTokens,
  type ToolCall,
  type Usage,
} from "@gyre/ai";
import type {
  AgentToolResult,
  InterruptedRun,
  LimitName,
  Limits,
  ToolHost,
} from "../contract/types.ts";

export const DEFAULT_MAX_IDENTICAL_CALLS = 3;
/** A service that pauses more often than this in a row makes no progress. */
export const MAX_PAUSES_IN_A_ROW = 10;
/** Answers with calls that were cut off by the length limit, in a row. */
export const MAX_TRUNCATED_TURNS_IN_A_ROW = 3;

export interface LimitReached {
  limit: LimitName;
  value: number;
}

const NAMES =
  "maxTurns maxIterations maxTotalTokens maxDurationMs maxCostUsd maxIdenticalCalls".split(" ");

/** Throws on a limit that can never be right, naming it and its value. */
export function checkLimits(limits: Limits): void {
  for (const [name, value] of Object.entries(limits)) {
    if (!NAMES.includes(name)) {
      throw new TypeError(`There is no limit "${name}". There are ${NAMES.join(", ")}.`);
    }
    if (value === undefined) continue;
    const whole = name === "maxTurns" || name === "maxIterations" || name === "maxIdenticalCalls";
    if (typeof value !== "number" || !(value > 0) || (whole && value < 1)) {
      throw new RangeError(`limits.${name} must be a number above 0, got ${String(value)}.`);
    }
  }
}

/** What is left of a run's limits, for what works on its behalf. */
export type Left = ReturnType<NonNullable<ToolHost["left"]>>;
const SHARED_LIMITS = ["maxTotalTokens", "maxCostUsd", "maxDurationMs"] as const;

/** The lower of each limit. */
export function tightenLimits(limits: Limits, left: Left): Limits {
  const both = { ...limits };
  for (const name of SHARED_LIMITS) {
    const most = left[name];
    if (most !== undefined) both[name] = Math.min(most, both[name] ?? Infinity);
  }
  return both;
}

/** Throws where nothing is left of a limit. */
export function assertLeft(left: Left): void {
  const name = SHARED_LIMITS.find((limit) => (left[limit] ?? 1) <= 0);
  if (name) throw new Error(`nothing is left of the run's limit ${name}.`);
}

/** What a run has used up, against what it may use. */
export class LimitGauge {
  readonly #limits: Limits;
  #turns = 0;
  #tokens = 0;
  #cost = 0;
  /** A response had tokens whose price is not known. */
  #unpriced = false;
  #pauses = 0;
  #truncated = 0;
  #refusals = 0;
  #last: { call: ToolCall; result: AgentToolResult; times: number } | undefined;

  constructor(limits: Limits, interrupted?: InterruptedRun) {
    checkLimits(limits);
    this.#limits = limits;
    if (!interrupted) return;
    this.#turns = interrupted.turns;
    this.addUsage(interrupted.usage);
    this.#tokens = interrupted.tokens ?? this.#tokens;
  }

  /** Why the cost limit cannot be enforced for `model`, if it cannot. */
  explainUnpriced(model: Model): string | undefined {
    const { maxCostUsd } = this.#limits;
    if (maxCostUsd === undefined) return undefined;
    if (this.#unpriced) {
      return `limits.maxCostUsd is ${maxCostUsd}, but what the run has cost is not known: a response, or a model that a tool asked, had tokens of a kind (of a cache, say), or ran a tool of its service, that have no price. Give the model that price, or leave the limit out.`;
    }
    if (model.price?.input !== undefined && model.price.output !== undefined) return undefined;
    return `limits.maxCostUsd is ${maxCostUsd}, but the price of model "${model.id}" is not known. Give the model a price, or leave the limit out.`;
  }

  /** Counts a response. */
  count(message: AssistantMessage, calls: number): void {
    this.#turns++;
    if (this.#limits.maxTotalTokens !== undefined) this.#tokens += countTokens(message);
    this.#price(message.usage);
    this.#pauses = message.stopReason === "pause" ? this.#pauses + 1 : 0;
    this.#truncated = message.stopReason === "length" && calls > 0 ? this.#truncated + 1 : 0;
  }

  /** Counts what a tool spent on models of its own. */
  addUsage(usage: Usage): void {
    this.#tokens += totalTokens(usage);
    this.#price(usage);
  }

  /** What is left of the limits on tokens and cost. */
  left(): Pick<Limits, "maxTotalTokens" | "maxCostUsd"> {
    const { maxTotalTokens, maxCostUsd } = this.#limits;
    return {
      ...(maxTotalTokens !== undefined && { maxTotalTokens: maxTotalTokens - this.#tokens }),
      ...(maxCostUsd !== undefined && { maxCostUsd: maxCostUsd - this.#cost }),
    };
  }

  /** The first limit that is reached, if any. `outer`: what is left of the run that this one works for. */
  reached(outer: Left = {}): LimitReached | undefined {
    const { maxTurns = this.#limits.maxIterations, maxTotalTokens, maxCostUsd } = this.#limits;
    if (this.#refusals > 1) return { limit: "maxIdenticalCalls", value: this.#maxIdentical };
    if (this.#truncated >= MAX_TRUNCATED_TURNS_IN_A_ROW) {
      return { limit: "maxTruncatedTurnsInARow", value: this.#truncated };
    }
    if (this.#pauses > MAX_PAUSES_IN_A_ROW) {
      return { limit: "maxPausesInARow", value: MAX_PAUSES_IN_A_ROW };
    }
    return (
      checkUsed("maxTurns", this.#turns, maxTurns) ??
      checkUsed("maxTotalTokens", this.#tokens, maxTotalTokens, outer.maxTotalTokens) ??
      checkUsed("maxCostUsd", this.#cost, maxCostUsd, outer.maxCostUsd)
    );
  }

  /** Whether this call is one too many of the same; counts the refusal. */
  refuses(call: ToolCall): boolean {
    const last = this.#last;
    if (!last || last.times < this.#maxIdentical || !isSameCall(last.call, call)) return false;
    this.#refusals++;
    return true;
  }

  /** Remembers the result of a call that ran. */
  record(call: ToolCall, result: AgentToolResult): void {
    const last = this.#last;
    const repeated =
      last && isSameCall(last.call, call) && isSameValue(last.result.content, result.content);
    this.#last = { call, result, times: repeated ? last.times + 1 : 1 };
    if (!repeated) this.#refusals = 0;
  }

  #price(usage: Usage): void {
    this.#cost += usage.cost?.total ?? 0;
    const isPriced = usage.cost && !usage.cost.notIncluded;
    if (!isPriced && totalTokens(usage) > 0) this.#unpriced = true;
  }

  get #maxIdentical(): number {
    return this.#limits.maxIdenticalCalls ?? DEFAULT_MAX_IDENTICAL_CALLS;
  }
}

function checkUsed(
  limit: LimitName,
  value: number,
  most = Infinity,
  left = 1,
): LimitReached | undefined {
  return value >= most || left <= 0 ? { limit, value } : undefined;
}

/** As the service reported; estimated where it did not, or a limit would never be reached. */
function countTokens(message: AssistantMessage): number {
  const reported = totalTokens(message.usage);
  return reported > 0 || message.content.length === 0 ? reported : estimateMessageTokens(message);
}

function isSameCall(one: ToolCall, other: ToolCall): boolean {
  return (
    one.name === other.name &&
    one.rawArguments === other.rawArguments &&
    isSameValue(one.arguments, other.arguments)
  );
}

/** Equal as JSON, whatever the order of keys. */
function isSameValue(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every(
      (key) =>
        Object.hasOwn(other, key) &&
        isSameValue((one as Record<string, unknown>)[key], (other as Record<string, unknown>)[key]),
    )
  );
}
