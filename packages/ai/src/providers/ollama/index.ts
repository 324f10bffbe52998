import type { ApiProvider } from "../../client/registry.ts";
import { LineDecoder } from "../../stream/ndjson.ts";
import { Reader } from "./reader.ts";
import { writeRequest } from "./request.ts";
import { createProvider, type ProviderConfig } from "../http/exchange.ts";
import type { ApiFormat } from "../http/format.ts";

/**
 * Ollama's own chat API. Quirks: `numCtx` (the window to load the model with, instead of
 * the model's `contextWindow`), `thinking` (`levels` or `switch`: what it takes to say how
 * much to think).
 */
export function ollama(config: ProviderConfig = {}): ApiProvider {
  return createProvider(FORMAT, config);
}

const FORMAT: ApiFormat = {
  api: "ollama",
  writeRequest: writeRequest,
  loadFiles: async () => (await import("./files.ts")).FILES,
  loadOptions: async () => (await import("./options.ts")).OPTIONS,
  createReader: (out, request) => new Reader(out, request),
  createDecoder: (onPayload) => new LineDecoder(onPayload),
};
