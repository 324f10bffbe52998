import type { ProtocolClient } from "../client/client.ts";
import { createProviders } from "../providers/index.ts";
import type { ServicePreset } from "../providers/services/presets.ts";
import type { ProviderConfig } from "../providers/http/exchange.ts";
import { createInProcessClient } from "../client/registry.ts";
import { type Clock, systemClock } from "../common/clock.ts";
import { errorMessage } from "../common/errors.ts";
import { createAccounts } from "./accounts/accounts.ts";
import type { OAuthStore } from "./oauth/tokens.ts";
import { createProxyFetch, httpFetch } from "./http/http-fetch.ts";
import { createKeyStore, type KeyStore, MissingKeyError } from "./keys/keys.ts";

export interface ModelClientOptions extends Omit<ProviderConfig, "getApiKey" | "getBaseUrl"> {
  /** Default: those of the process. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Default: the environment, then the key file of the user. */
  keys?: Pick<KeyStore, "get">;
  /** Logins of people, which go before keys: see `createOAuthStore`. */
  oauth?: Pick<OAuthStore, "get">;
  /** When tokens of an account end. Default: that of the system. */
  clock?: Clock;
}

/**
 * A client for every service of this package, with keys and addresses from this machine, and through the proxy that
 * `HTTPS_PROXY` names, past it where `NO_PROXY` says so. Throws `TypeError` where that is no address of a proxy.
 */
export function createModelClient(options: ModelClientOptions = {}): ProtocolClient {
  return createInProcessClient(createProviders(createProviderConfig(options)));
}

/**
 * How services are reached from this machine, as `createModelClient` does it: for what is no conversation, such as
 * `embed`. Throws as it does.
 */
export function createProviderConfig(options: ModelClientOptions = {}): ProviderConfig {
  const {
    env = process.env,
    keys = createKeyStore({ env }),
    clock = systemClock,
    oauth,
    ...config
  } = options;
  const fetch = config.fetch ?? createProxyFetch(env);
  const accounts = createAccounts({ env, clock, fetch: fetch ?? httpFetch });
  /** The key of a service, or else what the account of its cloud gives. */
  async function findKey(service: ServicePreset, signal: AbortSignal): Promise<string | undefined> {
    try {
      return (await oauth?.get(service, signal)) ?? (await keys.get(service, signal));
    } catch (error) {
      const account = accounts(service);
      if (!account || !(error instanceof MissingKeyError)) throw error;
      if (error.looked.some(({ found }) => found)) throw error;
      const given = await account.get(signal).catch((reason: unknown) => {
        signal.throwIfAborted();
        return { advice: errorMessage(reason) };
      });
      if (typeof given === "string") return given;
      const { place } = account;
      throw new MissingKeyError(service, [...error.looked, { place, found: false, ...given }]);
    }
  }
  return {
    ...config,
    ...(fetch && { fetch }),
    getApiKey: (service, signal) => awsKey(service, env) ?? findKey(service, signal),
    getBaseUrl: (service) => findAddress(service, env),
  };
}

type Env = NonNullable<ModelClientOptions["env"]>;

/** Amazon's keys come in two or three parts; a token of its own takes precedence over them. */
function awsKey(service: ServicePreset, env: Env): string | undefined {
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token } = env;
  if (service.id !== "amazon-bedrock" || env["AWS_BEARER_TOKEN_BEDROCK"]) return undefined;
  if (!id || !secret) return undefined;
  return [id, secret, ...(token ? [token] : [])].join(":");
}

/** Where a service is: as a variable says outright, or as the account's own variables imply. */
function findAddress(service: ServicePreset, env: Env): string | undefined {
  for (const name of service.urlEnv) if (env[name]) return env[name];
  if (service.id === "amazon-bedrock") {
    const region = env["AWS_REGION"] || env["AWS_DEFAULT_REGION"];
    return region && `https://bedrock-runtime.${region}.amazonaws.com`;
  }
  if (service.id.startsWith("google-vertex")) {
    const { GOOGLE_CLOUD_PROJECT: project, GOOGLE_CLOUD_LOCATION: location } = env;
    if (!project || !location) return undefined;
    const host = location === "global" ? "" : `${location}-`;
    const publisher = service.id === "google-vertex" ? "google" : "anthropic";
    return `https://${host}aiplatform.googleapis.com/v1/projects/${project}/locations/${location}/publishers/${publisher}`;
  }
  const resource = env["AZURE_OPENAI_RESOURCE_NAME"];
  if (!service.id.startsWith("azure-openai") || !resource) return undefined;
  return `https://${resource}.openai.azure.com/openai/v1`;
}
