/**
 * A process that measures one library: `worker.ts PEER CASE SIZE ORIGIN warm|cold`. It gets
 * ready, and warm if need be, says so, and then takes a sample each time it is asked.
 */
import { behave } from "./behaviors.ts";
import { formatReason } from "./peer.ts";
import { loadPeer } from "./peers.ts";
import { type Sample, SPEEDS } from "./speed.ts";

/** For how long a library is run before a sample counts, for the compiler to settle. */
const WARM_UP_MS = 2_000;
/** The same before each sample: a process that waits for its turn lets go of what it has compiled. */
const WARM_AGAIN_MS = 200;
const LONG_MS = 1_000;

/** What a worker says. */
export type WorkerMessage =
  | { readonly type: "ready" }
  | { readonly type: "none" }
  | { readonly type: "sample"; readonly sample: Record<string, number> }
  | { readonly type: "behavior"; readonly found: string }
  | { readonly type: "failed"; readonly reason: string };

const say = (message: WorkerMessage): void => void process.send?.(message);

const [id = "", name = "", size = "", origin = "", start = "warm"] = process.argv.slice(2);
try {
  await (name === "behave" ? reportBehavior(size) : measure());
} catch (error) {
  say({ type: "failed", reason: formatReason(error) });
}

async function measure(): Promise<void> {
  const speed = SPEEDS.find((one) => one.name === name);
  if (!speed) throw new Error(`There is no case "${name}".`);
  const peer = await loadPeer(id);
  const take = speed.prepare(peer, Number(size), { origin });
  if (!take) {
    say({ type: "none" });
    return;
  }
  const isWarm = !speed.isFresh && start === "warm";
  let lastMs = 0;
  const timedTake = async (): Promise<Sample> => {
    const began = performance.now();
    const sample = await take();
    lastMs = performance.now() - began;
    return sample;
  };
  const warmUp = async (ms: number): Promise<void> => {
    const until = performance.now() + ms;
    while (isWarm && performance.now() < until) await timedTake();
  };
  const sample = async (): Promise<Sample> => {
    // A long one warms itself up.
    if (lastMs < LONG_MS) await warmUp(WARM_AGAIN_MS);
    return timedTake();
  };
  await warmUp(WARM_UP_MS);
  process.on("message", () => {
    sample().then(
      (sample) => say({ type: "sample", sample: { ...sample } }),
      (error: unknown) => say({ type: "failed", reason: formatReason(error) }),
    );
  });
  say({ type: "ready" });
}

async function reportBehavior(behavior: string): Promise<void> {
  const peer = await loadPeer(id);
  say({ type: "behavior", found: await behave(peer, behavior) });
}
