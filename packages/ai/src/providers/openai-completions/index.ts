import type { ApiProvider } from "../../client/registry.ts";
import { Reader } from "./reader.ts";
import { formatMessages, writeRequest } from "./request.ts";
import { createProvider, type ProviderConfig } from "../http/exchange.ts";
import type { ApiFormat } from "../http/format.ts";

/** OpenAI's chat completions, and all that speak a dialect of them. */
export function openaiCompletions(config: ProviderConfig = {}): ApiProvider {
  return createProvider(FORMAT, config);
}

const FORMAT: ApiFormat = {
  api: "openai-completions",
  writeRequest: writeRequest,
  formatMessages,
  loadFiles: async () => (await import("./files.ts")).FILES,
  loadOptions: async () => (await import("./options.ts")).OPTIONS,
  createReader: (out, request) => new Reader(out, request),
};
