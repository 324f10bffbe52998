import { type Model, isRecord } from "@gyre/ai";
import { type Payload } from "../frames/envelope.ts";
import { type FieldRules, isText, parseFields } from "../frames/payload-fields.ts";
import { withoutUndefined } from "../frames/plain-data.ts";
import { invalidRequest } from "../frames/protocol-error.ts";

/** Selects models. All given fields have to match. */
export interface ModelFilter {
  provider?: string;
  /** A part of the id or the name; case does not matter. */
  search?: string;
}

/** The public fields of a model: without its address and credentials. */
export type ModelFacts = Omit<Model, "baseUrl" | "headers" | "quirks">;

/** Copies field by field, so that fields which an application adds are not sent. */
export function toModelFacts(model: Model): ModelFacts {
  const { id, name, api, provider, reasoning, input, price, contextWindow, maxTokens } = model;
  const more = { reasoning, input, price, contextWindow, maxTokens };
  return { id, name, api, provider, ...withoutUndefined(more) };
}

const FILTER: FieldRules<ModelFilter> = {
  provider: { what: "a string", is: isText },
  search: { what: "a string", is: isText },
};

/** `{filter?}`. Throws `invalid_request`. */
export function parseFilter({ filter = {} }: Payload): ModelFilter {
  if (!isRecord(filter)) throw invalidRequest('"filter" is an object.');
  return parseFields(filter, FILTER, "filter.");
}

export function isMatch(model: Model, { provider, search = "" }: ModelFilter): boolean {
  if (provider !== undefined && model.provider !== provider) return false;
  const wanted = search.toLowerCase();
  return [model.id, model.name].some((text) => text.toLowerCase().includes(wanted));
}

/** The models of an answer. Throws `ProtocolError` where it is not a list of models. */
export function parseModels({ models }: Payload): ModelFacts[] {
  if (Array.isArray(models) && models.every(isFacts)) return models;
  throw invalidRequest('"models" is a list of models.');
}

/** Checks the required fields; the rest is up to the sender. */
function isFacts(value: unknown): value is ModelFacts {
  if (!isRecord(value)) return false;
  const { id, name, api, provider } = value;
  return [id, name, api, provider].every(isText);
}
