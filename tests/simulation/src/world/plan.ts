import type { AgentLoopConfig, QueueMode, SteeringPolicy, ToolExecutionMode } from "@gyre/agent";
import { Random } from "./random.ts";

/** How the loop is reached: through `Agent`, with a sink of our own, or as a stream. */
export type Entry = "agent" | "loop" | "stream";

export const HOOKS = [
  "transformContext",
  "convertToLlm",
  "getApiKey",
  "prepareTurn",
  "shouldStopAfterTurn",
] as const;
export type HookName = (typeof HOOKS)[number];

/** What a model tends to, so that the rarer limits are met as well. */
export type Mood = "plain" | "stubborn" | "pausing" | "cutting" | "busy";

export type PlanConfig = Pick<
  AgentLoopConfig,
  | "steering"
  | "toolExecution"
  | "maxToolConcurrency"
  | "toolTimeoutMs"
  | "abortGraceMs"
  | "limits"
  | "retry"
  | "watchdog"
  | "hookTimeoutMs"
  | "maxRetryDelayMs"
  | "middlewareTimeoutMs"
>;

/** Why a model cannot answer, and how often that is so. */
export interface Shortage {
  kind: "overloaded" | "quota" | "auth";
  rate: number;
}

/**
 * All that is decided before the first event. Each kind of fault is on in some
 * seeds and off in others, so that one fault does not hide behind another.
 */
export interface Plan {
  entry: Entry;
  config: PlanConfig;
  steeringMode: QueueMode;
  followUpMode: QueueMode;
  listenerTimeoutMs: number | undefined;
  sink: "none" | "instant" | "slow" | "faulty";
  listeners: readonly ("instant" | "slow" | "throwing" | "hanging")[];
  hooks: ReadonlySet<HookName>;
  hookFaults: number;
  modelFaults: number;
  toolFaults: number;
  queueFaults: number;
  middleware: boolean;
  modelMiddleware: boolean;
  middlewareFaults: number;
  mood: Mood;
  actions: number;
  horizonMs: number;
  /** How likely it is that the user acts while an event is being delivered. */
  reactive: number;
  /** How often the process dies. */
  crashes: number;
  /** Milliseconds of work that an event takes. */
  burnMs: number;
  /** Whether the journal's results are offered after a crash. */
  recorded: boolean;
  /** Ids of the models to fall back to. */
  fallbacks: readonly string[];
  /** By the id of a model. */
  shortages: ReadonlyMap<string, Shortage>;
  /** Providers that there is no key for. */
  keyless: ReadonlySet<string>;
}

export function drawPlan(seed: number): Plan {
  const random = new Random(seed, "plan");
  const rate = (): number => random.pick([0, 0, 0.1, 0.3, 0.6]);
  const entry: Entry = random.weighted({ agent: 70, loop: 22, stream: 8 });
  const hasSink = entry === "loop" || (entry === "agent" && random.chance(0.6));
  const sink = hasSink ? random.weighted({ instant: 5, slow: 3, faulty: 2 }) : "none";
  const scarcity = drawScarcity(seed);
  return {
    entry,
    config: drawConfig(random),
    steeringMode: random.pick<QueueMode>(["one-at-a-time", "all"]),
    followUpMode: random.pick<QueueMode>(["one-at-a-time", "all"]),
    listenerTimeoutMs: random.pick([undefined, 300, 2_000]),
    sink,
    listeners:
      entry === "agent"
        ? Array.from({ length: random.below(4) }, () =>
            random.weighted({ instant: 6, slow: 2, throwing: 1, hanging: 1 }),
          )
        : [],
    hooks: new Set(
      HOOKS.filter(
        (name) => random.chance(0.3) || (name === "getApiKey" && scarcity.keyless.size > 0),
      ),
    ),
    hookFaults: random.pick([0, 0, 0.02, 0.1]),
    modelFaults: rate(),
    toolFaults: rate(),
    queueFaults: random.pick([0, 0, 0.1, 0.3]),
    middleware: random.chance(0.55),
    modelMiddleware: random.chance(0.15),
    middlewareFaults: random.pick([0, 0.2, 0.5]),
    mood: random.weighted({ plain: 14, stubborn: 3, pausing: 1, cutting: 1, busy: 2 }),
    actions: random.between(3, 14),
    horizonMs: random.pick([300, 1_500, 6_000]),
    reactive: random.pick([0, 0, 0.01, 0.04]),
    crashes: hasSink && random.chance(0.4) ? random.between(1, 3) : 0,
    burnMs: random.pick([0, 0, 0, 1]),
    recorded: random.chance(0.5),
    ...scarcity,
  };
}

