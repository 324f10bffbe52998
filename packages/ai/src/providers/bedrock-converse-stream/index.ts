import type { ApiProvider } from "../../client/registry.ts";
import { formatMessages, writeRequest } from "./request.ts";
import { createAwsDecoder } from "../aws/decoder.ts";
import { Reader } from "./reader.ts";
import { createProvider, type ProviderConfig } from "../http/exchange.ts";
import type { ApiFormat } from "../http/format.ts";

/**
 * The ConverseStream operation of Amazon Bedrock. The key is a Bedrock API key, or
 * `ACCESSKEYID:SECRET` or `ACCESSKEYID:SECRET:SESSIONTOKEN`, with which requests are
 * signed. Quirks: `region` (to sign for), `family` (`claude`, `nova`, `openai`, where the
 * model's id does not show it), `cache` (whether the model has one), `thinking`.
 */
export function bedrockConverseStream(config: ProviderConfig = {}): ApiProvider {
  return createProvider(FORMAT, config);
}

const FORMAT: ApiFormat = {
  api: "bedrock-converse-stream",
  writeRequest: writeRequest,
  formatMessages,
  loadFiles: async () => (await import("./files.ts")).FILES,
  loadOptions: async () => (await import("./options.ts")).OPTIONS,
  createReader: (out) => new Reader(out),
  createDecoder: createAwsDecoder,
};
