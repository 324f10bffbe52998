import type { ToolCall } from "@gyre/ai";
import { warn } from "../contract/contain.ts";
import type { AgentTool, AgentToolResult } from "../contract/types.ts";
import type { Run } from "../run/run.ts";
import {
  type CallOutcome,
  executeCall,
  executeTool,
  interruptedResult,
  invoke,
  prepare,
} from "./tool-execution.ts";

/**
 * Asks the tool what became of a call that a crash cut off. The question passes no middleware, as
 * the call has passed it; a call that is run again does. `skip` gives the result that keeps it from
 * running. Never throws.
 */
export async function recoverCall(
  run: Run,
  call: ToolCall,
  skip: () => Promise<AgentToolResult | undefined>,
): Promise<CallOutcome> {
  const unknown = { result: interruptedResult(call) };
  const prepared = await report(call, () => prepare(run, call));
  if (!prepared || "result" in prepared) return unknown;
  const { tool } = prepared;
  let answer: "result" | "again" | undefined;
  const asked: AgentTool = {
    ...tool,
    async execute(args, context) {
      const given = await report(call, () => tool.recover?.(args, context));
      answer = given === undefined || given === "again" ? given : "result";
      return given ?? "";
    },
  };
  const outcome = await invoke(
    run,
    call,
    { tool: asked, args: prepared.args },
    undefined,
    (execution, toolCall, ready, depth) => executeTool(execution, { ...ready, toolCall }, depth),
  );
  if (answer === "result") return outcome;
  if (answer === undefined || run.canceled) return unknown;
  const skipped = await skip();
  return skipped ? { result: skipped } : executeCall(run, call);
}

/** What it gives; nothing where it throws, which leaves the outcome of the call unknown. */
async function report<T>({ name }: ToolCall, ask: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    warn(`recover of tool "${name}"`, error);
    return undefined;
  }
}
