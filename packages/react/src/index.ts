export * from "./hooks/use-agent.ts";
export * from "./hooks/use-run.ts";
export * from "./store/index.ts";
