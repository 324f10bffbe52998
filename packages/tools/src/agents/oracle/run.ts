import type { AgentToolResult, ToolContext } from "@gyre/agent";
import type { TextContent, UserContent } from "@gyre/ai";
import type { ToolEnv } from "../../contract/env.ts";
import { fromSource, humanSize, PROVENANCE_NOTE } from "@gyre/ai/text";
import { PathError } from "../../workspace/workspace.ts";
import { runSubAgent } from "../sub-agent.ts";
import { DEFAULT_ORACLE_TURNS, MAX_ORACLE_FILE_BYTES, type OracleOptions } from "./tool.ts";

const SYSTEM_PROMPT: string =
  "You are asked for advice by another agent. Look at what you need with your tools, which only read. " +
  "Think it through, then answer the question: your conclusion first, the reasons after it, with file names and line numbers. " +
  "Say what you are not sure of. Your last message is all that the one who asks will see. " +
  PROVENANCE_NOTE;

/** Asks the other model, with the text of the files. */
export async function askOracle(
  env: ToolEnv,
  options: OracleOptions,
  { question, files = [] }: { question: string; files?: readonly string[] },
  context: ToolContext,
): Promise<AgentToolResult> {
  const { maxTurns = DEFAULT_ORACLE_TURNS, maxCostUsd, maxTokens } = options.budget ?? {};
  const limits = {
    maxTurns,
    ...(maxCostUsd !== undefined && { maxCostUsd }),
    ...(maxTokens !== undefined && { maxTotalTokens: maxTokens }),
  };
  const given: UserContent[] = [];
  for (const path of files) given.push(await readAttachment(env, path));
  return runSubAgent({
    who: "oracle",
    agent: {
      ...options.agent,
      protocol: options.client,
      model: options.model,
      instructions: options.systemPrompt ?? SYSTEM_PROMPT,
      thinkingLevel: options.thinkingLevel ?? "off",
      tools: options.tools ?? [],
      limits,
      ...(options.middleware && { middleware: options.middleware }),
      clock: env.clock,
    },
    prompt: question,
    attachments: given,
    caller: context,
    onUpdate: context.update,
  });
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
