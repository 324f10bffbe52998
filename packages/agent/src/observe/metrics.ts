import { type Clock, computeCost, systemClock } from "@gyre/ai";
import type { Middleware } from "../contract/middleware.ts";
import {
  modelAttributes,
  type OwnAttributes,
  present,
  resolveAttributes,
  serverAttributes,
  type TelemetryAttributes,
  usageAttributes,
} from "./attributes.ts";
import { createContainment, observe } from "./observe.ts";

/** What is used of an instrument of OpenTelemetry. */
export interface TelemetryHistogram {
  record(value: number, attributes?: TelemetryAttributes): void;
}

/** How an instrument of OpenTelemetry is described. */
export interface TelemetryMetricOptions {
  description?: string;
  unit?: string;
  advice?: { explicitBucketBoundaries?: number[] };
}

/** What is used of `@opentelemetry/api` for metrics: the module itself fits. */
export interface OpenTelemetryMetricsApi {
  readonly metrics: {
    getMeter(name: string): {
      createHistogram(name: string, options?: TelemetryMetricOptions): TelemetryHistogram;
    };
  };
}

export interface MetricsOptions {
  /** Default `@gyre/agent`. */
  meterName?: string;
  /** Attributes of your own. Every value of one makes another series: no ids of users or runs. */
  attributes?: OwnAttributes;
  /** For durations; the system's, if absent. */
  clock?: Clock;
}

/** The limits of the buckets are those that the conventions advise. */
const TOKEN_BUCKETS = Array.from({ length: 14 }, (_, power) => 4 ** power);
const SECOND_BUCKETS = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power);
/** Ours: from a hundredth of a cent to a hundred dollars. */
const COST_BUCKETS = [0.0001, 0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100];

/**
 * OpenTelemetry metrics by the conventions for generative AI, one record a request:
 * `gen_ai.client.token.usage`, with `gen_ai.token.type` `input` or `output`;
 * `gen_ai.client.operation.duration` and `gen_ai.client.operation.time_to_first_chunk` in seconds;
 * and of our own `gyre.client.operation.cost` in US dollars, where the price is known.
 *
 * @example
 * import * as api from "@opentelemetry/api";
 * new Agent({ middleware: [tracing(api), metrics(api)] });
 */
export function metrics(api: OpenTelemetryMetricsApi, options: MetricsOptions = {}): Middleware {
  const { meterName = "@gyre/agent", attributes: own = {}, clock = systemClock } = options;
  const meter = api.metrics.getMeter(meterName);
  const tokens = meter.createHistogram("gen_ai.client.token.usage", {
    description: "Number of input and output tokens used.",
    unit: "{token}",
    advice: { explicitBucketBoundaries: TOKEN_BUCKETS },
  });
  const seconds = (name: string, description: string): TelemetryHistogram =>
    meter.createHistogram(name, {
      description,
      unit: "s",
      advice: { explicitBucketBoundaries: SECOND_BUCKETS },
    });
  const duration = seconds("gen_ai.client.operation.duration", "Duration of a request.");
  const firstChunk = seconds(
    "gen_ai.client.operation.time_to_first_chunk",
    "Time from a request to the first content of its response.",
  );
  const cost = meter.createHistogram("gyre.client.operation.cost", {
    description: "Cost of a request at the prices of the catalog.",
    unit: "{USD}",
    advice: { explicitBucketBoundaries: COST_BUCKETS },
  });
  const nothing = { settled: () => {} };

  return observe(createContainment("Metrics"), {
    run: () => nothing,
    tool: () => nothing,
    withheld: () => {},
    model({ model, run }) {
      const startedAt = clock.now();
      let firstContentMs: number | undefined;
      let server = serverAttributes(model.baseUrl);
      return {
        firstContent() {
          firstContentMs ??= clock.now() - startedAt;
        },
        responded(url) {
          server = serverAttributes(url);
        },
        settled({ message, error }) {
          const { failure, servedModel, usage = {} } = message ?? {};
          const attributes = present({
            ...resolveAttributes(own, run),
            "gen_ai.operation.name": "chat",
            ...modelAttributes(model),
            "gen_ai.response.model": servedModel ?? (failure ? undefined : message?.model),
            ...server,
          });
          const type = error && { "error.type": error.kind };
          duration.record((clock.now() - startedAt) / 1000, { ...attributes, ...type });
          if (firstContentMs !== undefined) firstChunk.record(firstContentMs / 1000, attributes);
          const { "gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": output } =
            usageAttributes(usage);
          for (const [kind, count] of Object.entries({ input, output })) {
            if (typeof count !== "number") continue;
            tokens.record(count, { ...attributes, "gen_ai.token.type": kind });
          }
          const spent = (usage.cost ?? computeCost(usage, model.price))?.total;
          if (spent !== undefined) cost.record(spent, attributes);
        },
      };
    },
  });
}
