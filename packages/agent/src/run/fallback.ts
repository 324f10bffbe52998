import type { AssistantMessage, Failure, Model } from "@gyre/ai";
import type { FallbackEvent } from "../contract/middleware.ts";
import type { Attempt } from "../loop/retry.ts";
import type { Run } from "./run.ts";

/** Whether another model may do where this one fails so. A key that was refused is not missing. */
export function isUnavailable({ kind, status }: Failure): boolean {
  return kind === "overloaded" || kind === "quota" || (kind === "auth" && status === undefined);
}

/** How far a run has gone down its list of models. */
export class Fallbacks {
  readonly #models: readonly Model[];
  #passed: Model[] = [];
  /** One for each model that was passed over since the run began, or began anew. */
  events: FallbackEvent[] = [];

  constructor(models: readonly Model[]) {
    this.#models = models;
  }

  /** The model to ask in place of `model`, if that has failed so that another may do better. */
  next(model: Model, { message, shown }: Attempt): Model | undefined {
    if (shown || !message.failure || !isUnavailable(message.failure)) return undefined;
    const tried = [...this.#passed, model];
    return this.#models.find((other) => !tried.some((one) => isSame(one, other)));
  }

  pass(from: Model, to: Model, { failure, errorMessage = "" }: AssistantMessage): FallbackEvent {
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

  /** Forgets which models were passed over. */
  startAnew(): void {
    this.#passed = [];
    this.events = [];
  }

  /** Whether `model` is of another service than the one that was to be asked. */
  isElsewhere({ provider }: Model): boolean {
    const first = this.#passed[0];
    return first !== undefined && first.provider !== provider;
  }
}

/** Not for callers: takes a model that is passed over out of its retries. */
class PassedOver extends Error {
  readonly next: Model;
  readonly answer: AssistantMessage;
  constructor(next: Model, answer: AssistantMessage) {
    super("The model was passed over.");
    this.next = next;
    this.answer = answer;
  }
}

/**
 * Asks the model in use, and the next of `fallbackModels` as long as one is not to be
 * had. `ask` puts each outcome through `orNext` before it waits or retries: that gives
 * it back, or throws what `ask` must let through. Answers with the last outcome.
 */
export async function withFallback<A extends Attempt>(
  run: Run,
  ask: (orNext: (outcome: A) => A) => Promise<A>,
): Promise<A> {
  const orNext = (outcome: A): A => {
    const next = run.cancelled ? undefined : run.fallbacks.next(run.model, outcome);
    if (next) throw new PassedOver(next, outcome.message);
    return outcome;
  };
  for (;;) {
    try {
      return withTried(run.fallbacks.events, await ask(orNext));
    } catch (error) {
      if (!(error instanceof PassedOver)) throw error;
      await run.emit(run.fallbacks.pass(run.model, error.next, error.answer));
      run.use(error.next);
    }
  }
}

/** An error with nothing before it says which other models were tried. */
function withTried<A extends Attempt>(events: readonly FallbackEvent[], outcome: A): A {
  const { message, shown } = outcome;
  if (shown || message.stopReason !== "error" || events.length === 0) return outcome;
  const tried = events.map(({ from, kind }) => `${from.provider}/${from.id} (${kind})`).join(", ");
  const errorMessage = `${message.errorMessage ?? ""} Tried before: ${tried}.`.trim();
  return { ...outcome, message: { ...message, errorMessage } };
}

/** The same model may be had at several addresses. */
function isSame(one: Model, other: Model): boolean {
  return one.id === other.id && one.provider === other.provider && one.baseUrl === other.baseUrl;
}
