import type {
  AgentOptions,
  AgentTool,
  AgentToolResult,
  Limits,
  Middleware,
  ToolContext,
} from "@gyre/agent";
import type { Model, ProtocolClient, ThinkingLevel } from "@gyre/ai";
import type { Access, GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { ToolRegistry } from "../../contract/registry.ts";
import { taskEntry } from "./entry.ts";
import type { AgentKind } from "./kinds.ts";
import { Places } from "./places.ts";

/** A sub-agent may have sub-agents; those have none. */
export const MAX_TASK_DEPTH = 2;
/** Sub-agents that work at the same time; the next one waits. */
export const MAX_TASKS_AT_ONCE = 4;
/** Turns of a sub-agent, by default. */
export const DEFAULT_TASK_TURNS = 50;
/** A call, with all that the sub-agent does. */
export const TASK_TIMEOUT_MS = 3_600_000;
/** For each level of sub-agents: their calls have to be ended before they can answer an abort. */
const TASK_ABORT_GRACE_MS = 1_000;

/** Its own name, which sub-agents get for a tool of their own. */
export const TASK_TOOL: string = taskEntry.name;

export interface TaskOptions {
  /** The way to the models. */
  client: ProtocolClient;
  /** A function is called for each task: the model of the caller, say. */
  model: Model | (() => Model);
  /** Further models that a call may ask for, by the name that it uses for them. */
  models?: Readonly<Record<string, Model>>;
  /** Where the tools of sub-agents come from; this one is made for them where it is allowed. */
  tools: ToolRegistry;
  /** Those that a sub-agent may have at most. Default: all of them. */
  toolNames?: readonly string[];
  /** Asked for each task: whether a sub-agent may have a tool now. Default: always. */
  isAllowed?: (name: string) => boolean;
  /** For each task; what is left of the run's own limits holds as well. Default: 50 turns. */
  limits?: Limits;
  /** Around the calls of sub-agents too: what is not allowed here is not allowed there. */
  middleware?: readonly Middleware[];
  /** A function is called for each task. */
  thinkingLevel?: ThinkingLevel | (() => ThinkingLevel);
  /**
   * Kinds of sub-agents. With them a call names one, and neither tools nor a model nor a schema: the
   * tool is described in a third of the tokens. The one called "general" is the default.
   */
  agents?: readonly AgentKind[];
  /** The model that a kind names. It is the caller's where this rejects, with a note in the result. */
  findModel?: (name: string) => Promise<Model>;
  systemPrompt?: string;
  /** What sub-agents are to know of the folder and its project: follows the system prompt. */
  guidance?: string;
  /** Tools that sub-agents may have beside those of `tools`. A function is called for each task. */
  moreTools?: readonly AgentTool[] | (() => readonly AgentTool[]);
  /** Further settings of sub-agents. */
  agent?: Pick<
    AgentOptions,
    | "cacheRetention"
    | "context"
    | "fallbackModels"
    | "fallbackOn"
    | "getApiKey"
    | "maxContinuations"
    | "retry"
    | "thinkingBudgets"
    | "watchdog"
  >;
  /** Puts all messages of a sub-agent into the result's details. */
  keepMessages?: boolean;
}

/** What a call asks for. */
export interface TaskArguments {
  prompt: string;
  agent?: string;
  schema?: object;
  tools?: readonly string[];
  model?: string;
}

const PARAMETERS = {
  type: "object",
  properties: {
    description: {
      type: "string",
      minLength: 1,
      description: "The task in a few words, for people.",
    },
    prompt: {
      type: "string",
      minLength: 1,
      description: "The task in full. The sub-agent sees nothing else of this conversation.",
    },
    tools: {
      type: "array",
      items: { type: "string" },
      description: "Names of the tools that it gets. Default: all that are allowed.",
    },
    schema: {
      type: "object",
      description: 'A JSON Schema (type "object") that the answer has to fit.',
    },
    model: { type: "string", description: "Another model, by its name." },
  },
  required: ["description", "prompt"],
  additionalProperties: false,
} as const;

/** The same where there are kinds of sub-agents. */
function kindParameters(agents: readonly AgentKind[]) {
  return {
    type: "object",
    properties: {
      description: { type: "string" },
      prompt: { type: "string" },
      agent: {
        type: "string",
        enum: agents.map(({ name }) => name),
        description: agents.map(({ name, description }) => `${name}: ${description}`).join("; "),
      },
    },
    required: ["description", "prompt"],
  } as const;
}

/**
 * A sub-agent as a tool: a context of its own, some of the tools, limits of its own
 * within what is left of the run's, and the same middleware. Its progress is reported, its
 * cost counts into the run, an abort reaches it.
 */
export function taskTool(env: ToolEnv, options: TaskOptions): GuardedTool {
  const tools = listTools(options);
  if (tools.has(TASK_TOOL)) {
    throw new Error(`There is a tool "${TASK_TOOL}" already: sub-agents get one of their own.`);
  }
  for (const name of options.toolNames ?? []) if (name !== TASK_TOOL) tools.get(name);
  return taskToolAt(1, env, options);
}

/** The tools that sub-agents may have, as they are now. */
export function listTools({ tools, moreTools = [] }: TaskOptions): ToolRegistry {
  const more = typeof moreTools === "function" ? moreTools() : moreTools;
  return new ToolRegistry([...tools.list(), ...more]);
}

/** The tool for one level of sub-agents. */
function taskToolAt(depth: number, env: ToolEnv, options: TaskOptions): GuardedTool {
  // A sub-agent that waits for its own does not work meanwhile: they work in its place.
  const places = new Places(depth === 1 ? MAX_TASKS_AT_ONCE : 1);
  const { agents } = options;
  const shape = {
    label: "Sub-agent",
    concurrent: depth === 1,
    timeoutMs: TASK_TIMEOUT_MS,
    abortGraceMs: TASK_ABORT_GRACE_MS * (MAX_TASK_DEPTH + 1 - depth),
    access(args: Record<string, unknown>): Access {
      const { provider, id } = findModel(options, optionalText(args["model"]));
      return {
        kind: "agent",
        targets: [`${provider}/${id}`],
        summary: `Sub-agent: ${String(args["description"])}`,
      };
    },
  };
  const run = async (args: TaskArguments, context: ToolContext): Promise<AgentToolResult> => {
    const { runTask } = await import("./run.ts");
    const nested = (): AgentTool => taskToolAt(depth + 1, env, options);
    return runTask(env, options, { depth, places }, nested, args, context);
  };
  if (!agents) {
    return defineEntryTool(taskEntry, {
      ...shape,
      description: describe(options),
      parameters: PARAMETERS,
      execute: run,
    });
  }
  return defineEntryTool(taskEntry, {
    ...shape,
    description:
      "Gives a sub-agent a task of many steps. It knows the prompt alone, and only its answer comes back. Several may run at once.",
    parameters: kindParameters(agents),
    execute: run,
  });
}

function describe(options: TaskOptions): string {
  const { models = {}, toolNames } = options;
  const names = Object.keys(models);
  const allowed =
    toolNames ??
    listTools(options)
      .list()
      .map(({ name }) => name);
  return [
    "Gives a task to a sub-agent with a context of its own, and waits for its answer. Use it for work that takes many steps of which you need the outcome alone: a search through many files, an inquiry. Several may run together.",
    allowed.length > 0 ? `Its tools can be: ${allowed.join(", ")}.` : "",
    names.length > 0 ? `Other models: ${names.join(", ")}.` : "",
  ]
    .filter((line) => line !== "")
    .join(" ");
}

function optionalText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The model that a call asks for. */
export function findModel(options: TaskOptions, name: string | undefined): Model {
  const { models = {} } = options;
  const model = typeof options.model === "function" ? options.model() : options.model;
  if (name === undefined || name === model.id) return model;
  const other = Object.hasOwn(models, name) ? models[name] : undefined;
  if (other) return other;
  const known = [model.id, ...Object.keys(models)].join(", ");
  throw new Error(`the model "${name}" cannot be chosen. Available: ${known}.`);
}
