import type { AgentEvent, AgentToolResult } from "@gyre/agent";
import type { CompactEvent, MessageHead } from "@gyre/ai/stream";

/**
 * Live events of one session, in the order in which its worker made them. Events of an activation
 * count from 1, so that one that was lost shows.
 */
export interface Packet {
  readonly session: string;
  /** The activation that they are of. */
  readonly token: number;
  /** The number of the last of them. */
  readonly last: number;
  /** The entry of the log that they follow. */
  readonly base: number;
  readonly events: readonly LiveWire[];
  /** It stands for all events up to `last`: what goes on at that moment. */
  readonly isWhole?: true;
}

/**
 * Carries live events between processes that share a store. What it carries may be lost, and comes
 * in order from each process. Nothing that is stored depends on it.
 */
export interface Bus {
  /** Passes on what others send of a session, until the returned function is called. */
  follow(session: string, listener: (packet: Packet) => void): () => void;
  /** Asks the process that works on a session for all of what goes on. */
  ask(session: string): void;
  /**
   * Notices what others follow, as a process does that has a worker. `onWanted` is called for a
   * session that another process begins to follow, or asks for.
   */
  serve(onWanted: (session: string) => void): () => void;
  /** Whether another process follows a session. */
  isFollowed(session: string): boolean;
  /** Sends to those that follow. Resolves to the milliseconds that the caller waits before it sends again. */
  send(packets: readonly Packet[]): Promise<number>;
}

/** A live event as it travels: without the partial message, which the other end builds. */
export type LiveWire =
  | { readonly type: "message_start"; readonly message: MessageHead }
  | { readonly type: "message_update"; readonly event: CompactEvent }
  /** It is stored: what comes next is another message. */
  | { readonly type: "message_end" }
  | ({ readonly type: "tool_execution_start" } & LiveCall)
  | ({ readonly type: "tool_execution_update"; readonly partialResult: AgentToolResult } & LiveCall)
  | { readonly type: "tool_execution_end"; readonly toolCallId: string }
  | PassingEvent;

/** `args` are left out where an earlier event had them. */
export interface LiveCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args?: Record<string, unknown>;
}

/** Events that change nothing which goes on. */
export type PassingEvent = Extract<AgentEvent, { type: "retry" | "waiting" | "fallback" }>;
