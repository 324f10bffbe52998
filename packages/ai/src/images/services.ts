import { toRecord } from "../common/records.ts";
import type { CallRequest } from "../calls/call.ts";
import type { Model, Usage } from "../messages/messages.ts";
import { keyHeaders } from "../providers/google-generative-ai/request.ts";
import type { RequestContext } from "../providers/http/format.ts";
import { authHeaders } from "../providers/http/headers.ts";
import { joinUrl } from "../providers/http/url.ts";
import { readTicks } from "../providers/services/ticks.ts";

/** What is asked of a service beside the prompt. */
export interface ImageWish {
  /** How many images. Default 1. */
  n?: number;
  /** As the service names it: `1024x1536` at OpenAI, `2K` at Google, `2k` at xAI. */
  size?: string;
  /** Width and height, such as `16:9`. */
  aspectRatio?: string;
}

/** An image as a service sends it. */
export interface RawImage {
  data?: unknown;
  url?: unknown;
  mediaType?: unknown;
}

/** What a service answered. */
export interface RawImages {
  images: RawImage[];
  text?: string;
  usage?: Usage;
  /** Why there is none, or not as many as were asked for, where the service says so. */
  refusal?: unknown;
}

/** How one kind of service makes images. */
export interface ImageService {
  /** The options that it has. */
  has: ReadonlySet<keyof ImageWish>;
  write(prompt: string, request: RequestContext, wish: ImageWish): CallRequest;
  read(body: Record<string, unknown>): RawImages;
}

const COMMON_APIS: ReadonlySet<string> = new Set(["openai-completions", "openai-responses"]);
/** Services of the common formats that make no images, or not in this way. */
const WITHOUT: ReadonlySet<string> = new Set([
  "cerebras",
  "deepseek",
  "fireworks",
  "github-models",
  "groq",
  "huggingface",
  "llamacpp",
  "lmstudio",
  "mistral",
  "moonshot",
  "openrouter",
  "perplexity",
  "together",
  "vllm",
  "zai",
]);

/** Models that Google has switched off, at both of its addresses. */
export const IMAGEN: RegExp = /imagen/;

/** The service that makes the images of a model, or nothing where there is no such. */
export function findImageService({ api, id, provider }: Model): ImageService | undefined {
  if (api === "google-generative-ai") return IMAGEN.test(id) ? undefined : GEMINI;
  if (provider === "xai") return XAI;
  return WITHOUT.has(provider) || !COMMON_APIS.has(api) ? undefined : OPENAI;
}

const OPENAI: ImageService = {
  has: new Set(["n", "size"]),
  write(prompt, request, { n, size }) {
    const { id } = request.model;
    // Newer models of OpenAI always send the image itself, and refuse to be asked for it.
    const isNewer = /gpt-image/.test(id) || request.service.id.startsWith("azure");
    return {
      url: joinUrl(request.baseUrl, "/images/generations"),
      headers: authHeaders(request, "bearer"),
      body: {
        model: id,
        prompt,
        ...(n !== undefined && { n }),
        ...(size !== undefined && { size }),
        ...(!isNewer && { response_format: "b64_json" }),
      },
    };
  },
  read({ data, output_format: format, usage }) {
    const { input_tokens: input, output_tokens: output } = toRecord(usage);
    const mediaType = typeof format === "string" ? `image/${format}` : undefined;
    return {
      images: toRecords(data).map(({ b64_json, url }) => ({ data: b64_json, url, mediaType })),
      usage: toUsage(input, output),
    };
  },
};

const XAI: ImageService = {
  has: new Set(["n", "size", "aspectRatio"]),
  write(prompt, request, { aspectRatio, n, size }) {
    const { body, ...rest } = OPENAI.write(prompt, request, { ...(n !== undefined && { n }) });
    return {
      ...rest,
      body: {
        ...toRecord(body),
        ...(aspectRatio !== undefined && { aspect_ratio: aspectRatio }),
        ...(size !== undefined && { resolution: size }),
      },
    };
  },
  read({ block_reason: refusal, data, usage }) {
    const cost = readTicks(toRecord(usage));
    return {
      images: toRecords(data).map(({ b64_json, mime_type: mediaType, url }) => ({
        ...{ data: b64_json, url, mediaType },
      })),
      usage: cost ? { cost } : {},
      ...(typeof refusal === "string" && { refusal }),
    };
  },
};

const GEMINI: ImageService = {
  has: new Set(["size", "aspectRatio"]),
  write(prompt, request, { aspectRatio, size }) {
    const imageConfig = {
      ...(aspectRatio !== undefined && { aspectRatio }),
      ...(size !== undefined && { imageSize: size }),
    };
    return writeGoogle(request, "generateContent", {
      contents: [{ role: "user", parts: [{ text: prompt }] }],
      generationConfig: {
        responseModalities: ["TEXT", "IMAGE"],
        ...(Object.keys(imageConfig).length > 0 && { imageConfig }),
      },
    });
  },
  read({ candidates, promptFeedback, usageMetadata }) {
    const [first = {}] = toRecords(candidates);
    const parts = toRecords(toRecord(first["content"])["parts"]);
    const { promptTokenCount: input, candidatesTokenCount: output } = toRecord(usageMetadata);
    const { finishReason } = first;
    return {
      images: parts
        .map(({ inlineData }) => toRecord(inlineData))
        .filter(({ data }) => data !== undefined)
        .map(({ data, mimeType: mediaType }) => ({ data, mediaType })),
      text: parts.map(({ text }) => (typeof text === "string" ? text : "")).join(""),
      usage: toUsage(input, output),
      refusal:
        toRecord(promptFeedback)["blockReason"] ??
        (finishReason === "STOP" || finishReason === "MAX_TOKENS" ? undefined : finishReason),
    };
  },
};

function writeGoogle(
  request: RequestContext,
  operation: string,
  body: Record<string, unknown>,
): CallRequest {
  const id = request.model.id.replace(/^models\//, "");
  const url = joinUrl(request.baseUrl, `models/${id}:${operation}`);
  return { url, headers: keyHeaders(request), body };
}

function toRecords(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.map(toRecord) : [];
}

function toUsage(input: unknown, output: unknown): Usage {
  return {
    ...(typeof input === "number" && { input }),
    ...(typeof output === "number" && { output }),
  };
}
