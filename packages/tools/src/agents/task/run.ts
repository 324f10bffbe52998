import type { AgentTool, AgentToolResult, ToolContext } from "@gyre/agent";
import type { ToolEnv } from "../../contract/env.ts";
import { PROVENANCE_NOTE } from "../../text/provenance.ts";
import { runSubAgent } from "../sub-agent.ts";
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

/** Where in the tree of sub-agents a call is made. */
export interface TaskLevel {
  /** How deep the sub-agents are that it starts. */
  depth: number;
  /** For those that work at the same time. */
  places: Places;
}

/** Runs a sub-agent. `nested` makes the tool by which it starts its own. */
export async function runTask(
  env: ToolEnv,
  options: TaskOptions,
  { depth, places }: TaskLevel,
  nested: () => AgentTool,
  args: { prompt: string; schema?: object; tools?: readonly string[]; model?: string },
  context: ToolContext,
): Promise<AgentToolResult> {
  const model = findModel(options, args.model);
  const schema = checkSchema(args.schema);
  const tools = selectTools(options, args.tools, depth, nested);
  await places.take(context.signal);
  try {
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
        limits: { maxTurns: DEFAULT_TASK_TURNS, ...options.limits },
        ...(options.middleware && { middleware: options.middleware }),
        clock: env.clock,
      },
      prompt: args.prompt,
      ...(schema && { schema }),
      caller: context,
      onUpdate: context.update,
      ...(options.keepMessages && { keepMessages: true }),
    });
  } finally {
    places.giveBack();
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
