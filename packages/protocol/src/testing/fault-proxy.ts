import { connect, createServer, type Server, type Socket } from "node:net";
import { systemClock } from "@gyre/ai";
import { closeServer, listenOn, LOOPBACK } from "../node/base/listen.ts";

/** Of what a client sent, so much is kept to be sent again, in bytes. */
const MAX_KEPT_BYTES = 65_536;

/** From 0 to below 1. */
export type Random = () => number;

/** Numbers that look like chance and are the same for one seed. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d);
    mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** What becomes of one connection. Bytes are counted from its beginning. */
export interface Fault {
  /** So many bytes of the client come through, and then it is cut. */
  upBytes: number;
  /** So many bytes of the server come through, and then it is cut. */
  downBytes: number;
  /** How it is cut: with a reset, or with an end as if all were well. */
  isReset: boolean;
  /** Bytes go on in pieces of this length, each after so many turns of the event loop. */
  pieceBytes: number;
  delayTurns: number;
  /**
   * What the client had sent when it was cut: `lost`; `late`, on the old connection when the
   * next one is there; or `again`, all of it from the start, on a connection of its own.
   */
  rest: "lost" | "late" | "again";
}

export const NO_FAULT: Fault = {
  upBytes: Infinity,
  downBytes: Infinity,
  isReset: false,
  pieceBytes: Infinity,
  delayTurns: 0,
  rest: "lost",
};

/** Any fault; short connections are as likely as long ones. */
export function randomFault(random: Random, maxBytes = 16_384): Fault {
  const bytes = (): number => Math.floor(maxBytes ** random());
  const isUp = random() < 0.4;
  const isChopped = random() < 0.3;
  return {
    upBytes: isUp ? bytes() : Infinity,
    downBytes: isUp ? Infinity : bytes(),
    isReset: random() < 0.5,
    pieceBytes: isChopped ? 1 + Math.floor(64 * random()) : Infinity,
    delayTurns: random() < 0.3 ? Math.floor(4 * random()) : 0,
    rest: random() < 0.4 ? "lost" : random() < 0.5 ? "late" : "again",
  };
}

/** A TCP relay with scripted faults, exact to the byte. */
export class FaultProxy {
  /** What becomes of the next connection. */
  nextFault: () => Fault = () => NO_FAULT;
  /** Connections that were cut, and of those whose bytes came late or again. */
  readonly count = { connections: 0, cuts: 0, late: 0, again: 0 };
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Called when there is a new connection: those that were held back go on. */
  #held: (() => void)[] = [];
  #target = 0;
  #port = 0;

  private constructor() {
    this.#server = createServer({ allowHalfOpen: true }, (near) => this.#join(near));
  }

  static async open(): Promise<FaultProxy> {
    const proxy = new FaultProxy();
    proxy.#port = await listenOn(proxy.#server, { host: LOOPBACK, port: 0 });
    return proxy;
  }

  get port(): number {
    return this.#port;
  }

  /** Where it leads to. */
  to(port: number): void {
    this.#target = port;
  }

  close(): Promise<void> {
    return closeServer(this.#server, this.#sockets, systemClock, 0);
  }

  #join(near: Socket): void {
    const fault = this.nextFault();
    const far = this.#connect();
    this.#keep(near);
    this.count.connections++;
    const sent = new Beginning();
    let isCut = false;
    const cut = (unsent: Buffer): void => {
      if (isCut) return;
      isCut = true;
      this.count.cuts++;
      drop(near, fault.isReset);
      this.#treatRest(fault, far, sent.bytes, unsent);
    };
    const both = { ...fault, cut, isCut: () => isCut };
    pump(near, far, { ...both, bytes: fault.upBytes, seen: (piece) => sent.add(piece) });
    pump(far, near, { ...both, bytes: fault.downBytes, cut: () => cut(NOTHING) });
    const held = this.#held.splice(0);
    // They arrive in the midst of what the new one says.
    near.once("data", () => held.forEach((goOn) => goOn()));
  }

  #treatRest(fault: Fault, far: Socket, sent: Buffer, unsent: Buffer): void {
    if (fault.rest === "late") {
      this.count.late++;
      this.#held.push(() => {
        far.end(unsent);
        far.resume();
      });
      return;
    }
    drop(far, fault.isReset);
    if (fault.rest === "lost") return;
    this.count.again++;
    this.#held.push(() => {
      const again = this.#connect();
      again.resume();
      again.write(sent);
      this.#held.push(() => again.end());
    });
  }

  #connect(): Socket {
    return this.#keep(connect({ port: this.#target, host: LOOPBACK, allowHalfOpen: true }));
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
    return socket;
  }
}

interface PumpOptions extends Pick<Fault, "pieceBytes" | "delayTurns"> {
  /** So many come through. */
  bytes: number;
  /** They have; with what came and was not passed on. */
  cut: (unsent: Buffer) => void;
  isCut: () => boolean;
  seen?: (piece: Buffer) => void;
}

/** Passes on what comes, in order, until it is cut. */
function pump(from: Socket, into: Socket, options: PumpOptions): void {
  const { bytes, cut, isCut, seen, pieceBytes, delayTurns } = options;
  let left = bytes;
  let working: Promise<void> = Promise.resolve();
  const pass = async (chunk: Buffer): Promise<void> => {
    for (let at = 0; at < chunk.length;) {
      for (let turn = 0; turn < delayTurns; turn++) await systemClock.turn();
      if (isCut()) return;
      const piece = chunk.subarray(at, at + Math.min(pieceBytes, left));
      if (into.writable) into.write(piece);
      seen?.(piece);
      at += piece.length;
      left -= piece.length;
      if (left <= 0) return cut(chunk.subarray(at));
    }
  };
  from.on("data", (chunk: Buffer) => {
    from.pause();
    working = working.then(() => pass(chunk)).then(() => void from.resume());
  });
  const end = (): void => {
    void working.then(() => {
      if (!isCut()) into.end();
    });
  };
  from.on("end", end);
  // A peer that leaves without an end has cut the connection itself.
  from.on("close", end);
}

function drop(socket: Socket, isReset: boolean): void {
  if (isReset) socket.resetAndDestroy();
  else socket.destroySoon();
}

const NOTHING = Buffer.alloc(0);

/** The first bytes of what was sent. */
class Beginning {
  readonly #pieces: Buffer[] = [];
  #length = 0;

  get bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  add(piece: Buffer): void {
    if (this.#length > MAX_KEPT_BYTES) return;
    this.#length += piece.length;
    this.#pieces.push(piece);
  }
}
