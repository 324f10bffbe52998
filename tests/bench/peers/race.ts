import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { median } from "../src/measure/measure.ts";
import { type Behavior, BEHAVIORS } from "./behaviors.ts";
import { growthExponent } from "./measure.ts";
import type { Column } from "./peers.ts";
import {
  type BehaviorRow,
  type Cell,
  FLOOR,
  type GrowthRow,
  type ResultRow,
} from "../report/results.ts";
import type { Sample, Speed } from "./speed.ts";
import type { WorkerMessage } from "./worker.ts";

/** What takes longer is not measured, nor anything larger of its kind. */
const LIMIT_MS = 60_000;

/** What a worker says, or what became of one that says nothing more, or nothing in time. */
type Heard = WorkerMessage | { readonly type: "late" | "died" };

/** A worker, and the next thing that it says. */
class Worker {
  readonly #child: ChildProcess;

  constructor(...args: string[]) {
    this.#child = fork(fileURLToPath(new URL("./worker.ts", import.meta.url)), args, {
      execArgv: ["--expose-gc"],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
  }

  next(limitMs: number): Promise<Heard> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => finish({ type: "late" }), limitMs);
      const finish = (message: Heard): void => {
        clearTimeout(timer);
        this.#child.off("message", finish).off("exit", died);
        resolve(message);
      };
      const died = (): void => finish({ type: "died" });
      this.#child.on("message", finish).on("exit", died);
    });
  }

  take(): Promise<Heard> {
    this.#child.send("take");
    return this.next(LIMIT_MS);
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}

const LATE = `over ${LIMIT_MS / 1000} s`;

/** What a race is held with. */
export interface Race {
  readonly columns: readonly Column[];
  readonly rounds: number;
  /** The server of made-up streams. */
  readonly origin: string;
  /** Only whether it works: a small piece of work, and no warming up. */
  readonly quick: boolean;
}

/** The libraries on one work, in turns, size by size. */
export async function measureSpeed(
  speed: Speed,
  { columns, rounds, origin, quick }: Race,
): Promise<ResultRow[]> {
  const rows: ResultRow[] = [];
  /** Those that are out of the race, and why. */
  const out = new Map<string, string>();
  for (const size of quick ? [quickSize(speed)] : speed.sizes) {
    const samples = new Map<string, Sample[]>();
    const workers = new Map<string, Worker>();
    const start = async (id: string): Promise<Worker | undefined> => {
      const worker = new Worker(id, speed.name, String(size), origin, quick ? "cold" : "warm");
      const message = await worker.next(LIMIT_MS);
      if (message.type === "ready") return worker;
      worker.stop();
      out.set(id, formatNote(message));
      return undefined;
    };
    const inRace = (): string[] => columns.map(({ id }) => id).filter((id) => !out.has(id));
    if (!speed.isFresh) {
      for (const id of inRace()) {
        const worker = await start(id);
        if (worker) workers.set(id, worker);
      }
    }
    for (let round = 0; round < rounds; round++) {
      for (const id of inRace()) {
        const worker = workers.get(id) ?? (await start(id));
        if (!worker) continue;
        const message = await worker.take();
        if (speed.isFresh) worker.stop();
        if (message.type === "sample") {
          samples.set(id, [...(samples.get(id) ?? []), message.sample]);
        } else {
          out.set(id, formatNote(message));
        }
      }
      console.error(`${speed.name} ${size}: round ${round + 1} of ${rounds}`);
    }
    for (const worker of workers.values()) worker.stop();
    for (const { key, title, unit } of speed.rows(size)) {
      const cells = columns.map(({ id }): [string, Cell] => [
        id,
        computeCell(
          (samples.get(id) ?? []).map((sample) => sample[key] ?? Number.NaN),
          out.get(id),
        ),
      ]);
      rows.push({ case: speed.name, size, title, unit, cells: Object.fromEntries(cells) });
    }
    for (const [id, taken] of samples) {
      const lost = Math.max(...taken.map((sample) => sample["lost"] ?? 0));
      if (lost > 0) console.error(`${speed.name} ${size}: ${id} lost ${lost} deltas`);
    }
  }
  return rows;
}

/** What is measured in a process of its own has one size, and a large one. */
function quickSize({ sizes: [size = 1], isFresh }: Speed): number {
  return isFresh ? Math.ceil(size / 50) : size;
}

/** Why there is no figure. */
function formatNote(message: Heard): string {
  if (message.type === "late") return LATE;
  if (message.type === "died" || message.type === "none") return message.type;
  const reason = message.type === "failed" ? message.reason : message.type;
  console.error(reason);
  return "failed";
}

export function computeCell(samples: readonly number[], note: string | undefined): Cell {
  // A cell is the median of all rounds or of none.
  if (note !== undefined || samples.length === 0) return { note: note ?? "" };
  return { median: median(samples), low: Math.min(...samples), high: Math.max(...samples) };
}

/** How the time of each library grows with the size of the work. */
export function computeGrowth(speed: Speed, rows: readonly ResultRow[]): GrowthRow {
  const ids = Object.keys(rows[0]?.cells ?? {});
  const cells = ids.flatMap((id): [string, number][] => {
    const points = rows.flatMap(({ size, cells }) => {
      const time = cells[id]?.median;
      return time === undefined ? [] : [[size, time] as const];
    });
    return points.length < 2 ? [] : [[id, growthExponent(points)]];
  });
  const [from, to] = [speed.sizes[0], speed.sizes.at(-1)];
  const title = `growth of ${speed.name}, ${from?.toLocaleString("en")} to ${to?.toLocaleString("en")}`;
  return { case: speed.name, title, cells: Object.fromEntries(cells) };
}

/** What each library does after errors, each in a process of its own. */
export async function measureBehaviors(
  columns: readonly Column[],
  quick: boolean,
): Promise<BehaviorRow[]> {
  const rows: BehaviorRow[] = [];
  const racing = columns.filter(({ id }) => id !== FLOOR);
  for (const behavior of BEHAVIORS.filter(({ isWaiting }) => !(quick && isWaiting))) {
    const cells: Record<string, string> = {};
    const find = async ({ id }: Column): Promise<void> => {
      cells[id] = await observeBehavior(id, behavior);
    };
    if (behavior.isWaiting) await Promise.all(racing.map(find));
    else for (const column of racing) await find(column);
    console.error(`${behavior.name}: done`);
    rows.push({ name: behavior.name, title: behavior.title, cells });
  }
  return rows;
}

async function observeBehavior(id: string, { name, limitMs, late }: Behavior): Promise<string> {
  const worker = new Worker(id, "behave", name);
  const message = await worker.next(limitMs);
  worker.stop();
  if (message.type === "late") return late;
  if (message.type === "died") return "the process dies";
  return message.type === "behavior" ? message.found : formatNote(message);
}
