import type { Agent, MastraDBMessage } from "@mastra/core/agent";
import type { Outcome, Peer, Plain, Work } from "../peer.ts";
import { Tally } from "../tally.ts";
import { quietAgent } from "./agent.ts";
import { buildPrompt, toPlain } from "./messages.ts";
import { model } from "./model.ts";
import { toTool } from "./tool.ts";

const limits = { maxSteps: Infinity, toolCallConcurrency: Infinity };

/**
 * An agent of its own for each conversation, without memory, storage or a `Mastra`
 * around it, read by `fullStream`. Limits of steps (5 by default) and of tools at once
 * (10) are off; tools start before the answer has ended, as is the default.
 */
const mastra: Peer = {
  name: "Mastra",
  imports: ["@mastra/core/agent", "@mastra/core/tools", "zod"],
  run: (work) => run(work),
  async idle(work) {
    const agent = agentFor(work);
    const stream = await agent.stream(buildPrompt(work), limits);
    return { agent, messages: (await stream.getFullOutput()).messages };
  },
  anthropic: async (work) => (await import("./services.ts")).anthropic(work),
  openai: async (work) => (await import("./services.ts")).openai(work),
  // It knows no silence between chunks, only how long the whole answer may take.
  stallGuard: (work, ms) => run(work, { firstChunkMs: ms, stepMs: ms }),
  stallGuardLimits: "the whole answer",
};
export default mastra;

/**
 * The library does not throw what goes wrong while it streams: it is an `error` chunk,
 * and `error` of the result. Its messages have whole steps only; the text of a step that
 * was cut off is passed to `onAbort`, or is in the last of the `steps` after an error. They
 * also lack a text that is the same as one before it in the run, as do its prompts.
 * `onError` is no listener: it would get what the listener itself threw.
 */
async function run(
  work: Work,
  timeout?: { firstChunkMs: number; stepMs: number },
): Promise<Outcome> {
  const { listener, hook, signal } = work;
  const report = (event: string) => () => listener?.(event);
  const prompt = buildPrompt(work);
  const tally = new Tally();
  let cutOff = "";
  let messages = (): readonly MastraDBMessage[] => prompt;
  let failure: unknown;
  try {
    const stream = await agentFor(work).stream(prompt, {
      ...limits,
      ...(signal ? { abortSignal: signal } : {}),
      ...(hook ? { prepareStep: () => hook() } : {}),
      ...(timeout ? { modelSettings: { timeout } } : {}),
      onAbort({ text = "" }) {
        cutOff = text;
        listener?.("onAbort");
      },
      ...(listener
        ? {
            onChunk: ({ type }) => listener(type),
            onStepFinish: report("onStepFinish"),
            onFinish: report("onFinish"),
          }
        : {}),
    });
    messages = () => stream.messageList.get.all.db();
    for await (const chunk of stream.fullStream) {
      if (chunk.type === "text-delta") tally.text(chunk.payload.text);
      else if (chunk.type === "tool-call-delta") tally.argument();
      const wait = work.event?.();
      if (wait) await wait;
    }
    if (stream.error !== undefined) cutOff = await stream.steps.then(textOfLast, nothing);
  } catch (error) {
    failure = error;
  }
  const rest: Plain[] = cutOff === "" ? [] : [{ role: "assistant", text: cutOff }];
  return tally.outcome(() => [...messages().flatMap(toPlain), ...rest], failure);
}

/** The text of the step that an error cut off. */
function textOfLast(steps: readonly { finishReason?: string | undefined; text: string }[]): string {
  const last = steps.at(-1);
  return last?.finishReason === "error" ? last.text : "";
}

/** After an error outside of a step, the promise of the steps rejects. */
const nothing = (): string => "";

function agentFor(work: Work): Agent {
  const tools = (work.tools ?? []).map((tool) => [tool.name, toTool(tool)]);
  return quietAgent(model(work), Object.fromEntries(tools));
}
