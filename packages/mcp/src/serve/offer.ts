import type {
  CallToolResult,
  CreateMessageRequestParams,
  CreateMessageResult,
  CreateMessageResultWithTools,
  ElicitRequestFormParams,
  GetPromptResult,
  LoggingLevel,
  Root,
  TextResourceContents,
  BlobResourceContents,
  ToolAnnotations,
} from "@modelcontextprotocol/server";
import type { AgentTool, Middleware } from "@gyre/agent";
import type { InferArguments, ToolSchema } from "@gyre/ai";
import type { McpProgress } from "../contract/progress.ts";

/** What a server offers. The lists are read at each request: what is added to one is there from then on. */
export interface McpOffer {
  /** Default: "gyre". */
  name?: string;
  version: string;
  /** How to use it, for the model of the client. */
  instructions?: string;
  /** Tools of agents, and tools that know the protocol. */
  tools?: readonly (AgentTool | ServedTool)[];
  resources?: readonly ServedResource[];
  resourceTemplates?: readonly ServedResourceTemplate[];
  prompts?: readonly ServedPrompt[];
  /** Around each call of an agent's tool, the first outermost: permissions have to be the last of it. */
  middleware?: readonly Middleware[];
  /** Called with errors of the connection. */
  warn?: (text: string) => void;
  /**
   * A secret of at least 32 characters that signs what clients carry from one round of questions to the
   * next. Default: a random one, which no other process knows.
   */
  stateKey?: string;
}

/** A tool whose results are those of the protocol, and that can ask the client for something. */
export interface ServedTool<S extends ToolSchema = ToolSchema> {
  name: string;
  title?: string;
  description: string;
  parameters: S;
  annotations?: ToolAnnotations;
  /** With arguments that fit `parameters`. What it throws becomes a result that is an error. */
  call(
    args: InferArguments<S>,
    context: ServeContext,
  ): CallToolResult | string | Promise<CallToolResult | string>;
}

/** What is read at an address. */
export type ServedContents = TextResourceContents | BlobResourceContents;

/** A resource with an address of its own. */
export interface ServedResource {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** A text is its content. */
  read(context: ServeContext): ServedRead | Promise<ServedRead>;
}

/** Resources whose addresses have gaps: `notes://{day}`. */
export interface ServedResourceTemplate {
  uriTemplate: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** With what stands in the gaps. Undefined: there is no such resource. */
  read(
    variables: Readonly<Record<string, string>>,
    context: ServeContext,
  ): ServedRead | undefined | Promise<ServedRead | undefined>;
  /** What may be filled in for a gap. */
  complete?: Completer;
}

export type ServedRead = string | readonly ServedContents[];

/** A prompt for the user of the client to choose. */
export interface ServedPrompt {
  name: string;
  title?: string;
  description?: string;
  arguments?: readonly { name: string; description?: string; required?: boolean }[];
  /** With the arguments that are declared; those that are required are there. A text is a message of the user. */
  get(
    args: Readonly<Record<string, string>>,
    context: ServeContext,
  ): GetPromptResult | string | Promise<GetPromptResult | string>;
  /** What may be filled in for an argument. */
  complete?: Completer;
}

/** What fits the beginning of a value, given what else is filled in. */
export type Completer = (
  name: string,
  value: string,
  others: Readonly<Record<string, string>>,
) => readonly string[] | Promise<readonly string[]>;

/** What a request is made with. */
export interface ServeContext {
  /** Aborts when the client cancels, or is gone. */
  signal: AbortSignal;
  /** Reports progress, if the client wants to know of it. */
  progress: (progress: McpProgress) => Promise<void>;
  /** For clients of the older era that have asked for logs. */
  log: (level: LoggingLevel, data: unknown) => Promise<void>;
  /** What the client can be asked for. */
  can: { form: boolean; url: boolean; sample: boolean; roots: boolean };
  /** Whether this is a further round: the client has come back with answers. */
  isResumed: boolean;
  /**
   * Asks the client, and gives its answers by the same names. In the newer era the request ends here,
   * and what called it runs from its beginning when the client comes back: do what has effects after
   * the last question. A name stands for one question in the whole of a call.
   */
  ask: <Q extends Readonly<Record<string, ServedQuestion>>>(
    questions: Q,
  ) => Promise<{ [Name in keyof Q]: AnswerTo<Q[Name]> }>;
}

/** Something to ask a client for. Sampling and roots are deprecated in the newer era. */
export type ServedQuestion =
  | { kind: "form"; message: string; schema: ElicitRequestFormParams["requestedSchema"] }
  | { kind: "url"; message: string; url: string }
  | { kind: "sample"; params: CreateMessageRequestParams }
  | { kind: "roots" };

type AnswerTo<Q extends ServedQuestion> = Q extends { kind: "form" | "url" }
  ? ServedAnswer
  : Q extends { kind: "sample" }
    ? CreateMessageResult | CreateMessageResultWithTools
    : { roots: Root[] };

/** What the person said. `content` is there where a form was accepted; the client chose what is in it. */
export interface ServedAnswer {
  action: "accept" | "decline" | "cancel";
  content?: Readonly<Record<string, unknown>>;
}
