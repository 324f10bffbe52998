export * from "./access.ts";
export { applyPatchTool, type PatchDetails } from "./apply-patch.ts";
export { type EditDetails, editTool } from "./edit.ts";
export type { ToolEnv } from "./env.ts";
export { cleanEnvironment, type EnvironmentOptions } from "./environment.ts";
export { type FetchOptions, fetchTool } from "./fetch.ts";
export { type FindDetails, findTool } from "./find.ts";
export { gitTool } from "./git.ts";
export { type GrepDetails, grepTool } from "./grep.ts";
export { jobsTool, JobTable } from "./jobs.ts";
export { reapLeftovers } from "./leftovers.ts";
export { type LsDetails, lsTool } from "./ls.ts";
export { type OracleOptions, oracleTool } from "./oracle.ts";
export { type ProgramEnd, runProgram, type RunOptions } from "./processes.ts";
export { fromSource, PROVENANCE_NOTE, type Source } from "./provenance.ts";
export { type ReadDetails, readTool } from "./read.ts";
export { ToolRegistry } from "./registry.ts";
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
export { type ShellDetails, type ShellOptions, shellTool } from "./shell.ts";
export { type TaskOptions, taskTool } from "./task.ts";
export { type Todo, TodoList, todoTool } from "./todo.ts";
export { openToolset, type Toolset, type ToolsetOptions } from "./toolset.ts";
export * from "./workspace.ts";
export { type WriteDetails, writeTool } from "./write.ts";
