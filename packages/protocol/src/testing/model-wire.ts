import { type Clock, type Model } from "@gyre/ai";
import {
  type ManualClock,
  manualClock,
  type ScriptedModel,
  type ScriptedModelOptions,
  scriptedModel,
  type ScriptFunction,
  type ScriptStep,
} from "@gyre/ai/testing";
import { decode, encode, type Envelope, type Payload } from "../frames/envelope.ts";
import { ModelService, type ModelServiceOptions } from "../models/models-service.ts";
import { createRemoteClient, type RemoteClient } from "../models/remote-client.ts";
import { WireServer, type WireServerOptions } from "../server/service.ts";
import {
  type Transport,
  type TransportHandler,
  createTransportPair,
} from "../transports/base/transport.ts";
import { WireClient } from "../client/wire-client.ts";

/** A way that can be cut at any moment: then what was under way is lost, both ways. */
export class CutWire implements Transport {
  readonly #inner: Transport;
  readonly #alter: (frame: Envelope) => Envelope | undefined;
  #handler: TransportHandler | undefined;
  #isCut = false;
  /** So many more frames come through, and then none. */
  framesLeft: number = Infinity;

  /** `alter` sees every frame, both ways, and says what becomes of it; nothing: it is lost. */
  constructor(inner: Transport, alter: (frame: Envelope) => Envelope | undefined) {
    this.#inner = inner;
    this.#alter = alter;
  }

  send(frame: Envelope): void {
    if (!this.#isCut) this.#pass(frame, (passed) => void this.#inner.send(passed));
  }

  receive(handler: TransportHandler): void {
    this.#handler = handler;
    this.#inner.receive({
      onFrame: (frame) => {
        if (this.#isCut) return;
        if (this.framesLeft-- <= 0) return this.cut();
        this.#pass(frame, (passed) => handler.onFrame(passed));
      },
      onFault: (error) => handler.onFault(error),
      onClose: (error) => this.#end(error),
    });
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  cut(): void {
    void this.#inner.close();
    this.#end(new Error("The wire was cut."));
  }

  #end(error: Error | undefined): void {
    if (this.#isCut) return;
    this.#isCut = true;
    this.#handler?.onClose(error);
  }

  #pass(frame: Envelope, to: (passed: Envelope) => void): void {
    const altered = this.#alter(decode(encode(frame)));
    if (altered) to(altered);
  }
}

export interface ModelWireOptions {
  script: readonly ScriptStep[] | ScriptFunction;
  scripted?: ScriptedModelOptions;
  service?: Partial<ModelServiceOptions>;
  server?: WireServerOptions;
  models?: readonly Model[];
  /** Of each connection: how many frames reach the client before it is cut. */
  cuts?: readonly number[];
}

/** A scripted model behind a server, and a client in front of it, over wires that can be cut. */
export class ModelWire {
  readonly clock: ManualClock = manualClock(1_000);
  readonly model: ScriptedModel;
  readonly service: ModelService;
  readonly server: WireServer;
  readonly peer: WireClient;
  readonly client: RemoteClient;
  /** All frames, both ways. */
  readonly frames: Envelope[] = [];
  readonly errors: unknown[] = [];
  readonly wires: CutWire[] = [];
  /** What becomes of each frame. */
  alter: (frame: Envelope) => Envelope | undefined = (frame) => frame;
  /** False: no client can connect. */
  isReachable: boolean = true;
  readonly #cuts: number[];

  constructor(options: ModelWireOptions) {
    const { script, scripted, service, server, models, cuts = [] } = options;
    const clock: Clock = this.clock;
    const onError = (error: unknown): void => void this.errors.push(error);
    this.#cuts = [...cuts];
    this.model = scriptedModel(script, { clock, ...scripted });
    const listed = models ?? [this.model.model];
    this.service = new ModelService({
      client: this.model,
      models: () => listed,
      clock,
      onError,
      ...service,
    });
    this.server = new WireServer([this.service], {
      clock,
      onError,
      ...(service?.limits && { limits: service.limits }),
      ...server,
    });
    this.peer = new WireClient({
      clock,
      random: () => 0.5,
      connect: async () => {
        if (!this.isReachable) throw new Error("There is no way.");
        const wire = this.wire();
        wire.framesLeft = this.#cuts.shift() ?? Infinity;
        return wire;
      },
    });
    this.client = createRemoteClient({ peer: this.peer });
  }

  /** A new way to the server. */
  wire(): CutWire {
    const [near, far] = createTransportPair();
    this.server.serve(far);
    const wire = new CutWire(near, (frame) => {
      this.frames.push(frame);
      return this.alter(frame);
    });
    this.wires.push(wire);
    return wire;
  }

  /** Cuts the newest connection. */
  cut(): void {
    this.wires.at(-1)?.cut();
  }

  /** The types of what was sent, by either end. */
  count(type: string): number {
    return this.frames.filter((frame) => frame.type === type).length;
  }
}

/** A client that a test drives frame by frame. */
export class FrameClient {
  /** What came, in order. */
  readonly frames: Envelope[] = [];
  readonly #transport: Transport;
  readonly #clock: ManualClock;
  readonly #sent = new Map<string, number>();
  #made = 0;

  constructor(transport: Transport, clock: ManualClock) {
    this.#transport = transport;
    this.#clock = clock;
    transport.receive({
      onFrame: (frame) => this.frames.push(frame),
      onFault: () => {},
      onClose: () => {},
    });
  }

  /** Sends a request, and gives what came of it, the answer first. */
  async ask(
    type: string,
    payload: Payload = {},
    more: Partial<Envelope> = {},
  ): Promise<Envelope[]> {
    const { stream } = more;
    const seq = (this.#sent.get(stream ?? "") ?? 0) + 1;
    if (stream !== undefined) this.#sent.set(stream, seq);
    const numbered = stream === undefined ? {} : { seq };
    const id = `m_${++this.#made}`;
    const from = this.frames.length;
    void this.#transport.send({ v: 1, type, payload, id, ...numbered, ...more });
    await this.#clock.advance(0);
    return this.frames.slice(from);
  }

  async hello(): Promise<this> {
    await this.ask("hello", { versions: [1] });
    return this;
  }

  /** The numbered frames of a stream. */
  events(stream: string): Envelope[] {
    return this.frames.filter((frame) => frame.stream === stream && frame.seq !== undefined);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }
}
