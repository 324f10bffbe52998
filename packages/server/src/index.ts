export * from "./wire-event.ts";
