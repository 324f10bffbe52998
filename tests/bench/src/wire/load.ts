import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** What both ends of the load have in common: a clock, pieces of text, delays, and orders. */

/** Which wire is measured: ours, or a WebSocket with nothing around it. */
export type Kind = "gyre" | "floor";

/** The clock of the system since it started; the same in every process, unlike `performance`. */
export function nowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

const US_A_MS = 1_000;
const DIGITS = 36;
const STAMP_CHARS = 9;
const COUNT_CHARS = 4;
const MAX_COUNT = DIGITS ** COUNT_CHARS;
/** How long a delta is: about three tokens. */
export const PIECE_CHARS: number = STAMP_CHARS + COUNT_CHARS + 1;

/** A delta that carries when it was due and which one of its stream it is. */
export function makePiece(dueMs: number, nth: number): string {
  const stamp = Math.round(dueMs * US_A_MS).toString(DIGITS);
  const count = (nth % MAX_COUNT).toString(DIGITS);
  return `${stamp.padStart(STAMP_CHARS, "0")}${count.padStart(COUNT_CHARS, "0")} `;
}

/** Delays in buckets, so that millions of them cost nothing to keep. */
export class Delays {
  static readonly #BUCKET_MS = 0.02;
  static readonly #BUCKETS = 250_000;
  readonly #counts = new Uint32Array(Delays.#BUCKETS);
  count = 0;

  add(delayMs: number, times = 1): void {
    const bucket = Math.max(0, Math.floor(delayMs / Delays.#BUCKET_MS));
    const at = Math.min(bucket, Delays.#BUCKETS - 1);
    this.#counts[at] = (this.#counts[at] ?? 0) + times;
    this.count += times;
  }

  /** In milliseconds. */
  percentile(share: number): number {
    let left = Math.ceil(this.count * share);
    for (const [bucket, count] of this.#counts.entries()) {
      left -= count;
      if (left <= 0 && this.count > 0) return (bucket + 1) * Delays.#BUCKET_MS;
    }
    return Number.NaN;
  }

  /** As pairs of a delay and how often it was; all is forgotten. */
  drain(): [delayMs: number, times: number][] {
    const found: [number, number][] = [];
    for (const [bucket, count] of this.#counts.entries()) {
      if (count > 0) found.push([(bucket + 0.5) * Delays.#BUCKET_MS, count]);
    }
    this.#counts.fill(0);
    this.count = 0;
    return found;
  }
}

/** One stream as it arrives: each piece once, in order, unchanged. */
export class ReceivedText {
  readonly #delays: Delays;
  /** Pieces that have come, and those of them that were not the next one. */
  pieces = 0;
  wrong = 0;

  constructor(delays: Delays) {
    this.#delays = delays;
  }

  /** Deltas may come joined. */
  take(delta: string, atMs: number): void {
    for (let from = 0; from < delta.length; from += PIECE_CHARS) {
      const dueMs = parseInt(delta.slice(from, from + STAMP_CHARS), DIGITS) / US_A_MS;
      const nth = parseInt(delta.slice(from + STAMP_CHARS, from + PIECE_CHARS - 1), DIGITS);
      if (nth !== this.pieces % MAX_COUNT) this.wrong++;
      this.pieces++;
      this.#delays.add(atMs - dueMs);
    }
  }
}

type Order = (...given: never[]) => unknown;

/** Does in a process what its parent asks for, one order after the other, until it leaves. */
export function obey(orders: Readonly<Record<string, Order>>): void {
  process.on("message", ([name, ...given]: [string, ...never[]]) => {
    void (async () => process.send?.({ answer: (await orders[name]?.(...given)) ?? null }))();
  });
  process.on("disconnect", () => process.exit());
}

/** A process of one end of the load. */
export class LoadProcess {
  readonly #child: ChildProcess;

  constructor(file: string, args: readonly string[]) {
    const path = fileURLToPath(new URL(file, import.meta.url));
    this.#child = fork(path, args, { execArgv: ["--expose-gc"], stdio: [0, 2, 2, "ipc"] });
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  /** Asks for something, and waits for what comes of it. */
  ask<T = void>(order: string, ...given: unknown[]): Promise<T> {
    return new Promise((resolve, reject) => {
      const died = (): void => reject(new Error(`The process died at "${order}".`));
      this.#child.once("exit", died);
      this.#child.once("message", ({ answer }: { answer: T }) => {
        this.#child.off("exit", died);
        resolve(answer);
      });
      this.#child.send([order, ...given]);
    });
  }

  end(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}
