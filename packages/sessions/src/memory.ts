export { createJournal, type Journal } from "./journal.ts";
export { MemorySessions } from "./memory-sessions.ts";
