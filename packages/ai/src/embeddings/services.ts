import { isRecord, toRecord } from "../common/records.ts";
import type { CallRequest } from "../calls/call.ts";
import type { Model } from "../messages/messages.ts";
import { addressRequest } from "../providers/bedrock-converse-stream/request.ts";
import { keyHeaders } from "../providers/google-generative-ai/request.ts";
import type { RequestContext } from "../providers/http/format.ts";
import { authHeaders } from "../providers/http/headers.ts";
import { joinUrl } from "../providers/http/url.ts";
import { resolveAddress } from "../providers/ollama/request.ts";

/** What vectors are made for. Models that know it make better ones for it. */
export type EmbeddingPurpose =
  | "query"
  | "document"
  | "similarity"
  | "classification"
  | "clustering";

/** What is asked of a service beside the texts. */
export interface EmbeddingWish {
  dimensions?: number;
  purpose?: EmbeddingPurpose;
}

/** How one kind of service makes vectors. */
export interface EmbeddingService {
  /** Texts in one request. */
  maxTexts: number;
  /** Estimated tokens in one request, below the service's own limit by what an estimate may miss. */
  maxTokens?: number;
  /** Whether a model can be asked for shorter vectors. */
  hasDimensions(model: Model): boolean;
  /** Its name for each purpose that it knows. */
  purposes?: Readonly<Partial<Record<EmbeddingPurpose, string>>>;
  write(texts: readonly string[], request: RequestContext, wish: EmbeddingWish): CallRequest;
  /** The vectors in the order of the texts, as far as the answer has them. */
  read(body: Record<string, unknown>): { vectors: unknown[]; tokens?: unknown };
}

/** The service that makes the vectors of a model, or nothing where there is no such. */
export function findEmbeddingService({ api, id, provider }: Model): EmbeddingService | undefined {
  if (provider === "amazon-bedrock") return BEDROCK.find(([ids]) => ids.test(id))?.[1];
  if (provider === "google-vertex" && id.startsWith("gemini-")) {
    return id === "gemini-embedding-001" ? VERTEX_GEMINI : VERTEX_CONTENT;
  }
  if (Object.hasOwn(BY_SERVICE, provider)) return BY_SERVICE[provider];
  return WITHOUT.has(provider) || !COMMON_APIS.has(api) ? undefined : COMPATIBLE;
}

const OPENAI: EmbeddingService = {
  maxTexts: 2_048,
  // It takes 300,000.
  maxTokens: 200_000,
  hasDimensions: ({ id }) => !id.includes("ada-002"),
  write: (texts, request, { dimensions }) =>
    writeOpenAi(texts, request, { encoding_format: "float", ...(dimensions && { dimensions }) }),
  read: readOpenAi,
};

/** Servers with OpenAI's format have limits of their own, which most do not document. */
const COMPATIBLE: EmbeddingService = { ...OPENAI, maxTexts: 96, hasDimensions: () => true };

const MISTRAL: EmbeddingService = {
  maxTexts: 256,
  // It takes about 16,000.
  maxTokens: 10_000,
  hasDimensions: ({ id }) => id.includes("codestral"),
  write: (texts, request, { dimensions }) =>
    writeOpenAi(texts, request, dimensions ? { output_dimension: dimensions } : {}),
  read: readOpenAi,
};

const GOOGLE_PURPOSES = {
  query: "RETRIEVAL_QUERY",
  document: "RETRIEVAL_DOCUMENT",
  similarity: "SEMANTIC_SIMILARITY",
  classification: "CLASSIFICATION",
  clustering: "CLUSTERING",
} satisfies EmbeddingService["purposes"];

const GOOGLE: EmbeddingService = {
  maxTexts: 100,
  maxTokens: 100_000,
  hasDimensions: () => true,
  purposes: GOOGLE_PURPOSES,
  write(texts, request, { dimensions, purpose }) {
    const model = `models/${request.model.id.replace(/^models\//, "")}`;
    const requests = texts.map((text) => ({
      model,
      content: { parts: [{ text }] },
      ...(purpose && { taskType: GOOGLE_PURPOSES[purpose] }),
      ...(dimensions && { outputDimensionality: dimensions }),
    }));
    const url = joinUrl(request.baseUrl, `${model}:batchEmbedContents`);
    return { url, headers: keyHeaders(request), body: { requests } };
  },
  read: ({ embeddings, usageMetadata }) => ({
    vectors: toArray(embeddings).map((one) => toRecord(one)["values"]),
    tokens: toRecord(usageMetadata)["promptTokenCount"],
  }),
};

const VERTEX: EmbeddingService = {
  maxTexts: 250,
  // It takes 20,000.
  maxTokens: 13_000,
  hasDimensions: () => true,
  purposes: GOOGLE_PURPOSES,
  write(texts, request, { dimensions, purpose }) {
    const instances = texts.map((content) => ({
      content,
      ...(purpose && { task_type: GOOGLE_PURPOSES[purpose] }),
    }));
    // It would embed the beginning of a text that is too long, and not say so.
    const parameters = {
      autoTruncate: false,
      ...(dimensions && { outputDimensionality: dimensions }),
    };
    const url = joinUrl(request.baseUrl, `models/${request.model.id}:predict`);
    return { url, headers: keyHeaders(request), body: { instances, parameters } };
  },
  read({ predictions }) {
    const made = toArray(predictions).map((one) => toRecord(toRecord(one)["embeddings"]));
    const counts = made.map(({ statistics }) => toRecord(statistics)["token_count"]);
    return { vectors: made.map(({ values }) => values), tokens: addCounts(counts) };
  },
};

