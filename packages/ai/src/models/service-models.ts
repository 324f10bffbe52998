import { toUrl } from "../common/to-url.ts";
import { isRecord } from "../common/records.ts";
import { toList, toMap } from "../schema/json-schema.ts";
import type { Model, ModelPrice, PriceTier, TokenPrice } from "../messages/messages.ts";
import type { ServicePreset } from "../providers/services/presets.ts";
import { redact, listSecrets } from "../common/redact.ts";

/** A service to ask; a `ServicePreset` with an address will do. */
export interface AskedService extends Pick<ServicePreset, "id" | "api" | "auth" | "headers"> {
  baseUrl: string;
  apiKey?: string;
}

export interface ListOptions {
  /** Default: the global `fetch`. */
  fetch?: typeof fetch;
  signal?: AbortSignal;
}

/** A service did not list its models. The message holds no key. */
export class ModelListError extends Error {
  readonly code = "model_list_failed";
  /** HTTP status, where there was one. */
  readonly status?: number;
  constructor(message: string, status?: number) {
    super(message);
    this.name = "ModelListError";
    if (status !== undefined) this.status = status;
  }
}

/** A list that is longer than this many pages is one that goes round in a circle. */
const MAX_PAGES = 100;
const MAX_PAGE_BYTES = 32 * 1024 * 1024;
/** The most that services accept. */
const PAGE_MODELS = 1000;
/** Of what a service says of a failure, so much is passed on, in characters. */
const MAX_WORDS = 300;

/**
 * The models that a service lists, with the facts that it reports of each; what it
 * does not report is absent. Models that, as it says, do not write text are left out.
 * Rejects with `ModelListError`, or with the reason of `signal` once that is aborted.
 */
export async function listServiceModels(
  service: AskedService,
  options: ListOptions = {},
): Promise<Model[]> {
  const list = LISTS[service.api];
  if (!Object.hasOwn(LISTS, service.api) || !list) {
    const known = Object.keys(LISTS).join(", ");
    throw new ModelListError(
      `Services of the api "${service.api}" cannot be asked for their models; those of ${known} can.`,
    );
  }
  const models: Model[] = [];
  let query: Readonly<Record<string, string>> | undefined = list.first;
  for (let pages = 0; query; pages++) {
    if (pages === MAX_PAGES) {
      throw new ModelListError(
        `The list of ${service.id} has no end: stopped after ${pages} pages.`,
      );
    }
    const page = await ask(service, list, query, options);
    for (const entry of listEntries(page, service)) {
      const model = list.model(entry, service);
      if (model) models.push(model);
    }
    const next = list.next(toMap(page));
    query = next && { ...list.first, ...next };
  }
  return models;
}

/** How one kind of service lists its models. */
interface List {
  path: string;
  auth: NonNullable<ServicePreset["auth"]>;
  headers?: Readonly<Record<string, string>>;
  /** What the first page is asked with. */
  first: Readonly<Record<string, string>>;
  /** What the page after this one is asked with; nothing after the last. */
  next(page: Facts): Readonly<Record<string, string>> | undefined;
  model(entry: Facts, service: AskedService): Model | undefined;
}

type Facts = Readonly<Record<string, unknown>>;

const OPENAI_LIKE: List = {
  path: "/models",
  auth: "bearer",
  first: {},
  next: () => undefined,
  model: openAiModel,
};

const LISTS: Readonly<Record<string, List>> = {
  "openai-completions": OPENAI_LIKE,
  "openai-responses": OPENAI_LIKE,
  "anthropic-messages": {
    path: "/v1/models",
    auth: "x-api-key",
    headers: { "anthropic-version": "2023-06-01" },
    first: { limit: String(PAGE_MODELS) },
    next(page) {
      const last = readText(page["last_id"]);
      return page["has_more"] === true && last !== undefined ? { after_id: last } : undefined;
    },
    model: anthropicModel,
  },
  "google-generative-ai": {
    path: "/models",
    auth: "x-goog-api-key",
    first: { pageSize: String(PAGE_MODELS) },
    next(page) {
      const pageToken = readText(page["nextPageToken"]);
      return pageToken === undefined ? undefined : { pageToken };
    },
    model: googleModel,
  },
  ollama: {
    path: "/api/tags",
    auth: "bearer",
    first: {},
    next: () => undefined,
    model: ollamaModel,
  },
};

