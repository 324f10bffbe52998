export { applyChanges } from "./sessions/local-session.ts";
export * from "./sessions/session-agent.ts";
export type { QueueEdit } from "./sessions/session-payloads.ts";
export * from "./sessions/session-host.ts";
export * from "./sessions/session-service.ts";
export * from "./events/wire-event.ts";
export * from "./events/wire-event-reader.ts";
export type {
  AgentFactories,
  AgentFactory,
  AgentSession,
  StoredConversation,
} from "./handler/agents.ts";
export { type Authorize, authorizeByToken, readToken } from "./handler/authorize.ts";
export {
  createHandler,
  type HandleOptions,
  type Handler,
  type HandlerOptions,
  type HandlerRequest,
} from "./handler/handler.ts";
export {
  type BunServeOptions,
  type BunServer,
  type BunSocket,
  toBunServer,
} from "./handler/bun.ts";
export {
  type UpgradedSocket,
  type UpgradeWebSocket,
  upgradeWebSocketPair,
} from "./handler/sockets.ts";
