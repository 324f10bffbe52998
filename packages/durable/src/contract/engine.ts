/**
 * Decides when and where a session is worked on. Default: the store itself. Whatever the engine
 * does, the store's claim, fence and inbox hold: it may call `activate` too often, and twice.
 */
export interface Engine {
  readonly name: string;
  /**
   * Has one of the workers activate a session. Called after the commit that made it ready. A wake
   * that is lost is found by the workers, about a second later.
   */
  wake(session: string, options: WakeOptions): Promise<void>;
  /** Begins to call `activate` with sessions of these pools, at most `concurrency` at once. */
  work(activate: Activate, options: EngineWorkOptions): Promise<EngineWork>;
  /** Releases connections. Called when the runs are closed. */
  close?(): Promise<void>;
}

/**
 * Works on a session until it waits or has nothing left to do; returns at once where there is nothing
 * to do now. `activation` identifies the call: the same again means that the engine takes the
 * worker that had it before for dead. Rejects where this worker stops.
 */
export type Activate = (session: string, activation: string) => Promise<void>;

export interface WakeOptions {
  /** Not before as many milliseconds. */
  readonly inMs?: number;
  /** Higher first. */
  readonly priority: number;
  readonly tenant: string;
  readonly pool: string;
  /** Wakes of one key count once. Without it each counts. */
  readonly key?: string;
}

export interface EngineWorkOptions {
  readonly concurrency: number;
  readonly pools: readonly string[];
}

export interface EngineWork {
  /** Activates nothing more. Resolves when what was activated has returned. */
  stop(): Promise<void>;
}
