/**
 * What every library is asked to do, so that all are measured on the same work. A
 * folder beside this file is a library with its pinned versions; its `peer.ts` says in
 * that library's own terms, as its documentation would have it, what a `Peer` is here.
 */

/** A piece of what a model sends. */
export type Part =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "call"; readonly id: string; readonly name: string }
  | { readonly type: "arguments"; readonly delta: string };

/**
 * One answer of the model: the parts that arrive with each read of a socket. A model
 * hands on all parts of a read before it waits for the next one. Arguments belong to
 * the call before them. An answer with calls ends for its tools, another just ends. The
 * iterable throws where the stream is to fail midway, and waits where it is to stall.
 */
export type Answer = AsyncIterable<readonly Part[]>;

/** A tool; all of its parameters are needed. `signal` is passed on where there is one. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, "string" | "number">>;
  readonly run: (input: Record<string, unknown>, signal?: AbortSignal) => Promise<string>;
}

/** A message without the form of any library. `answers` is the id of the call of a result. */
export interface Plain {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
  readonly calls?: readonly { id: string; name: string; input: Record<string, unknown> }[];
  readonly answers?: string;
  /** The tool's name, of a result. */
  readonly name?: string;
}

export interface Work {
  /** What the model says when it is asked for the nth time in this run, from 0; may throw. */
  readonly answer: (nth: number) => Answer;
  readonly tools?: readonly Tool[];
  /** What was said before the prompt "go". */
  readonly history?: readonly Plain[];
  readonly signal?: AbortSignal;
  /** Called for each event that the consumer gets; awaited before the next is asked for. */
  readonly event?: () => void | Promise<void>;
  /**
   * Given to the library as a function that it calls to report what happens, besides
   * the stream: a listener, a callback, `onChunk`. The event's name is the library's.
   */
  readonly listener?: (event: string) => void;
  /** Given to the library as a hook that it runs before it asks the model. */
  readonly hook?: () => void;
}

/** What the caller is left with, whatever became of the run. */
export interface Outcome {
  /** What the consumer got: deltas of text, the characters in them, deltas of arguments. */
  readonly textDeltas: number;
  readonly textChars: number;
  readonly argumentDeltas: number;
  /**
   * The conversation as the library has it: what was given, and what the run added. Put
   * into this form when it is asked for: no application would do that, so it is not measured.
   */
  readonly messages: readonly Plain[];
  /** What the library threw at its caller, if it did. */
  readonly error?: string;
}

/** A stream of a service on loopback, read with the library's own client. */
export interface HttpWork {
  /** The address that takes the place of the service's own, such as `http://127.0.0.1:1/x`. */
  readonly baseUrl: string;
  readonly signal?: AbortSignal;
  /** Called for each delta of text. */
  readonly text: (delta: string) => void;
}

export interface Peer {
  /** The heading of its column. */
  readonly name: string;
  /** The packages that a user imports, for the time that takes and what they weigh. */
  readonly imports: readonly string[];
  /** One run: from the call until the library says it is over, all events consumed. */
  readonly run: (work: Work) => Promise<Outcome>;
  /** An agent of its own that did `work` and waits, with all that is needed to go on. */
  readonly idle?: (work: Work) => Promise<unknown>;
  /** Its client of Anthropic's Messages, through the library's own loop. */
  readonly anthropic?: (work: HttpWork) => Promise<void>;
  /** Its client of OpenAI's chat completions, through the library's own loop. */
  readonly openai?: (work: HttpWork) => Promise<void>;
  /**
   * The same run with the library's own setting against streams that stall, if it has
   * one; `ms` is the silence after which the stream counts as stalled.
   */
  readonly stallGuard?: (work: Work, ms: number) => Promise<Outcome>;
  /** What that setting limits, if it is not the silence alone. */
  readonly stallGuardLimits?: "the whole answer" | "the whole run";
}

/** A JSON Schema of a tool's parameters. */
export function buildSchema(tool: Tool): {
  type: "object";
  properties: Record<string, { type: "string" | "number" }>;
  required: string[];
  additionalProperties: false;
} {
  return {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(tool.parameters).map(([name, type]) => [name, { type }]),
    ),
    required: Object.keys(tool.parameters),
    additionalProperties: false,
  };
}

/** What went wrong, in a line. */
export function formatReason(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
