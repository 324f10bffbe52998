import { type AssistantMessageEvent, type Clock, isLocalModel, type Model } from "@gyre/ai";
import { CONTENT_PHASES, type ContentPhase, type WatchdogOptions } from "../contract/types.ts";
import { type ContentTimeout, describePhase, type Silence } from "../run/silence.ts";

/** Thinking that is not shown, and arguments that a service withholds, take minutes. */
export const DEFAULT_CONTENT_MS = 900_000;
/** A wait is reported after this time, and each time that it has doubled. */
export const FIRST_REPORT_MS = 15_000;

interface WatchdogListeners {
  onSilence: (silence: Silence) => void;
  onTimeout: (timeout: ContentTimeout) => void;
}

/** Watches the content of a response, as its provider watches the connection. */
export class Watchdog {
  readonly #clock: Clock;
  readonly #contentMs: WatchdogOptions["contentMs"];
  /** A service on this machine may take any time to begin. */
  readonly #isLocal: boolean;
  /** No report and no timeout comes sooner than this after an event. */
  readonly #soonestMs: number;
  readonly #listeners: WatchdogListeners;
  #last: AssistantMessageEvent | undefined;
  #lastAt: number;
  #reportAfterMs = FIRST_REPORT_MS;
  #isPaused = false;
  #isStopped = false;
  /** When the timer fires. It is set again when that is too late, not with each event. */
  #dueAt = Number.POSITIVE_INFINITY;
  #stop: () => void = () => {};

  constructor(
    clock: Clock,
    model: Model,
    { contentMs }: WatchdogOptions,
    listeners: WatchdogListeners,
  ) {
    this.#clock = clock;
    this.#contentMs = contentMs;
    this.#isLocal = isLocalModel(model);
    this.#listeners = listeners;
    const limits = CONTENT_PHASES.map((phase) => this.#findLimit(phase, true).ms);
    this.#soonestMs = Math.min(FIRST_REPORT_MS, ...limits);
    this.#lastAt = clock.now();
    this.#arm();
  }

  /** An event has come. `start` shows that the service has begun, and brings no content. */
  observe(event: AssistantMessageEvent): void {
    this.#last = event;
    if (event.type !== "start") this.#restart();
  }

  /** Until `resume` nothing is overdue: the time that a sink takes is not the service's. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#restart();
  }

  /** For good: what comes later of the response sets no timer. */
  stop(): void {
    this.#stop();
    this.#isStopped = true;
  }

  #restart(): void {
    this.#lastAt = this.#clock.now();
    this.#reportAfterMs = FIRST_REPORT_MS;
    if (this.#lastAt + this.#soonestMs < this.#dueAt) this.#arm();
  }

  #arm(): void {
    if (this.#isStopped) return;
    this.#stop();
    const { ms } = this.#findLimit(describePhase(this.#last).phase, this.#last !== undefined);
    this.#dueAt = this.#lastAt + Math.min(this.#reportAfterMs, ms);
    this.#stop = this.#clock.after(this.#dueAt - this.#clock.now(), () => this.#check());
  }

  #check(): void {
    this.#dueAt = Number.POSITIVE_INFINITY;
    if (this.#isPaused) return;
    const hasBegun = this.#last !== undefined;
    const silence = describePhase(this.#last);
    const silentMs = this.#clock.now() - this.#lastAt;
    const { ms, option } = this.#findLimit(silence.phase, hasBegun);
    if (silentMs >= ms) {
      this.#listeners.onTimeout({ ...silence, silentMs, hasBegun, option });
      return;
    }
    if (silentMs >= this.#reportAfterMs) {
      this.#reportAfterMs *= 2;
      this.#listeners.onSilence({ ...silence, silentMs });
    }
    this.#arm();
  }

  #findLimit(phase: ContentPhase, hasBegun: boolean): { ms: number; option: string } {
    const given = this.#contentMs;
    const own = typeof given === "object" ? given[phase] : undefined;
    const standard = this.#isLocal && !hasBegun ? 0 : DEFAULT_CONTENT_MS;
    const ms = own ?? (typeof given === "number" ? given : standard);
    const option = `watchdog.contentMs${own === undefined ? "" : `.${phase}`}`;
    return { ms: ms > 0 ? ms : Number.POSITIVE_INFINITY, option };
  }
}
