import { randomUUID } from "node:crypto";
import {
  type AgentToolResult,
  compose,
  type Middleware,
  type RunInfo,
  type ToolInvocation,
  toResult,
} from "@gyre/agent";
import { validateToolArguments } from "@gyre/ai";
import type { Toolset } from "@gyre/tools";

/** A call that the user makes, by a command of theirs. */
export interface UserCall {
  tool: string;
  args: Record<string, unknown>;
  signal: AbortSignal;
}

/**
 * Runs a tool for the user through the same guards as a call of the model, permissions among them. Nothing of it
 * is in the conversation. Rejects with `DeniedError` where it is not allowed, and as the tool does.
 */
export async function callTool(
  { tool: name, args, signal }: UserCall,
  { toolset, guards, run }: { toolset: Toolset; guards: readonly Middleware[]; run: RunInfo },
): Promise<AgentToolResult> {
  const tool = toolset.registry.get(name);
  const checked = await validateToolArguments(tool, args);
  if (!checked.ok) throw new Error(`${name} does not take these arguments: ${checked.error}`);
  const id = `user-${randomUUID()}`;
  const layers = guards.flatMap((guard) => (guard.tool ? [guard.tool.bind(guard)] : []));
  const host = {
    call: () => Promise.reject(new Error("A call of the user makes no further calls.")),
    key: id,
  };
  const execute = compose<ToolInvocation, AgentToolResult>(layers, async (call) => {
    const context = { id, signal: call.signal, update: () => {}, host, messages: [] };
    return toResult(name, await tool.execute(call.args, context));
  });
  const value = { ...checked.value };
  const toolCall = { type: "toolCall" as const, id, name, arguments: value };
  return execute({ toolCall, tool, args: value, signal, run });
}
