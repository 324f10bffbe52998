import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Claim } from "@gyre/durable";
import { type ChaosOptions, runChaos } from "@gyre/durable/testing";
import { openBackend, type StoreName } from "./common/backend.ts";

/** A guard that is taken out of the built worker. */
interface Fault {
  readonly name: string;
  readonly backend: StoreName;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** The promises that do not hold without it. */
  readonly breaks: readonly string[];
  /** What brings it to light. */
  readonly chaos: Omit<ChaosOptions, "url" | "seed">;
}

const TIMEOUT_MS = 45_000;

const FAULTS: readonly Fault[] = [
  {
    name: "intent",
    ...{ backend: "sqlite", file: "worker/work.js" },
    from: "await log.flush();\n                // The log has the beginning of all others.",
    to: "",
    breaks: ["D5"],
    chaos: { runs: 150, failures: ["kill"], count: 12 },
  },
  {
    name: "steady rule",
    ...{ backend: "postgres", file: "worker/worker.js" },
    from: "const expired = isFresh && now - this.#steadySince > this.#leaseMs;",
    to: "const expired = true;",
    breaks: ["D14"],
    chaos: {
      ...{ runs: 80, failures: ["crash"], count: 4, leaseMs: 400 },
      // Each outage is longer than a lease.
      ...{ minAwayMs: 600, maxAwayMs: 2_000 },
    },
  },
  {
    name: "seq check",
    ...{ backend: "postgres", file: "postgres/step.js" },
    from: "status = 'running' and seq = $5",
    to: "status = 'running' and $5::bigint is not null",
    breaks: ["error", "D3", "end"],
    chaos: { runs: 100, failures: ["cut"], count: 8 },
  },
  {
    name: "lease thread",
    ...{ backend: "postgres", file: "postgres/lease-thread.js" },
    from: 'return now - beatAt < beatMs ? "wait" : "beat";',
    to: 'return "rest";',
    breaks: ["D13"],
    chaos: {
      ...{ runs: 100, failures: ["stall"], count: 8, leaseMs: 500 },
      ...{ stallMs: 10_000, maxStallMs: 2_000 },
    },
  },
  {
    name: "the database's clock",
    ...{ backend: "postgres", file: "postgres/workers.js" },
    from: "set lease = ${NOW} + $2, live = $3",
    to: "set lease = ${Date.now()} + $2, live = $3",
    breaks: ["D28"],
    chaos: { runs: 100, failures: ["skew"], count: 4 },
  },
  ...(["sqlite", "postgres"] as const).map((backend): Fault => ({
    name: "wake count",
    ...{ backend, file: `${backend}/step.js` },
    from: "if (seen !== undefined && row.wakes !== seen)",
    to: "if (seen === -1)",
    breaks: ["D16"],
    chaos: { runs: 150, failures: [] },
  })),
];

/** What a claim is compared by; a worker that has lost it must not write. */
const FENCES: Readonly<Record<StoreName, { file: string; from: string; to: string }>> = {
  sqlite: {
    file: "sqlite/step.js",
    from: "token = ? and claim = ? and owner = ? and",
    to: "? is not null and ? is not null and ? is not null and",
  },
  postgres: {
    file: "postgres/step.js",
    from: "token = $2 and claim = $3 and owner = $4 and",
    to: "$2::bigint is not null and $3::text is not null and $4::text is not null and",
  },
};

/** Without the fence a lost claim writes, as long as the new owner has not: D2 by one such write. */
async function tryFence(backend: StoreName, url: string): Promise<boolean> {
  const build = buildFaulty({ name: "fence", ...FENCES[backend] });
  try {
    const module: typeof import("@gyre/durable") = await import(
      pathToFileURL(join(build, "dist/index.js")).href
    );
    const runs = await module.openRuns(url);
    const { store } = runs;
    await runs.start("Go.", { agent: "a", id: "r" });
    const claim = async (worker: string): Promise<Claim | undefined> => {
      await store.register({ id: worker, agents: [], pools: [""], leaseMs: TIMEOUT_MS });
      const { claims } = await store.claim({
        ...{ worker, agents: ["a"], refused: [], pools: [""], limit: 1 },
        ...{ maxDeaths: 3, alone: true },
      });
      return claims[0];
    };
    const old = await claim("w1");
    await store.unregister("w1");
    await claim("w2");
    if (!old) throw new Error("There was nothing to claim.");
    const id = old.seq + 1;
    const row = { id, parentId: old.leaf, type: "message" as const, timestamp: 0, data: "{}" };
    const outcome = await store.append(old, { seq: old.seq, entries: [row], leaf: id });
    await runs.close();
    console.log(
      `  without fence: ${outcome === "fenced" ? "NOT FOUND" : `found by D2: a lost claim has written (${outcome})`}`,
    );
    return outcome !== "fenced";
  } finally {
    rmSync(build, { recursive: true });
  }
}

/** Takes out one guard after the other. Resolves to whether each of them was missed. */
export async function faults(backendName: StoreName, seed: number): Promise<boolean> {
  console.log(`faults: ${backendName}, seed ${seed}`);
  const backend = await openBackend(backendName);
  let isGood = true;
  try {
    isGood = await tryFence(backendName, await backend.create());
    for (const fault of FAULTS.filter((each) => each.backend === backendName)) {
      const build = buildFaulty(fault);
      try {
        const { findings: all, ms } = await runChaos({
          ...{ url: await backend.create(), seed, timeoutMs: TIMEOUT_MS, ...fault.chaos },
          ...{ workerModule: join(build, "dist/testing/worker-process.js") },
          ...(backend.server && { server: backend.server }),
        });
        const findings = all.filter(({ promise }) => fault.breaks.includes(promise));
        const promises = [...new Set(findings.map(({ promise }) => promise))].sort();
        const found = findings.length > 0 ? `found by ${promises.join(", ")}` : "NOT FOUND";
        const first = findings[0];
        console.log(
          `  without ${fault.name}: ${found} (${findings.length} findings, ${(ms / 1000).toFixed(1)} s)` +
            (first ? `, such as ${first.promise} ${first.run}: ${first.text.slice(0, 100)}` : ""),
        );
        isGood &&= findings.length > 0;
      } finally {
        rmSync(build, { recursive: true });
      }
    }
    return isGood;
  } finally {
    await backend.remove();
  }
}

/** A copy of the built package with the guard taken out. */
function buildFaulty({
  name,
  file,
  from,
  to,
}: Pick<Fault, "name" | "file" | "from" | "to">): string {
  const manifest = createRequire(import.meta.url).resolve("@gyre/durable/package.json");
  const build = mkdtempSync(join(tmpdir(), "gyre-faulty-"));
  cpSync(join(dirname(manifest), "dist"), join(build, "dist"), { recursive: true });
  cpSync(manifest, join(build, "package.json"));
  symlinkSync(join(dirname(manifest), "../../node_modules"), join(build, "node_modules"));
  const path = join(build, "dist", file);
  const text = readFileSync(path, "utf8");
  if (!text.includes(from)) throw new Error(`The guard "${name}" is not found in ${file}.`);
  writeFileSync(path, text.replace(from, to));
  return build;
}
