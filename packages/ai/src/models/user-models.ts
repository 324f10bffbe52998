import { toUrl } from "../common/to-url.ts";
import { isRecord } from "../common/records.ts";
import { toList, toMap } from "../schema/json-schema.ts";
import {
  type Model,
  MODEL_FEATURES,
  type ModelPrice,
  type PriceTier,
  MODEL_INPUTS,
  THINKING_LEVELS,
} from "../messages/messages.ts";
import { explainQuirks } from "../messages/quirk-names.ts";
import { nearNames } from "../schema/near-names.ts";
import { findService, type ServicePreset, resolveService } from "../providers/services/presets.ts";
import { redact } from "../common/redact.ts";

/** A model that a user adds, or what a user wants changed of one that is known. */
export type UserModel = Pick<Model, "id" | "provider"> & Partial<Omit<Model, "id" | "provider">>;

/** A service that a user adds, or what a user wants changed of one that is known. */
export type UserService = Partial<Omit<ServicePreset, "id">>;

/** What a user's file of models holds, once it was checked. */
export interface UserModels {
  /** Where it is from, for errors: the path of a file. */
  source: string;
  models: readonly UserModel[];
  /** By id, which is what models carry in `provider`. */
  services: Readonly<Record<string, UserService>>;
}

/** Something in a user's models is not as it should be. `problems` has each, with its place. */
export class UserModelsError extends Error {
  readonly code = "bad_user_models";
  readonly source: string;
  readonly problems: readonly string[];
  constructor(source: string, problems: readonly string[]) {
    super(`${source}: ${problems.join("; ")}`);
    this.name = "UserModelsError";
    this.source = source;
    this.problems = problems;
  }
}

/**
 * Checks what a user's file of models holds:
 *
 *     { "models": [{ "provider": ..., "id": ..., ... }], "services": { "id": { ... } } }
 *
 * Both parts may be absent; a model takes the fields of `Model`, a service those of
 * `ServicePreset`. Throws `UserModelsError` with all that is wrong at once: keys that
 * are not known, values of the wrong kind, the same model twice.
 */
export function parseUserModels(json: unknown, source: string): UserModels {
  const problems: string[] = [];
  const report: Report = (path, problem) => void problems.push(`${path || "the file"} ${problem}`);
  const file = checkFields(json, "", { models: LIST, services: OBJECT }, [], report);
  const models = toList(file["models"]).map((value, index) =>
    checkFields(value, `models[${index}]`, MODEL, ["id", "provider"], report),
  );
  const services = Object.entries(toMap(file["services"])).map(
    ([id, value]) => [id, checkFields(value, `services.${id}`, SERVICE, [], report)] as const,
  );
  const seen = new Set<string>();
  for (const [index, { provider, id }] of models.entries()) {
    if (typeof provider !== "string" || typeof id !== "string") continue;
    const name = `${provider}/${id}`;
    if (seen.has(name)) problems.push(`models[${index}] is ${name}, which is there already`);
    seen.add(name);
  }
  if (problems.length > 0) throw new UserModelsError(source, problems);
  // Every key and every value was looked at above.
  return {
    source,
    models: models as unknown as readonly UserModel[],
    services: Object.fromEntries(services),
  };
}

/**
 * The models of `base` with a user's own. A model that is known keeps what the user
 * does not name; a price, headers or quirks that are named replace the known ones as
 * a whole. A new model has its id for a name, and the API format of its service. What a user
 * says of a service (format, address, headers, quirks) holds for each of its models that
 * does not say otherwise itself. Throws `UserModelsError` where a new model's format
 * cannot be known.
 */
export function mergeModels(base: readonly Model[], user: UserModels): Model[] {
  const services = new Map(Object.entries(user.services));
  const apis = new Map(base.map(({ provider, api }) => [provider, api]));
  const merged = new Map(
    base.map((model) => [toKey(model), atService(model, services.get(model.provider), {})]),
  );
  const problems: string[] = [];
  for (const [index, model] of user.models.entries()) {
    const service = services.get(model.provider);
    const known = merged.get(toKey(model));
    const api =
      model.api ??
      known?.api ??
      service?.api ??
      apis.get(model.provider) ??
      findService(model.provider)?.api;
    if (api === undefined) {
      problems.push(
        `models[${index}] needs "api", as nothing is known of a service "${model.provider}"; or give "api" in services.${model.provider}`,
      );
      continue;
    }
    const whole: Model = known ? { ...known, ...model } : { name: model.id, ...model, api };
    merged.set(toKey(model), atService(whole, service, model));
  }
  if (problems.length > 0) throw new UserModelsError(user.source, problems);
  return [...merged.values()];
}

/** The services of a user's file as presets: what it does not say is as we know it. */
export function userServices(user: UserModels): ServicePreset[] {
  return Object.entries(user.services).map(([id, given]) => {
    const api = given.api ?? user.models.find(({ provider }) => provider === id)?.api ?? "";
    return { ...resolveService({ id: "", name: "", provider: id, api }), ...given };
  });
}

function toKey({ provider, id }: Pick<Model, "id" | "provider">): string {
  return `${provider}/${id}`;
}

/** The model with what is said of its service, but for what is said of itself in `own`. */
function atService(model: Model, service: UserService | undefined, own: Partial<Model>): Model {
  if (!service) return model;
  const { api, baseUrl, headers, quirks } = service;
  return {
    ...model,
    ...(api !== undefined && own.api === undefined && { api }),
    ...(baseUrl !== undefined && own.baseUrl === undefined && { baseUrl }),
    ...(headers && { headers: { ...model.headers, ...headers, ...own.headers } }),
    ...(quirks && { quirks: { ...model.quirks, ...quirks, ...own.quirks } }),
  };
}

