import type { AppendOutcome } from "../contract/store.ts";
import type { Metric } from "../runs/metrics.ts";
import type { ActivationOutcome } from "./activation.ts";

/** Upper bounds in seconds: from a fast disk to a database that is away. */
const COMMIT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const RUN_SECONDS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600];

/** How often values were below each of some bounds. */
class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #count = 0;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  get count(): number {
    return this.#count;
  }

  add(value: number): void {
    this.#count++;
    this.#sum += value;
    this.#bounds.forEach((bound, index) => {
      if (value <= bound) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    });
  }

  toMetric(name: string, help: string): Metric {
    const buckets = this.#bounds.map((bound, index) => ({
      suffix: "_bucket",
      labels: { le: String(bound) },
      value: this.#counts[index] ?? 0,
    }));
    return {
      ...{ name, help, type: "histogram" },
      samples: [
        ...buckets,
        { suffix: "_bucket", labels: { le: "+Inf" }, value: this.#count },
        { suffix: "_sum", value: this.#sum },
        { suffix: "_count", value: this.#count },
      ],
    };
  }
}

/** Counts what a worker does. */
export class WorkerMeter {
  claims = 0;
  readonly activations: Record<ActivationOutcome, number> = {
    ...{ ended: 0, parked: 0, released: 0, lost: 0 },
  };
  /** Sessions that were taken from dead workers, by how those were known to be dead. */
  readonly takeovers = { gone: 0, expired: 0 };
  lostAnswers = 0;
  modelRepeats = 0;
  readonly #interrupted = new Map<string, number>();
  readonly #commits = new Histogram(COMMIT_SECONDS);
  readonly #runs = new Histogram(RUN_SECONDS);

  /** A commit was made, or found to be made. */
  countCommit(ms: number, outcome: AppendOutcome | "woken"): void {
    if (outcome === "done" || outcome === "repeated") this.#commits.add(ms / 1_000);
    if (outcome === "repeated") this.lostAnswers++;
  }

  countInterrupted(tool: string): void {
    this.#interrupted.set(tool, (this.#interrupted.get(tool) ?? 0) + 1);
  }

  countRun(activeMs: number): void {
    this.#runs.add(activeMs / 1_000);
  }

  list({ live, beatAgeMs, overload }: WorkerState): Metric[] {
    const { ended, parked, released, lost } = this.activations;
    return [
      one("gyre_worker_live", "gauge", "Runs that the worker works on.", live),
      {
        ...{ name: "gyre_worker_overloaded", type: "gauge" },
        help: "Whether the worker claims nothing, and why.",
        samples: label("why", [
          ["lag", overload === "lag" ? 1 : 0],
          ["memory", overload === "memory" ? 1 : 0],
        ]),
      },
      one("gyre_claims_total", "counter", "Sessions that it has claimed.", this.claims),
      {
        ...{ name: "gyre_activations_total", type: "counter" },
        help: "Activations by how they ended; lost: another worker had the session.",
        samples: label("outcome", Object.entries({ ended, parked, released, lost })),
      },
      this.#runs.toMetric(
        "gyre_run_seconds",
        "Time that workers have spent on a run that has ended; waiting does not count.",
      ),
      one("gyre_commits_total", "counter", "Commits of steps.", this.#commits.count),
      this.#commits.toMetric(
        "gyre_commit_seconds",
        "Time of a commit, with what the store was away.",
      ),
      {
        ...{ name: "gyre_takeovers_total", type: "counter" },
        help: "Sessions that it took from dead workers; gone: the process was; expired: the lease was.",
        samples: label("why", Object.entries(this.takeovers)),
      },
      one("gyre_fenced_total", "counter", "Activations that another worker has taken over.", lost),
      one(
        ...(["gyre_lost_answers_total", "counter"] as const),
        ...(["Commits that were made, and whose answer was lost.", this.lostAnswers] as const),
      ),
      {
        ...{ name: "gyre_interrupted_total", type: "counter" },
        help: "Calls that had begun when their worker died, by tool.",
        samples: label("tool", [...this.#interrupted]),
      },
      one(
        ...(["gyre_model_repeats_total", "counter"] as const),
        "Requests that a dead worker may have made before: at most one for each takeover.",
        this.modelRepeats,
      ),
      one(
        ...(["gyre_heartbeat_age_seconds", "gauge"] as const),
        "Time since the last heartbeat that has reached the store was sent.",
        beatAgeMs / 1_000,
      ),
    ];
  }
}

/** What a worker is at the moment of a report. */
export interface WorkerState {
  readonly live: number;
  readonly beatAgeMs: number;
  readonly overload: "lag" | "memory" | undefined;
}

function one(name: string, type: Metric["type"], help: string, value: number): Metric {
  return { name, type, help, samples: [{ value }] };
}

function label(name: string, values: readonly (readonly [string, number])[]): Metric["samples"] {
  return values.map(([key, value]) => ({ labels: { [name]: key }, value }));
}
