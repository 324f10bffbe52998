/**
 * Decides which worker runs a session next. Default: the store itself. Whatever the engine does,
 * the store's claim, fence and inbox hold; it may call `activate` too often, and twice.
 */
export interface Engine {
  readonly name: string;
  /** Called after the commit that made a session ready. A wake that is lost is found by a sweep. */
  wake(session: string, options: { at?: Date; priority?: number; tenant?: string }): Promise<void>;
  /** Begins to work: calls `activate` with sessions, at most `concurrency` at once. */
  work(
    activate: (session: string) => Promise<void>,
    options: { concurrency: number },
  ): Promise<{ stop(): Promise<void> }>;
}
