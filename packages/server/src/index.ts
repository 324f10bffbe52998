export { applyChanges } from "./sessions/local-session.ts";
export * from "./sessions/session-agent.ts";
export type { QueueEdit } from "./sessions/session-payloads.ts";
export * from "./sessions/session-host.ts";
export * from "./sessions/session-service.ts";
export * from "./events/wire-event.ts";
export * from "./events/wire-event-reader.ts";
