import {
  type AgentEvent,
  type AgentMessage,
  isLlmMessage,
  type PendingCall,
  type QueueMode,
  withResult,
} from "@gyre/agent";
import { addUsage, type Model, type ThinkingLevel, type Usage } from "@gyre/ai";
import { isRecord, type Payload } from "@gyre/protocol";
import { isAssistant } from "../events/wire-event.ts";

/** A tool of the session as far as it can be told of. */
export interface RemoteTool {
  readonly name: string;
  readonly description: string;
}

/** What the agent of a session is, as far as its events have come. Lists are live. */
export interface RemoteState {
  readonly systemPrompt: string;
  readonly model: Pick<Model, "provider" | "id"> | undefined;
  readonly thinkingLevel: ThinkingLevel;
  readonly tools: readonly RemoteTool[];
  readonly steeringMode: QueueMode;
  readonly followUpMode: QueueMode;
  readonly messages: readonly AgentMessage[];
  /** How many older messages the session has that did not fit into a snapshot. */
  readonly omitted: number;
  readonly isStreaming: boolean;
  /** The assistant message that is being streamed; live. */
  readonly streamMessage: AgentMessage | undefined;
  /** Ids of calls that run, or wait for a decision. */
  readonly pendingToolCalls: ReadonlySet<string>;
  /** Calls that a suspended run left for a person to decide. */
  readonly pending: readonly PendingCall[];
  /** What went wrong in the last run, if anything did. */
  readonly error: string | undefined;
  /** Tokens and cost of all runs. */
  readonly usage: Usage;
  /** What else the server tells of the session: folder, permission mode, file. */
  readonly info: Payload;
}

type Settings = Pick<
  RemoteState,
  "systemPrompt" | "model" | "thinkingLevel" | "tools" | "steeringMode" | "followUpMode" | "info"
>;

/** Follows an agent by its events, from a snapshot on. */
export class RemoteStateMirror {
  #settings: Settings = readSettings({});
  #messages: AgentMessage[] = [];
  #omitted = 0;
  #isStreaming = false;
  #streamMessage: AgentMessage | undefined;
  readonly #pendingToolCalls = new Set<string>();
  #pending: readonly PendingCall[] = [];
  #error: string | undefined;
  #usage: Usage = {};

  get state(): RemoteState {
    return {
      ...this.#settings,
      messages: this.#messages,
      omitted: this.#omitted,
      isStreaming: this.#isStreaming,
      streamMessage: this.#streamMessage,
      pendingToolCalls: this.#pendingToolCalls,
      pending: this.#pending,
      error: this.#error,
      usage: this.#usage,
    };
  }

  /** Begins anew; `streamMessage` is the message that is on its way. */
  load(snapshot: Payload, streamMessage: AgentMessage | undefined): void {
    const { messages, omitted, isRunning, pending, error, usage, state } = snapshot;
    this.update(snapshot);
    // What messages are is the server's word.
    this.#messages = Array.isArray(messages) ? [...(messages as AgentMessage[])] : [];
    this.#omitted = typeof omitted === "number" ? omitted : 0;
    this.#isStreaming = isRunning === true;
    this.#streamMessage = streamMessage;
    this.#error = typeof error === "string" ? error : undefined;
    this.#usage = isRecord(usage) ? usage : {};
    this.#wait(Array.isArray(pending) ? (pending as PendingCall[]) : []);
    const executing: unknown = isRecord(state) ? state["executing"] : undefined;
    for (const call of Array.isArray(executing) ? executing : []) {
      if (isRecord(call)) this.#pendingToolCalls.add(String(call["toolCallId"]));
    }
  }

  /** Something was set. */
  update(settings: Payload): void {
    this.#settings = readSettings(settings);
  }

  /** As the agent itself does with its events. */
  apply(event: AgentEvent): void {
    switch (event.type) {
      case "agent_start":
        this.#isStreaming = true;
        this.#pending = [];
        this.#error = undefined;
        break;
      case "message_start":
        this.#streamMessage = isAssistant(event.message) ? event.message : undefined;
        break;
      case "message_update":
        this.#streamMessage = event.message;
        break;
      case "message_end":
        this.#streamMessage = undefined;
        this.#add(event.message);
        break;
      case "tool_execution_start":
        this.#pendingToolCalls.add(event.toolCallId);
        break;
      case "tool_execution_end":
        this.#pendingToolCalls.delete(event.toolCallId);
        break;
      case "turn_end":
        if (event.message.errorMessage) this.#error = event.message.errorMessage;
        break;
      case "agent_end":
        this.#isStreaming = false;
        this.#streamMessage = undefined;
        this.#usage = addUsage(this.#usage, event.usage);
        this.#wait(event.pending);
        break;
      default:
        break;
    }
  }

  #add(message: AgentMessage): void {
    if (isLlmMessage(message) && message.role === "toolResult") {
      this.#messages = withResult(this.#messages, message);
    } else this.#messages.push(message);
  }

  #wait(pending: readonly PendingCall[]): void {
    this.#pending = pending;
    this.#pendingToolCalls.clear();
    for (const { toolCall } of pending) this.#pendingToolCalls.add(toolCall.id);
  }
}

/** Fields of a snapshot or a change that are not the host's own. */
const KNOWN: ReadonlySet<string> = new Set([
  ...["session", "epoch", "seq", "messages", "omitted", "state", "queued"],
  ...["isRunning", "pending", "usage", "error", "run"],
  ...["model", "thinkingLevel", "systemPrompt", "tools", "toolDescriptions", "modes"],
]);

/** Of a snapshot, all that is no part of the transcript; of a change, all. */
function readSettings(payload: Payload): Settings {
  const { model, thinkingLevel, systemPrompt, tools, modes, toolDescriptions } = payload;
  const descriptions = isRecord(toolDescriptions) ? toolDescriptions : {};
  const names = Array.isArray(tools) ? tools.map(String) : [];
  const queues = isRecord(modes) ? modes : {};
  return {
    systemPrompt: typeof systemPrompt === "string" ? systemPrompt : "",
    model: isRecord(model)
      ? { provider: String(model["provider"]), id: String(model["id"]) }
      : undefined,
    thinkingLevel: isString(thinkingLevel) ? (thinkingLevel as ThinkingLevel) : "off",
    tools: names.map((name) => {
      const description = descriptions[name];
      return { name, description: isString(description) ? description : "" };
    }),
    steeringMode: queues["steering"] === "all" ? "all" : "one-at-a-time",
    followUpMode: queues["followUp"] === "all" ? "all" : "one-at-a-time",
    info: Object.fromEntries(Object.entries(payload).filter(([key]) => !KNOWN.has(key))),
  };
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}
