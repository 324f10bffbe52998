import { type Outcome, type Plain, formatReason } from "./peer.ts";

/** What the consumer of a run has got so far, and the outcome that it comes to. */
export class Tally {
  #textDeltas = 0;
  #textChars = 0;
  #argumentDeltas = 0;

  text(delta: string): void {
    this.#textDeltas++;
    this.#textChars += delta.length;
  }

  argument(): void {
    this.#argumentDeltas++;
  }

  /** `messages` is called when they are needed. */
  outcome(messages: () => readonly Plain[], error?: unknown): Outcome {
    return {
      textDeltas: this.#textDeltas,
      textChars: this.#textChars,
      argumentDeltas: this.#argumentDeltas,
      get messages() {
        return messages();
      },
      ...(error === undefined ? {} : { error: formatReason(error) }),
    };
  }
}
