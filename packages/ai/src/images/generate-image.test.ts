import type OpenAI from "openai";
import { describe, expect, it } from "vitest";
import type { Model } from "../messages/messages.ts";
import { OptionError } from "../providers/options/apply.ts";
import { SERVICES } from "../providers/services/presets.ts";
import { fakeService } from "../testing/fake-service.ts";
import { generateImage } from "./generate-image.ts";

const KEY = "test-key-0123456789";
const BASE = "https://api.example/v1";
const PNG = "iVBORw0KGgo=";
const JPEG = "/9j/4AAQ";

function modelAt(provider: string, id: string, more: Partial<Model> = {}): Model {
  const api = SERVICES.find((service) => service.id === provider)?.api ?? "openai-completions";
  return { id, name: id, provider, api, baseUrl: BASE, ...more };
}

function answering(body: object, status = 200): ReturnType<typeof fakeService> {
  const headers = { "content-type": "application/json" };
  return fakeService({ body: JSON.stringify(body), headers, status });
}

const GPT_IMAGE = modelAt("openai", "gpt-image-1", { price: { input: 5, output: 40 } });
const GROK = modelAt("xai", "grok-imagine-image");
const GEMINI = modelAt("google-vertex", "gemini-2.5-flash-image");

describe("an image", () => {
  it("is made by OpenAI, with its tokens and their price", async () => {
    const answer: OpenAI.ImagesResponse = {
      created: 0,
      data: [{ b64_json: PNG }],
      output_format: "webp",
      usage: {
        ...{ input_tokens: 1_000_000, output_tokens: 1_000_000, total_tokens: 2_000_000 },
        input_tokens_details: { image_tokens: 0, text_tokens: 1_000_000 },
      },
    };
    const service = answering(answer);
    const options = { apiKey: KEY, n: 1, size: "1024x1536" };
    const made = await generateImage({ fetch: service.fetch }, GPT_IMAGE, "A tern", options);
    expect(made).toEqual({
      images: [{ type: "file", mediaType: "image/webp", source: { type: "base64", data: PNG } }],
      usage: {
        input: 1_000_000,
        output: 1_000_000,
        cost: { input: 5, output: 40, total: 45 },
      },
    });
    const body: OpenAI.ImageGenerateParams = {
      model: "gpt-image-1",
      prompt: "A tern",
      n: 1,
      size: "1024x1536",
    };
    expect(service.requests).toMatchObject([{ url: `${BASE}/images/generations`, body }]);
  });

  it("is asked for as data where a service would send an address", async () => {
    const service = answering({ data: [{ b64_json: JPEG }, { url: "https://img.example/1" }] });
    const model = modelAt("my-server", "flux");
    const { images } = await generateImage({ fetch: service.fetch }, model, "A", { apiKey: KEY });
    expect(images).toEqual([
      { type: "file", mediaType: "image/jpeg", source: { type: "base64", data: JPEG } },
      {
        type: "file",
        mediaType: "image/png",
        source: { type: "url", url: "https://img.example/1" },
      },
    ]);
    expect(service.requests[0]?.body).toEqual({
      model: "flux",
      prompt: "A",
      response_format: "b64_json",
    });
  });

  it("is made by xAI, which reports what it has billed", async () => {
    const service = answering({
      data: [{ b64_json: PNG, mime_type: "image/png", revised_prompt: "" }],
      usage: { cost_in_usd_ticks: 200_000_000 },
    });
    const options = { apiKey: KEY, n: 1, aspectRatio: "16:9", size: "2k" };
    const made = await generateImage({ fetch: service.fetch }, GROK, "A", options);
    expect(made).toEqual({
      images: [{ type: "file", mediaType: "image/png", source: { type: "base64", data: PNG } }],
      usage: { cost: { total: 0.02 } },
    });
    expect(service.requests[0]?.body).toEqual({
      ...{ model: "grok-imagine-image", prompt: "A", n: 1, response_format: "b64_json" },
      ...{ aspect_ratio: "16:9", resolution: "2k" },
    });
  });

  it("is made by Gemini, which may write beside it", async () => {
    const parts = [{ text: "Here." }, { inlineData: { mimeType: "image/png", data: PNG } }];
    const service = answering({
      candidates: [{ content: { parts }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1_290 },
    });
    const options = { apiKey: "ya29.token-0123456789", aspectRatio: "1:1" };
    const made = await generateImage({ fetch: service.fetch }, GEMINI, "A", options);
    expect(made).toMatchObject({ text: "Here.", usage: { input: 3, output: 1_290 } });
    expect(service.requests).toMatchObject([
      {
        url: `${BASE}/models/gemini-2.5-flash-image:generateContent`,
        body: {
          contents: [{ role: "user", parts: [{ text: "A" }] }],
          generationConfig: {
            responseModalities: ["TEXT", "IMAGE"],
            imageConfig: { aspectRatio: "1:1" },
          },
        },
      },
    ]);
  });
});

describe("failures", () => {
  it.each([
    [GROK, { data: [], block_reason: "It shows a person." }, "It shows a person."],
    [GEMINI, { promptFeedback: { blockReason: "SAFETY" } }, "SAFETY"],
    [GEMINI, { candidates: [{ finishReason: "IMAGE_SAFETY" }] }, "IMAGE_SAFETY"],
  ])("what the rules do not allow is refused", async (model, body, why) => {
    const { fetch } = answering(body);
    const failed = generateImage({ fetch }, model, "A", { apiKey: KEY });
    await expect(failed).rejects.toMatchObject({ kind: "refused", retryable: false });
    await expect(failed).rejects.toThrow(why);
  });

  it("a moderation of OpenAI is the service's own error", async () => {
    const error = { code: "moderation_blocked", message: "Your request was rejected by safety" };
    const { fetch } = answering({ error }, 400);
    const failed = generateImage({ fetch }, GPT_IMAGE, "A", { apiKey: KEY });
    await expect(failed).rejects.toMatchObject({ status: 400, retryable: false });
  });

  it("none at all is empty, and may be asked for again", async () => {
    const { fetch } = answering({ data: [] });
    const failed = generateImage({ fetch }, GPT_IMAGE, "A", {
      apiKey: KEY,
      retry: { maxRetries: 0 },
    });
    await expect(failed).rejects.toMatchObject({ kind: "empty", retryable: true });
  });

  it.each(["anthropic", "mistral", "amazon-bedrock", "ollama"])(
    "%s is known to make none, before any request",
    async (provider) => {
      const service = answering({});
      const failed = generateImage({ fetch: service.fetch }, modelAt(provider, "m"), "A", {
        apiKey: KEY,
      });
      await expect(failed).rejects.toThrow(`"${provider}" makes no images`);
      expect(service.requests).toEqual([]);
    },
  );

  it.each(["google", "google-vertex"])("Imagen is gone at %s, and another is named", async (at) => {
    const service = answering({});
    const model = modelAt(at, "imagen-4.0-generate-001");
    const failed = generateImage({ fetch: service.fetch }, model, "A", { apiKey: KEY });
    await expect(failed).rejects.toThrow("such as gemini-3.1-flash-image");
    await expect(failed).rejects.toMatchObject({ kind: "bad_request", retryable: false });
    expect(service.requests).toEqual([]);
  });

  it.each([
    [GPT_IMAGE, { aspectRatio: "1:1" }, "aspectRatio"],
    [GEMINI, { n: 2 }, "n"],
    [GPT_IMAGE, { n: 0 }, "n"],
  ])("an option that there is not is named, before any request", async (model, options, option) => {
    const service = answering({});
    const failed = generateImage({ fetch: service.fetch }, model, "A", {
      apiKey: KEY,
      ...options,
    });
    const error = await failed.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OptionError);
    expect(error).toMatchObject({ option });
    expect(service.requests).toEqual([]);
  });
});
