import { Accumulator } from "../stream/accumulate.ts";
import { AssistantMessageEventStream } from "../stream/assistant-stream.ts";
import type { ProtocolClient, StreamFn } from "./client.ts";
import { systemClock } from "../common/clock.ts";
import { nearNames } from "../schema/near-names.ts";

/** One API format, ready to ask every service that uses it. */
export interface ApiProvider {
  /** The name that models carry in `model.api`. */
  api: string;
  stream: StreamFn;
}

/** The API formats that this process knows, by name. */
export class ApiRegistry {
  readonly #providers = new Map<string, ApiProvider>();

  /** Adds a format. Throws if the name is taken. */
  register(provider: ApiProvider): void {
    if (this.#providers.has(provider.api)) {
      throw new Error(`The api "${provider.api}" is registered already.`);
    }
    this.#providers.set(provider.api, provider);
  }

  get(api: string): ApiProvider | undefined {
    return this.#providers.get(api);
  }

  list(): ApiProvider[] {
    return [...this.#providers.values()];
  }
}

/** A client that calls the providers of `registry` in this process. */
export function createInProcessClient(registry: ApiRegistry): ProtocolClient {
  return {
    stream(model, context, options) {
      const provider = registry.get(model.api);
      if (provider) return provider.stream(model, context, options);
      const known = registry.list().map(({ api }) => api);
      const near = nearNames(model.api, known);
      const hint =
        near.length > 0
          ? `Did you mean ${near.join(", ")}?`
          : `Registered: ${known.join(", ") || "none"}.`;
      const stream = new AssistantMessageEventStream();
      const accumulator = new Accumulator(stream, model, (options.clock ?? systemClock).now());
      accumulator.fail(
        `No api "${model.api}" is registered, which model "${model.id}" needs. ${hint}`,
        {
          kind: "bad_request",
          retryable: false,
        },
      );
      return stream;
    },
  };
}
