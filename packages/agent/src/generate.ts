import type { AnySchema, InferArguments } from "@gyre/ai";
import { checkShape } from "#checks";
import { Agent } from "./agent/agent.ts";
import { type AgentEnd, assertSucceeded, RunFailedError } from "./agent/answer.ts";
import type { AgentOptions } from "./agent/options.ts";
import type { PromptInput } from "./transcript/input.ts";

/** What is asked of a model once: the options of an agent, and the prompt. */
export interface GenerateOptions extends AgentOptions {
  prompt: PromptInput;
  signal?: AbortSignal;
}

/**
 * One answer, without an agent that is kept: its text, or with `output` a typed value. Tools are
 * run as in every run. Rejects with `RunFailedError` where the model fails, with `OutputError`
 * where it gives no value that fits, and with the reason of `signal` where that aborts it.
 */
export function generate(options: GenerateOptions): Promise<AgentEnd>;
export function generate<const S extends AnySchema>(
  options: GenerateOptions & { output: S },
): Promise<AgentEnd<InferArguments<S>>>;
export async function generate(
  given: GenerateOptions & { output?: AnySchema },
): Promise<AgentEnd<unknown>> {
  checkShape("generate", given);
  const { prompt, signal, output, ...options } = given;
  const run = { ...(signal && { signal }), ...(output && { output }) };
  const end: AgentEnd<unknown> = await new Agent(options).prompt(prompt, run);
  assertSucceeded(end);
  if (end.stop === "aborted") {
    signal?.throwIfAborted();
    throw new RunFailedError(end);
  }
  // Where there is none, this throws.
  void end.output;
  return end;
}
