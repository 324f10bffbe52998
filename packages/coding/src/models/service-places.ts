import { homedir } from "node:os";
import { join } from "node:path";
import { KeyFileError, type KeyStore } from "@gyre/ai/node";
import { SERVICES, type ServicePreset } from "@gyre/ai/providers";
import { configFolder } from "../settings/file.ts";
import type { Environment } from "../core/environment.ts";

/** Where the key of a service is. Never the key. */
export interface KeyPlace {
  from: "environment" | "file" | "command";
  /** For people: a variable's name, or what of the key file. */
  place: string;
}

/** The key file that `createKeyStore` takes where no other is given. */
export function keyFilePath(env: Environment): string {
  return join(configFolder(env, homedir()), "keys.json");
}

/**
 * The services that have a key, by id, each with the place that counts. No command is run,
 * and whether a key is any good is not known. Rejects with `KeyFileError`.
 */
export async function keyPlaces(
  env: Environment,
  keys: Pick<KeyStore, "list">,
  services: readonly ServicePreset[] = SERVICES,
): Promise<Map<string, KeyPlace>> {
  const places = new Map<string, KeyPlace>();
  for (const { service, from } of await keys.list()) {
    places.set(service, {
      from,
      place: from === "file" ? "the key file" : "a command of the key file",
    });
  }
  for (const [id, place] of environmentKeys(env, services)) places.set(id, place);
  return places;
}

/** The same, also where the key file cannot be used: that hides the keys in it, and `error` says why. */
export async function findKeyPlaces(
  env: Environment,
  keys: Pick<KeyStore, "list">,
  services?: readonly ServicePreset[],
): Promise<{ places: ReadonlyMap<string, KeyPlace>; error?: KeyFileError }> {
  try {
    return { places: await keyPlaces(env, keys, services) };
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    return { places: environmentKeys(env, services), error };
  }
}

/** The services whose key a variable holds. */
export function environmentKeys(
  env: Environment,
  services: readonly ServicePreset[] = SERVICES,
): Map<string, KeyPlace> {
  const places = new Map<string, KeyPlace>();
  for (const { id, keyEnv } of services) {
    const name = keyEnv.find((each) => env[each]) ?? awsKey(id, env);
    if (name !== undefined) places.set(id, { from: "environment", place: name });
  }
  return places;
}

/** Amazon's keys come in parts, in variables that no preset names. */
function awsKey(id: string, env: Environment): string | undefined {
  const whole = env["AWS_ACCESS_KEY_ID"] && env["AWS_SECRET_ACCESS_KEY"];
  return id === "amazon-bedrock" && whole ? "AWS_ACCESS_KEY_ID" : undefined;
}

/** Where a service is reached. */
export interface AddressPlace {
  /** Absent where it follows from the variables of an account. */
  address?: string;
  /** What says so, for people; nothing where nothing does. */
  place: string;
}

/** Variables of an account that an address follows from; all of one list must be set. */
const ACCOUNT_VARIABLES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  "amazon-bedrock": [["AWS_REGION"], ["AWS_DEFAULT_REGION"]],
  "google-vertex": [["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"]],
  "azure-openai": [["AZURE_OPENAI_RESOURCE_NAME"]],
  "azure-openai-responses": [["AZURE_OPENAI_RESOURCE_NAME"]],
};

/** Where the models of a service are asked for; `ofModel` is the address that a model has itself. */
export function addressPlace(
  service: ServicePreset,
  env: Environment,
  ofModel?: string,
): AddressPlace {
  if (ofModel !== undefined) return { address: ofModel, place: "the model's own" };
  const variable = service.urlEnv.find((name) => env[name]);
  const value = variable === undefined ? undefined : env[variable];
  if (variable !== undefined && value !== undefined) return { address: value, place: variable };
  const implied = ACCOUNT_VARIABLES[service.id]?.find((names) => names.every((name) => env[name]));
  if (implied) return { place: implied.join(" and ") };
  if (service.baseUrl !== undefined) {
    return { address: service.baseUrl, place: "the service's own" };
  }
  return { place: "" };
}
