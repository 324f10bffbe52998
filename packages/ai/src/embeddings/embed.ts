import { assertModel } from "../calls/assert-model.ts";
import { type CallOptions, callService } from "../calls/call.ts";
import type { Model, Usage } from "../messages/messages.ts";
import { estimateTokens } from "../messages/tokens.ts";
import { addUsage, computeCost } from "../messages/usage.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import type { ProviderConfig } from "../providers/http/exchange.ts";
import { OptionError } from "../providers/options/apply.ts";
import { findPrice } from "./prices.ts";
import {
  type EmbeddingPurpose,
  type EmbeddingService,
  type EmbeddingWish,
  findEmbeddingService,
} from "./services.ts";

/** How many requests of `embedMany` are under way at once, unless the caller says otherwise. */
export const DEFAULT_MAX_PARALLEL = 4;

/** What may be asked of `embed`. */
export interface EmbedOptions extends CallOptions {
  /** The length of the vectors. An error where the model has but one. */
  dimensions?: number;
  /**
   * What the vectors are for: a `query` is looked up among vectors of a `document` each. An error
   * where the service does not know it; texts of Cohere's models are a `document` without it.
   */
  purpose?: EmbeddingPurpose;
}

/** What may be asked of `embedMany`. */
export interface EmbedManyOptions extends EmbedOptions {
  /** Requests under way at once. Default 4. */
  maxParallel?: number;
}

/** The vector of a text, and what it cost. */
export interface Embedded {
  embedding: number[];
  /** `input` are the tokens that were read, where the service counts them. */
  usage: Usage;
}

/** The vectors of many texts, in their order, and what they cost together. */
export interface EmbeddedMany {
  embeddings: number[][];
  usage: Usage;
}

/** Some of many texts could not be embedded. Nothing is kept of the others. */
export class EmbedManyError extends ProviderError {
  readonly code = "embed_many_failed";
  /** The first of the texts that were in the request that failed, counted from 0. */
  readonly from: number;
  /** The first text behind them. */
  readonly to: number;

  constructor(from: number, to: number, count: number, cause: ProviderError) {
    const which = to - from === 1 ? `Text ${from}` : `The texts ${from} to ${to - 1}`;
    super(
      `${which} of ${count} (counted from 0) could not be embedded: ${cause.message}`,
      cause.failure,
      { cause },
    );
    this.name = "EmbedManyError";
    this.from = from;
    this.to = to;
  }
}

/**
 * Makes the vector of a text. `config` says how services are reached: `createProviderConfig()` of
 * `@gyre/ai/node` has the keys and proxies of this machine. Rejects with a `ProviderError`: before
 * any request where the service has no vectors (`bad_request`) or not this option (`OptionError`).
 */
export async function embed(
  config: ProviderConfig,
  model: Model,
  text: string,
  options: EmbedOptions = {},
): Promise<Embedded> {
  const service = checkRequest(model, [text], options);
  const { embeddings, usage } = await request(service, config, model, [text], options);
  return { embedding: embeddings[0] ?? [], usage };
}

/**
 * Makes the vectors of many texts, in their order: in as few requests as the limits of the service
 * allow, a few of them at once. Rejects like `embed`; where a request fails, with an `EmbedManyError`
 * that says for which texts, once the requests that were under way have been aborted.
 */
export async function embedMany(
  config: ProviderConfig,
  model: Model,
  texts: readonly string[],
  { maxParallel = DEFAULT_MAX_PARALLEL, ...options }: EmbedManyOptions = {},
): Promise<EmbeddedMany> {
  if (!Number.isInteger(maxParallel) || maxParallel < 1) {
    throw new TypeError(`maxParallel is ${maxParallel}: write a whole number above 0.`);
  }
  const service = checkRequest(model, texts, options);
  const left = splitTexts(texts, service);
  const embeddings: number[][] = Array.from({ length: texts.length });
  const control = new AbortController();
  const signal = options.signal
    ? AbortSignal.any([options.signal, control.signal])
    : control.signal;
  let usage: Usage = {};
  let failed: EmbedManyError | undefined;
  const work = async (): Promise<void> => {
    for (let part = left.shift(); part && !failed; part = left.shift()) {
      const { from, to } = part;
      try {
        const some = texts.slice(from, to);
        const made = await request(service, config, model, some, { ...options, signal });
        for (const [at, vector] of made.embeddings.entries()) embeddings[from + at] = vector;
        usage = addUsage(usage, made.usage);
      } catch (error) {
        if (!(error instanceof ProviderError)) {
          control.abort();
          throw error;
        }
        const middle = Math.ceil((from + to) / 2);
        // The estimate of tokens was too low.
        if (error.kind === "overflow" && to - from > 1) {
          left.unshift({ from, to: middle }, { from: middle, to });
          continue;
        }
        failed ??= new EmbedManyError(from, to, texts.length, error);
        control.abort();
      }
    }
  };
  await Promise.all(Array.from({ length: maxParallel }, work));
  if (failed) throw failed;
  return { embeddings, usage };
}

