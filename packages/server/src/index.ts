export { applyChanges } from "./sessions/live-session.ts";
export * from "./sessions/session-host.ts";
export * from "./sessions/session-service.ts";
export * from "./events/wire-event.ts";
export * from "./events/wire-event-reader.ts";
