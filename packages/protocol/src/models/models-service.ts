import { type Clock, type Model, type ProtocolClient, systemClock } from "@gyre/ai";
import { IdempotencyCache } from "../server/idempotency-cache.ts";
import type { Connection, RequestHandler } from "../server/connection.ts";
import { ConnectionStreams, type FollowOptions } from "./connection-streams.ts";
import type { Envelope, Payload } from "../frames/envelope.ts";
import { IDLE_STREAM_MS, type Limits, LIMITS, ORPHAN_TTL_MS } from "../frames/limits.ts";
import { toModelFacts, parseFilter, isMatch } from "./model-facts.ts";
import { type AskModel, ModelStream } from "./model-stream.ts";
import { invalidRequest, ProtocolError, stoppingError } from "../frames/protocol-error.ts";
import { parseRequest } from "./request-payloads.ts";
import {
  type ServedConnection,
  WireServer,
  type WireServerOptions,
  type WireService,
} from "../server/service.ts";
import { makeStreamName } from "../frames/stream-name.ts";
import type { Transport } from "../transports/base/transport.ts";

/** How much of all ended streams is kept, in bytes. Above it the oldest are forgotten. */
export const MAX_ENDED_BYTES: number = 64 * 1024 * 1024;
/** How many ended streams are kept. */
export const MAX_ENDED_STREAMS = 10_000;

export interface ModelServiceOptions {
  /** Asks models, with keys that never leave the server. */
  client: ProtocolClient;
  /** The models that clients may list and ask. Called for each request. */
  models: () => readonly Model[] | Promise<readonly Model[]>;
  /**
   * Whether a client may send a key of its own with a request, which is used for that request
   * and is neither kept nor logged. Default: such a request is refused. Allow it only where clients come over TLS, or
   * from this machine.
   */
  clientKeys?: boolean;
  /** The models that a client with a key of its own may ask. Default: those of `models`. */
  modelsForClientKeys?: () => readonly Model[] | Promise<readonly Model[]>;
  /** Default `ORPHAN_TTL_MS`. */
  orphanTtlMs?: number;
  /** Default `IDLE_STREAM_MS`. */
  idleMs?: number;
  limits?: Partial<Limits>;
  clock?: Clock;
  /** Whether another service of the server has a stream of that name: no response can have it. */
  isTaken?: (id: string) => boolean;
  /** Errors that no client gets. */
  onError?: (error: unknown, where: string) => void;
}

/** Serves models on one transport, with a service and a server of its own. */
export function serveModels(
  transport: Transport,
  options: ModelServiceOptions & WireServerOptions,
): WireServer {
  const server = new WireServer([new ModelService(options)], options);
  server.serve(transport);
  return server;
}

/**
 * Models for any number of clients. A client names a model and sends a context; only the server
 * knows the service, its address and the key. A client that goes away may resume its streams.
 */
export class ModelService implements WireService {
  readonly #options: ModelServiceOptions;
  readonly #limits: Limits;
  readonly #clock: Clock;
  readonly #streams = new Map<string, ModelStream>();
  /** Ended streams, oldest first. */
  readonly #ended = new Map<ModelStream, number>();
  #endedBytes = 0;
  /** The cache for the answer to a request, which belongs to the stream that the request opens. */
  readonly #caches = new WeakMap<Envelope, IdempotencyCache>();
  #isClosed = false;

  constructor(options: ModelServiceOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#clock = options.clock ?? systemClock;
  }

  /** How many responses are streaming. */
  get running(): number {
    return this.#streams.size - this.#ended.size;
  }

  connect(connection: () => Connection): ServedConnection {
    const streams = new ConnectionStreams(connection, this.#limits.streams);
    return {
      handlers: this.#createHandlers(streams),
      findCache: (frame) => this.#findCache(frame),
      // The answer comes with the whole response: only silence ends that wait.
      findTimeoutMs: ({ type }) => (type === "complete_request" ? Infinity : undefined),
      onClose: () => streams.close(),
    };
  }

  /** Asks a model for a caller without a connection, which reads the events with `attach`. */
  async open(request: Payload): Promise<ModelStream> {
    const stream = this.#reserve(makeStreamName());
    const run = await this.#prepare(stream, request);
    run();
    return stream;
  }

  /** A response that is streaming, or ended recently. */
  find(id: string): ModelStream | undefined {
    return this.#streams.get(id);
  }

  /** Aborts all responses, and settles when they have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const streams = [...this.#streams.values()];
    for (const stream of streams) stream.abort();
    await Promise.all(streams.map(({ result }) => result));
    for (const stream of streams) stream.forget();
  }

  #createHandlers(streams: ConnectionStreams): Map<string, RequestHandler> {
    const onStream =
      (handler: RequestHandler): RequestHandler =>
      async (frame, ack) => {
        try {
          return await handler(frame, ack);
        } finally {
          // The number of the request was counted, also if it failed.
          if (frame.stream !== undefined) streams.note(frame.stream);
        }
      };
    return new Map<string, RequestHandler>([
      ["models", async ({ payload }) => this.#list(payload)],
      ["stream_request", onStream((frame, ack) => this.#stream(frame, streams, ack))],
      ["complete_request", onStream((frame) => this.#complete(frame, streams))],
      ["abort_request", onStream((frame, ack) => this.#abort(frame, ack))],
      ["resume", onStream((frame, ack) => this.#resume(frame, streams, ack))],
    ]);
  }

  async #stream(frame: Envelope, streams: ConnectionStreams, ack: () => void): Promise<void> {
    const stream = this.#reserve(readStreamName(frame), this.#caches.get(frame));
    const run = await this.#prepare(stream, frame.payload, streams);
    ack();
    run();
  }

  async #complete(frame: Envelope, streams: ConnectionStreams): Promise<Payload> {
    const stream = this.#reserve(frame.stream ?? makeStreamName(), this.#caches.get(frame));
    const run = await this.#prepare(stream, frame.payload, streams, { isSilent: true });
    run();
    return { message: await stream.result };
  }

  /** Aborting a stream that has ended or is unknown succeeds. */
  #abort(frame: Envelope, ack: () => void): void {
    const stream = this.#streams.get(readStreamName(frame));
    ack();
    stream?.abort();
  }

