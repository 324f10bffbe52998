export { ToolRegistry } from "./registry.ts";
export { type SeenFile, SeenFiles } from "./seen.ts";
export * from "./workspace.ts";
