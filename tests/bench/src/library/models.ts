import { Accumulator, AssistantMessageEventStream, type Model, type StreamFn } from "@gyre/ai";
import type { RawEvent } from "./floor.ts";
import { nextRead, PARTS_A_READ } from "./raw.ts";
import { Writer } from "./writer.ts";

/** The same raw events for the floor and for us: one response, event by event. */
export type Source = () => AsyncIterable<RawEvent>;

export const benchModel: Model = { id: "bench", name: "Bench", api: "bench", provider: "bench" };

/** Text in `count` deltas, some with each read. */
export function textSource(count: number, delta = "word "): Source {
  return async function* () {
    for (let i = 0; i < count; i++) {
      if (i % PARTS_A_READ === 0) await nextRead();
      yield { type: "text", delta };
    }
    yield { type: "end" };
  };
}

/** One call whose arguments come in pieces of `size` characters. */
export function argumentsSource(json: string, size: number): Source {
  return async function* () {
    yield { type: "call", id: "c1", name: "write" };
    for (let i = 0; i < json.length; i += size) {
      if ((i / size) % PARTS_A_READ === 0) await nextRead();
      yield { type: "arguments", delta: json.slice(i, i + size) };
    }
    yield { type: "end" };
  };
}

/** A wire of ours over a source: what a provider does with what arrives, and no more. */
export function wire(next: (messages: number) => Source): StreamFn {
  return (model, context) => {
    const stream = new AssistantMessageEventStream();
    void pump(next(context.messages.length)(), new Writer(new Accumulator(stream, model, 0)));
    return stream;
  };
}

async function pump(source: AsyncIterable<RawEvent>, out: Writer): Promise<void> {
  for await (const event of source) out.write(event);
}

/** A model of ours that emits at once: all of a response is there when it is asked for. */
export function instant(next: (messages: number) => readonly RawEvent[]): StreamFn {
  return (model, context) => {
    const stream = new AssistantMessageEventStream();
    const out = new Writer(new Accumulator(stream, model, 0));
    for (const event of next(context.messages.length)) out.write(event);
    return stream;
  };
}

/** The same for the floor, whose models are generators. */
export function instantSource(events: readonly RawEvent[]): Source {
  return async function* () {
    // Not `yield*`, which is slower here.
    for (const event of events) yield event;
  };
}
