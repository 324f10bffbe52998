import type { OpenCount, WorkerRow } from "../contract/store.ts";

interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric with its samples, for Prometheus. */
export interface Metric {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** Metrics in the text format that Prometheus reads. */
export function formatMetrics(metrics: readonly Metric[]): string {
  const lines = metrics.flatMap(({ name, type, help, samples }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(({ labels, value }) => `${name}${formatLabels(labels)} ${value}`),
  ]);
  return `${lines.join("\n")}\n`;
}

function formatLabels(labels: Sample["labels"] = {}): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** What a store has, whichever process asks. */
export function listStoreMetrics(
  counts: readonly OpenCount[],
  workers: readonly WorkerRow[],
): Metric[] {
  const readyMs = Math.max(0, ...counts.map((count) => count.readyMs ?? 0));
  const dead = workers.filter(({ leaseMs }) => leaseMs < 0).length;
  return [
    {
      name: "gyre_runs",
      type: "gauge",
      help: "Runs that have not ended.",
      samples: counts.map(({ status, agent, count }) => ({
        labels: { status, agent },
        value: count,
      })),
    },
    {
      name: "gyre_ready_seconds",
      type: "gauge",
      help: "How long the oldest ready run has waited for a worker.",
      samples: [{ value: readyMs / 1_000 }],
    },
    {
      name: "gyre_workers",
      type: "gauge",
      help: "Workers by whether their lease is over.",
      samples: [
        { labels: { state: "alive" }, value: workers.length - dead },
        { labels: { state: "expired" }, value: dead },
      ],
    },
  ];
}
