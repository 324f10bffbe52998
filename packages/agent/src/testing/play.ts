import { type Clock, type StreamFn, type UserMessage } from "@gyre/ai";
import {
  type ManualClock,
  manualClock,
  type ScriptedModel,
  scriptedModel,
  type ScriptFunction,
  type ScriptStep,
} from "@gyre/ai/testing";
import { runAgentLoop } from "../loop/loop.ts";
import type {
  AgentEndEvent,
  AgentEvent,
  AgentLoopConfig,
  AgentMessage,
  AgentTool,
  AgentToolResult,
} from "../contract/types.ts";
import { checkGrammar, checkPairs, transcriptAfter } from "./grammar.ts";
import { render } from "./render.ts";

/** A user's message. */
export function user(content: string): UserMessage {
  return { role: "user", content, timestamp: 0 };
}

/** A tool that accepts anything and returns its name by default. */
export function tool(
  name: string,
  execute: AgentTool["execute"] = () => name,
  more: Partial<AgentTool> = {},
): AgentTool {
  return { name, description: name, parameters: { type: "object" }, execute, ...more };
}

/** A text result. */
export function text(words: string): AgentToolResult {
  return { content: [{ type: "text", text: words }] };
}

/** A promise that is settled from outside. */
export interface Later<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

export function later<T = void>(): Later<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** A promise that never settles. */
export function never<T = never>(): Promise<T> {
  return new Promise(() => {});
}

/** Takes events, renders them as they come, and freezes what is published. */
export class Recorder {
  readonly events: AgentEvent[] = [];
  readonly lines: string[] = [];
  readonly sink = (event: AgentEvent): void => {
    const isUpdate = event.type === "message_update";
    if (isUpdate && this.events.at(-1)?.type === "message_update") {
      this.lines.push(`${this.lines.pop() ?? ""} ${render(event).slice("update ".length)}`);
    } else this.lines.push(render(event));
    this.events.push(event);
    if (event.type === "message_end") freeze(event.message);
  };

  get end(): AgentEndEvent {
    const last = this.events.at(-1);
    if (last?.type !== "agent_end") throw new Error(`The run has not ended:\n${this.text}`);
    return last;
  }

  get text(): string {
    return this.lines.join("\n");
  }

  /** The events of a type, rendered. */
  only(...types: AgentEvent["type"][]): string[] {
    return this.events.filter(({ type }) => types.includes(type)).map(render);
  }
}

/** The events of a stream, rendered. */
export async function renderStream(stream: AsyncIterable<AgentEvent>): Promise<string[]> {
  const recorder = new Recorder();
  for await (const event of stream) recorder.sink(event);
  return recorder.lines;
}

/** Makes a value read-only all the way down: writing to it later throws. */
export function freeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const inner of Object.values(value)) freeze(inner);
}

export interface Setup {
  script?: readonly ScriptStep[] | ScriptFunction;
  /** Default: one, "Go". */
  prompts?: readonly AgentMessage[];
  /** What the context holds before. */
  messages?: readonly AgentMessage[];
  systemPrompt?: string;
  tools?: readonly AgentTool[];
  config?: Partial<AgentLoopConfig>;
  signal?: AbortSignal;
  streamFn?: StreamFn;
  /** Called with each event after it was recorded. */
  onEvent?: (event: AgentEvent, recorder: Recorder) => void | Promise<void>;
  clock?: Clock;
}

export interface Playing {
  readonly recorder: Recorder;
  readonly model: ScriptedModel;
  readonly clock: ManualClock;
  readonly abort: () => void;
  /** Settles when the run has ended and its events were found to be in order. */
  readonly done: Promise<Played>;
}

export interface Played {
  readonly lines: readonly string[];
  readonly events: readonly AgentEvent[];
  readonly end: AgentEndEvent;
  readonly model: ScriptedModel;
  readonly recorder: Recorder;
  /** The context's messages with those of the run. */
  readonly transcript: AgentMessage[];
}

/** Starts a run by `runAgentLoop` on a script, under a clock that stands still. */
export function start(setup: Setup): Playing {
  const clock = manualClock();
  const recorder = new Recorder();
  const model = scriptedModel(setup.script ?? [], { clock });
  const { messages = [], prompts = [user("Go")], onEvent } = setup;
  const controller = new AbortController();
  for (const message of [...messages, ...prompts]) freeze(message);
  setup.signal?.addEventListener("abort", () => controller.abort());
  if (setup.signal?.aborted) controller.abort();
  const run = async (): Promise<Played> => {
    const produced = await runAgentLoop(
      prompts,
      {
        messages,
        tools: setup.tools ?? [],
        ...(setup.systemPrompt !== undefined && { systemPrompt: setup.systemPrompt }),
      },
      {
        model: model.model,
        protocol: model,
        clock: setup.clock ?? clock,
        random: () => 1,
        generateId: counter("new"),
        ...setup.config,
      },
      (event) => {
        recorder.sink(event);
        return onEvent?.(event, recorder);
      },
      controller.signal,
      setup.streamFn,
    );
    checkGrammar(recorder.events, setup.config?.interrupted?.turns);
    const { end, events, lines } = recorder;
    const transcript = transcriptAfter(messages, produced);
    checkPairs(transcript, new Set(end.pending.map(({ toolCall }) => toolCall.id)));
    return { lines, events, end, model, recorder, transcript };
  };
  const done = run();
  done.catch(() => {});
  return { recorder, model, clock, done, abort: () => controller.abort() };
}

/** Runs to the end; time moves on by `ms` on the way. */
export async function play(setup: Setup, ms = 0): Promise<Played> {
  const { clock, done } = start(setup);
  if (ms > 0) await clock.advance(ms);
  return done;
}

function counter(prefix: string): () => string {
  let made = 0;
  return () => `${prefix}_${++made}`;
}
