import { randomUUID } from "node:crypto";
import type { AgentEvent } from "@gyre/agent";
import { type AssistantMessage, textOf, type ToolResultMessage, type Usage } from "@gyre/ai";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Environment } from "../../core/io.ts";
import type { Setup } from "../../core/setup.ts";

/** What ended a run, as both formats say it. */
export interface RunResult {
  ok: boolean;
  text: string;
  output?: unknown;
  error?: { kind: string; message: string };
  limit?: string;
  turns: number;
  usage: Usage;
  durationMs: number;
  sessionId?: string;
  denied: readonly { toolCallId: string; tool: string }[];
}

/** The modes, by the names that wrappers of Claude Code know. */
const MODE_NAMES: Readonly<Record<string, string>> = {
  ask: "default",
  "auto-edit": "acceptEdits",
  auto: "auto",
  plan: "plan",
  full: "bypassPermissions",
};
const LIMIT_NAMES: Readonly<Record<string, string>> = {
  maxTurns: "error_max_turns",
  maxCostUsd: "error_max_budget_usd",
};
const STOP_NAMES: Readonly<Record<string, string>> = {
  stop: "end_turn",
  toolUse: "tool_use",
  length: "max_tokens",
};

/**
 * The lines that wrappers of Claude Code read from `--output-format stream-json`: `system`, `assistant`, `user`,
 * `result`. Tools have the names that they have here.
 */
export class ClaudeLines {
  readonly #harness: Harness;
  /** What each call was given, for those that were denied. */
  readonly #inputs = new Map<string, Readonly<Record<string, unknown>>>();

  /** The parts of the last answer. */
  #parts: readonly string[] = [];

  constructor(harness: Harness) {
    this.#harness = harness;
  }

  async opening(setup: Setup, env: Environment): Promise<object> {
    const { agent, mcp, mode, model, toolset } = this.#harness;
    const { listPromptCommands } = await import("./prompt-command.ts");
    const commands = await listPromptCommands({ harness: this.#harness, setup, env });
    return this.#line({
      type: "system",
      subtype: "init",
      cwd: toolset.env.workspace.root,
      tools: agent.state.tools.map(({ name }) => name),
      mcp_servers: (mcp?.status() ?? []).map(({ name, state }) => ({ name, status: state })),
      model: model.id,
      permissionMode: MODE_NAMES[mode] ?? mode,
      slash_commands: commands.map(({ name }) => name),
      apiKeySource: await findKeySource(model.provider, setup, env),
      output_style: "default",
    });
  }

  /** A whole message, once it has ended; undefined for what the format has no line for. */
  event(event: AgentEvent): object | undefined {
    if (event.type !== "message_end") return undefined;
    const { message } = event;
    if (message.role === "assistant") return this.#assistant(message);
    return message.role === "toolResult" ? this.#toolResult(message) : undefined;
  }

  result(result: RunResult): object {
    // Claude Code has a line break between the parts of an answer, between which a model may have searched the web.
    const text =
      this.#parts.length > 1 && result.text !== "" ? this.#parts.join("\n").trim() : result.text;
    return this.#line(claudeResult({ ...result, text }, this.#inputs));
  }

  #assistant(message: AssistantMessage): object {
    this.#parts = message.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
    const content = message.content.flatMap((block): object[] => {
      switch (block.type) {
        case "text":
          return [{ type: "text", text: block.text }];
        case "thinking":
          return [{ type: "thinking", thinking: block.thinking, signature: block.signature ?? "" }];
        case "toolCall":
          this.#inputs.set(block.id, block.arguments);
          return [{ type: "tool_use", id: block.id, name: block.name, input: block.arguments }];
        default:
          return [];
      }
    });
    return this.#line({
      type: "assistant",
      message: {
        id: `msg_${randomUUID()}`,
        type: "message",
        role: "assistant",
        model: message.model,
        content,
        stop_reason: STOP_NAMES[message.stopReason] ?? null,
        stop_sequence: null,
        usage: claudeUsage(message.usage),
      },
      parent_tool_use_id: null,
    });
  }

  #toolResult(message: ToolResultMessage): object {
    const { toolCallId, isError } = message;
    const result = { type: "tool_result", tool_use_id: toolCallId, content: textOf(message) };
    return this.#line({
      type: "user",
      message: { role: "user", content: [{ ...result, is_error: isError }] },
      parent_tool_use_id: null,
    });
  }

  #line(fields: object): object {
    const { session } = this.#harness;
    return { ...fields, session_id: session?.header.id ?? "", uuid: randomUUID() };
  }
}

/** The last line. */
export function claudeResult(
  {
    ok,
    text,
    output,
    error,
    limit = "",
    turns,
    usage,
    durationMs,
    sessionId = "",
    denied,
  }: RunResult,
  inputs: ReadonlyMap<string, Readonly<Record<string, unknown>>> = new Map(),
): object {
  return {
    type: "result",
    subtype: ok ? "success" : (LIMIT_NAMES[limit] ?? "error_during_execution"),
    is_error: !ok,
    duration_ms: durationMs,
    duration_api_ms: durationMs,
    num_turns: turns,
    result: text,
    ...(output !== undefined && { structured_output: output }),
    ...(error && { errors: [error.message] }),
    session_id: sessionId,
    total_cost_usd: usage.cost?.total ?? 0,
    usage: claudeUsage(usage),
    permission_denials: denied.map(({ toolCallId, tool }) => ({
      tool_name: tool,
      tool_use_id: toolCallId,
      tool_input: inputs.get(toolCallId) ?? {},
    })),
    uuid: randomUUID(),
  };
}

/** Where the key of a service is, in the words of Claude Code. */
async function findKeySource(provider: string, setup: Setup, env: Environment): Promise<string> {
  if (setup.apiKey !== undefined) return "temporary";
  const [{ createKeyStore }, { findKeyPlaces }] = await Promise.all([
    import("@gyre/ai/node"),
    import("@gyre/coding/internal/models/service-places"),
  ]);
  const { places } = await findKeyPlaces(env, createKeyStore({ env }));
  const found = places.get(provider);
  if (!found) return "none";
  const names = { environment: found.place, file: "/login managed key", command: "apiKeyHelper" };
  return names[found.from];
}

function claudeUsage({ input = 0, output = 0, cacheRead = 0, cacheWrite = 0 }: Usage): object {
  return {
    input_tokens: input,
    output_tokens: output,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
  };
}
