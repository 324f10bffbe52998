export * from "./access.ts";
export {
  applyPatchTool,
  MAX_PATCH_CHARS,
  MAX_PATCH_FILES,
  type PatchDetails,
} from "./apply-patch.ts";
export { alignLines } from "./edit-align.ts";
export { type EditDetails, editTool, MAX_EDIT_BYTES, MAX_EDITS } from "./edit.ts";
export type { ToolEnv } from "./env.ts";
export { cleanEnvironment, type EnvironmentOptions } from "./environment.ts";
export { type FetchOptions, fetchTool } from "./fetch.ts";
export * from "./find.ts";
export { gitTool } from "./git.ts";
export type { GitOptions } from "./git-program.ts";
export * from "./grep.ts";
export * from "./jobs.ts";
export { reapLeftovers } from "./leftovers.ts";
export * from "./ls.ts";
export { type OracleOptions, oracleTool } from "./oracle.ts";
export type * from "./plugin-types.ts";
export { type ProgramEnd, runProgram, type RunOptions } from "./processes.ts";
export { fromSource, PROVENANCE_NOTE, type Source } from "./provenance.ts";
export * from "./read.ts";
export * from "./permissions.ts";
export { ToolRegistry, UnknownToolError } from "./registry.ts";
export { ruleFor } from "./rule-for.ts";
export { RuleError } from "./rules.ts";
export {
  createSandbox,
  noSandbox,
  type ProgramSpec,
  type Sandbox,
  SandboxMissingError,
  type SandboxOptions,
  type SandboxPolicy,
} from "./sandbox.ts";
export { sanitise } from "./sanitise.ts";
export { type SeenFile, SeenFiles } from "./seen.ts";
export * from "./shell.ts";
export { type TaskOptions, taskTool } from "./task.ts";
export { type Todo, TodoList, todoTool } from "./todo.ts";
export { openToolset, type Toolset, type ToolsetOptions } from "./toolset.ts";
export { type WalkedEntry, walk as walkFiles } from "./walk.ts";
export * from "./workspace.ts";
export * from "./write.ts";
