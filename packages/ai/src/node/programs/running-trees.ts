import type { ProcessTree } from "./process-tree.ts";

/** What runs now: ended with the process that we are. */
const running = new Set<ProcessTree>();

function killRunning(): void {
  for (const tree of running) tree.kill();
}

/** From here on a tree does not outlive us. */
export function watch(tree: ProcessTree): void {
  if (running.size === 0) process.on("exit", killRunning);
  running.add(tree);
}

/** It has ended, or is to be left alone. */
export function unwatch(tree: ProcessTree): void {
  running.delete(tree);
  if (running.size === 0) process.off("exit", killRunning);
}