  #resume(frame: Envelope, streams: ConnectionStreams, ack: () => void): void {
    const name = readStreamName(frame);
    const stream = this.#streams.get(name);
    if (!stream) throw new ProtocolError("stream_not_found", `There is no stream "${name}".`);
    const { after } = frame.payload;
    if (typeof after !== "number") throw invalidRequest('"after" is the number of an event, or 0.');
    streams.follow(stream, after, { ack });
  }

  async #list(payload: Payload): Promise<Payload> {
    const filter = parseFilter(payload);
    const models = await this.#options.models();
    return { models: models.filter((model) => isMatch(model, filter)).map(toModelFacts) };
  }

  /** Whether a response of that name is known. */
  hasStream(id: string): boolean {
    return this.#streams.has(id);
  }

  /** Reserves a name at once, so that two requests do not share it. */
  #reserve(id: string, answers?: IdempotencyCache): ModelStream {
    if (this.#isClosed) throw stoppingError();
    if (this.#streams.has(id) || this.#options.isTaken?.(id)) {
      throw new ProtocolError("stream_exists", `There is a stream "${id}": use another name.`);
    }
    const { orphanTtlMs = ORPHAN_TTL_MS, idleMs = IDLE_STREAM_MS, onError } = this.#options;
    const { tailEvents, tailBytes } = this.#limits;
    const stream = new ModelStream(id, {
      clock: this.#clock,
      idleMs,
      orphanTtlMs,
      tailEvents,
      tailBytes,
      ...(answers && { answers }),
      onEnd: (ended) => this.#keep(ended),
      onForget: (forgotten) => this.#drop(forgotten),
      onError: (error, where) => onError?.(error, where),
    });
    this.#streams.set(id, stream);
    return stream;
  }

  /** Returns the function that asks the model. Throws where the request is refused. */
  async #prepare(
    stream: ModelStream,
    payload: Payload,
    streams?: ConnectionStreams,
    options: FollowOptions = {},
  ): Promise<() => void> {
    try {
      // Attached before the model is asked: a client that leaves meanwhile leaves a stream to resume.
      streams?.follow(stream, 0, options);
      const { model: wanted, context, options: asked, apiKey } = parseRequest(payload);
      if (apiKey !== undefined) this.#assertClientKeys();
      const model = await this.#findModel(wanted, apiKey !== undefined);
      const { client, clock } = this.#options;
      const shared = {
        ...asked,
        ...(clock && { clock }),
        ...(apiKey !== undefined && { apiKey }),
      };
      const ask: AskModel = (signal) => client.stream(model, context, { ...shared, signal });
      return () => stream.run(model, ask, apiKey === undefined ? [] : [apiKey]);
    } catch (error) {
      stream.forget();
      streams?.drop(stream.id);
      throw error;
    }
  }

  #assertClientKeys(): void {
    if (this.#options.clientKeys) return;
    throw new ProtocolError(
      "unauthorized",
      "This server takes no keys of clients: its operator allows them with `gyre serve --client-keys`. Without a key of its own, the request uses that of the server.",
    );
  }

  async #findModel(
    { provider, id }: Pick<Model, "provider" | "id">,
    hasKey: boolean,
  ): Promise<Model> {
    const { models: list, modelsForClientKeys = list } = this.#options;
    const models = await (hasKey ? modelsForClientKeys() : list());
    const model = models.find((each) => each.provider === provider && each.id === id);
    if (model) return model;
    const what = `There is no model "${provider}/${id}" here: "models" lists those there are.`;
    throw new ProtocolError("model_not_found", what);
  }

  #keep(stream: ModelStream): void {
    this.#ended.set(stream, stream.bytes);
    this.#endedBytes += stream.bytes;
    for (const oldest of this.#ended.keys()) {
      if (this.#endedBytes <= MAX_ENDED_BYTES && this.#ended.size <= MAX_ENDED_STREAMS) break;
      oldest.forget();
    }
  }

  #drop(stream: ModelStream): void {
    if (this.#streams.get(stream.id) === stream) this.#streams.delete(stream.id);
    this.#endedBytes -= this.#ended.get(stream) ?? 0;
    this.#ended.delete(stream);
  }

  /** A request for a response is done once, also if it is repeated on another connection. */
  #findCache(frame: Envelope): IdempotencyCache | undefined {
    const { type, stream } = frame;
    if (type !== "stream_request" && type !== "complete_request") return undefined;
    if (stream === undefined) return undefined;
    const memory = this.#streams.get(stream)?.answers ?? new IdempotencyCache();
    this.#caches.set(frame, memory);
    return memory;
  }
}

/** The name of a stream, in the envelope or in the payload. */
function readStreamName({ stream, payload }: Envelope): string {
  const name = stream ?? payload["stream"];
  if (typeof name === "string" && name !== "") return name;
  throw invalidRequest('"stream" is the name of a stream.');
}
