import { createHash } from "node:crypto";
import {
  type AgentEndEvent,
  type AgentToolResult,
  explainEnd,
  lastText,
  type PendingCall,
} from "@gyre/agent";
import { toNewRun } from "../contract/new-run.ts";
import type { Finish, NewRun, RunEnd, RunRow, Timer } from "../contract/store.ts";
import type { Budget } from "./budget.ts";
import { readWait, type Wait } from "../tools/wait.ts";
import type { WaitingCall } from "../contract/types.ts";

/** How deep runs may work for runs. */
const MAX_DEPTH = 8;
/** How many runs a run may wait for at once. */
const MAX_CHILDREN = 100;
const DEPTH = "gyre.depth";
const MAX_NAME = 400;

/** What a call waits for, as it says itself: see `Wait`. */
export function toWaitingCall(call: PendingCall): WaitingCall {
  const wait = readWait(call);
  return { ...call, waitsFor: wait?.for ?? "decision" };
}

/**
 * What has to be stored so that calls that wait are answered: timers, and runs that work for them.
 * `depth`: how many runs this one works for, one for the other. `budget`: what they spend from.
 */
export function planWaits(
  run: RunRow,
  pending: readonly PendingCall[],
  depth: number,
  budget?: Budget,
): Required<Pick<Finish, "timers" | "children">> {
  const timers: Timer[] = [];
  const children: NewRun[] = [];
  const answer = (call: string, due: Timer["due"], result: AgentToolResult): void => {
    const data = JSON.stringify({ [call]: { type: "result", result } });
    timers.push({ key: `timer:${nameChild(run.id, call)}`, data, due });
  };
  for (const call of pending) {
    const wait = readWait(call);
    const { id } = call.toolCall;
    if (wait?.for === "timer") {
      const due = wait.at === undefined ? { inMs: wait.inMs ?? 0 } : { at: wait.at };
      answer(id, due, { content: [{ type: "text", text: wait.text }] });
    } else if (wait?.for === "child") {
      const refusal = refuseChild(depth, children.length);
      if (refusal === undefined) children.push(toChild(run, id, wait, depth, budget));
      else {
        const content = [{ type: "text" as const, text: refusal }];
        answer(id, { inMs: 0 }, { content, isError: true, outcome: "limit", reason: refusal });
      }
    }
  }
  return { timers, children };
}

function refuseChild(depth: number, count: number): string | undefined {
  if (depth >= MAX_DEPTH)
    return `Runs work for runs at most ${MAX_DEPTH} deep: do this part yourself.`;
  if (count >= MAX_CHILDREN) return `A run waits for at most ${MAX_CHILDREN} others at once.`;
  return undefined;
}

function toChild(
  run: RunRow,
  call: string,
  { agent, prompt, limits, pool = run.pool }: Extract<Wait, { for: "child" }>,
  depth: number,
  budget: Budget | undefined,
): NewRun {
  return toNewRun(prompt, {
    ...{ agent, pool, id: nameChild(run.id, call), tenant: run.tenant },
    parent: { run: run.id, call },
    meta: { [DEPTH]: String(depth + 1) },
    ...(limits && { limits }),
    ...(budget && { budget: JSON.stringify(budget) }),
    ...(run.traceparent !== undefined && { traceparent: run.traceparent }),
  });
}

/** The same for every attempt of a call. Ids of calls are a model's: they may be of any kind. */
function nameChild(run: string, call: string): string {
  const name = `${run}/${call}`;
  if (name.length <= MAX_NAME && /^[\w.:|-]*$/.test(call)) return name;
  const hash = createHash("sha256")
    .update(JSON.stringify([run, call]))
    .digest("hex");
  return `${run.length < MAX_NAME / 2 ? run : ""}/${hash}`;
}

/** How many runs a run works for, one for the other. */
export function readDepth({ meta }: RunRow): number {
  return meta === undefined ? 0 : Number(JSON.parse(meta)[DEPTH] ?? 0);
}

/** How the end of a run reaches the call that waits for it. */
export function planReport(run: RunRow, end: AgentEndEvent): RunEnd["report"] {
  if (!run.parent) return undefined;
  const problem = explainEnd("agent", end);
  const text = problem ?? (lastText(end.messages) || "(no answer)");
  const result: AgentToolResult = {
    content: [{ type: "text", text }],
    details: { run: run.id },
    ...(problem !== undefined && { isError: true, outcome: "error", reason: problem }),
    usage: end.usage,
  };
  return {
    run: run.parent.run,
    key: `child:${run.id}`,
    data: JSON.stringify({ [run.parent.call]: { type: "result", result } }),
  };
}

/** Whether a person answers a call: others wait for a run, or a time. */
export function waitsForPerson(call: PendingCall): boolean {
  return readWait(call) === undefined;
}
