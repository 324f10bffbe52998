import type { OpenCount, WorkerRow } from "../contract/store.ts";

interface Sample {
  /** Of a histogram. */
  readonly suffix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric with its samples, for Prometheus. */
export interface Metric {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** Metrics in the text format that Prometheus reads. */
export function formatMetrics(metrics: readonly Metric[]): string {
  const lines = metrics.flatMap(({ name, type, help, samples }) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(
      ({ suffix = "", labels, value }) => `${name}${suffix}${formatLabels(labels)} ${value}`,
    ),
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
export interface StoreFigures {
  readonly counts: readonly OpenCount[];
  readonly workers: readonly WorkerRow[];
  readonly inboxMs: number;
  /** Of this process. */
  readonly notifications: number;
  readonly hasTenants: boolean;
}

export function listStoreMetrics(figures: StoreFigures): Metric[] {
  const { counts, workers, inboxMs, notifications, hasTenants } = figures;
  const readyMs = Math.max(0, ...counts.map((count) => count.readyMs ?? 0));
  const dead = workers.filter(({ leaseMs }) => leaseMs < 0).length;
  return [
    {
      name: "gyre_runs",
      type: "gauge",
      help: "Runs that have not ended.",
      samples: countRuns(counts, hasTenants),
    },
    {
      name: "gyre_ready_seconds",
      type: "gauge",
      help: "How long the oldest ready run has waited for a worker.",
      samples: [{ value: readyMs / 1_000 }],
    },
    {
      name: "gyre_inbox_age_seconds",
      type: "gauge",
      help: "How long the oldest message or decision that is due has waited to be delivered.",
      samples: [{ value: inboxMs / 1_000 }],
    },
    {
      name: "gyre_bus_notifications_total",
      type: "counter",
      help: "Notifications that this process has sent to others.",
      samples: [{ value: notifications }],
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

/** By status and agent, and by tenant only where that was asked for: there may be many. */
function countRuns(counts: readonly OpenCount[], hasTenants: boolean): Sample[] {
  const samples = new Map<string, { labels: Record<string, string>; value: number }>();
  for (const { status, agent, tenant, count } of counts) {
    const labels = { status, agent, ...(hasTenants && { tenant }) };
    const key = JSON.stringify(labels);
    const sample = samples.get(key) ?? { labels, value: 0 };
    samples.set(key, sample);
    sample.value += count;
  }
  return [...samples.values()];
}