/** Its Gemini models take one text at a time. */
const VERTEX_GEMINI: EmbeddingService = { ...VERTEX, maxTexts: 1 };

/** Those after the first have an operation of their own. */
const VERTEX_CONTENT: EmbeddingService = {
  ...VERTEX_GEMINI,
  write: ([text], request, { dimensions, purpose }) => ({
    url: joinUrl(request.baseUrl, `models/${request.model.id}:embedContent`),
    headers: keyHeaders(request),
    body: {
      content: { parts: [{ text }] },
      embedContentConfig: {
        autoTruncate: false,
        ...(purpose && { taskType: GOOGLE_PURPOSES[purpose] }),
        ...(dimensions && { outputDimensionality: dimensions }),
      },
    },
  }),
  read: ({ embedding, usageMetadata }) => ({
    vectors: [toRecord(embedding)["values"]],
    tokens: toRecord(usageMetadata)["promptTokenCount"],
  }),
};

const TITAN: EmbeddingService = {
  maxTexts: 1,
  hasDimensions: ({ id }) => !id.includes("titan-embed-text-v1"),
  write: ([text], request, { dimensions }) =>
    invoke(request, { inputText: text, ...(dimensions && { dimensions }) }),
  read: ({ embedding, inputTextTokenCount }) => ({
    vectors: [embedding],
    tokens: inputTextTokenCount,
  }),
};

const COHERE_PURPOSES: EmbeddingService["purposes"] = {
  query: "search_query",
  document: "search_document",
  classification: "classification",
  clustering: "clustering",
};

const COHERE: EmbeddingService = {
  maxTexts: 96,
  hasDimensions: ({ id }) => /embed-v[4-9]/.test(id),
  purposes: COHERE_PURPOSES,
  write: (texts, request, { dimensions, purpose = "document" }) =>
    invoke(request, {
      texts,
      input_type: COHERE_PURPOSES[purpose],
      embedding_types: ["float"],
      ...(dimensions && { output_dimension: dimensions }),
    }),
  read: ({ embeddings }) => ({
    vectors: toArray(isRecord(embeddings) ? embeddings["float"] : embeddings),
  }),
};

/** Each maker has a form of its own; that of others is not known here. */
const BEDROCK: readonly (readonly [RegExp, EmbeddingService])[] = [
  [/(^|\.)cohere\./, COHERE],
  [/titan-embed-text/, TITAN],
];

const OLLAMA: EmbeddingService = {
  maxTexts: 256,
  hasDimensions: () => true,
  write: (texts, request, { dimensions }) => ({
    url: joinUrl(resolveAddress(request.baseUrl), "/api/embed"),
    headers: authHeaders(request, "bearer"),
    body: {
      model: request.model.id,
      input: texts,
      truncate: false,
      ...(dimensions && { dimensions }),
    },
  }),
  read: ({ embeddings, prompt_eval_count: tokens }) => ({ vectors: toArray(embeddings), tokens }),
};

const BY_SERVICE: Readonly<Record<string, EmbeddingService>> = {
  openai: OPENAI,
  "azure-openai": OPENAI,
  "azure-openai-responses": OPENAI,
  mistral: MISTRAL,
  google: GOOGLE,
  "google-vertex": VERTEX,
  ollama: OLLAMA,
};

/** Services of the common formats that have no models for it. */
const WITHOUT: ReadonlySet<string> = new Set([
  "cerebras",
  "deepseek",
  "groq",
  "huggingface",
  "moonshot",
  "perplexity",
  "xai",
  "zai",
]);
const COMMON_APIS: ReadonlySet<string> = new Set(["openai-completions", "openai-responses"]);

function writeOpenAi(
  input: readonly string[],
  request: RequestContext,
  more: Record<string, unknown>,
): CallRequest {
  return {
    url: joinUrl(request.baseUrl, "/embeddings"),
    headers: authHeaders(request, "bearer"),
    body: { model: request.model.id, input, ...more },
  };
}

/** Each has its place in a field; where it is absent, the order is meant. */
function readOpenAi({ data, usage }: Record<string, unknown>): {
  vectors: unknown[];
  tokens: unknown;
} {
  const vectors: unknown[] = [];
  for (const [at, one] of toArray(data).entries()) {
    const { embedding, index } = toRecord(one);
    vectors[typeof index === "number" ? index : at] = embedding;
  }
  return { vectors, tokens: toRecord(usage)["prompt_tokens"] };
}

function invoke(request: RequestContext, body: Record<string, unknown>): CallRequest {
  const { headers, ...rest } = addressRequest(request, "invoke", body);
  return { ...rest, headers: { ...headers, accept: "application/json" } };
}

function toArray(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function addCounts(counts: readonly unknown[]): number | undefined {
  let sum = 0;
  for (const count of counts) {
    if (typeof count !== "number") return undefined;
    sum += count;
  }
  return sum;
}
