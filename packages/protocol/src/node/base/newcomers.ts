import type { Socket } from "node:net";

/**
 * Sockets that have not sent the token. When there are too many, the one that has been silent for
 * longest is cut off: a client that sends its token at once gets in, however many sockets say nothing.
 */
export class Newcomers {
  /** The oldest first. */
  readonly #sockets = new Set<Socket>();
  readonly #max: number;
  readonly #onCut: () => void;

  constructor(max: number, onCut: () => void) {
    this.#max = max;
    this.#onCut = onCut;
  }

  get size(): number {
    return this.#sockets.size;
  }

  add(socket: Socket): void {
    const [oldest] = this.#sockets;
    if (oldest && this.#sockets.size >= this.#max) {
      this.accept(oldest);
      oldest.destroy();
      this.#onCut();
    }
    this.#sockets.add(socket);
    socket.once("close", () => this.accept(socket));
  }

  /** It has sent the token, or is gone. */
  accept(socket: Socket): void {
    this.#sockets.delete(socket);
  }
}
