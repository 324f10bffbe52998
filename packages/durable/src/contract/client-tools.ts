import type { AgentToolResult } from "@gyre/agent";
import { isRecord, type JsonSchema } from "@gyre/ai";
import type { Entry } from "@gyre/sessions";

/** A tool that runs at a client of a server. */
export interface ClientToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly concurrent?: boolean;
  readonly timeoutMs?: number;
}

/** A client that registers tools with a session, in place of those that it had. */
export interface NewToolClient {
  readonly session: string;
  /** Identifies the client over all its connections. It is in the log, and so no secret. */
  readonly client: string;
  /** Identifies this registration: one that comes later replaces it. */
  readonly holder: string;
  /** The client answers calls that came to it by an earlier connection. */
  readonly keepsCalls: boolean;
  readonly tools: readonly ClientToolSpec[];
  /** How long it stays without `renew`. */
  readonly graceMs: number;
}

export interface ToolClientRow extends Pick<NewToolClient, "client" | "holder" | "keepsCalls"> {
  /** JSON of its tools. */
  readonly tools: string;
  /** How long it stays; always above 0. */
  readonly leftMs: number;
}

/** `taken`: another client of the session has a tool of this name, and nothing was written. */
export type RegisterOutcome = "registered" | "not found" | { readonly taken: string };

/**
 * The tools that clients of servers have registered with sessions. Every change wakes the session:
 * see `Inbox.toolChanges`.
 */
export interface ToolClientTable {
  register(client: NewToolClient): Promise<RegisterOutcome>;
  /** Removes a client, unless another registration has replaced this one. */
  remove(client: Pick<NewToolClient, "session" | "client" | "holder">): Promise<void>;
  /** Keeps clients by their registrations. */
  renew(holders: readonly string[], graceMs: number): Promise<void>;
  /** Removes the clients of a session whose time is over. */
  sweep(session: string): Promise<void>;
  /** Those of a session whose time is not over, in the order in which they came. */
  read(session: string): Promise<ToolClientRow[]>;
}

const CALL = "client_call";
const CANCEL = "client_cancel";

/** A call of a client tool, as the log has it: the server that has the client passes it on. */
export interface ClientCall {
  /** Unique, and a secret of the client: it is enough to answer with. */
  readonly call: string;
  readonly client: string;
  /** The registration that the client had when the tool was called. */
  readonly holder: string;
  readonly run: string;
  readonly toolCallId: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

type CustomBody = { type: "custom"; kind: string; data: unknown };

export function toCallEntry(call: ClientCall): CustomBody {
  return { type: "custom", kind: CALL, data: call };
}

/** The run does not wait for the call any more. */
export function toCancelEntry(call: string): CustomBody {
  return { type: "custom", kind: CANCEL, data: { call } };
}

/** The call of a client tool that an entry has. */
export function readClientCall(entry: Entry): ClientCall | undefined {
  if (entry.type !== "custom" || entry.kind !== CALL) return undefined;
  return isRecord(entry.data) ? (entry.data as unknown as ClientCall) : undefined;
}

/** The name of the call that an entry cancels. */
export function readClientCancel(entry: Entry): string | undefined {
  if (entry.type !== "custom" || entry.kind !== CANCEL || !isRecord(entry.data)) return undefined;
  return String(entry.data["call"]);
}

/** How a client has answered a call: the data of an item of the kind `answer`. */
export type ClientAnswer = { readonly call: string } & (
  | { readonly result: AgentToolResult }
  | { readonly error: string }
);

/** The key of the answer to a call: the first one counts. */
export function toAnswerKey(call: string): string {
  return `answer:${call}`;
}

/** Throws on what is no answer. */
export function readClientAnswer(value: unknown): ClientAnswer {
  if (isRecord(value) && typeof value["call"] === "string") {
    const { call, error, result } = value;
    if (typeof error === "string") return { call, error };
    if (isRecord(result) && Array.isArray(result["content"])) {
      return { call, result: result as unknown as AgentToolResult };
    }
  }
  throw new TypeError("An answer has the name of a call, and a result or an error.");
}
