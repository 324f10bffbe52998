import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { type RunSnapshot, RunStore, type StartRun } from "../store/run-store.ts";
import type { StoreOptions } from "../store/snapshot-feed.ts";

/** What a component gets: the newest snapshot of its run, and how to start and stop it. */
export interface UseRun<Input, Output>
  extends RunSnapshot<Output>, Pick<RunStore<Input, Output>, "start" | "abort"> {}

/**
 * One run at a time, for a page that is no conversation: `useRun((prompt: string, signal) => agent.run(prompt, { output,
 * signal }))`. `start(input)` starts it, in place of one that goes on. It is aborted when the component is unmounted.
 */
export function useRun<Input, Output = undefined>(
  startRun: StartRun<Input, Output>,
  options: StoreOptions = {},
): UseRun<Input, Output> {
  const [store] = useState(() => new RunStore(startRun, options));
  useEffect(() => {
    store.startRun = startRun;
  });
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);
  return useMemo(() => {
    const { start, abort } = store;
    return { ...snapshot, start, abort };
  }, [snapshot, store]);
}
