import {
  type Context,
  type Failure,
  GENERATION_OPTIONS,
  type GenerationOptions,
  isThenable,
  PLAIN_OPTIONS,
  type StreamOptions,
  type TranscriptProblem,
} from "@gyre/ai";
import type { Outgoing } from "../transcript/history.ts";
import type { AgentLoopConfig } from "../contract/types.ts";
import type { Run } from "../run/run.ts";

/** No service would accept the messages: an error of the agent, or of a hook. */
export class InvalidTranscriptError extends Error {
  readonly failure: Failure = { kind: "invalid_transcript", retryable: false };
  readonly problems: readonly TranscriptProblem[];
  constructor(problems: readonly TranscriptProblem[]) {
    const list = problems.map(({ index, reason }) => `message ${index}: ${reason}`).join(" ");
    super(
      `The transcript is not valid, and was not sent (an error of the agent, or of convertToLlm or transformContext). ${list}`,
    );
    this.name = "InvalidTranscriptError";
    this.problems = problems;
  }
}

/** The context of a request. Throws what a callback threw, and on messages that no service accepts. */
export function buildContext(run: Run): Context | Promise<Context> {
  const { context, transformContext, convertToLlm } = run.config;
  if (!context && !run.compaction && !transformContext && !convertToLlm) {
    return toContext(run, run.history.outgoing());
  }
  return (async () => {
    const found = run.getCompactor();
    const compactor = isThenable(found) ? await found : found;
    if (context) await compactor.compactIfNeeded(context);
    if (!run.compaction && !transformContext && !convertToLlm) {
      return toContext(run, run.history.outgoing());
    }
    const messages = compactor.messagesToSend();
    const transformed = transformContext
      ? await run.hooks.call("transformContext", () => transformContext(messages, run.signal))
      : messages;
    const converted = convertToLlm
      ? await run.hooks.call("convertToLlm", () => convertToLlm(transformed))
      : transformed;
    return toContext(run, run.history.outgoingFrom(converted));
  })();
}

function toContext(run: Run, outgoing: Outgoing): Context {
  if (outgoing.problems.length > 0) throw new InvalidTranscriptError(outgoing.problems);
  if (outgoing.messages.length === 0) {
    throw new Error("There is no message to send to the model: the transcript is empty.");
  }
  const { transformContext, convertToLlm } = run.config;
  const last = outgoing.messages.at(-1);
  const isOwnWord = last?.role === "assistant" && last.stopReason !== "pause";
  // Hooks of the application may intend it: some models continue their own text.
  if (isOwnWord && !transformContext && !convertToLlm) {
    throw new Error("There is nothing to answer: the last message for the model is its own.");
  }
  run.sent = outgoing.messages;
  const context: Context = {
    messages: run.files?.apply(outgoing.messages) ?? outgoing.messages,
  };
  if (run.systemPrompt) context.systemPrompt = run.systemPrompt;
  if (run.toolbox.specs.length > 0) context.tools = run.toolbox.specs;
  return context;
}

/** Options of the configuration that are passed to the service unchanged: all but three. */
const NAMES: ReadonlySet<string> = new Set([...Object.keys(PLAIN_OPTIONS), ...GENERATION_OPTIONS]);

function isPassedOn(name: string): name is keyof typeof PLAIN_OPTIONS | keyof GenerationOptions {
  return NAMES.has(name);
}

/** The options of a request, without its key and its signal. */
export function buildOptions({ config, thinkingLevel, turns }: Run): StreamOptions {
  const options: Record<string, unknown> = {};
  for (const name in config) {
    if (isPassedOn(name) && config[name] !== undefined) options[name] = config[name];
  }
  // A model that must call a tool in every turn never ends.
  if (turns > 1 && !config.toolChoiceInEveryTurn && isForced(config)) delete options["toolChoice"];
  return thinkingLevel === undefined ? options : { ...options, thinkingLevel };
}

function isForced({ toolChoice }: AgentLoopConfig): boolean {
  return toolChoice === "required" || typeof toolChoice === "object";
}
