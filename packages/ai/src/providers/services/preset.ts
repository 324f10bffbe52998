import type { Model } from "../../messages/messages.ts";
import type { ChatQuirks, ModelQuirks } from "../../messages/quirks.ts";

/**
 * A model service as data: its API format, its address, its key, and how it
 * differs from other services with that format. A service that is not here is a
 * model with a `baseUrl` (and `quirks`) of its own.
 */
export interface ServicePreset {
  /** What models carry in `model.provider`. */
  id: string;
  name: string;
  api: string;
  /** Absent where the address depends on an account: then `model.baseUrl` or the environment has it. */
  baseUrl?: string;
  /** Environment variables that may hold the key, the first one first. */
  keyEnv: readonly string[];
  /** Environment variables that may hold another address. */
  urlEnv: readonly string[];
  /** Answers without a key: a server of one's own. */
  keyless?: boolean;
  /** How a key is sent, where that differs from the format's own way. */
  auth?: "bearer" | "api-key" | "x-api-key" | "x-goog-api-key";
  headers?: Readonly<Record<string, string>>;
  /** Named differences from the format; each format documents those that it knows. */
  quirks?: Readonly<ModelQuirks>;
}

/** A service whose environment variables have the usual names, unless `more` has others. */
export function defineService(
  id: string,
  name: string,
  api: string,
  more: Partial<ServicePreset> & { quirks?: ChatQuirks } = {},
): ServicePreset {
  const variable = id.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
  const env = { keyEnv: [`${variable}_API_KEY`], urlEnv: [`${variable}_BASE_URL`] };
  return { id, name, api, ...env, ...more };
}

/** A service that nothing is known of but what the model says: it may be at a server that wants no key. */
export function describeService({ provider, api }: Model): ServicePreset {
  return defineService(provider, provider, api, { keyless: true });
}

export const ANTHROPIC: ServicePreset = defineService(
  "anthropic",
  "Anthropic",
  "anthropic-messages",
  {
    baseUrl: "https://api.anthropic.com",
  },
);
