import type { AgentTool, AgentToolResult, ToolContext } from "@gyre/agent";
import { errorMessage, type Model } from "@gyre/ai";
import type { ToolEnv } from "../../contract/env.ts";
import { PROVENANCE_NOTE } from "@gyre/ai/text";
import { readingOnly } from "../reading-only.ts";
import { runSubAgent } from "../sub-agent.ts";
import { type AgentKind, GENERAL } from "./kinds.ts";
import type { Places } from "./places.ts";
import {
  DEFAULT_TASK_TURNS,
  findModel,
  listTools,
  MAX_TASK_DEPTH,
  TASK_TOOL,
  type TaskArguments,
  type TaskOptions,
} from "./tool.ts";

const SYSTEM_PROMPT: string =
  "You are a sub-agent: another agent has given you a task of its own. Do it with your tools, without asking back. " +
  "When you are done, or cannot go on, say what you found or did, briefly and completely, with file names: " +
  "your last message is all that the one who gave you the task will see. " +
  PROVENANCE_NOTE;

const ONLY_READS = "You look around and change nothing: calls that do more than read are refused.";

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
  args: TaskArguments,
  context: ToolContext,
): Promise<AgentToolResult> {
  const kind = findKind(options, args.agent);
  const schema = checkSchema(args.schema);
  const tools = selectTools(options, kind, args.tools, depth, nested);
  const { model, note } = await chooseModel(options, kind, args.model);
  const { thinkingLevel = "off" } = options;
  await places.take(context.signal);
  try {
    const result = await runSubAgent({
      who: "sub-agent",
      agent: {
        ...options.agent,
        protocol: options.client,
        model,
        instructions: [
          options.systemPrompt ?? SYSTEM_PROMPT,
          kind?.onlyReads ? ONLY_READS : "",
          kind?.instructions ?? "",
          options.guidance ?? "",
        ]
          .filter((text) => text !== "")
          .join("\n\n"),
        thinkingLevel: typeof thinkingLevel === "function" ? thinkingLevel() : thinkingLevel,
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
    return note === undefined
      ? result
      : { ...result, content: [...result.content, { type: "text", text: note }] };
  } finally {
    places.giveBack();
  }
}

/** The kind that a call asks for, or "general". Undefined where there are no kinds. */
function findKind({ agents }: TaskOptions, name = GENERAL.name): AgentKind | undefined {
  const kind = agents?.find((each) => each.name === name);
  if (kind || !agents) return kind;
  const names = agents.map((each) => each.name).join(", ");
  throw new Error(`there is no agent "${name}". Available: ${names}.`);
}

/** The model that the call or the kind asks for. One that a kind names and is not there is reported. */
async function chooseModel(
  options: TaskOptions,
  kind: AgentKind | undefined,
  asked: string | undefined,
): Promise<{ model: Model; note?: string }> {
  const own = findModel(options, asked);
  if (asked !== undefined || kind?.model === undefined || !options.findModel) return { model: own };
  try {
    return { model: await options.findModel(kind.model) };
  } catch (error) {
    const note = `[Its model could not be used (${errorMessage(error)}), so ${own.id} was asked.]`;
    return { model: own, note };
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
  options: TaskOptions,
  kind: AgentKind | undefined,
  asked: readonly string[] | undefined,
  depth: number,
  nested: () => AgentTool,
): AgentTool[] {
  const { toolNames, isAllowed = () => true } = options;
  const tools = listTools(options);
  const mayNest = depth < MAX_TASK_DEPTH && (!toolNames || toolNames.includes(TASK_TOOL));
  const allowed = (toolNames ?? tools.list().map(({ name }) => name)).filter(
    (name) => name !== TASK_TOOL && isAllowed(name),
  );
  if (mayNest) allowed.push(TASK_TOOL);
  for (const name of asked ?? []) {
    if (allowed.includes(name)) continue;
    const depthNote = name === TASK_TOOL ? " A sub-agent this deep has none of its own." : "";
    throw new Error(
      `a sub-agent cannot have the tool "${name}".${depthNote} It can have: ${allowed.join(", ") || "none"}.`,
    );
  }
  const names = [...new Set(asked ?? allowed)].filter(
    (name) => kind?.tools?.includes(name) ?? true,
  );
  const found = names.map((name) => (name === TASK_TOOL ? nested() : tools.get(name)));
  return kind?.onlyReads ? found.flatMap((tool) => readingOnly(tool) ?? []) : found;
}
