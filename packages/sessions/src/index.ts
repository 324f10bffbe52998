export * from "./entry.ts";
export * from "./types.ts";
