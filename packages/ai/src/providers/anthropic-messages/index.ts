import type { ApiProvider } from "../../client/registry.ts";
import { Reader } from "./reader.ts";
import { writeRequest } from "./request.ts";
import { createProvider, type ProviderConfig } from "../http/exchange.ts";
import type { ApiFormat } from "../http/format.ts";

/** Anthropic's Messages API. */
export function anthropicMessages(config: ProviderConfig = {}): ApiProvider {
  return createProvider(FORMAT, config);
}

const FORMAT: ApiFormat = {
  api: "anthropic-messages",
  writeRequest: writeRequest,
  createReader: (out) => new Reader(out),
};
