import type {
  AssistantMessage,
  AssistantMessageEventStream,
  Context,
  Model,
  ProtocolClient,
  StreamOptions,
} from "@gyre/ai";
import { connectUrl, type ConnectUrlOptions } from "../client/connect-url.ts";
import { type ModelFacts, type ModelFilter, parseModels } from "./model-facts.ts";
import { RemoteResponse } from "./remote-response.ts";
import { invalidRequest } from "../frames/protocol-error.ts";
import { toRequestPayload } from "./request-payloads.ts";
import { WireClient, type WireClientOptions } from "../client/wire-client.ts";
import type { WireClientApi } from "../client/client-api.ts";

/** What a client sends beside requests. */
export interface ClientKeyOptions {
  /**
   * Whether the `apiKey` of a request (what `getApiKey` of an agent gives) is sent to the server,
   * which has to allow it. An address has to be of this machine, or have TLS; a connection of the caller's own is the caller's to
   * judge. Default: a request with a key fails and is not sent.
   */
  clientKeys?: boolean;
}

/** An address, a client that the caller owns, or the options of a new one. */
export type RemoteClientOptions = ClientKeyOptions &
  (
    | ({ url: string } & ConnectUrlOptions & Omit<WireClientOptions, "connect">)
    | { peer: WireClientApi }
    | WireClientOptions
  );

const KEY_NOT_SENT =
  "The request has a key (apiKey, getApiKey), which is not sent to a server: create the client with `clientKeys: true` to send it, or leave it out to use the server's own key.";

/** Models that a server asks: to the loop it is a client like any other. */
export interface RemoteClient extends ProtocolClient {
  /** Of the model only `provider` and `id` are sent; headers are not, and keys with `clientKeys` alone. */
  stream(model: Model, context: Context, options?: StreamOptions): AssistantMessageEventStream;
  /** One response, whole. A failed one is a message too: look at `stopReason`. */
  complete(model: Model, context: Context, options?: StreamOptions): Promise<AssistantMessage>;
  /** The models that the server offers. Rejects with `ProtocolError`. */
  models(filter?: ModelFilter): Promise<ModelFacts[]>;
  /** Aborts all responses. A connection of its own is closed. */
  close(): Promise<void>;
}

/**
 * A client for models of a server. Its streams have the same events as those of a client in
 * process. They survive a connection that breaks; one that cannot be resumed ends with an error of
 * kind "network", and keeps its partial message.
 */
export function createRemoteClient(given: string | RemoteClientOptions): RemoteClient {
  const { clientKeys = false } = typeof given === "string" ? {} : given;
  const options = resolveOptions(given);
  const isOwn = !("peer" in options);
  const peer: WireClientApi = isOwn ? new WireClient(options) : options.peer;
  const ownClock = isOwn ? options.clock : undefined;
  const running = new Set<RemoteResponse>();

  const stream: RemoteClient["stream"] = (model, context, asked = {}) => {
    const { signal, clock = ownClock } = asked;
    const response: RemoteResponse = new RemoteResponse({
      client: peer,
      model,
      request: toRequestPayload(model, context, asked, { clientKeys }),
      ...(asked.apiKey !== undefined && !clientKeys && { refusal: KEY_NOT_SENT }),
      ...(signal && { signal }),
      ...(clock && { clock }),
      onEnd: () => running.delete(response),
    });
    running.add(response);
    response.start();
    return response.events;
  };

  return {
    stream,
    complete: (model, context, asked) => stream(model, context, asked).result(),
    async models(filter) {
      return parseModels(await peer.request("models", filter ? { filter } : {}));
    },
    async close() {
      for (const response of [...running]) {
        response.leave("The client was closed.", { kind: "aborted", retryable: false });
      }
      if (isOwn) await peer.close();
    },
  };
}

function resolveOptions(
  given: string | RemoteClientOptions,
): { peer: WireClientApi } | WireClientOptions {
  const { clientKeys = false, ...options } = typeof given === "string" ? { url: given } : given;
  if (!("url" in options)) return options;
  const { token, maxFrameBytes, url, ...more } = options;
  if (clientKeys) assertPrivate(url);
  const connect = connectUrl(url, {
    ...(token !== undefined && { token }),
    ...(maxFrameBytes !== undefined && { maxFrameBytes }),
  });
  return { ...more, connect };
}

/** Throws for an address at which others can read what is sent. */
function assertPrivate(url: string): void {
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const isLocal = host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
  if (isLocal || protocol === "https:" || protocol === "wss:") return;
  throw invalidRequest(
    `Keys are not sent to ${protocol}//${hostname}, where others can read them: use an address with TLS (https:, wss:), or of this machine.`,
  );
}
