import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findModel } from "@gyre/ai/models";
import { createKeyStore, KeyFileError } from "@gyre/ai/node";
import { findService } from "@gyre/ai/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULT_MODELS, defaultModel } from "./default-model.ts";

const NO_KEYS = { list: async () => [] };
const OPEN_TO_ALL = 0o644;

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-default-model-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the default models", () => {
  it.each(Object.entries(DEFAULT_MODELS))("has one of %s that resolves", (service, name) => {
    const model = findModel(name);
    expect(model.provider).toBe(service);
    expect(findService(service)?.keyless).toBeUndefined();
    // A model that has no room for an agent, or whose cost is unknown, is no default.
    expect(model.contextWindow).toBeGreaterThanOrEqual(100_000);
    expect(model.price?.output).toBeGreaterThan(0);
  });
});

describe("defaultModel", () => {
  it("is undefined where no service has a key", async () => {
    expect(await defaultModel({ PATH: "/bin", OPENAI_API_KEY: "" }, NO_KEYS)).toBeUndefined();
  });

  it("is of the first service that has one", async () => {
    const env = { GROQ_API_KEY: "k", OPENAI_API_KEY: "k" };
    expect(await defaultModel(env, NO_KEYS)).toMatch(/^openai\//);
    const stored = { list: async () => [{ service: "anthropic", from: "file" as const }] };
    expect(await defaultModel(env, stored)).toMatch(/^anthropic\/claude-sonnet-/);
  });

  it("is a name in full", async () => {
    const name = (await defaultModel({ XAI_API_KEY: "k" }, NO_KEYS)) ?? "";
    const { id, provider } = findModel(name);
    expect(name).toBe(`${provider}/${id}`);
  });

  it("sees Amazon's keys only if they are whole", async () => {
    expect(await defaultModel({ AWS_ACCESS_KEY_ID: "a" }, NO_KEYS)).toBeUndefined();
    const env = { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" };
    expect(await defaultModel(env, NO_KEYS)).toMatch(/^amazon-bedrock\//);
  });

  it("reports what is wrong with the key file, unless a variable has a key", async () => {
    const file = join(folder, "keys.json");
    await writeFile(file, "no JSON");
    await chmod(file, OPEN_TO_ALL);
    const keys = createKeyStore({ env: {}, file });
    await expect(defaultModel({}, keys)).rejects.toBeInstanceOf(KeyFileError);
    expect(await defaultModel({ MISTRAL_API_KEY: "k" }, keys)).toMatch(/^mistral\//);
  });
});
