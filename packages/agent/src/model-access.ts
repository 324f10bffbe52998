import type { Model, ProtocolClient } from "@gyre/ai";

/** Where an agent gets what it was not given. */
export interface ModelAccess {
  /** A client that can ask `model`. Throws on what is no model. */
  createClient(model?: Model | string): Promise<ProtocolClient>;
  /** The model of a name. Throws on a name that fits none, or several. */
  findModel(name: string): Promise<Model>;
}

/**
 * Outside of Node an agent has to be given both, so that a page holds the services and the
 * models that it uses, and no others.
 */
export const access: ModelAccess = {
  async createClient() {
    throw new Error(
      "The agent has no client: give it a `protocol`, such as streamProxy() of @gyre/protocol. Model services are built in under Node alone.",
    );
  },
  async findModel(name) {
    throw new Error(
      `The agent has the name "${name}" where it needs a model: give findModel("${name}") of @gyre/ai/models. Names are looked up under Node alone.`,
    );
  },
};
