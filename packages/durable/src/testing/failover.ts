import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runs } from "../runs/runs.ts";
import { pause } from "./drive.ts";
import type { EngineSite } from "./engine.ts";
import { WorkerProcess, type WorkerProcessOptions } from "./processes.ts";
import { SCRIPTED_AGENT } from "./scripted-agent.ts";

const LOOK_MS = 2;
/** Whether a run has ended is asked after as many looks at the journals. */
const LOOKS = 50;

/** Two workers, of which the one that has a run is killed. */
export class FailoverPair {
  readonly #runs: Runs;
  readonly #options: WorkerProcessOptions;
  readonly #site: EngineSite | undefined;
  #workers: WorkerProcess[] = [];
  #count = 0;

  private constructor(runs: Runs, options: WorkerProcessOptions, site?: EngineSite) {
    this.#runs = runs;
    this.#options = options;
    this.#site = site;
  }

  /** `runs`: of the same store as the workers, and with the same engine. */
  static async start(
    runs: Runs,
    options: Omit<WorkerProcessOptions, "concurrency" | "engine">,
    site?: EngineSite,
  ): Promise<FailoverPair> {
    const pair = new FailoverPair(runs, { ...options, concurrency: 1 }, site);
    await pair.#fill();
    return pair;
  }

  /** Kills a worker that has a run. Resolves to the milliseconds until the other one has claimed it. */
  async kill(): Promise<number> {
    for (;;) {
      const ms = await this.#tryKill();
      await this.#fill();
      if (ms !== undefined) return ms;
    }
  }

  async end(): Promise<void> {
    for (const worker of this.#workers) await worker.kill();
  }

  async #fill(): Promise<void> {
    this.#workers = this.#workers.filter(({ isAlive }) => isAlive);
    while (this.#workers.length < 2) {
      const engine = await this.#site?.place();
      const options = { ...this.#options, ...(engine && { engine }) };
      this.#workers.push(await WorkerProcess.start(options));
    }
    // On a database a worker judges others after a lease of its own.
    if (!this.#options.url.startsWith("file:")) await pause(this.#options.leaseMs * 1.5);
  }

  /** Nothing where the run had ended before its worker was killed. */
  async #tryKill(): Promise<number | undefined> {
    const id = `failover-${process.pid}-${++this.#count}`;
    await this.#runs.start("Go.", { agent: SCRIPTED_AGENT, id });
    const first = await this.#findOwner(id);
    if (!first) return undefined;
    const from = performance.now();
    await first.kill();
    const second = await this.#findOwner(id, first);
    return second && performance.now() - from;
  }

  /** The worker that has claimed a session, by its journal. */
  async #findOwner(id: string, other?: WorkerProcess): Promise<WorkerProcess | undefined> {
    for (let looks = 1; ; looks++) {
      for (const worker of this.#workers) {
        if (worker === other) continue;
        const path = join(this.#options.folder, `${worker.pid}.jsonl`);
        const journal = await readFile(path, "utf8");
        if (journal.includes(`"claim","session":"${id}"`)) return worker;
      }
      if (looks % LOOKS === 0) {
        const { status } = await this.#runs.get(id).info();
        if (status === "ended" || status === "waiting") return undefined;
      }
      await pause(LOOK_MS);
    }
  }
}