async function ask(
  service: AskedService,
  list: List,
  query: Readonly<Record<string, string>>,
  { fetch = globalThis.fetch, signal }: ListOptions,
): Promise<unknown> {
  const secrets = listSecrets(service);
  const failed = (what: string, status?: number): ModelListError =>
    new ModelListError(
      redact(`The models of ${service.id} could not be read: ${what}`, secrets),
      status,
    );
  const url = toUrl(service.baseUrl);
  if (!url) throw failed(`"${service.baseUrl}" is no address.`);
  url.pathname = url.pathname.replace(/\/+$/, "") + list.path;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const where = `${url.origin}${url.pathname}`;
  try {
    const response = await fetch(url.href, {
      headers: headersFor(service, list),
      // A key in a header of its own would go wherever the service says.
      redirect: "error",
      ...(signal && { signal }),
    });
    const text = await readBody(response);
    if (text === undefined)
      throw failed(`${where} answered with more than ${MAX_PAGE_BYTES} bytes.`);
    if (!response.ok) {
      throw failed(
        `${where} answered ${response.status}${quoteError(text)}. ${adviceOn(response.status)}`,
        response.status,
      );
    }
    try {
      return JSON.parse(text);
    } catch {
      throw failed(`${where} answered with what is no JSON. Check the address.`, response.status);
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ModelListError) throw error;
    // The error itself is not kept: that of a header which cannot be sent has the key in it.
    throw failed(
      `${where} could not be asked (${formatReason(error)}). Check the address and the network.`,
    );
  }
}

function headersFor(service: AskedService, list: List): Record<string, string> {
  const { apiKey, auth = list.auth } = service;
  const credentials: Record<string, string> =
    apiKey === undefined
      ? {}
      : auth === "bearer"
        ? { authorization: `Bearer ${apiKey}` }
        : { [auth]: apiKey };
  return { accept: "application/json", ...list.headers, ...credentials, ...service.headers };
}

/** The body as text; nothing if it is too long. */
async function readBody(response: Response): Promise<string | undefined> {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > MAX_PAGE_BYTES) {
      await reader.cancel();
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

function quoteError(body: string): string {
  const plain = body.replace(/\s+/g, " ").trim();
  if (plain === "" || plain.startsWith("<")) return "";
  return `: ${plain.length > MAX_WORDS ? `${plain.slice(0, MAX_WORDS)}...` : plain}`;
}

const NO_KEY: readonly number[] = [401, 403];
const NOT_THERE = 404;
const TOO_MANY = 429;
const FIRST_SERVER_ERROR = 500;

function adviceOn(status: number): string {
  if (NO_KEY.includes(status)) return "Check the key.";
  if (status === NOT_THERE) return "Check the address, or name the models in a file.";
  return status === TOO_MANY || status >= FIRST_SERVER_ERROR
    ? "Try again later."
    : "Check the service's settings.";
}

function formatReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== ""
    ? `${error.message}: ${cause.message}`
    : error.message;
}

/** The entries of a page: the page itself, its `data` or its `models`. */
function listEntries(page: unknown, service: AskedService): Facts[] {
  const { data, models } = toMap(page);
  const list = [page, data, models].find(Array.isArray);
  if (!list) {
    throw new ModelListError(
      `The models of ${service.id} could not be read: its answer has no list. Check the address.`,
    );
  }
  return toList(list).filter(isRecord);
}

/** What `openai-completions` services add to an id, each in a way of its own. */
function openAiModel(entry: Facts, { id: provider, api }: AskedService): Model | undefined {
  const id = readText(entry["id"]);
  if (id === undefined || NOT_FOR_TEXT.has(String(entry["type"]))) return undefined;
  const architecture = toMap(entry["architecture"]);
  const outputs = architecture["output_modalities"];
  if (Array.isArray(outputs) && !outputs.includes("text")) return undefined;
  const top = toMap(entry["top_provider"]);
  const capabilities = toMap(entry["capabilities"]);
  const name = readText(entry["name"]) ?? readText(entry["display_name"]) ?? id;
  return createModel(
    { id, name, api, provider },
    {
      contextWindow: firstCount(
        entry["context_length"],
        entry["context_window"],
        entry["max_context_length"],
        entry["max_model_len"],
        toMap(entry["meta"])["n_ctx"],
      ),
      maxTokens: firstCount(
        top["max_completion_tokens"],
        entry["max_completion_tokens"],
        entry["max_output_tokens"],
      ),
      images:
        modality(architecture["input_modalities"] ?? entry["input_modalities"]) ??
        yesOrNo(capabilities["vision"]) ??
        yesOrNo(entry["supports_image_in"]) ??
        yesOrNo(entry["supports_image_input"]),
      reasoning:
        parameter(entry["supported_parameters"]) ??
        yesOrNo(capabilities["reasoning"]) ??
        yesOrNo(entry["supports_reasoning"]),
      price: openAiPrice(toMap(entry["pricing"])),
    },
  );
}

const NOT_FOR_TEXT: ReadonlySet<string> = new Set([
  "audio",
  "embedding",
  "image",
  "moderation",
  "rerank",
  "transcribe",
  "video",
]);

function modality(inputs: unknown): boolean | undefined {
  return Array.isArray(inputs) ? inputs.includes("image") : undefined;
}

function parameter(parameters: unknown): boolean | undefined {
  return Array.isArray(parameters) ? parameters.includes("reasoning") : undefined;
}

