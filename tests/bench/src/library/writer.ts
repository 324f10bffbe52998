import type { Accumulator } from "@gyre/ai";
import type { RawEvent } from "./floor.ts";

/** What is used of an accumulator, be it of the sources or of a package that is installed. */
type Out = Pick<
  Accumulator,
  "textStart" | "text" | "toolCallStart" | "toolCall" | "toolCallEnd" | "done"
>;

/** Does with raw events what a provider does with what arrives. */
export class Writer {
  readonly #out: Out;
  #text = -1;
  #call = -1;

  constructor(out: Out) {
    this.#out = out;
  }

  write(event: RawEvent): void {
    if (event.type === "text") {
      if (this.#text < 0) this.#text = this.#out.textStart();
      this.#out.text(this.#text, event.delta);
    } else if (event.type === "call") {
      if (this.#call >= 0) this.#out.toolCallEnd(this.#call);
      this.#call = this.#out.toolCallStart(event.id, event.name);
    } else if (event.type === "arguments") {
      this.#out.toolCall(this.#call, event.delta);
    } else {
      this.#out.done(this.#call >= 0 ? "toolUse" : "stop");
    }
  }
}
