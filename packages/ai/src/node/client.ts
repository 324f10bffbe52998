import type { ProtocolClient } from "../client/client.ts";
import { createProviders } from "../providers/index.ts";
import type { ServicePreset } from "../providers/services/presets.ts";
import type { ProviderConfig } from "../providers/http/exchange.ts";
import { createInProcessClient } from "../client/registry.ts";
import { createKeyStore, type KeyStore } from "./keys.ts";

export interface ModelClientOptions extends Omit<ProviderConfig, "getApiKey" | "getBaseUrl"> {
  /** Default: those of the process. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Default: the environment, then the key file of the user. */
  keys?: Pick<KeyStore, "get">;
}

/** A client for every service of this package, with keys and addresses from this machine. */
export function createModelClient(options: ModelClientOptions = {}): ProtocolClient {
  const { env = process.env, keys = createKeyStore({ env }), ...config } = options;
  return createInProcessClient(
    createProviders({
      ...config,
      getApiKey: (service, signal) => awsKey(service, env) ?? keys.get(service, signal),
      getBaseUrl: (service) => findAddress(service, env),
    }),
  );
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
  if (service.id === "google-vertex") {
    const { GOOGLE_CLOUD_PROJECT: project, GOOGLE_CLOUD_LOCATION: location } = env;
    if (!project || !location) return undefined;
    const host = location === "global" ? "" : `${location}-`;
    return `https://${host}aiplatform.googleapis.com/v1/projects/${project}/locations/${location}/publishers/google`;
  }
  const resource = env["AZURE_OPENAI_RESOURCE_NAME"];
  if (!service.id.startsWith("azure-openai") || !resource) return undefined;
  return `https://${resource}.openai.azure.com/openai/v1`;
}
