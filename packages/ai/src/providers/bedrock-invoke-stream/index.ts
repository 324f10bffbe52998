import type { ApiProvider } from "../../client/registry.ts";
import { createAwsDecoder } from "../aws/decoder.ts";
import { Reader } from "./reader.ts";
// Only Claude has options about single messages here.
import { formatMessages } from "../anthropic-messages/request.ts";
import { writeRequest } from "./request.ts";
import { createProvider, type ProviderConfig } from "../http/exchange.ts";
import type { ApiFormat } from "../http/format.ts";

/**
 * The InvokeModelWithResponseStream operation of Amazon Bedrock, which speaks to each
 * model in the model's own format: Anthropic's to Claude, Nova's to all others. For what
 * Converse does not pass on; keys and quirks are those of `bedrock-converse-stream`.
 */
export function bedrockInvokeStream(config: ProviderConfig = {}): ApiProvider {
  return createProvider(FORMAT, config);
}

const FORMAT: ApiFormat = {
  api: "bedrock-invoke-stream",
  writeRequest: writeRequest,
  formatMessages,
  loadFiles: async () => (await import("./files.ts")).FILES,
  loadOptions: async () => (await import("./options.ts")).OPTIONS,
  createReader: (out) => new Reader(out),
  createDecoder: createAwsDecoder,
};
