import {
  type AgentEvent,
  type AgentMessage,
  type AgentState,
  EventState,
  keepIdentity,
  type PendingCall,
  type QueueMode,
} from "@gyre/agent";
import { isRecord, type Model, type ThinkingLevel } from "@gyre/ai";
import type { Payload } from "@gyre/protocol";

/** The name and the description of a tool of the session. */
export interface RemoteTool {
  readonly name: string;
  readonly description: string;
}

/** The state of a session's agent after the events so far; another object once it has changed. */
export interface RemoteState extends Omit<AgentState, "model" | "tools" | "compaction"> {
  readonly model: Pick<Model, "provider" | "id"> | undefined;
  readonly tools: readonly RemoteTool[];
  readonly steeringMode: QueueMode;
  readonly followUpMode: QueueMode;
  /** How many older messages the session has that did not fit into a snapshot. */
  readonly omitted: number;
  /** Further facts about the session: folder, permission mode, file. */
  readonly info: Payload;
}

type Settings = Pick<
  RemoteState,
  "systemPrompt" | "model" | "thinkingLevel" | "tools" | "steeringMode" | "followUpMode" | "info"
>;

/** Follows an agent by its events, from a snapshot on. */
export class RemoteStateMirror {
  #settings: Settings = readSettings({});
  #omitted = 0;
  #state = new EventState();
  #lastState: RemoteState | undefined;

  get state(): RemoteState {
    const { compaction: _, ...state } = this.#state.view();
    const now = { ...this.#settings, ...state, omitted: this.#omitted };
    this.#lastState = keepIdentity(this.#lastState, now);
    return this.#lastState;
  }

  /** Loads a snapshot; `streamMessage` is the partial message. */
  load(snapshot: Payload, streamMessage: AgentMessage | undefined): void {
    const { messages, omitted, isRunning, pending, error, usage, state } = snapshot;
    this.update(snapshot);
    // Messages are not checked: the server is trusted.
    this.#state = new EventState(Array.isArray(messages) ? [...(messages as AgentMessage[])] : []);
    this.#state.isStreaming = isRunning === true;
    this.#state.streamMessage = streamMessage;
    this.#state.error = typeof error === "string" ? error : undefined;
    this.#state.usage = isRecord(usage) ? usage : {};
    this.#omitted = typeof omitted === "number" ? omitted : 0;
    this.#state.setPending(Array.isArray(pending) ? (pending as PendingCall[]) : []);
    const executing: unknown = isRecord(state) ? state["executing"] : undefined;
    for (const call of (Array.isArray(executing) ? executing : []).filter(isRecord)) {
      this.#state.pendingToolCalls.add(String(call["toolCallId"]));
    }
  }

  /** Applies new settings. */
  update(settings: Payload): void {
    this.#settings = readSettings(settings);
  }

  apply(event: AgentEvent): void {
    this.#state.apply(event);
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
