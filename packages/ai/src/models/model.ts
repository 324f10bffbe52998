import type { Model } from "../messages/messages.ts";
import { explainQuirks } from "../messages/quirk-names.ts";
import { findService, SERVICES } from "../providers/services/presets.ts";
import { nearNames } from "../schema/near-names.ts";
import { catalog } from "./catalog.ts";
import type { ServiceName } from "../messages/names.ts";

/** Facts of a model that its service and its id do not say. */
export type ModelOptions = Partial<Omit<Model, "id" | "provider">>;

/** The API format of servers that are not known: what most of them speak. */
const COMMON_API = "openai-completions";

/**
 * A model by its service and id, also one that is not in the catalog: a new one, a deployment
 * at Azure, one that a server of your own has.
 *
 *     model("ollama", "llama3")
 *     model("azure-openai-responses", "my-deployment", { baseUrl })
 *     model("my-server", "qwen3", { baseUrl: "http://localhost:8000/v1" })
 *
 * What the catalog knows of it is there, unless `options` says otherwise. Throws on a service
 * that is neither known nor has a `baseUrl`, and on a quirk that there is not.
 */
export function model(provider: ServiceName, id: string, options: ModelOptions = {}): Model {
  const problem = options.quirks && explainQuirks({ ...options.quirks }, nearNames);
  if (problem !== undefined) throw new TypeError(problem);
  checkNames(options);
  if (id === "") throw new TypeError(`The id of the model at "${provider}" is empty.`);
  const known = catalog().find((one) => one.provider === provider && one.id === id);
  if (known) return { ...known, ...options };
  const service = findService(provider);
  if (!service && options.baseUrl === undefined) {
    const near = nearNames(
      provider,
      SERVICES.map((one) => one.id),
    );
    const hint = near.length > 0 ? `Did you mean ${near.join(", ")}? ` : "";
    throw new TypeError(
      `There is no service "${provider}". ${hint}For a server of your own, give its address as \`baseUrl\`.`,
    );
  }
  return { id, name: id, provider, api: service?.api ?? COMMON_API, ...options };
}

/** What `options` may hold; the compiler finds one that is missing here. */
const NAMES: Readonly<Record<keyof ModelOptions, true>> = {
  name: true,
  api: true,
  baseUrl: true,
  reasoning: true,
  thinkingLevels: true,
  efforts: true,
  features: true,
  input: true,
  price: true,
  contextWindow: true,
  maxTokens: true,
  headers: true,
  quirks: true,
};

/** What other libraries and lists of models call them. */
const ELSEWHERE: Readonly<Record<string, keyof ModelOptions>> = {
  url: "baseUrl",
  endpoint: "baseUrl",
  contextlength: "contextWindow",
  maxoutputtokens: "maxTokens",
  cost: "price",
  pricing: "price",
};

/** Throws on another spelling of an option. Others pass: lists of models have more in them. */
function checkNames(options: ModelOptions): void {
  for (const name of Object.keys(options)) {
    if (name in NAMES) continue;
    const plain = name.toLowerCase().replaceAll(/[_-]/g, "");
    const meant =
      Object.keys(NAMES).find((known) => known.toLowerCase() === plain) ?? ELSEWHERE[plain];
    if (meant === undefined || meant in options) continue;
    throw new TypeError(`There is no option "${name}" of model(): write ${meant}.`);
  }
}
