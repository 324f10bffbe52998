import type { Accumulator } from "../../stream/accumulate.ts";
import type { StreamOptions } from "../../client/client.ts";
import type { Clock } from "../../common/clock.ts";
import type { Context, Message, Model } from "../../messages/messages.ts";
import type { Framing, OnPayload } from "../../stream/sse.ts";
import type { Fetch } from "./fetch.ts";
import type { FormatFiles } from "../files/table.ts";
import type { FormatOptions } from "../options/table.ts";
import type { ServicePreset } from "../services/preset.ts";

/**
 * One API format: how a request is written and how a response is read. Everything that is the
 * same for all formats (keys, fetch, abort, timeouts, errors) is in `createProvider`.
 */
export interface ApiFormat {
  /** The name that models carry in `model.api`. */
  api: string;
  /** The service that has it of its own. Others are looked up in a table that is loaded when it is needed. */
  home?: ServicePreset;
  /** Called once for each request. What it throws ends the response as a `bad_request`. */
  writeRequest(request: RequestContext): ApiRequest;
  /** Called once for each response that has a status of success. */
  createReader(out: Accumulator, request: RequestContext): ResponseReader;
  /** The messages as the service takes them; needed for options that are about single messages. */
  formatMessages?: (messages: readonly Message[], model: Model) => object[];
  /**
   * Loads the table of the options that not every service has. Absent: `writeRequest` writes them,
   * or refuses them.
   */
  loadOptions?: () => Promise<FormatOptions>;
  /**
   * Loads the table of the files that it takes. Called for requests that have some. Absent: images
   * alone, with their contents, which come to `writeRequest` as they are.
   */
  loadFiles?: () => Promise<FormatFiles>;
  /** Splits a body of this content type into payloads. Nothing: server-sent events. */
  createDecoder?(onPayload: OnPayload, contentType: string): Framing | undefined;
}

/** Everything that a format needs to know of one request. */
export interface RequestContext {
  model: Model;
  context: Context;
  options: StreamOptions;
  service: ServicePreset;
  /** Without a slash at its end. */
  baseUrl: string;
  apiKey: string | undefined;
  clock: Clock;
}

/** One request as a format writes it. */
export interface ApiRequest {
  url: string;
  headers: Record<string, string>;
  /** Sent as JSON. */
  body: Record<string, unknown>;
  /** Returns what sends it in place of the `fetch` of the provider. */
  wrapFetch?: (fetch: Fetch) => Fetch;
  /** For `prefix` of the message that answers it. */
  prefix?: string;
  /** For services that want each request signed: returns all headers, with the signature. */
  sign?: (sent: {
    url: string;
    headers: Record<string, string>;
    body: string;
  }) => Promise<Record<string, string>>;
}

/**
 * Reads one response into the accumulator. It calls `out.done` when the service has reported the
 * end of the response. A `ProviderError` that it throws ends the response with that error. What
 * it does not know it counts (`out.unknown`) and skips.
 */
export interface ResponseReader {
  /** Called with each payload, in the order of arrival. */
  read(data: string, event: string | undefined): void;
  /**
   * Called when the body has ended, or when nothing came for a while after `finished`. Calls
   * `out.done` if the response is complete; the driver reports it as incomplete otherwise.
   */
  end(): void;
  /** True once only usage can follow. The driver then waits for it just a little. */
  readonly finished?: boolean;
}
