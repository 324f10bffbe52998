import { type Envelope, type Payload, SequenceCheck, type Transport } from "@gyre/protocol";

/** A client that sends one request after the other, and checks every frame that it gets. */
export class CheckingClient {
  /** Every frame, in order. */
  readonly frames: Envelope[] = [];
  readonly faults: unknown[] = [];
  isClosed = false;
  readonly #transport: Transport;
  readonly #sequences = new SequenceCheck();
  readonly #sent = new Map<string, number>();
  #waiting: { until: (frame: Envelope) => boolean; found: (frame: Envelope) => void }[] = [];
  readonly #name: string;
  #made = 0;

  constructor(transport: Transport, name = "m") {
    this.#transport = transport;
    this.#name = name;
    transport.receive({
      onFrame: (frame) => this.#take(frame),
      onFault: (error) => this.faults.push(error),
      onClose: () => (this.isClosed = true),
    });
  }

  /** Sends a frame as it is. */
  send(frame: Partial<Envelope> & { type: string }): string {
    const id = frame.id ?? `${this.#name}_${++this.#made}`;
    void this.#transport.send({ v: 1, payload: {}, ...frame, id });
    return id;
  }

  /** Sends a request, numbered if it is for a session. Settles with its answer. */
  request(type: string, payload: Payload = {}, stream?: string): Promise<Envelope> {
    const seq = stream === undefined ? undefined : (this.#sent.get(stream) ?? 0) + 1;
    if (stream !== undefined && seq !== undefined) this.#sent.set(stream, seq);
    const numbered = stream === undefined || seq === undefined ? {} : { stream, seq };
    const id = this.send({ type, payload, ...numbered });
    return this.next((frame) => frame.re === id);
  }

  /** As `request`; rejects where it is refused. */
  async ask(type: string, payload: Payload = {}, stream?: string): Promise<Payload> {
    const answer = await this.request(type, payload, stream);
    if (answer.type === "ack" || answer.type === "ready") return answer.payload;
    throw new Error(`${type}: ${JSON.stringify(answer.payload)}`);
  }

  /** The first frame that matches, of those that arrived or arrive later. */
  next(until: (frame: Envelope) => boolean, from = 0): Promise<Envelope> {
    const there = this.frames.slice(from).find(until);
    if (there) return Promise.resolve(there);
    return new Promise((found) => this.#waiting.push({ until, found }));
  }

  /** Sends `hello` and creates a session; settles with its id. */
  async create(options: Payload = {}): Promise<string> {
    await this.ask("hello", { versions: [1] });
    return String((await this.ask("session_create", options))["session"]);
  }

  /** The events of a stream, in order. */
  events(stream: string): Envelope[] {
    return this.frames.filter((frame) => frame.stream === stream && frame.seq !== undefined);
  }

  /** Forgets an ended stream: a new one of its name counts from 1. */
  forget(stream: string): void {
    this.#sent.delete(stream);
    this.#sequences.forget(stream);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  #take(frame: Envelope): void {
    const { stream, seq, from, type, payload } = frame;
    if (stream !== undefined && type === "snapshot") {
      this.#sequences.startAfter(stream, Number(payload["seq"]));
    } else if (stream !== undefined && seq !== undefined) {
      try {
        this.#sequences.accept(stream, seq, from);
      } catch (error) {
        this.faults.push(error);
      }
    }
    this.frames.push(frame);
    const ready = this.#waiting.filter(({ until }) => until(frame));
    this.#waiting = this.#waiting.filter((each) => !ready.includes(each));
    for (const { found } of ready) found(frame);
  }
}
