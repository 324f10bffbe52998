import { describe, expect, it } from "vitest";
import type { FileContent, Model } from "../messages/messages.ts";
import { createProviders } from "./index.ts";
import { explainUnsendable } from "./explain-file.ts";
import { createModel } from "./testing/format-fixture.ts";

const pdf: FileContent = {
  type: "file",
  mediaType: "application/pdf",
  source: { type: "stored", sha256: "0".repeat(64), size: 1_000_000 },
};

describe("why a file cannot be sent", () => {
  it.each<[string, Model, FileContent, string | undefined]>([
    ["it can", createModel("anthropic-messages", "anthropic", "claude-opus-5"), pdf, undefined],
    [
      "by the model",
      createModel("anthropic-messages", "anthropic", "m", { input: ["text"] }),
      pdf,
      "this model reads no PDF",
    ],
    [
      "by the service",
      createModel("openai-completions", "groq", "llama"),
      pdf,
      "this service reads no PDF",
    ],
    [
      "by its size",
      createModel("bedrock-converse-stream", "amazon-bedrock", "anthropic.claude-opus-5"),
      { ...pdf, source: { type: "stored", sha256: "", size: 20_000_000 } },
      "this service takes at most 14000 KB",
    ],
    [
      "by what a model of another format is said to read",
      createModel("own", "own", "m"),
      pdf,
      "this model reads no PDF",
    ],
    ["it can there", createModel("own", "own", "m", { input: ["text", "pdf"] }), pdf, undefined],
  ])("%s", async (_, model, file, why) => {
    expect(await explainUnsendable(file, model)).toBe(why);
  });

  const chatWith = (service: string, id = "m"): Model =>
    createModel("openai-completions", service, id);
  const bedrock = (id: string): Model =>
    createModel("bedrock-converse-stream", "amazon-bedrock", id);
  const vertex = createModel("google-generative-ai", "google-vertex", "gemini-2.5-flash");
  const claudeAtGoogle = createModel(
    "anthropic-vertex",
    "google-vertex-anthropic",
    "claude-opus-5",
  );
  const stored = (mediaType: string, size = 1_000_000): FileContent => ({
    type: "file",
    mediaType,
    source: { type: "stored", sha256: "", size },
  });
  const at = (mediaType: string, url: string): FileContent => ({
    type: "file",
    mediaType,
    source: { type: "url", url },
  });
  const otherType = "this service does not read its type";
  it.each<[string, Model, FileContent, string | undefined]>([
    ["Fireworks", chatWith("fireworks"), stored("image/webp"), otherType],
    ["Fireworks", chatWith("fireworks"), stored("image/gif"), undefined],
    ["LM Studio", chatWith("lmstudio"), stored("image/gif"), otherType],
    ["LM Studio", chatWith("lmstudio"), stored("image/webp"), undefined],
    [
      "GitHub Models",
      chatWith("github-models"),
      at("image/png", "https://a.test/a.png"),
      "this service takes images only as data",
    ],
    [
      "Perplexity",
      chatWith("perplexity"),
      at("image/png", "http://a.test/a.png"),
      "this service loads only addresses that begin with https:",
    ],
    [
      "Moonshot",
      chatWith("moonshot", "kimi-k2.6"),
      stored("video/mp4", 80_000_000),
      "this service takes at most 70000 KB",
    ],
    ["Z.ai", chatWith("zai", "glm-4.6v"), stored("image/gif"), otherType],
    ["Z.ai", chatWith("zai", "glm-4.6v"), at("video/webm", "https://a.test/a.webm"), otherType],
    [
      "Z.ai",
      chatWith("zai", "glm-5v-turbo"),
      at("video/x-matroska", "https://a.test/a"),
      undefined,
    ],
    [
      "Z.ai",
      chatWith("zai", "glm-4.1v"),
      at("application/pdf", "https://a.test/a.pdf"),
      "this model reads no PDF",
    ],
    [
      "Claude 3 on Bedrock",
      bedrock("us.anthropic.claude-3-7-sonnet-20250219-v1:0"),
      stored("application/pdf", 5_000_000),
      "this service takes at most 4500 KB",
    ],
    [
      "Claude on Bedrock",
      bedrock("anthropic.claude-opus-5"),
      stored("image/png", 4_000_000),
      "this service takes at most 3750 KB",
    ],
    [
      "Nova Sonic",
      bedrock("amazon.nova-2-sonic-v1:0"),
      stored("audio/wav"),
      "this model reads no audio",
    ],
    [
      "Claude on Vertex AI",
      claudeAtGoogle,
      stored("image/png", 4_000_000),
      "this service takes at most 3750 KB",
    ],
    [
      "Vertex AI",
      vertex,
      { ...pdf, source: { type: "id", id: "https://a.test/1", service: "google-vertex" } },
      "this service takes PDF only as data or by URL",
    ],
    ["Vertex AI", vertex, at("text/csv", "gs://a/b.csv"), otherType],
    ["Vertex AI", vertex, at("text/plain", "gs://a/b.txt"), undefined],
    ["Vertex AI", vertex, stored("audio/aiff"), otherType],
  ])("%s, as its documentation says: %#", async (_, model, file, why) => {
    expect(await explainUnsendable(file, model)).toBe(why);
  });

  it("knows every format of this package", async () => {
    const image: FileContent = { ...pdf, mediaType: "image/bmp" };
    for (const { api } of createProviders().list()) {
      // A format that is not known takes images of any type.
      expect(await explainUnsendable(image, createModel(api, "x", "claude")), api).toBe(
        "this service does not read its type",
      );
    }
  });
});
