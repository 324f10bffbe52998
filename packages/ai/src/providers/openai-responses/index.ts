import type { ApiProvider } from "../../client/registry.ts";
import { Reader } from "./reader.ts";
import { writeRequest } from "./request.ts";
import { createProvider, type ProviderConfig } from "../http/exchange.ts";
import type { ApiFormat } from "../http/format.ts";

/**
 * OpenAI's Responses API, and what other services offer under that name. Unless an option
 * asks for it, the service keeps nothing: each request brings the whole transcript, with the
 * model's reasoning as the service sealed it. Quirks: `efforts`, the reasoning efforts that the model
 * knows; `encryptedReasoning: false` where sealed reasoning cannot be asked for;
 * `cacheRetention`, whether a cache may be asked to last longer.
 */
export function openaiResponses(config: ProviderConfig = {}): ApiProvider {
  return createProvider(FORMAT, config);
}

const FORMAT: ApiFormat = {
  api: "openai-responses",
  writeRequest: writeRequest,
  loadFiles: async () => (await import("./files.ts")).FILES,
  loadOptions: async () => (await import("./options.ts")).OPTIONS,
  createReader: (out, request) => new Reader(out, request),
};
