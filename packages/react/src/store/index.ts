export {
  type AgentSnapshot,
  type AgentSource,
  AgentStore,
  createAgentStore,
  type RunNotice,
  type StorePromptOptions,
} from "./agent-store.ts";
export { FRAME_MS, HIDDEN_FRAME_MS, type Schedule, scheduleFrame } from "./frames.ts";
export type { QueuedPrompt } from "./outbox.ts";
export {
  createRunStore,
  type RunSnapshot,
  RunStore,
  type StartedRun,
  type StartRun,
} from "./run-store.ts";
export type { Attached, RemoteSession, StoreAgent } from "./source.ts";
export type { StoreOptions } from "./snapshot-feed.ts";
export type * from "./view-message.ts";
