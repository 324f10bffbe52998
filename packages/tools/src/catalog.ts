import type { AgentTool, Middleware, ToolPresentation } from "@gyre/agent";
import { oraclePresentation } from "./agents/oracle/presentation.ts";
import type { OracleOptions } from "./agents/oracle/tool.ts";
import { taskPresentation } from "./agents/task/presentation.ts";
import type { TaskOptions } from "./agents/task/tool.ts";
import type { ToolEnv } from "./contract/env.ts";
import { applyPatchPresentation } from "./edit/apply-patch/presentation.ts";
import { editPresentation } from "./edit/presentation.ts";
import { lsPresentation } from "./files/ls/presentation.ts";
import { readPresentation } from "./files/read/presentation.ts";
import { writePresentation } from "./files/write/presentation.ts";
import { gitPresentation } from "./git/presentation.ts";
import type { GitOptions } from "./git/program.ts";
import { mcpCallPresentation, toolSearchPresentation } from "./mcp/presentation.ts";
import { notesPresentation } from "./memory/notes/presentation.ts";
import type { NotePad } from "./memory/notes/tool.ts";
import { todoPresentation } from "./memory/todo/presentation.ts";
import type { TodoList } from "./memory/todo/tool.ts";
import { findPresentation as findToolPresentation } from "./search/find/presentation.ts";
import { grepPresentation } from "./search/grep/presentation.ts";
import type { JobTable } from "./shell/jobs.ts";
import { jobsPresentation, shellPresentation } from "./shell/presentation.ts";
import type { ShellOptions } from "./shell/tool.ts";
import { fetchPresentation } from "./web/fetch/presentation.ts";
import type { FetchOptions } from "./web/fetch/tool.ts";

/** Options of single tools. */
export interface ToolOptions {
  git?: GitOptions;
  /** Another model to ask. */
  oracle?: Omit<OracleOptions, "tools" | "middleware">;
  /** Sub-agents. */
  task?: Omit<TaskOptions, "tools" | "middleware">;
  /** Around the calls of oracle and sub-agents: pass the middleware of the agent itself. */
  middleware?: readonly Middleware[];
  /** False: no access to the web. Default: with approval, if permissions ask for it. */
  fetch?: FetchOptions | false;
}

/** What tools are made of. */
export interface ToolParts {
  env: ToolEnv;
  jobs: JobTable;
  todos: TodoList;
  notes: NotePad;
  shell: ShellOptions;
  options: ToolOptions;
  /** The tools that were made before this one. */
  made: ReadonlyMap<string, AgentTool>;
}

/** A tool that a toolset can have: what is known of it before it is loaded. */
export interface ToolEntry {
  readonly name: string;
  readonly presentation: ToolPresentation;
  /** The coding agent has it unless the user chooses others. */
  readonly isDefault?: boolean;
  /** What other programs call such a tool: hooks that were written for them apply here too. */
  readonly aliases?: readonly string[];
  /** Whether these options allow for it. Default: they do. */
  isAvailable?(options: ToolOptions): boolean;
  /** Loads and makes it. */
  make(parts: ToolParts): Promise<AgentTool>;
}

/**
 * Every tool, in the order in which a model sees those it has. A new tool is a folder of its
 * own and an entry here. Tools that ask models come last: they get the tools made before.
 */
