import { readToolError, readToolOutput } from "@gyre/agent";
import { type FileContent, type ImageContent, toFile, toFileUrl, type ToolCall } from "@gyre/ai";
import type { GrowingBlock, Part } from "../common/part-reader.ts";
import type { UIMessageChunk, UIProviderMetadata } from "./ui-chunks.ts";
import { isToolPart, type UIMessage } from "./ui-message-builder.ts";
import {
  type MessageRecord,
  nameDropped,
  RECORD_KEY,
  toCallRecord,
  toResultRecord,
  toState,
  toStepRecord,
} from "./ui-records.ts";

/** What a page reads of a call whose arguments were cut off. */
const DROPPED_TEXT = "The call was cut off before it was complete, and was not run.";

export interface UIWriterOptions {
  /** Tools that the page has no type for: their parts are `dynamic-tool`. */
  isDynamic?: ((toolName: string) => boolean) | undefined;
  /** Whether thoughts are sent. Default true. */
  sendReasoning?: boolean | undefined;
  /** Whether the message has what `fromUIMessages` needs to restore the transcript. Default true. */
  sendRecords?: boolean | undefined;
  /** The message of the page that the run goes on with, after an approval say. */
  continues?: UIMessage | undefined;
  /** The run is of `continueRun()`: a user's message at its beginning is new to the page. */
  isContinued?: boolean | undefined;
}

/** Writes the parts of a run, all but its end, as chunks of the UI message stream. */
export class UIWriter {
  readonly #options: UIWriterOptions;
  readonly #hasThoughts: boolean;
  #step: number;
  #users = 0;
  #isPastPrompt: boolean;
  /** Calls that the message has a part of: a page fails on the result of any other. */
  readonly #shown = new Set<string>();

  constructor(options: UIWriterOptions = {}) {
    this.#options = options;
    this.#hasThoughts = options.sendReasoning ?? true;
    this.#step = countSteps(options.continues);
    for (const part of options.continues?.parts ?? []) {
      if (isToolPart(part)) this.#shown.add(part.toolCallId);
    }
    this.#isPastPrompt = options.isContinued ?? false;
  }

