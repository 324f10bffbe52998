import type { ApiProvider } from "../../client/registry.ts";
import { formatMessages } from "../anthropic-messages/request.ts";
import { createProvider, type ProviderConfig } from "../http/exchange.ts";
import type { ApiFormat } from "../http/format.ts";
import { Reader } from "./reader.ts";
import { writeRequest } from "./request.ts";

/** Claude on Vertex AI: Anthropic's Messages API at an address of Google Cloud. */
export function anthropicVertex(config: ProviderConfig = {}): ApiProvider {
  return createProvider(FORMAT, config);
}

const FORMAT: ApiFormat = {
  api: "anthropic-vertex",
  writeRequest,
  formatMessages,
  loadFiles: async () => (await import("./files.ts")).FILES,
  loadOptions: async () => (await import("../anthropic-messages/options.ts")).OPTIONS,
  createReader: (out) => new Reader(out),
};