export type Report = (path: string, problem: string) => void;
/** Looks at a value and reports what is wrong with it. */
export type Check = (value: unknown, path: string, report: Report) => void;
/** A check for each key that is allowed. */
export type Shape<T> = { readonly [K in keyof Required<T>]: Check };

export function must(fits: (value: unknown) => boolean, allowed: string): Check {
  return (value, path, report) => {
    if (!fits(value)) report(path, `is ${shown(value)}, but must be ${allowed}`);
  };
}

const isString = (value: unknown): value is string => typeof value === "string";
const checkAmong = (...values: readonly string[]): Check =>
  must(
    (value) => isString(value) && values.includes(value),
    `one of ${values.map((value) => `"${value}"`).join(", ")}`,
  );

const TEXT = must((value) => isString(value) && value.trim() !== "", "a text that is not empty");
const YES_OR_NO = must((value) => typeof value === "boolean", "true or false");
const HEADER = must(isString, "a text");
export const LIST: Check = must(Array.isArray, "a list");
const OBJECT = must(isRecord, "an object");
const TOKENS = must(
  (value) => Number.isSafeInteger(value) && Number(value) > 0,
  "a whole number of tokens above 0",
);
const DOLLARS = must(
  (value) => Number.isFinite(value) && Number(value) >= 0,
  "US dollars for a million tokens, 0 or more",
);
const URL_TEXT = must(
  (value) => isString(value) && /^https?:\/\/./.test(value) && toUrl(value) !== undefined,
  "an address that begins with http:// or https://",
);
const TEXTS = must((value) => Array.isArray(value) && value.every(isString), "a list of texts");
const HEADERS: Check = (value, path, report) => {
  if (!isRecord(value)) return OBJECT(value, path, report);
  for (const [name, one] of Object.entries(value)) HEADER(one, `${path}.${name}`, report);
};
const KINDS = must(
  (value) =>
    Array.isArray(value) && value.length > 0 && value.every((v) => MODEL_INPUTS.includes(v)),
  `a list of ${MODEL_INPUTS.map((kind) => `"${kind}"`).join(", ")}`,
);

const checkEach = (values: readonly string[]): Check =>
  must(
    (value) => Array.isArray(value) && value.every((v) => values.includes(v)),
    `a list of ${values.map((one) => `"${one}"`).join(", ")}`,
  );
const LEVELS = checkEach(THINKING_LEVELS);
const FEATURES = checkEach(MODEL_FEATURES);
const WORD = must((value) => isString(value) && /^[\w-]{0,32}$/.test(value), "a word");
const EFFORTS: Check = (value, path, report) =>
  void checkFields(
    value,
    path,
    Object.fromEntries(THINKING_LEVELS.map((level) => [level, WORD])),
    [],
    report,
  );

const QUIRKS: Check = (value, path, report) => {
  if (!isRecord(value)) return OBJECT(value, path, report);
  const problem = explainQuirks(value, nearNames);
  if (problem !== undefined) report(path, `is not as it should be. ${problem}`);
};

const RATES = {
  input: DOLLARS,
  output: DOLLARS,
  cacheRead: DOLLARS,
  cacheWrite: DOLLARS,
  longCacheWrite: DOLLARS,
};
const TIER: Shape<PriceTier> = { above: TOKENS, ...RATES };
const TIERS: Check = (value, path, report) => {
  if (!Array.isArray(value)) return LIST(value, path, report);
  for (const [index, tier] of value.entries()) {
    checkFields(tier, `${path}[${index}]`, TIER, ["above"], report);
  }
};
const PRICE: Shape<ModelPrice> = { ...RATES, webSearch: DOLLARS, tiers: TIERS };

export const MODEL: Shape<Model> = {
  id: TEXT,
  name: TEXT,
  api: TEXT,
  provider: TEXT,
  baseUrl: URL_TEXT,
  reasoning: YES_OR_NO,
  thinkingLevels: LEVELS,
  efforts: EFFORTS,
  features: FEATURES,
  input: KINDS,
  price: (value, path, report) => void checkFields(value, path, PRICE, [], report),
  contextWindow: TOKENS,
  maxTokens: TOKENS,
  headers: HEADERS,
  quirks: QUIRKS,
};

const SERVICE: Shape<UserService> = {
  name: TEXT,
  api: TEXT,
  baseUrl: URL_TEXT,
  keyEnv: TEXTS,
  urlEnv: TEXTS,
  keyless: YES_OR_NO,
  auth: checkAmong("bearer", "api-key", "x-api-key", "x-goog-api-key"),
  headers: HEADERS,
  quirks: QUIRKS,
};

/** An object whose every key is allowed and fits; what is wrong goes to `report`. */
export function checkFields(
  value: unknown,
  path: string,
  shape: Readonly<Record<string, Check>>,
  needed: readonly string[],
  report: Report,
): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) {
    OBJECT(value, path, report);
    return {};
  }
  const at = (key: string): string => (path === "" ? key : `${path}.${key}`);
  const allowed = Object.keys(shape);
  for (const [key, one] of Object.entries(value)) {
    const check = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (check) check(one, at(key), report);
    else report(at(key), notKnown(key, allowed));
  }
  for (const key of needed) if (!Object.hasOwn(value, key)) report(at(key), "is missing");
  return value;
}

/** Without its value, which may be a secret under a name of the user's own. */
function notKnown(key: string, allowed: readonly string[]): string {
  const [near] = nearNames(key, allowed);
  const meant = near === undefined ? "" : `; did you mean ${near}?`;
  return `is no key that is known here${meant} (known: ${allowed.join(", ")})`;
}

const MAX_SHOWN_CHARS = 60;

function shown(value: unknown): string {
  const text = redact(JSON.stringify(value) ?? typeof value);
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}...` : text;
}
