import type { AssistantMessage, Failure, Model } from "@gyre/ai";
import type { FallbackEvent } from "../contract/middleware.ts";

/** Whether another model may answer where this one fails so. A key that was rejected is not missing. */
export function isUnavailable({ kind, status }: Failure): boolean {
  return kind === "overloaded" || kind === "quota" || (kind === "auth" && status === undefined);
}

/** How far a run has gone down its list of models. */
export class Fallbacks {
  readonly #models: readonly Model[];
  readonly #passed: Model[] = [];
  /** One for each model that failed since the start of the run, or since the last `reset`. Live. */
  readonly events: FallbackEvent[] = [];

  constructor(models: readonly Model[]) {
    this.#models = models;
  }

  /** The model to ask after `model` has failed, if another one may answer. */
  findNext(model: Model, failure: Failure): Model | undefined {
    if (!isUnavailable(failure)) return undefined;
    const tried = [...this.#passed, model];
    return this.#models.find((other) => !tried.some((one) => isSameModel(one, other)));
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
