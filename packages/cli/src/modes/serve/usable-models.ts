import type { Model } from "@gyre/ai";
import { parseUserModels, userServices } from "@gyre/ai/models";
import { createKeyStore } from "@gyre/ai/node";
import { resolveService, SERVICES } from "@gyre/ai/providers";
import { findKeyPlaces } from "@gyre/coding/internal/models/service-places";
import type { Models } from "@gyre/coding/internal/models/models";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import type { Environment } from "../../core/io.ts";
import { modelValue } from "@gyre/coding/internal/text/choices";

export interface UsableModelsOptions {
  models: Models;
  settings: Pick<Settings, "model" | "models">;
  env: Environment;
  /** These alone, as service/id, in this order. */
  only?: readonly string[] | undefined;
}

/**
 * The models of services that have a key now or need none, and those that the settings name,
 * which may be too new for the catalog.
 */
export function usableModels(options: UsableModelsOptions): () => Promise<readonly Model[]> {
  const { models, settings, env, only } = options;
  const own =
    settings.models === undefined
      ? []
      : userServices(parseUserModels(settings.models, 'the settings, under "models"'));
  return async () => {
    const keys = createKeyStore({ env });
    const { places } = await findKeyPlaces(env, keys, [...SERVICES, ...own]);
    const named = [...models.fallbacks];
    if (settings.model !== undefined) named.push(await models.find(settings.model));
    const all = only
      ? await Promise.all(only.map((name) => models.find(name)))
      : [...named, ...(await models.list())];
    const usable = all.filter((model) => {
      const service = resolveService(model, own);
      return service.keyless || places.has(service.id);
    });
    return [...new Map(usable.map((model) => [modelValue(model), model])).values()];
  };
}
