import type { AgentEvent } from "@gyre/agent";
import { FALLBACK_MODELS } from "../world/surroundings.ts";
import type { World } from "../world/world.ts";

type FallbackEvent = Extract<AgentEvent, { type: "fallback" }>;

/** Which model a run is to ask, and which comes after it in its list of fallbacks. */
export class Choice {
  readonly #world: World;
  /** Absent while it is not known: it is being changed. */
  inUse: { id: string } | undefined;
  /** Ids of the models that were passed over, where that is known. */
  #passed: string[] | undefined = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** A model is chosen; undefined: perhaps. */
  set(model: { id: string } | undefined): void {
    this.inUse = model;
    this.#passed = model && [];
  }

  get passed(): readonly string[] {
    return this.#passed ?? [];
  }

  /** The model that is to be asked when the one in use is not to be had, as far as is known. */
  get next(): string | undefined {
    const { inUse } = this;
    return inUse && this.#passed && this.#after(inUse.id, this.#passed);
  }

  /** Goes on to the model of an event; says what is wrong with that, if anything is. */
  fellBack({ from, to }: FallbackEvent): string | undefined {
    const { inUse } = this;
    if (inUse && from.id !== inUse.id) return `${inUse.id} is in use, not ${from.id}`;
    const next = this.#after(from.id, this.passed);
    const isKnown = this.#passed !== undefined;
    const isListed = this.#world.plan.fallbacks.includes(to.id) && to.id !== from.id;
    if (isKnown ? to.id !== next : !isListed) return `${next} comes next, not ${to.id}`;
    for (const { id, provider } of [from, to]) {
      const model = FALLBACK_MODELS.find((other) => other.id === id);
      if (model?.provider !== provider) return `${id} is not of ${provider}`;
    }
    this.#passed?.push(from.id);
    this.inUse = { id: to.id };
    return undefined;
  }

  #after(id: string, passed: readonly string[]): string | undefined {
    return this.#world.plan.fallbacks.find((other) => other !== id && !passed.includes(other));
  }
}
