import type { AssistantMessage, Failure, Model } from "@gyre/ai";
import type { FallbackEvent } from "../contract/middleware.ts";
import type { FallbackReason, FallbackRule } from "../contract/types.ts";

/**
 * Failures after which another model is asked, unless `fallbackOn` says otherwise: those that
 * say that this service does not answer now, or not to this key, and 404, a model that is gone.
 */
export const DEFAULT_FALLBACK_ON: readonly FallbackReason[] = [
  "overloaded",
  "quota",
  "auth",
  "rate_limit",
  "network",
  "timeout",
  "stalled",
  "incomplete",
  "empty",
  "unknown",
  404,
];

/** Whether there is no use in a retry while another model can be asked. */
export function isUnavailable({ kind }: Failure): boolean {
  return kind === "overloaded" || kind === "quota" || kind === "auth";
}

function matches(rule: FallbackRule, failure: Failure, model: Model): boolean {
  if (failure.kind === "aborted") return false;
  if (typeof rule === "function") return rule(failure, model);
  const { kind, status } = failure;
  return rule.includes(kind) || (status !== undefined && rule.includes(status));
}

/** How far a run has gone down its list of models. */
export class Fallbacks {
  readonly #models: readonly Model[];
  readonly #rule: FallbackRule;
  readonly #passed: Model[] = [];
  /** One for each model that failed since the start of the run, or since the last `reset`. Live. */
  readonly events: FallbackEvent[] = [];

  constructor(models: readonly Model[] = [], rule: FallbackRule = DEFAULT_FALLBACK_ON) {
    this.#models = models;
    this.#rule = rule;
  }

  /** The model to ask after `model` has failed, if another one may answer. */
  findNext(model: Model, failure: Failure): Model | undefined {
    const tried = [...this.#passed, model];
    const next = this.#models.find((other) => !tried.some((one) => isSameModel(one, other)));
    return next && matches(this.#rule, failure, model) ? next : undefined;
  }

  /** Notes that `from` has failed and `to` is asked in its place. */
  add(from: Model, to: Model, { failure, errorMessage = "" }: AssistantMessage): FallbackEvent {
    const event: FallbackEvent = {
      type: "fallback",
      from: { provider: from.provider, id: from.id },
      to: { provider: to.provider, id: to.id },
      kind: failure?.kind ?? "unknown",
      errorMessage,
    };
    this.#passed.push(from);
    this.events.push(event);
    return event;
  }

  /** Forgets which models have failed. */
  reset(): void {
    this.#passed.length = 0;
    this.events.length = 0;
  }

  /** Whether `model` is of another service than the one that was to be asked. */
  isElsewhere({ provider }: Model): boolean {
    const first = this.#passed[0];
    return first !== undefined && first.provider !== provider;
  }
}

/** One model may be offered at several addresses. */
function isSameModel(one: Model, other: Model): boolean {
  return one.id === other.id && one.provider === other.provider && one.baseUrl === other.baseUrl;
}
