import { errnoOf, errorMessage, type Model, type ProtocolClient } from "@gyre/ai";
import {
  createKeyStore,
  createModelClient,
  createProxyFetch,
  httpFetch,
  type KeyStore,
} from "@gyre/ai/node";
import { type Fetch, findService } from "@gyre/ai/providers";
import { CodingAgentError } from "../core/errors.ts";
import { recordingFetch } from "../core/recording-fetch.ts";
import type { Policy } from "../policy/policy.ts";
import type { Settings } from "../settings/settings.ts";
import type { Environment } from "../core/environment.ts";

/** Models by name, and the way to them. */
export interface Models {
  client: ProtocolClient;
  /** The one that is set, or the one that there is a key for. Throws an error with a message for the user. */
  current(): Promise<Model>;
  fallbacks: readonly Model[];
  /** Throws an error with a message for the user. */
  find(name: string): Promise<Model>;
  /** All that are known. */
  list(): Promise<readonly Model[]>;
}

export interface ModelsOptions {
  settings: Pick<Settings, "model" | "fallbackModels" | "models">;
  env: Environment;
  /** The key of the service of `settings.model`, in place of the one that is stored. */
  apiKey?: string;
  /** A file for all that is sent and received. */
  verbose?: string;
  /** See `ProviderConfig`. */
  hidesAddresses?: boolean;
  /** What the administrator of the machine allows at most. */
  policy?: Policy | undefined;
  fetch?: Fetch;
}

const SOURCE = 'the settings, under "models"';

/** What the settings say of models, made usable. */
export async function openModels({
  settings,
  env,
  verbose,
  apiKey,
  hidesAddresses = false,
  policy,
  fetch: given,
}: ModelsOptions): Promise<Models> {
  const own = settings.models;
  const { createCatalog, mergeModels, parseUserModels, userServices } =
    await import("@gyre/ai/models");
  const { knownModels } = await import("./stored-facts.ts");
  // Where facts that were fetched cannot be used, those that are built in are: `gyre models` reports it.
  const known = knownModels(env).models;
  const user = own === undefined ? undefined : parseUserModels(own, SOURCE);
  const services = user ? userServices(user) : [];
  const all = createCatalog(user ? mergeModels(known, user) : known);
  const keys = createKeyStore({ env });
  const find = async (name: string): Promise<Model> => {
    const model = named(name, (wanted) => all.find(wanted));
    policy?.assertModel(model);
    return model;
  };
  const open = given ?? createProxyFetch(env) ?? httpFetch;
  const base = policy?.guardFetch(open) ?? open;
  const way = verbose === undefined ? base : recordingFetch(base, verbose);
  return {
    client: createModelClient({
      env,
      keys: await withKey(keys, apiKey, async () => settings.model && find(settings.model)),
      services,
      fetch: way,
      hidesAddresses,
    }),
    fallbacks: await Promise.all((settings.fallbackModels ?? []).map(find)),
    find,
    list: async () => all.list().filter((model) => policy?.allowsModel(model) ?? true),
    async current() {
      if (settings.model !== undefined) return find(settings.model);
      const { defaultModel } = await import("./default-model.ts");
      const name = await defaultModel(env, keys, policy);
      if (name !== undefined) return find(name);
      throw new CodingAgentError(
        "no_key",
        "There is no model to ask: no service has a key. Set one (ANTHROPIC_API_KEY, say), or `gyre login SERVICE`, or choose a local model with --model ollama/NAME.",
      );
    },
  };
}

/** The keys, with one that was given for the service of a model. */
async function withKey(
  keys: Pick<KeyStore, "get">,
  apiKey: string | undefined,
  findModel: () => Promise<Model | undefined | "">,
): Promise<Pick<KeyStore, "get">> {
  const model = apiKey === undefined ? undefined : await findModel();
  if (apiKey === undefined || !model) return keys;
  return {
    get: async (service, signal) =>
      service.id === model.provider ? apiKey : keys.get(service, signal),
  };
}

/**
 * A `service/id` that the catalog does not have is taken at its word: services get new
 * models before catalogs do.
 */
function named(name: string, find: (name: string) => Model): Model {
  try {
    return find(name);
  } catch (error) {
    const slash = name.indexOf("/");
    const service = slash > 0 ? findService(name.slice(0, slash)) : undefined;
    const id = name.slice(slash + 1);
    if (service && id !== "" && errnoOf(error) === "model_not_found") {
      return { id, name: id, api: service.api, provider: service.id };
    }
    throw new CodingAgentError("bad_option", errorMessage(error), { cause: error });
  }
}
