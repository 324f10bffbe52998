import {
  type AgentOptions,
  type AgentTool,
  type AgentToolResult,
  defineTool,
  type Middleware,
} from "@gyre/agent";
import type { Model, ProtocolClient, TextContent, ThinkingLevel, UserContent } from "@gyre/ai";
import { type GuardedTool, isGuarded } from "../../contract/access.ts";
import type { ToolEnv } from "../../contract/env.ts";
import { fromSource, PROVENANCE_NOTE } from "../../text/provenance.ts";
import { runSubAgent, tighter, usedUp } from "../sub-agent.ts";
import { cutText, humanSize } from "../../text/truncate.ts";
import { PathError } from "../../workspace/workspace.ts";
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

const SYSTEM_PROMPT: string =
  "You are asked for advice by another agent. Look at what you need with your tools, which only read. " +
  "Think it through, then answer the question: your conclusion first, the reasons after it, with file names and line numbers. " +
  "Say what you are not sure of. Your last message is all that the one who asks will see. " +
  PROVENANCE_NOTE;

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
  agent?: Pick<AgentOptions, "context" | "fallbackModels" | "getApiKey" | "retry" | "watchdog">;
}

const PARAMETERS = {
  type: "object",
  properties: {
    question: {
      type: "string",
      minLength: 1,
      description: "What you want to know, with all that is needed to understand it.",
    },
    files: {
      type: "array",
      items: { type: "string" },
      maxItems: MAX_ORACLE_FILES,
      description: "Paths of files that the question is about. Their text is given along.",
    },
  },
  required: ["question"],
  additionalProperties: false,
} as const;

/**
 * Another model as a tool: asked a question, with a context of its own and tools that
 * only read. What it costs counts into the run. Throws on a tool that does not declare what
 * a call would do.
 */
export function oracleTool(env: ToolEnv, options: OracleOptions): GuardedTool {
  const tools = (options.tools ?? []).map(readingOnly);
  const { maxTurns = DEFAULT_ORACLE_TURNS, maxCostUsd, maxTokens } = options.budget ?? {};
  const limits = {
    maxTurns,
    ...(maxCostUsd !== undefined && { maxCostUsd }),
    ...(maxTokens !== undefined && { maxTotalTokens: maxTokens }),
  };
  const tool = defineTool({
    name: oracleEntry.name,
    presentation: oracleEntry.presentation,
    label: "Oracle",
    description:
      "Asks another, stronger model for advice: a plan, a review, the cause of a fault that is hard to find. " +
      "It sees nothing of this conversation, so say all that matters, and name the files. It can look at files and changes nothing. It takes a while and costs money.",
    parameters: PARAMETERS,
    concurrent: true,
    timeoutMs: ORACLE_TIMEOUT_MS,
    abortGraceMs: ORACLE_ABORT_GRACE_MS,
    async execute(
      { question, files = [] },
      { id, signal, update: onUpdate, host },
    ): Promise<AgentToolResult> {
      const left = host.left?.() ?? {};
      const spent = usedUp(left);
      if (spent) throw new Error(`nothing is left of the run's limit ${spent}.`);
      const given: UserContent[] = [];
      for (const path of files) given.push(await readAttachment(env, path));
      return runSubAgent({
        who: "oracle",
        agent: {
          ...options.agent,
          protocol: options.client,
          initialState: {
            model: options.model,
            systemPrompt: options.systemPrompt ?? SYSTEM_PROMPT,
            thinkingLevel: options.thinkingLevel ?? "off",
            tools,
          },
          limits: tighter(limits, left),
          ...(options.middleware && { middleware: options.middleware }),
          clock: env.clock,
        },
        prompt: question,
        attachments: given,
        callId: id,
        signal,
        onUpdate,
      });
    },
  });
  return {
    ...tool,
    async access({ question, files }) {
      const paths = Array.isArray(files) ? files.map(String) : [];
      const resolved = await Promise.all(paths.map((path) => env.workspace.resolve(path)));
      const { provider, id } = options.model;
      return {
        kind: "agent",
        targets: [`${provider}/${id}`, ...resolved.map(({ path }) => path)],
        summary: `Ask ${provider}/${id}: ${cutText(String(question), SHOWN_QUESTION_CHARS)}`,
      };
    },
  };
}

/** The tool, refusing each call that would do more than read. */
function readingOnly(tool: AgentTool): AgentTool {
  if (!isGuarded(tool)) {
    throw new TypeError(
      `The oracle cannot be given the tool "${tool.name}": it does not declare what a call would do, so it may do more than read.`,
    );
  }
  return {
    ...tool,
    async execute(args, context) {
      const { kind, destructive, summary } = await tool.access(args);
      if ((kind !== "read" && kind !== "none") || destructive) {
        throw new Error(
          `only reading is allowed here, and this would do more (${kind}): ${summary}`,
        );
      }
      return tool.execute(args, context);
    },
  };
}

/** A file as a part of the question, or why it is not there. */
async function readAttachment(env: ToolEnv, path: string): Promise<TextContent> {
  try {
    const { bytes, info } = await env.workspace.read(path, MAX_ORACLE_FILE_BYTES);
    if (bytes.includes(0)) {
      return plain(`File ${path} is binary (${humanSize(bytes.length)}); it is not given.`);
    }
    const text = new TextDecoder().decode(bytes);
    return fromSource({ kind: "file", name: info.path }, text);
  } catch (error) {
    if (error instanceof PathError && error.fault === "too_large") {
      return plain(
        `File ${path} is larger than ${humanSize(MAX_ORACLE_FILE_BYTES)} and is not given: read it in pieces.`,
      );
    }
    throw error;
  }
}

function plain(text: string): TextContent {
  return { type: "text", text };
}
