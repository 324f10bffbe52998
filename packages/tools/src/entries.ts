/** Every tool: a folder of its own, and a line here. */
export { applyPatchEntry } from "./edit/apply-patch/entry.ts";
export { editEntry } from "./edit/entry.ts";
export { fetchEntry } from "./web/fetch/entry.ts";
export { findEntry } from "./search/find/entry.ts";
export { gitEntry } from "./git/entry.ts";
export { grepEntry } from "./search/grep/entry.ts";
export { jobsEntry } from "./shell/jobs/entry.ts";
export { lsEntry } from "./files/ls/entry.ts";
export { notesEntry } from "./memory/notes/entry.ts";
export { oracleEntry } from "./agents/oracle/entry.ts";
export { readEntry } from "./files/read/entry.ts";
export { shellEntry } from "./shell/entry.ts";
export { taskEntry } from "./agents/task/entry.ts";
export { todoEntry } from "./memory/todo/tool.ts";
export { writeEntry } from "./files/write/entry.ts";
export { webSearchEntry } from "./web/search/entry.ts";
