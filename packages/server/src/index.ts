export { applyChanges } from "./live-session.ts";
export * from "./session-host.ts";
export * from "./session-service.ts";
export * from "./wire-event.ts";
export * from "./wire-event-reader.ts";
