import type { ApiProvider } from "../../client/registry.ts";
import { JsonArrayDecoder } from "../../stream/json-array.ts";
import { Reader } from "./reader.ts";
import { writeRequest } from "./request.ts";
import { createProvider, type ProviderConfig } from "../http/exchange.ts";
import type { ApiFormat } from "../http/format.ts";

/**
 * Google's Gemini API, and Vertex AI, which speaks the same. Quirks: `generation` (a
 * number, where the id does not show it), `thinkingLevels` (those that the model takes),
 * `streamArguments` (true: a call's arguments come in pieces; Vertex AI only).
 */
export function googleGenerativeAi(config: ProviderConfig = {}): ApiProvider {
  return createProvider(FORMAT, config);
}

const FORMAT: ApiFormat = {
  api: "google-generative-ai",
  writeRequest: writeRequest,
  loadFiles: async () => (await import("./files.ts")).FILES,
  loadOptions: async () => (await import("./options.ts")).OPTIONS,
  createReader: (out, request) => new Reader(out, request),
  // Gateways that do not know `alt=sse` answer with one array.
  createDecoder: (onPayload, contentType) =>
    /\bjson\b/i.test(contentType) ? new JsonArrayDecoder(onPayload) : undefined,
};
