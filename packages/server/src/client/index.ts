export * from "./remote-agent.ts";
export type { RemoteState, RemoteTool } from "./remote-state.ts";
