import { type ProtocolClient, type StreamOptions } from "../client/client.ts";
import { systemClock } from "../common/clock.ts";
import { AI_SDK_API } from "../convert/model-messages.ts";
import type { Context, Model } from "../messages/messages.ts";
import { Accumulator } from "../stream/accumulate.ts";
import { AssistantMessageEventStream } from "../stream/assistant-stream.ts";
import { explainError } from "./failure.ts";
import type { AiSdkLanguageModel } from "./language-model.ts";
import { writeCall } from "./prompt.ts";
import { AiSdkReader } from "./reader.ts";

export type { AiSdkCall, AiSdkLanguageModel } from "./language-model.ts";

export interface FromAiSdkOptions {
  /** What is known of the model: its window, its prices, whether it thinks. */
  facts?: Partial<Omit<Model, "api" | "provider" | "id">>;
  /** `providerOptions` of each call, by the name of the provider. */
  providerOptions?: object | ((options: StreamOptions) => object);
}

/** A model, and the client that asks it: both go to an agent. */
export interface AiSdkModel {
  model: Model;
  protocol: ProtocolClient;
}

/**
 * A language model of the AI SDK as a model here: `new Agent({ ...fromAiSdk(anthropic("…")) })`.
 * Texts, thinking, calls, images, usage, failures and aborts are those of our own clients; what a provider wants
 * back with a block is its signature. The key and the address are the provider's: `apiKey` of a
 * request is not used. The provider's own retries are not used either: the agent retries.
 * `thinkingLevel` reaches providers of version 4; for older ones, give `providerOptions`.
 */
export function fromAiSdk(
  languageModel: AiSdkLanguageModel,
  { facts, providerOptions }: FromAiSdkOptions = {},
): AiSdkModel {
  const { provider, modelId: id, specificationVersion } = languageModel;
  if (specificationVersion !== "v3" && specificationVersion !== "v4") {
    throw new TypeError(
      `The model ${id} has the specification ${String(specificationVersion)}: fromAiSdk takes v3 and v4, of AI SDK 6 and 7.`,
    );
  }
  const model: Model = { name: id, ...facts, id, provider, api: AI_SDK_API };
  return {
    model,
    protocol: {
      stream(asked, context, options) {
        const stream = new AssistantMessageEventStream();
        const more =
          typeof providerOptions === "function" ? providerOptions(options) : providerOptions;
        void new Exchange(stream, languageModel, asked, options).run(context, more);
        return stream;
      },
    },
  };
}

/** One request, and its response. */
class Exchange {
  readonly #stream: AssistantMessageEventStream;
  readonly #languageModel: AiSdkLanguageModel;
  readonly #model: Model;
  readonly #options: StreamOptions;
  readonly #out: Accumulator;
  readonly #control = new AbortController();
  #began = false;

  constructor(
    stream: AssistantMessageEventStream,
    languageModel: AiSdkLanguageModel,
    model: Model,
    options: StreamOptions,
  ) {
    this.#stream = stream;
    this.#languageModel = languageModel;
    this.#model = model;
    this.#options = options;
    const { clock = systemClock } = options;
    this.#out = new Accumulator(stream, model, clock.now());
  }

  /** Never rejects: an error ends the stream. */
  async run(context: Context, providerOptions: object | undefined): Promise<void> {
    const { clock = systemClock, signal, timeoutMs } = this.#options;
    const abort = (): void => {
      this.#out.fail("The request was aborted.", { kind: "aborted", retryable: false });
      this.#control.abort();
    };
    if (signal?.aborted) return abort();
    signal?.addEventListener("abort", abort, { once: true });
    const stopTimer =
      timeoutMs === undefined
        ? (): void => {}
        : clock.after(timeoutMs, () => {
            const why = `The response was not complete after ${timeoutMs} ms.`;
            this.#out.fail(why, { kind: "timeout", retryable: !this.#began });
            this.#control.abort();
          });
    try {
      await this.#ask(context, providerOptions);
    } catch (error) {
      this.#fail(error);
    } finally {
      stopTimer();
      signal?.removeEventListener("abort", abort);
    }
  }

  async #ask(context: Context, providerOptions: object | undefined): Promise<void> {
    const call = {
      ...writeCall(this.#languageModel, this.#model, context, this.#options),
      abortSignal: this.#control.signal,
      ...(providerOptions && { providerOptions }),
    };
    // Versions differ in the types of parts; `writeCall` writes those of this one.
    const { stream } = await this.#languageModel.doStream(call as never);
    const reader = stream.getReader();
    const parts = new AiSdkReader(this.#out);
    try {
      while (!this.#stream.closed) {
        const { done, value } = await reader.read();
        if (done) break;
        this.#began = true;
        const bad = parts.take(value);
        if (bad) this.#fail(bad.error);
      }
    } finally {
      // What is left of a response that ended is of no use; its error would be no news.
      void reader.cancel().catch(() => {});
    }
    if (this.#stream.closed) return;
    this.#out.fail("The response ended early.", { kind: "incomplete" });
  }

  #fail(error: unknown): void {
    const { clock = systemClock } = this.#options;
    const { message, failure } = explainError(error, this.#model, clock.now(), this.#began);
    this.#out.fail(message, failure);
  }
}
