import { type Clock, type Model, type ProtocolClient } from "@gyre/ai";
import { scriptedModel, scriptedModelInfo, type ScriptedModelOptions } from "@gyre/ai/testing";
import { EXIT, ExitError } from "../../../core/exit-codes.ts";
import type { Models } from "@gyre/coding/internal/models/models";
import { computeMessageKey, createScriptedPart } from "./scripted-part.ts";

/** The speed of reading. */
const READING_PACE: ScriptedModelOptions = { delayMs: 500, chunkSize: 3, betweenMs: 20 };

/** Replaces a real model. */
export const SCRIPTED_MODEL: Model = {
  ...scriptedModelInfo,
  name: "scripted model",
  input: ["text"],
};

export interface ScriptedOptions {
  /** The folder from `createDemoFolder`: the demo is played only there. */
  folder?: string;
  /** The models of services, for a user who has stored a key. */
  others?: Models;
  /** No delays. Default: the speed of reading. */
  fast?: boolean;
  /** For tests. */
  clock?: Clock;
}

/**
 * A scripted model for a harness without a key. Tools, permissions and sessions are real. With `others`, models of
 * services can be found and used too.
 */
export function createScriptedModels(options: ScriptedOptions = {}): Models {
  const { clock, fast = false, folder, others } = options;
  const cutShort = new Set<string>();
  const part = createScriptedPart({ cutShort, ...(folder !== undefined && { folder }) });
  const scripted = scriptedModel(part, {
    ...(!fast && READING_PACE),
    ...(clock && { clock }),
    keepCalls: false,
  });
  const client: ProtocolClient = {
    async stream(model, context, request) {
      if (others && model.provider !== SCRIPTED_MODEL.provider) {
        return others.client.stream(model, context, request);
      }
      const last = context.messages.at(-1);
      const stream = await scripted.stream(model, context, request);
      stream.result().then(
        ({ stopReason }) =>
          stopReason === "aborted" && last && cutShort.add(computeMessageKey(last)),
        // The reader of the stream gets the error.
        () => {},
      );
      return stream;
    },
  };
  return {
    client,
    fallbacks: [],
    current: async () => SCRIPTED_MODEL,
    async find(name) {
      const { id, provider } = SCRIPTED_MODEL;
      if (name === id || name === `${provider}/${id}`) return SCRIPTED_MODEL;
      if (others) return others.find(name);
      throw new ExitError(
        EXIT.usage,
        `There is only the scripted model here, not "${name}". Store a key with gyre login SERVICE, and start again.`,
      );
    },
    list: async () => [SCRIPTED_MODEL, ...((await others?.list()) ?? [])],
  };
}
