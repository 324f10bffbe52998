import { readToolError, readToolOutput } from "@gyre/agent";
import {
  type AssistantMessage,
  type Citation,
  type FileContent,
  type ImageContent,
  outcomeOf,
  toFile,
  toFileUrl,
  type ToolCall,
  type ToolResultMessage,
  type UserContent,
  type UserMessage,
} from "@gyre/ai";
import { copyPlain } from "./copy-plain.ts";
import type {
  ErrorPart,
  FilePart,
  SourcePart,
  ToolApproval,
  ToolPart,
  ViewPart,
} from "./view-message.ts";

type AssistantBlock = AssistantMessage["content"][number];

/** What is known of a call that has no result yet. */
export interface OpenCall {
  readonly isRunning: boolean;
  readonly progress?: unknown;
  readonly approval?: ToolApproval;
}

/** The parts of a block. `isStreaming`: it may still grow. */
export function toBlockParts(
  block: Exclude<AssistantBlock, ToolCall>,
  isStreaming: boolean,
): ViewPart[] {
  const state = isStreaming ? "streaming" : "done";
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text, state }, ...(block.citations ?? []).map(toSource)];
    case "thinking":
      return [{ type: "reasoning", text: block.thinking, state }];
    case "image":
    case "file":
      return [toFilePart(block)];
    case "serviceTool": {
      const { type, id, name, input, output } = block;
      return [{ type, id, name, input, output }];
    }
    default:
      // A block that a newer version has added.
      block satisfies never;
      return [];
  }
}

/** A call whose arguments are being written. */
export function toWrittenCall({ id, name, arguments: args }: ToolCall): ToolPart {
  return { type: "tool", id, name, state: "input-streaming", input: copyPlain(args) };
}

/** A call that is in the transcript, without a result. */
export function toOpenCall(
  { id, name, arguments: input }: ToolCall,
  { isRunning, progress, approval }: OpenCall,
): ToolPart {
  const of = { type: "tool", id, name, input } as const;
  if (approval) {
    const state = approval.approved === undefined ? "approval-requested" : "approval-responded";
    return { ...of, state, approval };
  }
  const reported = progress === undefined ? {} : { progress };
  return { ...of, state: "input-available", isRunning, ...reported };
}

/** A call with its result, and the places that the result names. */
export function toEndedCall(
  { id, name, arguments: input }: ToolCall,
  result: ToolResultMessage,
): ViewPart[] {
  const of = { type: "tool", id, name, input } as const;
  const outcome = outcomeOf(result);
  const sources = result.content.flatMap((block) =>
    block.type === "text" && block.source ? [toNamedSource(block.source.name)] : [],
  );
  if (outcome === "denied") {
    const reason = result.reason ?? readToolError(result);
    return [{ ...of, state: "output-denied", reason }];
  }
  if (outcome !== "ok") {
    const errorText = readToolError(result);
    return [{ ...of, state: "output-error", errorText, outcome }, ...sources];
  }
  return [{ ...of, state: "output-available", output: readToolOutput(result) }, ...sources];
}

export function toUserParts(content: UserMessage["content"]): ViewPart[] {
  if (typeof content === "string") return [{ type: "text", text: content, state: "done" }];
  return content.map(toUserPart);
}

function toUserPart(block: UserContent): ViewPart {
  if (block.type === "text") return { type: "text", text: block.text, state: "done" };
  return toFilePart(block);
}

/** Why an answer failed; nothing where it did not. */
export function toErrorPart(message: AssistantMessage): ErrorPart | undefined {
  const { stopReason, errorMessage = "The answer failed.", failure } = message;
  if (stopReason !== "error") return undefined;
  return { type: "error", text: errorMessage, kind: failure?.kind ?? "unknown" };
}

function toFilePart(block: ImageContent | FileContent): FilePart {
  const file = toFile(block);
  const { mediaType, name, source } = file;
  const hasAddress = source.type === "base64" || source.type === "url";
  return {
    type: "file",
    mediaType,
    ...(name !== undefined && { name }),
    ...(hasAddress && { url: toFileUrl(file) }),
    source,
  };
}

function toSource({ url, title, text, page }: Citation): SourcePart {
  return {
    type: "source",
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(text !== undefined && { text }),
    ...(page !== undefined && { page }),
  };
}

function toNamedSource(name: string): SourcePart {
  return { type: "source", title: name, ...(/^https?:/.test(name) && { url: name }) };
}
