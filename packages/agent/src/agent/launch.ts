import { GENERATION_OPTIONS, loadPart, type AnySchema, type UserContent } from "@gyre/ai";
import type {
  AgentEndEvent,
  AgentEvent,
  AgentMessage,
  AgentTool,
  Decision,
  InterruptedRun,
  PendingCall,
} from "../contract/types.ts";
import { assertContinuable, toPrompts } from "../loop/loop.ts";
import type { Injected } from "../run/inbox.ts";
import { isAssistant, isToolResult, listCalls } from "../transcript/history.ts";
import type { ContinueOptions, PromptOptions, RunOverrides } from "./options.ts";
import type { TypedOutput } from "./output.ts";
import type { Queues } from "./queue.ts";
import type { EventState } from "./state.ts";

/** What one run of an agent starts with, beside what the agent has. */
export interface Launch {
  injected: Injected[];
  decisions?: Readonly<Record<string, Decision>>;
  /** Those of them that the caller gave. They may have come from a page. */
  given?: unknown;
  interrupted?: InterruptedRun | undefined;
  skipInitialSteeringPoll?: boolean;
  /** What the answer has to be. */
  schema?: AnySchema | undefined;
  /** Loaded before a run that has a `schema`: a page with other runs alone does not need it. */
  output?: TypedOutput<AnySchema>;
  watch?: (event: AgentEvent) => void;
  signal?: AbortSignal | undefined;
  tools?: readonly AgentTool[] | undefined;
  overrides: Omit<RunOverrides, "tools">;
}

/** The options of a prompt that are for its run. */
export type LaunchOptions = RunOverrides & { signal?: AbortSignal; output?: AnySchema };

const OVERRIDES: ReadonlySet<string> = new Set<keyof Launch["overrides"]>([
  "temperature",
  "maxTokens",
  "headers",
  "limits",
  "toolChoice",
  "middleware",
  "caller",
  ...GENERATION_OPTIONS,
]);

function isOverride(name: string): name is keyof Launch["overrides"] {
  return OVERRIDES.has(name);
}

/** A run on a prompt. Calls that wait for a person are denied: the user went on. */
export function launchPrompt(
  messages: readonly AgentMessage[],
  pending: readonly PendingCall[],
  options: LaunchOptions,
): Launch {
  const reason = "the user went on without deciding";
  const decisions: Record<string, Decision> = {};
  for (const { toolCall } of pending) decisions[toolCall.id] = { type: "deny", reason };
  return { injected: toPrompts(messages), decisions, ...readOptions(options) };
}

/**
 * A run from the transcript as it is; from a queued message where the transcript needs one.
 * Throws where there is nothing to continue, and on a decision about a call that does not wait.
 */
export function launchContinue(
  { messages, pending, interrupted }: EventState,
  queues: Queues,
  options: ContinueOptions & LaunchOptions,
): Launch {
  const decisions: Record<string, Decision> = { ...options.decisions };
  assertOpen(Object.keys(decisions), messages, pending);
  for (const { toolCall, ...question } of pending) {
    decisions[toolCall.id] ??= { type: "wait", ...question };
    const decision = decisions[toolCall.id];
    const { fingerprint } = question;
    // What is approved is what was asked about, also where another process had asked.
    if (decision?.type === "approve" && fingerprint !== undefined) {
      decisions[toolCall.id] = { fingerprint, ...decision };
    }
  }
  const own = { interrupted, given: options.decisions, ...readOptions(options) };
  try {
    assertContinuable(messages);
  } catch (error) {
    if (messages.length === 0) throw error;
    const injected = drainFirst(queues);
    if (injected.length === 0) throw error;
    return { injected, decisions, skipInitialSteeringPoll: true, ...own };
  }
  return { injected: [], decisions, ...own };
}

/**
 * Checks the decisions of a run, and loads what checks its answer. Nothing to wait for where it
 * has neither.
 */
export function prepareLaunch(launch: Launch): Promise<void> | undefined {
  const { schema, given } = launch;
  if (given) {
    delete launch.given;
    return loadPart(import("../contract/decisions.ts")).then(({ readDecisions }) => {
      readDecisions(given);
      return prepareLaunch(launch);
    });
  }
  if (schema === undefined) return undefined;
  return loadPart(import("./output.ts")).then(({ TypedOutput }) => {
    launch.output = new TypedOutput(schema);
  });
}

/** Whether a call that waited for a person before the run still does after it. */
export function isOpen(
  { toolCall: { id } }: PendingCall,
  { messages, pending }: AgentEndEvent,
): boolean {
  const isAnswered = messages.some((message) => isToolResult(message) && message.toolCallId === id);
  return !isAnswered && !pending.some(({ toolCall }) => toolCall.id === id);
}

/** What a prompt has beside its text. */
export function listAttachments({ images = [], attachments = [] }: PromptOptions): UserContent[] {
  return [...attachments, ...images];
}

/** What of the options of a prompt is for its run. */
function readOptions(
  options: LaunchOptions,
): Pick<Launch, "signal" | "schema" | "tools" | "overrides"> {
  const { signal, output: schema, tools } = options;
  const overrides: Record<string, unknown> = {};
  for (const name in options) {
    if (isOverride(name) && options[name] !== undefined) overrides[name] = options[name];
  }
  return { signal, schema, tools, overrides };
}

/** A decision on a call that does not wait would be lost without a word. */
function assertOpen(
  ids: readonly string[],
  messages: readonly AgentMessage[],
  pending: readonly PendingCall[],
): void {
  if (ids.length === 0) return;
  const answered = new Set(messages.filter(isToolResult).map(({ toolCallId }) => toolCallId));
  const calls = messages.filter(isAssistant).flatMap(listCalls);
  const open = calls.map(({ id }) => id).filter((id) => !answered.has(id));
  for (const id of ids) {
    // What a journal says to be waiting may have its result meanwhile.
    if (open.includes(id) || pending.some(({ toolCall }) => toolCall.id === id)) continue;
    throw new Error(
      `No call "${id}" waits for a decision. Open calls: ${open.join(", ") || "none"}.`,
    );
  }
}

function drainFirst(queues: Queues): Injected[] {
  for (const source of ["steering", "followUp"] as const) {
    const messages = queues.get(source).drain();
    if (messages.length > 0) return messages.map((message) => ({ source, message }));
  }
  return [];
}
