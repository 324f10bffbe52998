import type {
  AgentMessage,
  AgentStop,
  AgentToolResult,
  Compaction,
  Decision,
  PendingCall,
  QueuedMessage,
  QueueName,
} from "@gyre/agent";
import type { ThinkingLevel, ToolOutcome, UserMessage } from "@gyre/ai";

/** The version of the format that is written. A file of a newer one is not opened. */
export const SESSION_VERSION = 1;

/** The first line of a session file. */
export interface SessionHeader {
  type: "session";
  version: number;
  id: string;
  /** Milliseconds since 1970. */
  createdAt: number;
  /** The folder that was worked in. */
  cwd: string;
  /** What it was made from: another session, cut after one of its entries, or a file. */
  from?: { session?: string; entry?: number; file?: string };
  /** It was begun where no person is at it: `gyre -p`. */
  headless?: true;
}

/** What a run was set to. An entry holds what has changed; the newest of each counts. */
export interface SessionSettings {
  model?: { provider: string; id: string };
  thinkingLevel?: ThinkingLevel;
  systemPrompt?: string;
  /** Names, in the order in which a model gets them. */
  tools?: readonly string[];
  mode?: string;
  /** By which a program knows settings again that it has written itself; its meaning is the program's. */
  mark?: string;
}

/**
 * The body of an entry. `message` is a message of the transcript. `result` is the result of a call,
 * written before a listener gets it: its message may come later, after its siblings, and is then
 * stored as a reference. `begin`, `pending` and `decision` are about a call without a result; the
 * newest of them counts. `leaf` has no content: appending one moves
 * the end of the conversation to its parent.
 */
export type EntryBody =
  | {
      type: "message";
      message: AgentMessage;
      /** A call of this message that began has its `begin`. Absent where that is not known. */
      begins?: true;
      /** The id that the message had in a queue: it does not wait there any more. */
      queued?: string;
    }
  | {
      type: "result";
      toolCallId: string;
      toolName: string;
      result: AgentToolResult;
      isError: boolean;
      /** Absent in files of versions that did not record it. */
      outcome?: ToolOutcome;
      reason?: string;
    }
  /** The tool is about to run: from here on the call may have had effects. */
  | { type: "begin"; toolCallId: string; toolName: string }
  /** A person is about to be asked about the call, or is waited for. */
  | ({ type: "pending"; toolCallId: string } & Omit<PendingCall, "toolCall">)
  /** What the person said. It is acted on after it was written. */
  | { type: "decision"; toolCallId: string; decision: Decision }
  | {
      /** What waits for the agent, up to the next `leaf`. */
      type: "queue";
      queue: QueueName;
      /** All of them, in order. Without it the messages are added at the end: what is written grows with what is added. */
      ids?: readonly string[];
      /** Those that are new, or were edited. */
      messages?: readonly QueuedMessage[];
    }
  /**
   * A run starts, with the message before it if that is a prompt. `durationMs`: it goes on with the
   * one that was cut off, and had taken that long.
   */
  | { type: "start"; durationMs?: number }
  /** The run has ended. Without it, it was cut off. */
  | { type: "end"; stop: AgentStop }
  | { type: "settings"; settings: SessionSettings }
  | {
      /** What is sent in place of the messages from entry `first` up to, not including, `until`. */
      type: "compaction";
      first: number;
      /** Null: up to the end. */
      until: number | null;
      /** Absent: nothing is left out. */
      message?: UserMessage;
      /**
       * The entries that it stands for, where they are not just the messages between the two
       * in the file: a result that was put in its place later, say.
       */
      entries?: readonly number[];
      /** What is sent in place of a result's text, by call id. */
      shortened?: NonNullable<Compaction["shortened"]>;
      /** What is known of all that was left out so far. */
      facts?: NonNullable<Compaction["facts"]>;
    }
  | { type: "title"; title: string }
  /** Puts the session away, or takes it back. A message that follows takes it back too. */
  | { type: "archive"; archived: boolean }
  | { type: "label"; entry: number; label: string | null }
  | { type: "leaf" }
  | { type: "custom"; kind: string; data: unknown };

/** A node of the tree. Ids count up within a file, from 1. */
export type Entry = EntryBody & {
  id: number;
  parentId: number | null;
  /** Milliseconds since 1970. */
  timestamp: number;
};

/** What a line of a session file can be. */
export type EntryType = EntryBody["type"];
