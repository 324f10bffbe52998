import type { Model, ModelRequest, ModelResponse, ResponseStreamEvent } from "@openai/agents";
import type { Answer, Part, Work } from "../peer.ts";

/** The service's event for a piece of arguments, which the library hands on as it is. */
export const ARGUMENTS_DELTA = "response.function_call_arguments.delta";

type Output = Extract<ResponseStreamEvent, { type: "response_done" }>["response"]["output"];

/** Asks `answer` at each request of a run, and streams what it says. */
export class BenchModel implements Model {
  readonly #answer: Work["answer"];
  #asked = 0;

  constructor(answer: Work["answer"]) {
    this.#answer = answer;
  }

  getResponse(): Promise<ModelResponse> {
    throw new Error("This model only streams.");
  }

  getStreamedResponse({ signal }: ModelRequest): AsyncIterable<ResponseStreamEvent> {
    const nth = this.#asked++;
    return respond(this.#answer(nth), `response-${nth}`, signal);
  }
}

async function* respond(
  answer: Answer,
  id: string,
  signal?: AbortSignal,
): AsyncGenerator<ResponseStreamEvent> {
  const output: Output = [];
  let text = "";
  let call: { callId: string; name: string; arguments: string } | undefined;
  const endItem = (): void => {
    if (text !== "") {
      const content = [{ type: "output_text" as const, text }];
      output.push({ type: "message", role: "assistant", status: "completed", content });
    }
    if (call) output.push({ type: "function_call", status: "completed", ...call });
    text = "";
    call = undefined;
  };
  yield { type: "response_started" };
  const reads = new Reads(answer, signal);
  try {
    for (let parts = await reads.next(); parts; parts = await reads.next()) {
      for (const part of parts) {
        if (part.type === "text") {
          if (call) endItem();
          text += part.delta;
          yield { type: "output_text_delta", delta: part.delta };
        } else if (part.type === "call") {
          endItem();
          call = { callId: part.id, name: part.name, arguments: "" };
          const item = { type: "function_call", call_id: part.id, name: part.name };
          yield { type: "model", event: { type: "response.output_item.added", item } };
        } else {
          if (call) call.arguments += part.delta;
          const event = { type: ARGUMENTS_DELTA, delta: part.delta };
          yield { type: "model", event };
        }
      }
    }
  } finally {
    reads.close();
  }
  if (signal?.aborted) return;
  endItem();
  const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
  yield { type: "response_done", response: { id, usage, output } };
}

/** The reads of an answer until an abort, which ends even one that is awaited, as with fetch. */
class Reads {
  readonly #reads: AsyncIterator<readonly Part[]>;
  readonly #signal: AbortSignal | undefined;
  #end: (read: undefined) => void = () => {};
  readonly #abort = (): void => this.#end(undefined);

  constructor(answer: Answer, signal?: AbortSignal) {
    this.#reads = answer[Symbol.asyncIterator]();
    this.#signal = signal;
    signal?.addEventListener("abort", this.#abort);
  }

  next(): Promise<readonly Part[] | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#signal?.aborted) return resolve(undefined);
      this.#end = resolve;
      this.#reads.next().then(({ done, value }) => resolve(done ? undefined : value), reject);
    });
  }

  /** Listeners of many turns would pile up on the signal of the run. */
  close(): void {
    this.#signal?.removeEventListener("abort", this.#abort);
  }
}