  write(part: Exclude<Part, { type: "end" }>): UIMessageChunk[] {
    switch (part.type) {
      case "step_start":
        this.#isPastPrompt = true;
        return [{ type: "start-step" }];
      case "block_start":
        return this.#isHidden(part.kind)
          ? []
          : [{ type: `${nameBlock(part.kind)}-start`, id: part.id }];
      case "block_delta":
        return this.#isHidden(part.kind)
          ? []
          : [{ type: `${nameBlock(part.kind)}-delta`, id: part.id, delta: part.delta }];
      case "block_end": {
        const { block, id } = part;
        const type = `${nameBlock(block.type)}-end` as const;
        return this.#isHidden(block.type)
          ? []
          : [{ type, id, ...this.#extra(describeBlock(block)) }];
      }
      case "call_start":
        this.#shown.add(part.id);
        return [this.#startCall(part.id, part.name)];
      case "call_delta":
        return [{ type: "tool-input-delta", toolCallId: part.id, inputTextDelta: part.delta }];
      case "call":
        return this.#writeCall(part.call);
      case "dropped": {
        const { id: toolCallId, name: toolName, text: input } = part;
        const chunk = { toolCallId, toolName, input, errorText: DROPPED_TEXT };
        return [
          { type: "tool-input-error", ...chunk, ...this.#dynamic(toolName) },
          ...this.#record({ dropped: { [nameDropped(this.#step, toolCallId)]: true } }),
        ];
      }
      case "service_tool": {
        const { id: toolCallId, block } = part;
        const { name: toolName, input = {}, output } = block;
        const of = { toolCallId, providerExecuted: true, dynamic: true };
        return [
          { type: "tool-input-available", ...of, toolName, input, ...this.#extra({ block }) },
          ...(output === undefined
            ? []
            : [{ type: "tool-output-available" as const, ...of, output }]),
        ];
      }
      case "file":
        return this.#writeFile(part.block);
      case "step_end": {
        const steps = { [String(this.#step++)]: toStepRecord(part.message) };
        return [...this.#record({ steps }), { type: "finish-step" }];
      }
      case "progress": {
        if (!this.#shown.has(part.id)) return [];
        const output = readToolOutput(part.result);
        const of = { toolCallId: part.id, ...this.#dynamic(part.name) };
        return [{ type: "tool-output-available", ...of, output, preliminary: true }];
      }
      case "result": {
        const { id: toolCallId, name, outcome, result } = part;
        if (!this.#shown.has(toolCallId)) return [];
        const state = toState({ outcome, isError: outcome !== "ok" });
        if (state === "output-denied") return [{ type: "tool-output-denied", toolCallId }];
        const of = { toolCallId, ...this.#dynamic(name) };
        if (state === "output-error") {
          return [{ type: "tool-output-error", ...of, errorText: readToolError(result) }];
        }
        return [{ type: "tool-output-available", ...of, output: readToolOutput(result) }];
      }
      case "result_message": {
        const { message } = part;
        const { toolCallId } = message;
        if (!this.#shown.has(toolCallId)) return [];
        const sources = message.content.flatMap((block, at): UIMessageChunk[] => {
          if (block.type !== "text" || !block.source) return [];
          const sourceId = `${toolCallId}.${at}`;
          const { name: title } = block.source;
          return /^https?:/.test(title)
            ? [{ type: "source-url", sourceId, url: title, title }]
            : [{ type: "source-document", sourceId, mediaType: "text/plain", title }];
        });
        const results = { [toolCallId]: toResultRecord(message) };
        return [...sources, ...this.#record({ results })];
      }
      case "user": {
        // What begins the run is on the page already.
        if (!this.#isPastPrompt) return [];
        const { message } = part;
        const id = `steering-${this.#step}.${this.#users++}`;
        return [{ type: "data-steering", id, data: message }];
      }
      case "status": {
        // The message of a service may name its address.
        const { event } = part;
        const data =
          event.type === "compaction"
            ? { type: event.type, before: event.before, after: event.after }
            : { ...event, errorMessage: undefined };
        return [{ type: "data-status", data, transient: true }];
      }
      default:
        return part satisfies never;
    }
  }

  /** Whether the message has a part of a call. */
  hasCall(id: string): boolean {
    return this.#shown.has(id);
  }

  #writeCall(call: ToolCall): UIMessageChunk[] {
    const { id: toolCallId, name: toolName, arguments: input, argumentsError } = call;
    const record = toCallRecord(call);
    this.#shown.add(toolCallId);
    const of = { toolCallId, toolName, ...this.#dynamic(toolName) };
    const chunk: UIMessageChunk =
      argumentsError === undefined
        ? { type: "tool-input-available", ...of, input }
        : {
            type: "tool-input-error",
            ...of,
            input: call.rawArguments ?? "",
            errorText: argumentsError,
          };
    return [chunk, ...(record ? this.#record({ calls: { [toolCallId]: record } }) : [])];
  }

  #writeFile(block: ImageContent | FileContent): UIMessageChunk[] {
    const file = toFile(block);
    const { mediaType, source } = file;
    const extra = this.#extra({ block: withoutData(block) });
    // A file that only its service knows has no address for a page.
    const url = source.type === "base64" || source.type === "url" ? toFileUrl(file) : "data:,";
    return [{ type: "file", url, mediaType, ...extra }];
  }

  #startCall(toolCallId: string, toolName: string): UIMessageChunk {
    return { type: "tool-input-start", toolCallId, toolName, ...this.#dynamic(toolName) };
  }

  #dynamic(name: string): { dynamic?: true } {
    return this.#options.isDynamic?.(name) ? { dynamic: true } : {};
  }

  #isHidden(kind: GrowingBlock["type"]): boolean {
    return kind === "thinking" && !this.#hasThoughts;
  }

  #extra(fields: Record<string, unknown> | undefined): { providerMetadata?: UIProviderMetadata } {
    if (!fields || this.#options.sendRecords === false) return {};
    return { providerMetadata: { [RECORD_KEY]: fields } };
  }

  #record(record: MessageRecord): UIMessageChunk[] {
    if (this.#options.sendRecords === false) return [];
    return [{ type: "message-metadata", messageMetadata: { [RECORD_KEY]: record } }];
  }
}

/** How many answers a message has. */
export function countSteps(message: UIMessage | undefined): number {
  return message?.parts.filter(({ type }) => type === "step-start").length ?? 0;
}

/** What a block has beside its text. */
function describeBlock(block: GrowingBlock): Record<string, unknown> | undefined {
  const { signature } = block;
  const fields = {
    ...(signature !== undefined && { signature }),
    ...(block.type === "thinking" && block.redacted && { redacted: true }),
    ...(block.type === "text" && block.source && { source: block.source }),
  };
  return Object.keys(fields).length > 0 ? fields : undefined;
}

/** The block without its contents, which are in the address. */
function withoutData(block: ImageContent | FileContent): Record<string, unknown> {
  if (block.type === "image") return { ...block, data: "" };
  const { source } = block;
  return { ...block, source: source.type === "base64" ? { ...source, data: "" } : source };
}

function nameBlock(kind: GrowingBlock["type"]): "text" | "reasoning" {
  return kind === "text" ? "text" : "reasoning";
}
