/** What a part has that only this library reads, under the key `gyre`. */
export type UIProviderMetadata = Record<string, Record<string, unknown>>;

interface WithMetadata {
  providerMetadata?: UIProviderMetadata;
}
interface OfCall {
  toolCallId: string;
  /** The page has no type for the tool. */
  dynamic?: boolean;
  providerExecuted?: boolean;
}

export type UIFinishReason =
  | "stop"
  | "length"
  | "content-filter"
  | "tool-calls"
  | "error"
  | "other";

/** A part of an application's own, shown by a page that knows its type. */
export interface UIDataChunk {
  type: `data-${string}`;
  id?: string;
  data: unknown;
  /** It is not kept in the message. */
  transient?: boolean;
}

/** A piece of the AI SDK's UI message stream, as `toUIMessageStream` writes it: versions 6 and 7 read it. */
export type UIMessageChunk =
  | { type: "start"; messageId?: string; messageMetadata?: unknown }
  | { type: "start-step" | "finish-step" }
  | ({ type: "text-start" | "reasoning-start"; id: string } & WithMetadata)
  | { type: "text-delta" | "reasoning-delta"; id: string; delta: string }
  | ({ type: "text-end" | "reasoning-end"; id: string } & WithMetadata)
  | ({ type: "tool-input-start"; toolName: string } & OfCall)
  | { type: "tool-input-delta"; toolCallId: string; inputTextDelta: string }
  | ({ type: "tool-input-available"; toolName: string; input: unknown } & OfCall & WithMetadata)
  | ({ type: "tool-input-error"; toolName: string; input: unknown; errorText: string } & OfCall)
  | { type: "tool-approval-request"; approvalId: string; toolCallId: string; reason?: string }
  | ({ type: "tool-output-available"; output: unknown; preliminary?: boolean } & OfCall)
  | ({ type: "tool-output-error"; errorText: string } & OfCall)
  | { type: "tool-output-denied"; toolCallId: string }
  | ({ type: "file"; url: string; mediaType: string } & WithMetadata)
  | { type: "source-url"; sourceId: string; url: string; title?: string }
  | { type: "source-document"; sourceId: string; mediaType: string; title: string }
  | { type: "message-metadata"; messageMetadata: unknown }
  | { type: "error"; errorText: string }
  | { type: "abort"; reason?: string }
  | { type: "finish"; finishReason?: UIFinishReason; messageMetadata?: unknown }
  | UIDataChunk;
