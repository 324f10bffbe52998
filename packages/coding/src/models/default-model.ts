import { findModel } from "@gyre/ai/models";
import type { KeyStore } from "@gyre/ai/node";
import type { Policy } from "../policy/policy.ts";
import { modelValue } from "../text/choices.ts";
import { findKeyPlaces } from "./service-places.ts";
import type { Environment } from "../core/environment.ts";

/**
 * The services that are taken where no model is set, in this order, and of each a model
 * that codes well for its price; a name without a version means the newest.
 *
 * Left out are Azure, where a model has the name that an account gave it, GitHub, whose
 * token is in many an environment for other things, and Perplexity, which has no tools.
 */
export const DEFAULT_MODELS: Readonly<Record<string, string>> = {
  anthropic: "anthropic/sonnet",
  openai: "openai/sol",
  google: "google/gemini-pro-latest",
  openrouter: "openrouter/sonnet",
  xai: "xai/grok",
  deepseek: "deepseek/pro",
  mistral: "mistral/devstral-latest",
  groq: "groq/openai/gpt-oss-120b",
  moonshot: "moonshot/kimi-k3.1-pro",
  zai: "zai/glm-5.3",
  cerebras: "cerebras/gpt-oss-120b",
  together: "together/moonshotai/Kimi-K3",
  fireworks: "fireworks/accounts/fireworks/routers/kimi-latest",
  huggingface: "huggingface/moonshotai/Kimi-K3",
  "amazon-bedrock": "amazon-bedrock/global.anthropic.claude-sonnet-5-5",
  "google-vertex": "google-vertex/gemini-3.1-pro-preview",
};

/**
 * The model to ask where none is set, as service/id: that of the first service of
 * `DEFAULT_MODELS` that has a key. Undefined where none has. Rejects with `KeyFileError`
 * if the key file cannot be used and no variable has a key either.
 */
export async function defaultModel(
  env: Environment,
  keys: Pick<KeyStore, "list">,
  policy?: Pick<Policy, "allowsModel">,
): Promise<string | undefined> {
  const { places, error } = await findKeyPlaces(env, keys);
  const usable = Object.entries(DEFAULT_MODELS).filter(([service]) => places.has(service));
  if (usable.length === 0 && error) throw error;
  const models = usable.map(([, name]) => findModel(name));
  // Where none is allowed, the first is what the error names.
  const model = models.find((each) => policy?.allowsModel(each) ?? true) ?? models[0];
  return model && modelValue(model);
}
