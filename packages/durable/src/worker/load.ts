import { totalmem } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";

/** How often the delay of the event loop is sampled. */
const SAMPLE_MS = 20;
/** A window that is over counts, until the next one is. */
const WINDOW_MS = 5_000;
const PERCENTILE = 99;
const NS_A_MS = 1e6;
const MEMORY_SHARE = 0.8;

export interface LoadLimits {
  /** How late the event loop may come to what is due: p99. */
  readonly maxLagMs: number;
  readonly maxRssBytes: number;
}

/** What the load of a process is read from. */
export interface LoadProbe {
  /** Milliseconds of a clock that only goes forward. */
  now(): number;
  rssBytes(): number;
  readonly delays: {
    enable(): unknown;
    disable(): unknown;
    reset(): void;
    /** In nanoseconds, from one sample to the next. */
    percentile(percentile: number): number;
  };
}

/** 80 % of what this process may have: of the machine, or of its container. */
export function findMaxRss(): number {
  // Without a limit it is 0, or more than any machine has.
  const limit = process.constrainedMemory();
  return MEMORY_SHARE * (limit > 0 ? Math.min(limit, totalmem()) : totalmem());
}

/** Whether a process has enough to do. One long calculation is not enough for that. */
export class LoadGauge {
  readonly #limits: LoadLimits;
  readonly #probe: LoadProbe;
  #windowAt: number;
  #lagMs = 0;

  constructor(limits: LoadLimits, probe: LoadProbe = probeProcess()) {
    this.#limits = limits;
    this.#probe = probe;
    this.#windowAt = probe.now();
  }

  start(): void {
    this.#windowAt = this.#probe.now();
    this.#probe.delays.enable();
  }

  stop(): void {
    this.#probe.delays.disable();
  }

  /** How late the event loop was in the last whole window, p99. */
  get lagMs(): number {
    const { delays } = this.#probe;
    const now = this.#probe.now();
    if (now - this.#windowAt >= WINDOW_MS) {
      this.#windowAt = now;
      this.#lagMs = Math.max(0, delays.percentile(PERCENTILE) / NS_A_MS - SAMPLE_MS);
      delays.reset();
    }
    return this.#lagMs;
  }

  /** Why it is to begin nothing more. */
  findOverload(): "lag" | "memory" | undefined {
    if (this.lagMs >= this.#limits.maxLagMs) return "lag";
    return this.#probe.rssBytes() >= this.#limits.maxRssBytes ? "memory" : undefined;
  }
}

function probeProcess(): LoadProbe {
  return {
    now: () => performance.now(),
    rssBytes: () => process.memoryUsage.rss(),
    delays: monitorEventLoopDelay({ resolution: SAMPLE_MS }),
  };
}
