import type { AgentOptions, AgentTool, Limits, Middleware } from "@gyre/agent";
import type { Model, ProtocolClient, ThinkingLevel } from "@gyre/ai";
import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { ToolRegistry } from "../../contract/registry.ts";
import { taskEntry } from "./entry.ts";
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
  model: Model;
  /** Further models that a call may ask for, by the name that it uses for them. */
  models?: Readonly<Record<string, Model>>;
  /** Where the tools of sub-agents come from; this one is made for them where it is allowed. */
  tools: ToolRegistry;
  /** Those that a sub-agent may have at most. Default: all of them. */
  toolNames?: readonly string[];
  /** For each task; what is left of the run's own limits holds as well. Default: 50 turns. */
  limits?: Limits;
  /** Around the calls of sub-agents too: what is not allowed here is not allowed there. */
  middleware?: readonly Middleware[];
  thinkingLevel?: ThinkingLevel;
  systemPrompt?: string;
  /** What sub-agents are to know of the folder and its project: follows the system prompt. */
  guidance?: string;
  /** Tools that sub-agents may have beside those of `tools`. */
  moreTools?: readonly AgentTool[];
  /** Further settings of sub-agents. */
  agent?: Pick<
    AgentOptions,
    | "context"
    | "fallbackModels"
    | "fallbackOn"
    | "getApiKey"
    | "maxContinuations"
    | "retry"
    | "watchdog"
  >;
  /** Puts all messages of a sub-agent into the result's details. */
  keepMessages?: boolean;
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

/**
 * A sub-agent as a tool: a context of its own, some of the tools, limits of its own
 * within what is left of the run's, and the same middleware. Its progress is reported, its
 * cost counts into the run, an abort reaches it.
 */
export function taskTool(env: ToolEnv, given: TaskOptions): GuardedTool {
  const tools = new ToolRegistry([...given.tools.list(), ...(given.moreTools ?? [])]);
  const options = { ...given, tools };
  if (options.tools.has(TASK_TOOL)) {
    throw new Error(`There is a tool "${TASK_TOOL}" already: sub-agents get one of their own.`);
  }
  for (const name of options.toolNames ?? []) if (name !== TASK_TOOL) options.tools.get(name);
  return taskToolAt(1, env, options);
}

/** The tool for one level of sub-agents. */
function taskToolAt(depth: number, env: ToolEnv, options: TaskOptions): GuardedTool {
  // A sub-agent that waits for its own does not work meanwhile: they work in its place.
  const places = new Places(depth === 1 ? MAX_TASKS_AT_ONCE : 1);

  return defineEntryTool(taskEntry, {
    label: "Sub-agent",
    description: describe(options),
    parameters: PARAMETERS,
    concurrent: depth === 1,
    timeoutMs: TASK_TIMEOUT_MS,
    abortGraceMs: TASK_ABORT_GRACE_MS * (MAX_TASK_DEPTH + 1 - depth),
    async execute(args, context) {
      const { runTask } = await import("./run.ts");
      const nested = (): AgentTool => taskToolAt(depth + 1, env, options);
      return runTask(env, options, { depth, places }, nested, args, context);
    },
    access(args) {
      const { provider, id } = findModel(options, optionalText(args["model"]));
      return {
        kind: "agent",
        targets: [`${provider}/${id}`],
        summary: `Sub-agent: ${String(args["description"])}`,
      };
    },
  });
}

function describe({ models = {}, toolNames, tools }: TaskOptions): string {
  const names = Object.keys(models);
  const allowed = toolNames ?? tools.list().map(({ name }) => name);
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
export function findModel({ model, models = {} }: TaskOptions, name: string | undefined): Model {
  if (name === undefined || name === model.id) return model;
  const other = Object.hasOwn(models, name) ? models[name] : undefined;
  if (other) return other;
  const known = [model.id, ...Object.keys(models)].join(", ");
  throw new Error(`the model "${name}" cannot be chosen. Available: ${known}.`);
}
