import type { ApiProvider } from "../../client/registry.ts";
import { Reader } from "./reader.ts";
import { formatMessages, writeRequest } from "./request.ts";
import { createProvider, type ProviderConfig } from "../http/exchange.ts";
import type { ApiFormat } from "../http/format.ts";
import { ANTHROPIC } from "../services/preset.ts";

/** Anthropic's Messages API. */
export function anthropicMessages(config: ProviderConfig = {}): ApiProvider {
  return createProvider(FORMAT, config);
}

const FORMAT: ApiFormat = {
  api: "anthropic-messages",
  home: ANTHROPIC,
  writeRequest,
  formatMessages,
  loadFiles: async () => (await import("./files.ts")).FILES,
  loadOptions: async () => (await import("./options.ts")).OPTIONS,
  createReader: (out) => new Reader(out),
};
