import type { AgentTool, Middleware, ToolPresentation } from "@gyre/agent";
import type { OracleOptions } from "./agents/oracle/tool.ts";
import type { TaskOptions } from "./agents/task/tool.ts";
import type { ToolEntry } from "./contract/entry.ts";
import type { ToolEnv } from "./contract/env.ts";
import * as entries from "./entries.ts";
import type { GitOptions } from "./git/program.ts";
import type { NotePad } from "./memory/notes/tool.ts";
import type { TodoList } from "./memory/todo/tool.ts";
import type { JobTable } from "./shell/jobs/job-table.ts";
import type { ShellOptions } from "./shell/tool.ts";
import type { FetchOptions } from "./web/fetch/tool.ts";
import type { WebSearchOptions } from "./web/search/tool.ts";

export type { ToolEntry };

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
  /** A search of the web, by the service of a model or by a search engine. */
  web_search?: WebSearchOptions;
}

/** What tools are made of. */
export interface ToolParts {
  env: ToolEnv;
  jobs: JobTable;
  todos: TodoList;
  notes: NotePad;
  shell: ShellOptions;
  options: ToolOptions;
  /** The tools that were made before, without those that are the agent's own. */
  shared: ReadonlyMap<string, AgentTool>;
}

/** What the coding agent has unless the user chooses others, in the order in which a model sees them. */
export const DEFAULT_TOOLS: readonly string[] = [
  "read",
  "edit",
  "write",
  "shell",
  "jobs",
  "grep",
  "find",
  "notes",
  "git",
  "task",
  "fetch",
];

/**
 * Every tool, in the order in which a model sees those it has: the default ones, the others by
 * name, and at last those that ask models.
 */
export const TOOLS: readonly ToolEntry<ToolParts>[] = Object.values(entries).toSorted(
  (a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1),
);

function rank({ name, presentation }: Pick<ToolEntry, "name" | "presentation">): number {
  const place = DEFAULT_TOOLS.indexOf(name);
  if (place >= 0) return place;
  return DEFAULT_TOOLS.length + (presentation.delegates ? 1 : 0);
}

/** The names of all tools that a toolset can have. */
export const TOOL_NAMES: readonly string[] = TOOLS.map(({ name }) => name);

/** Of the tool by which the coding agent shows its plan: the plan itself is shown beside the call. */
export const planPresentation: ToolPresentation = {
  kind: "think",
  verb: "Plan",
  title: () => "",
};

const PRESENTATIONS: ReadonlyMap<string, ToolPresentation> = new Map([
  ...TOOLS.map(({ name, presentation }) => [name, presentation] as const),
  ["plan", planPresentation],
]);

/**
 * How calls of a tool are shown, by its name alone: for transcripts of sessions whose tools
 * are not open. Undefined for a tool that is not one of ours.
 */
export function findPresentation(name: string): ToolPresentation | undefined {
  return PRESENTATIONS.get(name);
}
