import { createKeyStore } from "@gyre/ai/node";
import { type ModelChoice, modelValue } from "../text/choices.ts";
import { openModels } from "./models.ts";
import { keyPlaces } from "./service-places.ts";
import type { Settings } from "../settings/settings.ts";
import type { Environment } from "../core/environment.ts";

/** More than a menu can show. */
const MAX_CHOICES = 200;

/** The models of the services that there is a key for, and those of the user's own. */
export async function usableModels(
  settings: Settings,
  env: Environment,
): Promise<readonly ModelChoice[]> {
  const [models, places] = await Promise.all([
    openModels({ settings, env }),
    keyPlaces(env, createKeyStore({ env })),
  ]);
  const own = new Set(Object.keys(settings.models ?? {}));
  const usable = (await models.list()).filter(
    ({ provider }) => places.has(provider) || own.has(provider),
  );
  // A dated id beside the plain one would be the same line twice.
  const choices = new Map<string, ModelChoice>();
  for (const { provider, id, name } of usable) {
    const key = `${provider}/${name}`;
    const value = modelValue({ provider, id });
    const other = choices.get(key);
    if (!other || value.length < other.value.length) choices.set(key, { value, name });
  }
  return [...choices.values()].slice(0, MAX_CHOICES);
}
