import {
  type AgentOptions,
  type AgentTool,
  type AgentToolResult,
  defineTool,
  type Limits,
  type Middleware,
  type ToolContext,
} from "@gyre/agent";
import {
  type Model,
  type ProtocolClient,
  type ThinkingLevel,
  totalTokens,
  type Usage,
} from "@gyre/ai";
import type { GuardedTool } from "../../contract/access.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { PROVENANCE_NOTE } from "../../text/provenance.ts";
import type { ToolRegistry } from "../../contract/registry.ts";
import { runSubAgent, tighter, usedUp } from "../sub-agent.ts";
import { taskEntry } from "./entry.ts";

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

export const TASK_TOOL = "task";

const SYSTEM_PROMPT: string =
  "You are a sub-agent: another agent has given you a task of its own. Do it with your tools, without asking back. " +
  "When you are done, or cannot go on, say what you found or did, briefly and completely, with file names: " +
  "your last message is all that the one who gave you the task will see. " +
  PROVENANCE_NOTE;

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
  /** Further settings of sub-agents. */
  agent?: Pick<AgentOptions, "context" | "fallbackModels" | "getApiKey" | "retry" | "watchdog">;
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

type Left = ReturnType<NonNullable<ToolContext["host"]["left"]>>;

/**
 * A sub-agent as a tool: a context of its own, some of the tools, limits of its own
 * within what is left of the run's, and the same middleware. Its progress is reported, its
 * cost counts into the run, an abort reaches it.
 */
export function taskTool(env: ToolEnv, options: TaskOptions): GuardedTool {
  if (options.tools.has(TASK_TOOL)) {
    throw new Error(`There is a tool "${TASK_TOOL}" already: sub-agents get one of their own.`);
  }
  for (const name of options.toolNames ?? []) if (name !== TASK_TOOL) options.tools.get(name);
  return taskToolAt(1, env, options, () => ({}), new Set());
}

/**
 * @param depth How deep the sub-agents are that it starts.
 * @param outerLeft What is left above the run that calls it.
 * @param running The sub-agents that it has started and that still run.
 */
