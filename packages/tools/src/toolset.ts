import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Middleware } from "@gyre/agent";
import { type Clock, systemClock } from "@gyre/ai";
import { applyPatchTool } from "./apply-patch.ts";
import { editTool } from "./edit.ts";
import type { ToolEnv } from "./env.ts";
import { cleanEnvironment } from "./environment.ts";
import { type FetchOptions, fetchTool } from "./fetch.ts";
import { findTool } from "./find.ts";
import { gitTool } from "./git.ts";
import type { GitOptions } from "./git-program.ts";
import { grepTool } from "./grep.ts";
import { jobsTool, JobTable } from "./jobs.ts";
import { reapLeftovers } from "./leftovers.ts";
import { lsTool } from "./ls.ts";
import { type OracleOptions, oracleTool } from "./oracle.ts";
import { secretPlaces } from "./places.ts";
import { readTool } from "./read.ts";
import { ToolRegistry } from "./registry.ts";
import { createSandbox, type Sandbox, type SandboxOptions } from "./sandbox.ts";
import { SeenFiles } from "./seen.ts";
import { shellTool } from "./shell.ts";
import { type TaskOptions, taskTool } from "./task.ts";
import { TodoList, todoTool } from "./todo.ts";
import { openWorkspace } from "./workspace.ts";
import { writeTool } from "./write.ts";

const OWNER_ONLY = 0o700;

export interface ToolsetOptions {
  /** The folder to work in. */
  root: string;
  /** Default "auto": the one of this system, and an error where there is none. */
  sandbox?: NonNullable<SandboxOptions["kind"]> | Sandbox;
  /** Whether commands reach the network. Default false. */
  network?: boolean;
  /** Further places that tools may not change; see `WorkspaceOptions`. */
  readOnly?: readonly string[];
  /** Further places that commands may not read, absolute; keys of the usual places are hidden. */
  hidden?: readonly string[];
  /** Further environment variables for programs, unless they look like keys. */
  keepVariables?: readonly string[];
  git?: GitOptions;
  /** Another model to ask. */
  oracle?: Omit<OracleOptions, "tools" | "middleware">;
  /** Sub-agents. */
  task?: Omit<TaskOptions, "tools" | "middleware">;
  /** Around the calls of oracle and sub-agents: give them what the agent itself has. */
  middleware?: readonly Middleware[];
  /** False: no way to the web. Default: with approval, if permissions ask for it. */
  fetch?: FetchOptions | false;
  /** Where long output and notes on running programs go. Default: `gyre/tools` in the user's state folder. */
  stateFolder?: string;
  /** Default: the variables of this process. */
  environment?: Readonly<Record<string, string | undefined>>;
  clock?: Clock;
}

/** The tools of an agent, and what they work with. */
export interface Toolset {
  registry: ToolRegistry;
  env: ToolEnv;
  jobs: JobTable;
  todos: TodoList;
  /** Ends all jobs and lets go of the folder. What long output was kept is gone. */
  close(): Promise<void>;
}

/** Opens a folder to work in, with all our tools. Ends first what earlier agents left running. */
export async function openToolset(options: ToolsetOptions): Promise<Toolset> {
  const { clock = systemClock, environment = process.env, network = false } = options;
  const { hidden = [], keepVariables: keep = [] } = options;
  const stateFolder = options.stateFolder ?? defaultStateFolder(environment);
  await mkdir(stateFolder, { recursive: true, mode: OWNER_ONLY });
  // What is in it says what is killed: it has to be nobody else's.
  await chmod(stateFolder, OWNER_ONLY);
  await reapLeftovers(stateFolder);
  const sandbox = await sandboxOf(options.sandbox);
  const { readOnly } = options;
  const workspace = await openWorkspace(options.root, readOnly ? { readOnly } : {});
  const spoolFolder = await mkdtemp(join(stateFolder, "agent-")).catch(async (error: unknown) => {
    await workspace.close();
    throw error;
  });
  const env: ToolEnv = {
    workspace,
    seen: new SeenFiles(),
    sandbox,
    spoolFolder,
    environment: cleanEnvironment(environment, { network, workspace: workspace.root, keep }),
    clock,
  };
  const jobs = new JobTable({ spoolFolder, clock });
  const todos = new TodoList();
  const registry = new ToolRegistry([
    readTool(env),
    lsTool(env),
    findTool(env),
    grepTool(env),
    editTool(env),
    applyPatchTool(env),
    writeTool(env),
    shellTool(env, { network, jobs, hidden: [...secretPlaces(homedir(), environment), ...hidden] }),
    jobsTool(jobs),
    gitTool(env, options.git ?? {}),
    todoTool(todos),
  ]);
  if (options.fetch !== false) registry.register(fetchTool(env, options.fetch ?? {}));
  addAgents(registry, env, options);
  return {
    registry,
    env,
    jobs,
    todos,
    async close() {
      await jobs.close();
      await workspace.close();
      await rm(spoolFolder, { recursive: true, force: true });
    },
  };
}

/** Those that ask models: with the tools that are there so far. */
function addAgents(registry: ToolRegistry, env: ToolEnv, options: ToolsetOptions): void {
  const around = options.middleware && { middleware: options.middleware };
  if (options.oracle) {
    const tools = ["read", "ls", "find", "grep"].map((name) => registry.get(name));
    registry.register(oracleTool(env, { ...options.oracle, ...around, tools }));
  }
  if (options.task) {
    const tools = new ToolRegistry(registry.list());
    registry.register(taskTool(env, { ...options.task, ...around, tools }));
  }
}

function sandboxOf(sandbox: ToolsetOptions["sandbox"] = "auto"): Promise<Sandbox> {
  return typeof sandbox === "string" ? createSandbox({ kind: sandbox }) : Promise.resolve(sandbox);
}

function defaultStateFolder(environment: Readonly<Record<string, string | undefined>>): string {
  const state = environment["XDG_STATE_HOME"];
  return join(state?.startsWith("/") ? state : join(homedir(), ".local", "state"), "gyre", "tools");
}