/** Models that are not to be had, and others to ask instead; in most seeds there is neither. */
function drawScarcity(seed: number): Pick<Plan, "fallbacks" | "shortages" | "keyless"> {
  const random = new Random(seed, "scarcity");
  if (random.chance(0.65)) return { fallbacks: [], shortages: new Map(), keyless: new Set() };
  const shortages = new Map<string, Shortage>();
  for (const id of ["m1", "m2", "m4"]) {
    if (random.chance(0.4)) continue;
    const kind = random.pick<Shortage["kind"]>(["overloaded", "quota", "auth"]);
    shortages.set(id, { kind, rate: random.pick([0.2, 0.6, 1]) });
  }
  return {
    fallbacks: random.pick([["m2"], ["m4"], ["m2", "m4"], ["m4", "m3"], ["m1", "m4", "m2"], []]),
    shortages,
    keyless: random.chance(0.3)
      ? new Set(["sim", "other", "third"].filter(() => random.chance(0.5)))
      : new Set(),
  };
}

function drawConfig(random: Random): PlanConfig {
  const config: PlanConfig = {};
  const some = <K extends keyof PlanConfig>(
    probability: number,
    key: K,
    draw: () => PlanConfig[K],
  ): void => {
    if (random.chance(probability)) config[key] = draw();
  };
  some(0.7, "steering", () =>
    random.pick<SteeringPolicy>(["skip-remaining", "after-batch", "redirect", "redirect"]),
  );
  some(0.7, "toolExecution", () =>
    random.pick<ToolExecutionMode>(["auto", "sequential", "parallel"]),
  );
  some(0.4, "maxToolConcurrency", () => random.between(1, 3));
  some(0.5, "toolTimeoutMs", () => random.pick([40, 400, 5_000]));
  some(0.4, "abortGraceMs", () => random.pick([0, 20, 1_000]));
  some(0.4, "hookTimeoutMs", () => random.pick([400, 5_000]));
  some(0.3, "middlewareTimeoutMs", () => random.pick([150, 3_000]));
  some(0.3, "maxRetryDelayMs", () => random.pick([500, 20_000]));
  some(0.4, "retry", () => ({
    maxRetries: random.below(4),
    baseDelayMs: random.pick([10, 200, 1_000]),
    maxDelayMs: random.pick([100, 1_000, 30_000]),
  }));
  some(0.5, "watchdog", () => ({
    contentMs: { response: random.pick([300, 2_000]), call: random.pick([200, 1_000]) },
  }));
  some(0.5, "limits", () => drawLimits(random));
  return config;
}

function drawLimits(random: Random): NonNullable<PlanConfig["limits"]> {
  const limits: NonNullable<PlanConfig["limits"]> = {};
  if (random.chance(0.4)) {
    limits[random.chance(0.8) ? "maxTurns" : "maxIterations"] = random.between(1, 5);
  }
  if (random.chance(0.25)) limits.maxTotalTokens = random.pick([150, 400, 1_000]);
  if (random.chance(0.25)) limits.maxCostUsd = random.pick([0.001, 0.004]);
  if (random.chance(0.25)) limits.maxDurationMs = random.pick([50, 400, 2_000, 20_000]);
  if (random.chance(0.4)) limits.maxIdenticalCalls = random.between(1, 4);
  return limits;
}
