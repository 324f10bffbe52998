export * from "./contract/access.ts";
export {
  applyPatchTool,
  MAX_PATCH_CHARS,
  MAX_PATCH_FILES,
  type PatchDetails,
} from "./edit/apply-patch/tool.ts";
export { alignLines } from "./edit/align.ts";
export { type EditDetails, editTool, MAX_EDIT_BYTES, MAX_EDITS } from "./edit/tool.ts";
export type { ToolEnv } from "./contract/env.ts";
export {
  containCommand,
  type Containment,
  describeContainment,
  findContainment,
} from "./process/containment.ts";
export { cleanEnvironment, type EnvironmentOptions } from "@gyre/ai/programs";
export { type FetchOptions, fetchTool } from "./web/fetch/tool.ts";
export { type WebSearchOptions, webSearchTool } from "./web/search/tool.ts";
export * from "./search/find/tool.ts";
export { gitTool } from "./git/tool.ts";
export { type GitIndexEntry, parseGitIndex } from "./git/index-file.ts";
export type { GitOptions } from "./git/program.ts";
export * from "./search/grep/tool.ts";
export * from "./shell/jobs/job-table.ts";
export * from "./shell/jobs/tool.ts";
export { reapLeftovers } from "./process/leftovers.ts";
export * from "./files/ls/tool.ts";
export { type OracleOptions, oracleTool } from "./agents/oracle/tool.ts";
export type * from "./contract/plugin-types.ts";
export type * from "./contract/rehearsal.ts";
export { describeHost, isHostGone } from "@gyre/ai/programs";
export { type ProgramEnd, runProgram, type RunOptions } from "./process/processes.ts";
export { fromSource, PROVENANCE_NOTE, type Source } from "@gyre/ai/text";
export { KEPT_PREFIX } from "./files/read/kept-results.ts";
export * from "./files/read/tool.ts";
export { type PermissionOptions, permissions } from "./permissions.ts";
export {
  type Advice,
  type ApprovalAnswer,
  type RuleScope,
  type ApprovalRequest,
  approvalRequest,
  type PathResolver,
  type PermissionDecision,
  type PermissionMode,
  type QuestionFacts,
} from "./permissions/permissions.ts";
export * from "./catalog.ts";
export { ToolRegistry, UnknownToolError } from "./contract/registry.ts";
export { NETWORK, ruleFor } from "./permissions/rule-for.ts";
export { rulesFor } from "./permissions/rules-for.ts";
export { RuleError } from "./permissions/rules.ts";
export {
  type Confinement,
  createSandbox,
  getConfinement,
  noSandbox,
  type ProgramSpec,
  type Sandbox,
  SandboxMissingError,
  type SandboxOptions,
  type SandboxPolicy,
} from "./sandbox/sandbox.ts";
export { cleanPath } from "@gyre/ai/programs";
export { sanitize } from "@gyre/ai/text";
export { type SeenFile, SeenFiles } from "./workspace/seen.ts";
export * from "./shell/kept-commands.ts";
export * from "./shell/tool.ts";
export { AGENT_KINDS, type AgentKind } from "./agents/task/kinds.ts";
export { type TaskOptions, taskTool } from "./agents/task/tool.ts";
export { NotePad, notesTool } from "./memory/notes/tool.ts";
export { locateRepository, type RepositoryPlace } from "./git/locate.ts";
export { type Todo, TodoList, todoTool } from "./memory/todo/tool.ts";
export { openToolset, type Toolset, type ToolsetOptions } from "./toolset.ts";
export { findCheckAfterCommand } from "./workspace/listings.ts";
export { Slices } from "./workspace/slices.ts";
export {
  type WalkedEntry,
  type WalkedFolder,
  walk as walkFiles,
  walkFolders,
} from "./workspace/walk.ts";
export * from "./workspace/workspace.ts";
export * from "./files/write/tool.ts";
export { createHostList, type HostList } from "./web/proxy/domains.ts";