export const TOOLS: readonly ToolEntry[] = [
  {
    name: "read",
    aliases: ["Read"],
    isDefault: true,
    presentation: readPresentation,
    make: async ({ env }) => (await import("./files/read/tool.ts")).readTool(env),
  },
  {
    name: "edit",
    aliases: ["Edit", "MultiEdit"],
    isDefault: true,
    presentation: editPresentation,
    make: async ({ env }) => (await import("./edit/tool.ts")).editTool(env),
  },
  {
    name: "write",
    aliases: ["Write"],
    isDefault: true,
    presentation: writePresentation,
    make: async ({ env }) => (await import("./files/write/tool.ts")).writeTool(env),
  },
  {
    name: "shell",
    aliases: ["Bash"],
    isDefault: true,
    presentation: shellPresentation,
    make: async ({ env, shell }) => (await import("./shell/tool.ts")).shellTool(env, shell),
  },
  {
    name: "jobs",
    isDefault: true,
    presentation: jobsPresentation,
    make: async ({ jobs }) => (await import("./shell/jobs.ts")).jobsTool(jobs),
  },
  {
    name: "grep",
    aliases: ["Grep"],
    isDefault: true,
    presentation: grepPresentation,
    make: async ({ env }) => (await import("./search/grep/tool.ts")).grepTool(env),
  },
  {
    name: "find",
    aliases: ["Glob"],
    isDefault: true,
    presentation: findToolPresentation,
    make: async ({ env }) => (await import("./search/find/tool.ts")).findTool(env),
  },
  {
    name: "notes",
    isDefault: true,
    presentation: notesPresentation,
    make: async ({ notes }) => (await import("./memory/notes/tool.ts")).notesTool(notes),
  },
  {
    name: "ls",
    aliases: ["LS"],
    presentation: lsPresentation,
    make: async ({ env }) => (await import("./files/ls/tool.ts")).lsTool(env),
  },
  {
    name: "git",
    presentation: gitPresentation,
    make: async ({ env, options }) => (await import("./git/tool.ts")).gitTool(env, options.git),
  },
  {
    name: "todo",
    aliases: ["TodoWrite"],
    presentation: todoPresentation,
    make: async ({ todos }) => (await import("./memory/todo/tool.ts")).todoTool(todos),
  },
  {
    name: "fetch",
    aliases: ["WebFetch"],
    presentation: fetchPresentation,
    isAvailable: ({ fetch }) => fetch !== false,
    make: async ({ env, options: { fetch } }) =>
      (await import("./web/fetch/tool.ts")).fetchTool(env, fetch === false ? {} : fetch),
  },
  {
    name: "apply_patch",
    aliases: ["Edit", "MultiEdit", "Write"],
    presentation: applyPatchPresentation,
    make: async ({ env }) => (await import("./edit/apply-patch/tool.ts")).applyPatchTool(env),
  },
  {
    name: "oracle",
    presentation: oraclePresentation,
    isAvailable: ({ oracle }) => oracle !== undefined,
    make: async ({ env, made, options: { oracle, middleware } }) => {
      const { oracleTool } = await import("./agents/oracle/tool.ts");
      if (!oracle) throw new Error("The oracle needs a model to ask.");
      const reading = [...made.values()].filter((tool) => tool.presentation?.effects?.({}).reads);
      return oracleTool(env, { ...oracle, ...(middleware && { middleware }), tools: reading });
    },
  },
  {
    name: "task",
    aliases: ["Task", "Agent"],
    presentation: taskPresentation,
    isAvailable: ({ task }) => task !== undefined,
    make: async ({ env, made, options: { task, middleware } }) => {
      const { taskTool } = await import("./agents/task/tool.ts");
      const { ToolRegistry } = await import("./contract/registry.ts");
      if (!task) throw new Error("Sub-agents need a client for their model.");
      // Notes are the agent's own: a sub-agent would replace them.
      const tools = new ToolRegistry([...made.values()].filter(({ name }) => name !== "notes"));
      return taskTool(env, { ...task, ...(middleware && { middleware }), tools });
    },
  },
];

/** The names of all tools that a toolset can have. */
export const TOOL_NAMES: readonly string[] = TOOLS.map(({ name }) => name);

const PRESENTATIONS: ReadonlyMap<string, ToolPresentation> = new Map([
  ...TOOLS.map(({ name, presentation }) => [name, presentation] as const),
  ["tool_search", toolSearchPresentation],
  ["mcp_call", mcpCallPresentation],
]);

/**
 * How calls of a tool are shown, by its name alone: for transcripts of sessions whose tools
 * are not open. Undefined for a tool that is not one of ours.
 */
export function findPresentation(name: string): ToolPresentation | undefined {
  return PRESENTATIONS.get(name);
}
