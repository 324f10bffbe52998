import { loadPart, type Model } from "@gyre/ai";
import type { ModelAccess } from "../model-access.ts";

/**
 * Where an agent in Node gets what it was not given: a client of every service, with keys and
 * addresses from this machine, and models by their names. The one place of this package that
 * knows model services; they are loaded when an agent needs them first.
 */
export const access: ModelAccess = {
  async createClient(model) {
    if (typeof model === "object") checkModel(model);
    const { createModelClient } = await loadPart(import("@gyre/ai/node"));
    return createModelClient();
  },
  async findModel(name) {
    const { catalog, findModel, model, ModelNotFoundError } = await loadPart(
      import("@gyre/ai/models"),
    );
    try {
      return findModel(name);
    } catch (error) {
      // Of servers on this machine, such as Ollama, the catalog has no models: any name may be one.
      const [, service = "", id = ""] = /^([\w-]+)\/(.+)$/.exec(name) ?? [];
      if (!(error instanceof ModelNotFoundError) || id === "") throw error;
      if (catalog().some(({ provider }) => provider === service)) throw error;
      try {
        return model(service, id);
      } catch {
        // There is no such service; the first error says what to write.
        throw error;
      }
    }
  },
};

/** Throws on what people give in place of a model, and says what to write. */
function checkModel(model: Model): void {
  if (typeof model.api === "string") return;
  if ("specificationVersion" in model) {
    throw new TypeError(
      "The `model` is one of the AI SDK: write ...fromAiSdk(model), of @gyre/ai/ai-sdk, in its place.",
    );
  }
  if ("stream" in model) {
    throw new TypeError(
      "The `model` is a client: give it as `protocol`, and its model as `model`.",
    );
  }
  throw new TypeError(
    "The `model` has no `api`: write a name, or model(service, id) of @gyre/ai/models.",
  );
}
