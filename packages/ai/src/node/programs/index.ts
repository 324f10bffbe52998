export * from "./environment.ts";
export { type Framing, HEADERS, LINES, type MessageReader } from "./framing.ts";
export { type FurtherHandles, withoutInherited } from "./inherited-handles.ts";
export * from "./output.ts";
export * from "./process-tree.ts";
export * from "./run-notes.ts";
export { unwatch, watch } from "./running-trees.ts";
export * from "./search-path.ts";
export { MAX_MESSAGE_BYTES, type StdioProgram, StdioTransport } from "./stdio-transport.ts";
