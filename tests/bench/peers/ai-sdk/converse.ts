import {
  consumeStream,
  convertToModelMessages,
  isLoopFinished,
  type ModelMessage,
  type StreamTextResult,
  type Tool as SdkTool,
  type ToolSet,
  tool as sdkTool,
  toUIMessageStream,
  zodSchema,
} from "ai";
import { z } from "zod";
import { once } from "../once.ts";
import type { Outcome, Tool, Work } from "../peer.ts";
import { Tally } from "../tally.ts";
import { buildPrompt, toPlain } from "./messages.ts";
import { createModel } from "./model.ts";

/*
 * The AI SDK as its documentation has it: `streamText`, or `ToolLoopAgent`, which calls
 * it, read to the end of `stream`. Tools of one step run at once by default, and nothing
 * is traced unless an integration is registered. `experimental_streamTextLowMemory` is
 * documented for memory, not for speed; it takes a sixth less time for plain text and as
 * much for turns, but is experimental and drops all that a result keeps.
 */

/** What is asked of either API: its settings, and what belongs to the one call. */
export interface Call {
  readonly settings: ReturnType<typeof buildSettings>;
  readonly options: {
    messages: ModelMessage[];
    abortSignal?: AbortSignal;
    timeout?: { firstChunkMs: number; chunkMs: number };
  };
  readonly listener: ((event: string) => void) | undefined;
}

/** The part of a result that is read. */
export type Stream = Pick<StreamTextResult<ToolSet, Record<string, unknown>, never>, "stream">;

/** Begins a run with one of the two APIs. */
export type Start = (call: Call) => Stream | Promise<Stream>;

/**
 * One run. The library does not throw what goes wrong while it streams: a failed request
 * is an `error` part and an abort, be it the caller's or a timeout, an `abort` part; only
 * a stream that breaks throws. Neither API keeps the conversation, so what was given is
 * as the caller has it.
 */
export async function run(work: Work, start: Start, stallMs?: number): Promise<Outcome> {
  const { tally, failure, added } = await converse(work, start, stallMs);
  const given = work.history ?? [];
  return tally.outcome(
    () => [...given, { role: "user", text: "go" }, ...added.flatMap(toPlain)],
    failure,
  );
}

/** The conversation after `work`. */
export async function historyAfter(work: Work, start: Start): Promise<readonly ModelMessage[]> {
  const { added } = await converse(work, start);
  return [...buildPrompt(work), ...added];
}

async function converse(
  work: Work,
  start: Start,
  stallMs?: number,
): Promise<{ tally: Tally; failure: unknown; added: readonly ModelMessage[] }> {
  const added: ModelMessage[] = [];
  const tally = new Tally();
  let result: Stream | undefined;
  let [cut, failure]: [boolean, unknown] = [false, undefined];
  try {
    result = await start({
      settings: buildSettings(work, added),
      options: {
        messages: buildPrompt(work),
        ...(work.signal ? { abortSignal: work.signal } : {}),
        ...(stallMs === undefined ? {} : { timeout: { firstChunkMs: stallMs, chunkMs: stallMs } }),
      },
      listener: work.listener,
    });
    for await (const part of result.stream) {
      if (part.type === "text-delta") tally.text(part.text);
      else if (part.type === "tool-input-delta") tally.argument();
      else if (part.type === "error" || part.type === "abort") cut = true;
      const wait = work.event?.();
      if (wait) await wait;
    }
  } catch (error) {
    failure = error;
  }
  return { tally, failure, added: cut && result ? await partial(result, added) : added };
}

/**
 * What was streamed up to the cut. The callbacks only report whole steps, but a result
 * can be read again, and as a message of the UI it has the broken step as well. A stream
 * that threw cannot be read again: of that, only the whole steps are left.
 */
async function partial(result: Stream, whole: ModelMessage[]): Promise<ModelMessage[]> {
  let messages = whole;
  const stream = toUIMessageStream({
    stream: result.stream,
    async onEnd({ responseMessage }) {
      messages = await convertToModelMessages([responseMessage]);
    },
  });
  await consumeStream({ stream });
  return messages;
}

function buildSettings(work: Work, added: ModelMessage[]) {
  const { listener, hook } = work;
  const report = (event: string) => () => listener?.(event);
  return {
    model: createModel(work),
    tools: Object.fromEntries((work.tools ?? []).map((tool) => [tool.name, toTool(tool)])),
    // By default a call ends after one step, and an agent after 20.
    stopWhen: isLoopFinished(),
    ...(hook ? { prepareStep: () => hook() as undefined } : {}),
    // It is also an error part; without a callback it would be printed.
    onError: report("onError"),
    // Reading `responseMessages` of the result instead would stream it all once more.
    onStepEnd(step: { response: { messages: ModelMessage[] } }): void {
      added.push(...step.response.messages);
      listener?.("onStepEnd");
    },
    ...(listener
      ? {
          onStart: report("onStart"),
          onStepStart: report("onStepStart"),
          onLanguageModelCallStart: report("onLanguageModelCallStart"),
          onLanguageModelCallEnd: report("onLanguageModelCallEnd"),
          onToolExecutionStart: report("onToolExecutionStart"),
          onToolExecutionEnd: report("onToolExecutionEnd"),
          onStepError: report("onStepError"),
          onAbort: report("onAbort"),
          onEnd: report("onEnd"),
        }
      : {}),
  };
}

/**
 * A tool is made once, as it would be at the top of a module. `zodSchema` remembers the
 * JSON Schema, which a bare schema of zod is turned into at each step.
 */
const toTool = once((tool: Tool): SdkTool<Record<string, unknown>, string> => {
  const fields = Object.entries(tool.parameters).map(([name, type]) => [
    name,
    type === "string" ? z.string() : z.number(),
  ]);
  return sdkTool({
    description: tool.description,
    inputSchema: zodSchema<Record<string, unknown>>(z.object(Object.fromEntries(fields))),
    execute: (input, { abortSignal }) => tool.run(input, abortSignal),
  });
});