/** OpenRouter has texts in dollars for a token; Together has numbers in dollars for a million. */
function openAiPrice(pricing: Facts): ModelPrice | undefined {
  if (!("prompt" in pricing)) {
    return readPrice({
      input: pricing["input"],
      output: pricing["output"],
      cacheRead: pricing["cached_input"],
    });
  }
  const price = readPrice(tokenRates(pricing), TOKENS_PER_PRICE);
  const tiers = toList(pricing["overrides"]).flatMap((override): PriceTier[] => {
    const from = firstCount(toMap(override)["min_prompt_tokens"]);
    if (from === undefined) return [];
    const rates = readPrice(
      { ...tokenRates(pricing), ...tokenRates(toMap(override)) },
      TOKENS_PER_PRICE,
    );
    return rates ? [{ above: from - 1, ...rates }] : [];
  });
  return price && tiers.length > 0 ? { ...price, tiers } : price;
}

const TOKENS_PER_PRICE = 1_000_000;
/** Enough for every price list; the rest is noise of the multiplication. */
const SIGNIFICANT_DIGITS = 6;

function tokenRates(pricing: Facts): Facts {
  const rates: Record<string, unknown> = {};
  for (const [name, key] of [
    ["input", "prompt"],
    ["output", "completion"],
    ["cacheRead", "input_cache_read"],
    ["cacheWrite", "input_cache_write"],
  ] as const) {
    if (pricing[key] !== undefined) rates[name] = pricing[key];
  }
  return rates;
}

/** Prices that are no numbers, or below 0 because they are not fixed, are not known. */
function readPrice(rates: Facts, factor = 1): TokenPrice | undefined {
  const price: TokenPrice = {};
  for (const name of ["input", "output", "cacheRead", "cacheWrite"] as const) {
    const rate = rates[name];
    if (typeof rate !== "number" && (typeof rate !== "string" || rate.trim() === "")) continue;
    const dollars = Number((Number(rate) * factor).toPrecision(SIGNIFICANT_DIGITS));
    if (dollars >= 0) price[name] = dollars;
  }
  return Object.keys(price).length > 0 ? price : undefined;
}

function anthropicModel(entry: Facts, { id: provider, api }: AskedService): Model | undefined {
  const id = readText(entry["id"]);
  if (id === undefined || entry["lifecycle"] === "retired") return undefined;
  const capabilities = toMap(entry["capabilities"]);
  return createModel(
    { id, name: readText(entry["display_name"]) ?? id, api, provider },
    {
      contextWindow: firstCount(entry["max_input_tokens"]),
      maxTokens: firstCount(entry["max_tokens"]),
      images: yesOrNo(toMap(capabilities["image_input"])["supported"]),
      reasoning: yesOrNo(toMap(capabilities["thinking"])["supported"]),
    },
  );
}

function googleModel(entry: Facts, { id: provider, api }: AskedService): Model | undefined {
  const id = readText(entry["name"])?.replace(/^models\//, "");
  const methods = entry["supportedGenerationMethods"];
  if (id === undefined || (Array.isArray(methods) && !methods.includes("generateContent"))) {
    return undefined;
  }
  return createModel(
    { id, name: readText(entry["displayName"]) ?? id, api, provider },
    {
      contextWindow: firstCount(entry["inputTokenLimit"]),
      maxTokens: firstCount(entry["outputTokenLimit"]),
      reasoning: yesOrNo(entry["thinking"]),
    },
  );
}

function ollamaModel(entry: Facts, { id: provider, api }: AskedService): Model | undefined {
  const id = readText(entry["model"]) ?? readText(entry["name"]);
  if (id === undefined) return undefined;
  const capabilities = entry["capabilities"];
  if (!Array.isArray(capabilities)) return createModel({ id, name: id, api, provider }, {});
  if (!capabilities.includes("completion")) return undefined;
  return createModel(
    { id, name: id, api, provider },
    {
      images: capabilities.includes("vision"),
      reasoning: capabilities.includes("thinking"),
    },
  );
}

interface ReportedFacts {
  contextWindow?: number | undefined;
  maxTokens?: number | undefined;
  images?: boolean | undefined;
  reasoning?: boolean | undefined;
  price?: ModelPrice | undefined;
}

function createModel(model: Model, reported: ReportedFacts): Model {
  const { contextWindow, maxTokens, images, reasoning, price } = reported;
  return {
    ...model,
    ...(reasoning !== undefined && { reasoning }),
    ...(images !== undefined && { input: images ? (["text", "image"] as const) : ["text"] }),
    ...(price && { price }),
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxTokens !== undefined && { maxTokens }),
  };
}

function readText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function yesOrNo(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

function firstCount(...values: readonly unknown[]): number | undefined {
  return values.find((value): value is number => Number.isSafeInteger(value) && Number(value) > 0);
}