function taskToolAt(
  depth: number,
  env: ToolEnv,
  options: TaskOptions,
  outerLeft: () => Left,
  running: Set<Share>,
): GuardedTool {
  // A sub-agent that waits for its own does not work meanwhile: they work in its place.
  const places = new Places(depth === 1 ? MAX_TASKS_AT_ONCE : 1);

  async function execute(
    args: { prompt: string; schema?: object; tools?: readonly string[]; model?: string },
    { id, signal, update: onUpdate, host }: ToolContext,
  ): Promise<AgentToolResult> {
    const model = findModel(options, args.model);
    const schema = checkSchema(args.schema);
    const left = (): Left => tighter(without(host.left?.() ?? {}, running), outerLeft());
    const share: Share = { spent: {}, inner: new Set() };
    const tools = selectTools(options, args.tools, depth, () =>
      taskToolAt(depth + 1, env, options, left, share.inner),
    );
    await places.take(signal);
    try {
      const nothingLeft = usedUp(left());
      if (nothingLeft) throw new Error(`nothing is left of the run's limit ${nothingLeft}.`);
      const limits = tighter({ maxTurns: DEFAULT_TASK_TURNS, ...options.limits }, left());
      running.add(share);
      return await runSubAgent({
        who: "sub-agent",
        agent: {
          ...options.agent,
          protocol: options.client,
          initialState: {
            model,
            systemPrompt: options.systemPrompt ?? SYSTEM_PROMPT,
            thinkingLevel: options.thinkingLevel ?? "off",
            tools,
          },
          limits,
          shouldStopAfterTurn: ({ usage }) => {
            share.spent = usage;
            return usedUp(left()) !== undefined;
          },
          ...(options.middleware && { middleware: options.middleware }),
          clock: env.clock,
        },
        prompt: args.prompt,
        ...(schema && { schema }),
        callId: id,
        signal,
        onUpdate,
        ...(options.keepMessages && { keepMessages: true }),
      });
    } finally {
      running.delete(share);
      // The next one starts when the run has counted what this one spent.
      void env.clock.turn().then(() => places.giveBack());
    }
  }

  const tool = defineTool({
    name: taskEntry.name,
    presentation: taskEntry.presentation,
    label: "Sub-agent",
    description: describe(options),
    parameters: PARAMETERS,
    concurrent: depth === 1,
    timeoutMs: TASK_TIMEOUT_MS,
    abortGraceMs: TASK_ABORT_GRACE_MS * (MAX_TASK_DEPTH + 1 - depth),
    execute,
  });
  return {
    ...tool,
    access(args) {
      const { provider, id } = findModel(options, optionalText(args["model"]));
      return {
        kind: "agent",
        targets: [`${provider}/${id}`],
        summary: `Sub-agent: ${String(args["description"])}`,
      };
    },
  };
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

function findModel({ model, models = {} }: TaskOptions, name: string | undefined): Model {
  if (name === undefined || name === model.id) return model;
  const other = Object.hasOwn(models, name) ? models[name] : undefined;
  if (other) return other;
  const known = [model.id, ...Object.keys(models)].join(", ");
  throw new Error(`the model "${name}" cannot be chosen. Available: ${known}.`);
}

function checkSchema(schema: object | undefined): Record<string, unknown> | undefined {
  if (schema === undefined) return undefined;
  const given: Record<string, unknown> = { ...schema };
  if (given["type"] === "object") return given;
  throw new Error('the schema has to be of type "object"; put the answer into a property of it.');
}

/** The tools that were asked for, all of which have to be allowed. */
function selectTools(
  { tools, toolNames }: TaskOptions,
  asked: readonly string[] | undefined,
  depth: number,
  nested: () => AgentTool,
): AgentTool[] {
  const mayNest = depth < MAX_TASK_DEPTH && (!toolNames || toolNames.includes(TASK_TOOL));
  const allowed = (toolNames ?? tools.list().map(({ name }) => name)).filter(
    (name) => name !== TASK_TOOL,
  );
  if (mayNest) allowed.push(TASK_TOOL);
  for (const name of asked ?? []) {
    if (allowed.includes(name)) continue;
    const depthNote = name === TASK_TOOL ? " A sub-agent this deep has none of its own." : "";
    throw new Error(
      `a sub-agent cannot have the tool "${name}".${depthNote} It can have: ${allowed.join(", ") || "none"}.`,
    );
  }
  return [...new Set(asked ?? allowed)].map((name) =>
    name === TASK_TOOL ? nested() : tools.get(name),
  );
}

/** What a sub-agent has spent that its caller's run has not counted yet. */
interface Share {
  /** As of its last turn. */
  spent: Usage;
  /** Of its own sub-agents that still run. */
  inner: Set<Share>;
}

/** What is left, less what those that still run have spent of it. */
function without(left: Left, running: ReadonlySet<Share>): Left {
  let { maxTotalTokens, maxCostUsd } = left;
  for (const { spent, inner } of running) {
    if (maxTotalTokens !== undefined) maxTotalTokens -= totalTokens(spent);
    if (maxCostUsd !== undefined) maxCostUsd -= spent.cost?.total ?? 0;
    ({ maxTotalTokens, maxCostUsd } = without(
      {
        ...(maxTotalTokens !== undefined && { maxTotalTokens }),
        ...(maxCostUsd !== undefined && { maxCostUsd }),
      },
      inner,
    ));
  }
  return {
    ...left,
    ...(maxTotalTokens !== undefined && { maxTotalTokens }),
    ...(maxCostUsd !== undefined && { maxCostUsd }),
  };
}

/** Places for those that may work at the same time; who finds none waits for its turn. */
class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  /** Rejects when `signal` fires before there is a place. */
  take(signal: AbortSignal): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(new Error("it was stopped before it was started."));
      };
      this.#waiting.push(enter);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  giveBack(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}
