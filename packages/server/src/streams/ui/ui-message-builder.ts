import { isRecord } from "@gyre/ai";
import type { UIMessageChunk, UIProviderMetadata } from "./ui-chunks.ts";

/** The state of a call on a page. */
export type UIToolState =
  | "input-streaming"
  | "input-available"
  | "approval-requested"
  | "approval-responded"
  | "output-available"
  | "output-error"
  | "output-denied";

/** A call on a page. */
export interface UIToolPart {
  type: `tool-${string}` | "dynamic-tool";
  /** Of a `dynamic-tool`. */
  toolName?: string;
  toolCallId: string;
  state: UIToolState;
  input?: unknown;
  output?: unknown;
  errorText?: string;
  preliminary?: boolean;
  providerExecuted?: boolean;
  approval?: { id: string; approved?: boolean; reason?: string; requestReason?: string };
  callProviderMetadata?: UIProviderMetadata;
}

/** A part of a message on a page. */
export type UIMessagePart =
  | {
      type: "text" | "reasoning";
      text: string;
      state?: "streaming" | "done";
      providerMetadata?: UIProviderMetadata;
    }
  | { type: "step-start" }
  | {
      type: "file";
      mediaType: string;
      url: string;
      filename?: string;
      providerMetadata?: UIProviderMetadata;
    }
  | { type: "source-url"; sourceId: string; url: string; title?: string }
  | { type: "source-document"; sourceId: string; mediaType: string; title: string }
  | { type: `data-${string}`; id?: string; data: unknown }
  | UIToolPart;

/** A message of the AI SDK, as `useChat` keeps it. */
export interface UIMessage {
  id: string;
  role: "system" | "user" | "assistant";
  metadata?: unknown;
  parts: UIMessagePart[];
}

/** Builds the message of a page from its chunks. Arguments in the middle are not parsed. */
export class UIMessageBuilder {
  readonly message: UIMessage;
  readonly #blocks = new Map<string, Extract<UIMessagePart, { text: string }>>();

  /** `continues`: the message to go on with, which is changed. */
  constructor(id: string, continues?: UIMessage) {
    this.message = continues ?? { id, role: "assistant", parts: [] };
  }

  add(chunk: UIMessageChunk): void {
    const { message } = this;
    const { parts } = message;
    switch (chunk.type) {
      case "start-step":
        parts.push({ type: "step-start" });
        break;
      case "text-start":
      case "reasoning-start": {
        const type = chunk.type === "text-start" ? "text" : "reasoning";
        const part = { type, text: "", state: "streaming" } as const;
        const own = { ...part };
        this.#blocks.set(`${type}:${chunk.id}`, own);
        parts.push(own);
        break;
      }
      case "text-delta":
      case "reasoning-delta": {
        const part = this.#findBlock(chunk.type, chunk.id);
        if (part) part.text += chunk.delta;
        break;
      }
      case "text-end":
      case "reasoning-end": {
        const part = this.#findBlock(chunk.type, chunk.id);
        if (part) part.state = "done";
        if (part && chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata;
        break;
      }
      case "tool-input-start":
        this.#tool(chunk, "input-streaming");
        break;
      case "tool-input-available": {
        const part = this.#tool(chunk, "input-available");
        part.input = chunk.input;
        if (chunk.providerExecuted) part.providerExecuted = true;
        if (chunk.providerMetadata) part.callProviderMetadata = chunk.providerMetadata;
        break;
      }
      case "tool-input-error":
        Object.assign(this.#tool(chunk, "output-error"), {
          input: chunk.input,
          errorText: chunk.errorText,
        });
        break;
      case "tool-approval-request": {
        const part = this.#findTool(chunk.toolCallId);
        if (!part) break;
        part.state = "approval-requested";
        part.approval = {
          id: chunk.approvalId,
          ...(chunk.reason !== undefined && { requestReason: chunk.reason }),
        };
        break;
      }
      case "tool-output-available": {
        const part = this.#findTool(chunk.toolCallId);
        if (!part) break;
        part.state = "output-available";
        part.output = chunk.output;
        if (chunk.preliminary) part.preliminary = true;
        else delete part.preliminary;
        break;
      }
      case "tool-output-error": {
        const part = this.#findTool(chunk.toolCallId);
        if (!part) break;
        part.state = "output-error";
        part.errorText = chunk.errorText;
        delete part.output;
        delete part.preliminary;
        break;
      }
      case "tool-output-denied": {
        const part = this.#findTool(chunk.toolCallId);
        if (part) part.state = "output-denied";
        break;
      }
      case "file": {
        const { providerMetadata } = chunk;
        const { type, mediaType, url } = chunk;
        parts.push({ type, mediaType, url, ...(providerMetadata && { providerMetadata }) });
        break;
      }
      case "source-url":
      case "source-document":
        parts.push({ ...chunk });
        break;
      case "start":
        if (chunk.messageId !== undefined) message.id = chunk.messageId;
        this.#merge(chunk.messageMetadata);
        break;
      case "message-metadata":
      case "finish":
        this.#merge(chunk.messageMetadata);
        break;
      case "tool-input-delta":
      case "finish-step":
      case "error":
      case "abort":
        break;
      default: {
        if (chunk.transient) break;
        const { type, id, data } = chunk;
        parts.push({ type, ...(id !== undefined && { id }), data });
      }
    }
  }

  #merge(metadata: unknown): void {
    if (metadata === undefined) return;
    this.message.metadata = mergeRecords(this.message.metadata, metadata);
  }

  #findBlock(type: string, id: string): Extract<UIMessagePart, { text: string }> | undefined {
    return this.#blocks.get(`${type.slice(0, type.lastIndexOf("-"))}:${id}`);
  }

  #findTool(id: string): UIToolPart | undefined {
    return this.message.parts.findLast(
      (part): part is UIToolPart => isToolPart(part) && part.toolCallId === id,
    );
  }

  /** The part of a call in the step that is open, made where there is none. */
  #tool(
    { toolCallId, toolName, dynamic }: { toolCallId: string; toolName: string; dynamic?: boolean },
    state: UIToolState,
  ): UIToolPart {
    const { parts } = this.message;
    const from = parts.findLastIndex(({ type }) => type === "step-start");
    const known = parts
      .slice(from + 1)
      .find((part): part is UIToolPart => isToolPart(part) && part.toolCallId === toolCallId);
    if (known) {
      known.state = state;
      return known;
    }
    const part: UIToolPart = dynamic
      ? { type: "dynamic-tool", toolName, toolCallId, state }
      : { type: `tool-${toolName}`, toolCallId, state };
    parts.push(part);
    return part;
  }
}

/** Whether a part is a call. */
export function isToolPart(part: { type: string }): part is UIToolPart {
  return part.type === "dynamic-tool" || part.type.startsWith("tool-");
}

function mergeRecords(base: unknown, more: unknown): unknown {
  if (!isRecord(base) || !isRecord(more)) return more;
  const merged = { ...base };
  for (const [name, value] of Object.entries(more)) {
    merged[name] = mergeRecords(Object.hasOwn(base, name) ? base[name] : undefined, value);
  }
  return merged;
}
