import type { Model, ProtocolClient } from "@gyre/ai";
import { findService } from "@gyre/ai/providers";
import { openModels } from "@gyre/coding/internal/models/models";
import { readMachinePolicy } from "../../core/flag-settings.ts";
import type { Io } from "../../core/io.ts";

/** A model of a service, and the way to it. */
export interface LiveModel {
  client: ProtocolClient;
  model: Model;
  /** For people. */
  service: string;
}

/** The model that is meant by a name. Throws an error with a message for the user. */
export async function openModel(name: string, io: Io): Promise<LiveModel> {
  const policy = await readMachinePolicy(io);
  const models = await openModels({ settings: { model: name }, env: io.env, policy });
  const model = await models.current();
  const service = findService(model.provider)?.name ?? model.provider;
  return { client: models.client, model, service };
}
