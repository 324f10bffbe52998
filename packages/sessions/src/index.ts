export { isBeside } from "./format/body.ts";
export * from "./format/entry.ts";
export { chooseSession, createHeader, createSessionId } from "./format/id.ts";
export { createJournal, type Journal } from "./journal.ts";
export { MAX_LINE_BYTES } from "./format/line.ts";
export { addToSummary, type EntryRow, summarizeHeader } from "./format/row.ts";
export {
  createFilter,
  pageSessions,
  type SessionListOptions,
  type SessionOrder,
  type SessionPageOptions,
} from "./format/page.ts";
export type { ForkOptions, SessionStorage } from "./format/storage.ts";
export * from "./format/types.ts";
export { createSession, openSession, writeSession } from "./file/session-file.ts";
export { checkProcess, identifyProcess, type ProcessIdentity } from "./file/process.ts";
export type { LockHolder } from "./file/unlock.ts";
export { MemorySessions } from "./memory-sessions.ts";
export {
  type EntryLog,
  type EntryLogOptions,
  type EntryLogSession,
  openEntryLog,
} from "./session/entry-log.ts";
export { type FileProblem, findFileProblems } from "./session/check-files.ts";
export { listStoredHashes } from "./session/stored-files.ts";
export { searchSessions } from "./search.ts";
export { defaultSessionFolder, SessionStore, type StoreOptions } from "./store.ts";
