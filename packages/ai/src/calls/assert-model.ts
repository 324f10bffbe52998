import { isRecord } from "../common/records.ts";
import type { Model } from "../messages/messages.ts";

/**
 * Throws where a program without types gave a name, as an agent takes it, or one object, as other libraries do. Names are
 * found in the catalog, which is not loaded for these calls.
 */
export function assertModel(model: Model): void {
  const given: unknown = model;
  if (isRecord(given)) return;
  const [, service = "openai", id = "the-id"] = /^([^/]+)\/(.+)$/.exec(String(given)) ?? [];
  throw new TypeError(
    `The second argument is ${JSON.stringify(given)}: give a model, as model("${service}", "${id}") of @gyre/ai/models makes it.`,
  );
}
