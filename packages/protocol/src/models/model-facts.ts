import { type Model, isRecord } from "@gyre/ai";
import { type Payload } from "../frames/envelope.ts";
import { ProtocolError } from "../frames/protocol-error.ts";

/** Which models are asked for. All that is given has to hold. */
export interface ModelFilter {
  provider?: string;
  /** A part of the id or the name, in whatever case. */
  search?: string;
}

/** What may be told of a model: not where it is, nor what opens it. */
export type ModelFacts = Omit<Model, "baseUrl" | "headers" | "quirks">;

/** Named one by one, so that what an application adds to its models stays with it. */
export function toModelFacts(model: Model): ModelFacts {
  const { id, name, api, provider, reasoning, input, price, contextWindow, maxTokens } = model;
  return {
    id,
    name,
    api,
    provider,
    ...(reasoning !== undefined && { reasoning }),
    ...(input && { input }),
    ...(price && { price }),
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxTokens !== undefined && { maxTokens }),
  };
}

/** `{filter?}`. Throws `invalid_request`. */
export function parseFilter({ filter = {} }: Payload): ModelFilter {
  if (!isRecord(filter)) throw invalidRequest('"filter" is an object.');
  const { provider, search } = filter;
  if (provider !== undefined && typeof provider !== "string") {
    throw invalidRequest('"filter.provider" is a string.');
  }
  if (search !== undefined && typeof search !== "string") {
    throw invalidRequest('"filter.search" is a string.');
  }
  return { ...(provider !== undefined && { provider }), ...(search !== undefined && { search }) };
}

export function isMatch(model: Model, { provider, search = "" }: ModelFilter): boolean {
  if (provider !== undefined && model.provider !== provider) return false;
  const wanted = search.toLowerCase();
  return [model.id, model.name].some((text) => text.toLowerCase().includes(wanted));
}

/** The models that an answer lists. Throws `ProtocolError` where that is no list of models. */
export function parseModels({ models }: Payload): ModelFacts[] {
  if (Array.isArray(models) && models.every(isFacts)) return models;
  throw invalidRequest('"models" is a list of models.');
}

/** What a model cannot do without; the rest is the sender's word. */
function isFacts(value: unknown): value is ModelFacts {
  if (!isRecord(value)) return false;
  const { id, name, api, provider } = value;
  return [id, name, api, provider].every((each) => typeof each === "string");
}

function invalidRequest(what: string): ProtocolError {
  return new ProtocolError("invalid_request", what);
}
