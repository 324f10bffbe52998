import { call, type ScriptAnswer } from "@gyre/ai/testing";
import type { AgentTool } from "@gyre/agent";
import { Random } from "../world/random.ts";

/** What happens in a world in which nothing dies. */
export interface Plan {
  /** What the model says, turn by turn; then a text. */
  turns: readonly ScriptAnswer[];
  calls: readonly { id: string; name: string }[];
  /** The call at whose end the user steers, or queues a follow-up. */
  steersAt: string | undefined;
  followsAt: string | undefined;
  maxTurns: number | undefined;
}

const WEIGHTS = { pay: 5, read: 3, note: 3, sign: 2, bye: 1 };

export function makePlan(seed: number): Plan {
  const random = new Random(seed, "deaths");
  const calls: { id: string; name: string }[] = [];
  const turns = Array.from({ length: random.between(1, 4) }, (_, turn): ScriptAnswer => {
    if (random.chance(0.15)) return { parts: [`Pause ${turn}.`], stopReason: "pause" };
    const endsAll = random.chance(0.1);
    return Array.from({ length: random.between(1, 4) }, (__, at) => {
      const name = endsAll ? "bye" : random.weighted(WEIGHTS);
      const id = `t${turn}c${at}`;
      calls.push({ id, name });
      return call(name, {}, id);
    });
  });
  const pick = (chance: number): string | undefined =>
    calls.length > 0 && random.chance(chance) ? random.pick(calls).id : undefined;
  return {
    turns,
    calls,
    steersAt: pick(0.4),
    followsAt: pick(0.4),
    maxTurns: random.chance(0.3) ? random.between(1, 4) : undefined,
  };
}

export const IDEMPOTENT: ReadonlySet<string> = new Set(["read"]);

/** `act` is called when a tool has its effect. */
export function makeTools(act: (id: string) => void): AgentTool[] {
  const make = (name: string, more: Partial<AgentTool> = {}): AgentTool => ({
    name,
    description: name,
    parameters: { type: "object" },
    idempotent: IDEMPOTENT.has(name),
    execute: (_args, { id }) => {
      act(id);
      return { content: [{ type: "text", text: `${name} ${id}` }], terminate: name === "bye" };
    },
    ...more,
  });
  return [
    make("pay", { concurrent: true }),
    make("read", { concurrent: true }),
    make("note"),
    make("sign", { needsApproval: true }),
    make("bye"),
  ];
}