/** Throws on what the service would reject, or would not do. */
function checkRequest(
  model: Model,
  texts: readonly string[],
  { dimensions, purpose }: EmbeddingWish,
): EmbeddingService {
  assertModel(model);
  const service = findEmbeddingService(model);
  if (!service) {
    throw badRequest(
      `"${model.provider}" has no vectors of texts. Use a model of openai, google, google-vertex, mistral, amazon-bedrock, ollama, or of a server of your own.`,
    );
  }
  if (dimensions !== undefined && !service.hasDimensions(model)) {
    throw new OptionError(
      "dimensions",
      `The vectors of "${model.id}" at ${model.provider} have one length: leave dimensions out.`,
    );
  }
  if (dimensions !== undefined && !(Number.isInteger(dimensions) && dimensions > 0)) {
    throw new OptionError(
      "dimensions",
      `dimensions is ${dimensions}: write a whole number above 0.`,
    );
  }
  if (purpose !== undefined && service.purposes?.[purpose] === undefined) {
    const known = Object.keys(service.purposes ?? {});
    const hint = known.length > 0 ? `It knows ${known.join(", ")}.` : "Leave purpose out.";
    throw new OptionError(
      "purpose",
      `Vectors of ${model.provider} are not made for the purpose "${purpose}". ${hint}`,
    );
  }
  for (const [at, text] of texts.entries()) {
    if (typeof text === "string" && text.trim() !== "") continue;
    const what = typeof text === "string" ? "empty" : `a ${typeof text}`;
    throw badRequest(`Text ${at} of ${texts.length} (counted from 0) is ${what}: leave it out.`);
  }
  return service;
}

/** The texts from one place to before another. */
interface Part {
  from: number;
  to: number;
}

function splitTexts(
  texts: readonly string[],
  { maxTexts, maxTokens = Number.POSITIVE_INFINITY }: EmbeddingService,
): Part[] {
  const parts: Part[] = [];
  let tokens = 0;
  for (const [at, text] of texts.entries()) {
    const size = estimateTokens(text);
    const last = parts.at(-1);
    if (last && at - last.from < maxTexts && tokens + size <= maxTokens) {
      last.to = at + 1;
      tokens += size;
    } else {
      parts.push({ from: at, to: at + 1 });
      tokens = size;
    }
  }
  return parts;
}

function request(
  service: EmbeddingService,
  config: ProviderConfig,
  model: Model,
  texts: readonly string[],
  { dimensions, purpose, ...options }: EmbedOptions,
): Promise<EmbeddedMany> {
  const wish: EmbeddingWish = { ...(dimensions && { dimensions }), ...(purpose && { purpose }) };
  return callService(
    config,
    model,
    {
      write: (context) => service.write(texts, context, wish),
      read(body) {
        const { tokens, vectors } = service.read(body);
        const embeddings = Array.from(vectors).filter(isVector);
        if (embeddings.length !== texts.length || vectors.length !== texts.length) {
          throw new ProviderError(
            `The answer has ${embeddings.length} vectors for ${texts.length} texts. Try again.`,
            { kind: "incomplete" },
          );
        }
        return { embeddings, usage: toUsage(tokens, model) };
      },
    },
    options,
  );
}

function isVector(value: unknown): value is number[] {
  return (
    Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "number")
  );
}

function toUsage(tokens: unknown, model: Model): Usage {
  if (typeof tokens !== "number") return {};
  const usage: Usage = { input: tokens, totalTokens: tokens };
  const cost = computeCost(usage, findPrice(model));
  return cost ? { ...usage, cost } : usage;
}

function badRequest(message: string): ProviderError {
  return new ProviderError(message, { kind: "bad_request", retryable: false });
}
