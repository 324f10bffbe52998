import type { Model, ProtocolClient } from "@gyre/ai";
import { findModel, ModelNotFoundError } from "@gyre/ai/models";
import { createModelClient } from "@gyre/ai/node";
import { findService } from "@gyre/ai/providers";
import type { Environment } from "./terminal.ts";

/** A model of a service, and the way to it. */
export interface LiveModel {
  client: ProtocolClient;
  model: Model;
  /** For people. */
  service: string;
}

/**
 * The model that is meant by a name. A `service/id` that the catalogue does not have is
 * taken at its word: services get new models before catalogues do. Throws what to tell
 * the user.
 */
export function openModel(name: string, env: Environment): LiveModel {
  const model = named(name);
  const service = findService(model.provider)?.name ?? model.provider;
  return { client: createModelClient({ env }), model, service };
}

function named(name: string): Model {
  try {
    return findModel(name);
  } catch (error) {
    const slash = name.indexOf("/");
    const service = slash > 0 ? findService(name.slice(0, slash)) : undefined;
    const id = name.slice(slash + 1);
    if (!(error instanceof ModelNotFoundError) || !service || id === "") throw error;
    return { id, name: id, api: service.api, provider: service.id };
  }
}
