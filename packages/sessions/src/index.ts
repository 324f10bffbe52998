export * from "./format/entry.ts";
export { createJournal, type Journal } from "./journal.ts";
export { MAX_LINE_BYTES } from "./format/line.ts";
export { createSession, openSession } from "./file/session-file.ts";
export { defaultSessionFolder, SessionStore, type StoreOptions } from "./store.ts";
export * from "./format/types.ts";
export type { LockHolder } from "./file/unlock.ts";
