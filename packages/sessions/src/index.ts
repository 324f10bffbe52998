export * from "./entry.ts";
export { journal } from "./journal.ts";
export { MAX_LINE_BYTES } from "./line.ts";
export { importPiSession, isPiHeader, type PiImport, type SkippedPart } from "./pi-import.ts";
export { createSession, openSession } from "./session-file.ts";
export { defaultSessionFolder, SessionStore, type StoreOptions } from "./store.ts";
export * from "./types.ts";
export type { LockHolder } from "./unlock.ts";
