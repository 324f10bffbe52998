import { loadPart, type Model, type ProtocolClient } from "@gyre/ai";
import type { AgentOptions } from "./options.ts";

/** The models of an agent and the client that asks them: as given, or looked up before a run. */
export class ModelSource {
  /** A name until it has been looked up. */
  model: Model | string | undefined;
  #fallbackModels: readonly (Model | string)[];
  protocol: ProtocolClient | undefined;
  readonly #hasStreamFn: boolean;

  constructor({ model, fallbackModels = [], protocol, streamFn }: AgentOptions) {
    this.model = model;
    this.#fallbackModels = fallbackModels;
    this.protocol = protocol;
    this.#hasStreamFn = streamFn !== undefined;
  }

  /** What an agent with the same models is made of; without `model`, which may be another's. */
  get options(): Pick<AgentOptions, "fallbackModels" | "protocol"> {
    const { protocol } = this;
    return { fallbackModels: this.#fallbackModels, ...(protocol && { protocol }) };
  }

  /** Those that have been looked up: before a run, all. */
  get fallbackModels(): Model[] {
    return this.#fallbackModels.filter(isModel);
  }

  /** Throws where there is none. */
  require(): Model {
    if (typeof this.model === "object") return this.model;
    throw new Error("The agent has no model: give it one as `model`, or call setModel().");
  }

  /**
   * Looks up the models that were given by their names, and the client that was not given.
   * Nothing to wait for where all are there.
   */
  prepare(): Promise<void> | undefined {
    const { model } = this;
    const hasClient = this.#hasStreamFn || this.protocol !== undefined;
    const isNamed = typeof model === "string" || !this.#fallbackModels.every(isModel);
    if (!model || (hasClient && !isNamed)) return undefined;
    return loadPart(import("#model-access")).then(async ({ access }) => {
      this.#fallbackModels = await Promise.all(
        this.#fallbackModels.map(async (one) => (isModel(one) ? one : access.findModel(one))),
      );
      if (typeof model === "string") {
        const found = await access.findModel(model);
        if (this.model === model) this.model = found;
      }
      if (!hasClient) this.protocol = await access.createClient(this.model);
    });
  }
}

function isModel(model: Model | string): model is Model {
  return typeof model !== "string";
}
