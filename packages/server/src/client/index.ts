export * from "./remote-agent.ts";
export type { NewFile, UploadServer } from "./upload-file.ts";
export type { RemoteState, RemoteTool } from "./remote-state.ts";
