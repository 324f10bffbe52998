import { Accumulator, AssistantMessageEventStream, type Model, type StreamFn } from "@gyre/ai";
import type { RawEvent } from "./floor.ts";

/** The same raw events for the floor and for us: one response, event by event. */
export type Source = () => AsyncIterable<RawEvent>;

export const benchModel: Model = { id: "bench", name: "Bench", api: "bench", provider: "bench" };

/** Deltas that arrive together, as a read from a socket brings them. */
const DELTAS_A_READ = 32;

/** The next read from the socket: the event loop gets its turn. */
function nextRead(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Text in `count` deltas, some with each read. */
export function textSource(count: number, delta = "word "): Source {
  return async function* () {
    for (let i = 0; i < count; i++) {
      if (i % DELTAS_A_READ === 0) await nextRead();
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
      if ((i / size) % DELTAS_A_READ === 0) await nextRead();
      yield { type: "arguments", delta: json.slice(i, i + size) };
    }
    yield { type: "end" };
  };
}

export function callSource(calls: readonly { id: string; name: string; json: string }[]): Source {
  return async function* () {
    await nextRead();
    for (const { id, name, json } of calls) {
      yield { type: "call", id, name };
      yield { type: "arguments", delta: json };
    }
    yield { type: "end" };
  };
}

/** A wire of ours over a source: what a provider does with what arrives, and no more. */
export function wire(next: (messages: number) => Source): StreamFn {
  return (model, context) => {
    const stream = new AssistantMessageEventStream();
    void pump(next(context.messages.length)(), new Accumulator(stream, model, 0));
    return stream;
  };
}

async function pump(source: AsyncIterable<RawEvent>, out: Accumulator): Promise<void> {
  let text = -1;
  let call = -1;
  for await (const event of source) {
    if (event.type === "text") {
      if (text < 0) text = out.textStart();
      out.text(text, event.delta);
    } else if (event.type === "call") {
      if (call >= 0) out.toolCallEnd(call);
      call = out.toolCallStart(event.id, event.name);
    } else if (event.type === "arguments") {
      out.toolCall(call, event.delta);
    } else {
      out.done(call >= 0 ? "toolUse" : "stop");
    }
  }
}
