import type { AgentOptions, AgentTool, Middleware } from "@gyre/agent";
import type { Model, ProtocolClient, ThinkingLevel } from "@gyre/ai";
import { cutText } from "@gyre/ai/text";
import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { readingOnly } from "../reading-only.ts";
import { oracleEntry } from "./entry.ts";

/** Turns of the oracle, by default. */
export const DEFAULT_ORACLE_TURNS = 20;
/** Files given along with a question. */
export const MAX_ORACLE_FILES = 20;
/** Of one file; a larger one has to be read in pieces. */
export const MAX_ORACLE_FILE_BYTES: number = 100 * 1024;
/** A call, with all that the oracle does. */
export const ORACLE_TIMEOUT_MS = 1_800_000;
/** Its own calls have to be ended before it can answer an abort. */
const ORACLE_ABORT_GRACE_MS = 1_000;
const SHOWN_QUESTION_CHARS = 120;

export interface OracleOptions {
  /** The way to the model. */
  client: ProtocolClient;
  /** The one that is asked: another than the agent's own. */
  model: Model;
  thinkingLevel?: ThinkingLevel;
  /** For each question; what is left of the run's own limits holds as well. */
  budget?: { maxTurns?: number; maxCostUsd?: number; maxTokens?: number };
  /** The tools that it may use. Each has to declare its access, and a call that does more than read is refused. */
  tools?: readonly AgentTool[];
  systemPrompt?: string;
  /** Around its calls, as around those of the agent that asks. */
  middleware?: readonly Middleware[];
  /** Further settings of the agent that answers. */
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
}

const PARAMETERS = {
  type: "object",
  properties: {
    question: { type: "string", minLength: 1, description: "With all that matters" },
    files: {
      type: "array",
      items: { type: "string" },
      maxItems: MAX_ORACLE_FILES,
    },
  },
  required: ["question"],
} as const;

/**
 * Another model as a tool: asked a question, with a context of its own and tools that
 * only read. What it costs counts into the run. Throws on a tool that does not declare what
 * a call would do.
 */
export function oracleTool(env: ToolEnv, options: OracleOptions): GuardedTool {
  const tools = (options.tools ?? []).map(restrict);
  return defineEntryTool(oracleEntry, {
    label: "Oracle",
    description:
      "Asks another model for advice: a plan, a review, a hard bug. It sees files, not this conversation. Slow, costly.",
    parameters: PARAMETERS,
    concurrent: true,
    timeoutMs: ORACLE_TIMEOUT_MS,
    abortGraceMs: ORACLE_ABORT_GRACE_MS,
    async execute(args, context) {
      const { askOracle } = await import("./run.ts");
      return askOracle(env, { ...options, tools }, args, context);
    },
    async access({ question, files }) {
      const paths = Array.isArray(files) ? files.map(String) : [];
      const resolved = await Promise.all(paths.map((path) => env.workspace.resolve(path)));
      const { provider, id } = options.model;
      const reads = resolved.map(({ path }) => path);
      return {
        kind: "agent",
        targets: [`${provider}/${id}`, ...reads],
        reads,
        summary: `Ask ${provider}/${id}: ${cutText(String(question), SHOWN_QUESTION_CHARS)}`,
      };
    },
  });
}

/** The tool, refusing each call that would do more than read. */
function restrict(tool: AgentTool): AgentTool {
  const restricted = readingOnly(tool);
  if (restricted) return restricted;
  throw new TypeError(
    `The oracle cannot be given the tool "${tool.name}": it does not declare what a call would do, so it may do more than read.`,
  );
}
