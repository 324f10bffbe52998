import type { AgentTool, AgentToolResult, ToolContext } from "@gyre/agent";
import { totalTokens, type Usage } from "@gyre/ai";
import type { ToolEnv } from "../../contract/env.ts";
import { PROVENANCE_NOTE } from "../../text/provenance.ts";
import { runSubAgent, tighter, usedUp } from "../sub-agent.ts";
import type { Places } from "./places.ts";
import {
  DEFAULT_TASK_TURNS,
  findModel,
  MAX_TASK_DEPTH,
  TASK_TOOL,
  type TaskOptions,
} from "./tool.ts";

const SYSTEM_PROMPT: string =
  "You are a sub-agent: another agent has given you a task of its own. Do it with your tools, without asking back. " +
  "When you are done, or cannot go on, say what you found or did, briefly and completely, with file names: " +
  "your last message is all that the one who gave you the task will see. " +
  PROVENANCE_NOTE;

type Left = ReturnType<NonNullable<ToolContext["host"]["left"]>>;

/** Where in the tree of sub-agents a call is made. */
export interface TaskLevel {
  /** How deep the sub-agents are that it starts. */
  depth: number;
  /** What is left above the run that calls it. */
  outerLeft: () => Left;
  /** The sub-agents that it has started and that still run. */
  running: Set<Share>;
  /** For those that work at the same time. */
  places: Places;
}

/** Runs a sub-agent. `nested` makes the tool by which it starts its own. */
export async function runTask(
  env: ToolEnv,
  options: TaskOptions,
  { depth, outerLeft, running, places }: TaskLevel,
  nested: (level: Omit<TaskLevel, "places">) => AgentTool,
  args: { prompt: string; schema?: object; tools?: readonly string[]; model?: string },
  { id, signal, update: onUpdate, host }: ToolContext,
): Promise<AgentToolResult> {
  const model = findModel(options, args.model);
  const schema = checkSchema(args.schema);
  const left = (): Left => tighter(without(host.left?.() ?? {}, running), outerLeft());
  const share: Share = { spent: {}, inner: new Set() };
  const tools = selectTools(options, args.tools, depth, () =>
    nested({ depth: depth + 1, outerLeft: left, running: share.inner }),
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
        model,
        instructions: [options.systemPrompt ?? SYSTEM_PROMPT, options.guidance ?? ""]
          .filter((text) => text !== "")
          .join("\n\n"),
        thinkingLevel: options.thinkingLevel ?? "off",
        tools,
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
