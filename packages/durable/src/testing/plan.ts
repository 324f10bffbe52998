import { Random } from "./random.ts";

/** `pay` has effects, `look` may run again, `sign` needs an approval, `check` knows what became of it. */
export type PlannedTool = "pay" | "look" | "sign" | "check";

export interface PlannedCall {
  readonly id: string;
  readonly tool: PlannedTool;
  readonly ms: number;
}

/** Something that is sent to a run while it goes on. */
export interface PlannedItem {
  readonly kind: "steering" | "followUp" | "abort";
  /** After as many results, or with the answer that would be the last. */
  readonly when: number | "last";
  /** The same again, under the same key. */
  readonly isTwice: boolean;
}

/** What a run is going to do: the seed and its id decide it, whichever worker asks. */
export interface RunPlan {
  /** The calls of each answer; the one behind them is a text. */
  readonly answers: readonly { readonly delayMs: number; readonly calls: readonly PlannedCall[] }[];
  readonly items: readonly PlannedItem[];
}

const MAX_TURNS = 4;
const MAX_CALLS = 3;
const MAX_MODEL_MS = 20;
const MAX_TOOL_MS = 30;

export function planRun(seed: number, id: string): RunPlan {
  const random = new Random(`${seed} ${id}`);
  const answers = Array.from({ length: random.between(1, MAX_TURNS) }, (_, turn) => ({
    delayMs: random.below(MAX_MODEL_MS),
    calls: Array.from({ length: random.between(1, MAX_CALLS) }, (_unused, index) => ({
      id: `t${turn}-${index}`,
      tool: pickTool(random),
      ms: random.chance(0.5) ? 0 : random.below(MAX_TOOL_MS),
    })),
  }));
  const items: PlannedItem[] = [];
  if (random.chance(0.3)) {
    const count = random.between(1, 3);
    for (let index = 0; index < count; index++) {
      const kind = random.pick(["steering", "followUp"] as const);
      items.push({ kind, when: random.below(3), isTwice: random.chance(0.5) });
    }
  }
  if (random.chance(0.3)) items.push({ kind: "followUp", when: "last", isTwice: false });
  if (random.chance(0.03)) items.push({ kind: "abort", when: random.below(3), isTwice: false });
  return { answers, items };
}

function pickTool(random: Random): PlannedTool {
  const share = random.next();
  if (share < 0.6) return "pay";
  if (share < 0.85) return "look";
  return share < 0.95 ? "check" : "sign";
}
