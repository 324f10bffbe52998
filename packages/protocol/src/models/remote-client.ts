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
import { toRequestPayload } from "./request-payloads.ts";
import { WireClient, type WireClientOptions } from "../client/wire-client.ts";
import type { WireClientApi } from "../client/client-api.ts";

/** An address, a client that the caller owns, or the options of a new one. */
export type RemoteClientOptions =
  | ({ url: string } & ConnectUrlOptions & Omit<WireClientOptions, "connect">)
  | { peer: WireClientApi }
  | WireClientOptions;

/** Models that a server asks: to the loop it is a client like any other. */
export interface RemoteClient extends ProtocolClient {
  /** Of the model only `provider` and `id` are sent; keys and headers are not. */
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
      request: toRequestPayload(model, context, asked),
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
  const options = typeof given === "string" ? { url: given } : given;
  if (!("url" in options)) return options;
  const { token, maxFrameBytes, url, ...more } = options;
  const connect = connectUrl(url, {
    ...(token !== undefined && { token }),
    ...(maxFrameBytes !== undefined && { maxFrameBytes }),
  });
  return { ...more, connect };
}
