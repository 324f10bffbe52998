import type {
  Agent,
  AgentListener,
  AgentState,
  AgentTool,
  QueuedMessage,
  QueueMode,
  QueueName,
} from "@gyre/agent";
import type { Model } from "@gyre/ai";

/** What clients see of an agent, wherever it runs. */
export interface SessionView {
  readonly state: Pick<
    AgentState,
    "messages" | "pending" | "error" | "usage" | "systemPrompt" | "thinkingLevel"
  > & {
    readonly model: Pick<Model, "provider" | "id"> | undefined;
    readonly tools: readonly Pick<AgentTool, "name" | "description">[];
  };
  readonly isRunning: boolean;
  readonly steeringMode: QueueMode;
  readonly followUpMode: QueueMode;
  queued(queue: QueueName): readonly QueuedMessage[];
  subscribe(listener: AgentListener): () => void;
}

/** The members of `Agent` that a server calls: any object with them can be hosted. */
export interface SessionAgent extends Pick<
  Agent,
  | "state"
  | "isRunning"
  | "steeringMode"
  | "followUpMode"
  | "queued"
  | "subscribe"
  | "prompt"
  | "continue"
  | "steer"
  | "followUp"
  | "editQueued"
  | "takeQueued"
  | "moveQueued"
  | "clearSteeringQueue"
  | "clearFollowUpQueue"
  | "abort"
  | "waitForIdle"
  | "replaceMessages"
  | "reset"
  | "setSystemPrompt"
  | "setThinkingLevel"
  | "setTools"
  | "setSteeringMode"
  | "setFollowUpMode"
> {}
