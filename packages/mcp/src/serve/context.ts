import type {
  InputRequest,
  InputRequiredResult,
  ServerContext,
} from "@modelcontextprotocol/server";
import { errorMessage } from "@gyre/ai";
import { type Fields, isFields } from "../contract/fields.ts";
import type { ServeContext, ServedQuestion } from "./offer.ts";

/** What clients carry for us between rounds. */
export interface CarriedState {
  /** What the questions belong to: the answers to those of one tool are not for another. */
  of: string;
  /** To earlier questions. */
  answers: Fields;
}

/** Seals what a client carries. */
export type SealState = (state: CarriedState, context: ServerContext) => Promise<string>;

/** Ends a handler: the client has to be asked first. What catches errors has to let it pass. */
export class InputNeeded extends Error {
  readonly result: InputRequiredResult;
  constructor(result: InputRequiredResult) {
    super("The client is asked first.");
    this.result = result;
  }
}

export interface ContextOptions {
  request: ServerContext;
  /** The tool, prompt or resource that is asked for. */
  of: string;
  /** What the client said that it can. */
  capabilities: Fields;
  seal: SealState;
  warn: (text: string) => void;
}

/**
 * Runs a handler that may ask the client. A question that has no answer yet ends it, and becomes the
 * result; it runs again with the answer, which either era's client brings.
 */
export async function runAsking<T>(
  options: ContextOptions,
  handler: (context: ServeContext) => T | Promise<T>,
): Promise<T | InputRequiredResult> {
  try {
    return await handler(createContext(options));
  } catch (error) {
    if (error instanceof InputNeeded) return error.result;
    throw error;
  }
}

function createContext({ request, of, capabilities, seal, warn }: ContextOptions): ServeContext {
  const { mcpReq } = request;
  // It is signed, so its form is ours.
  const state = mcpReq.requestState<CarriedState>();
  const carried = state?.of === of ? state : undefined;
  // What was signed takes precedence: an answer that was relied on is not changed by a later round.
  const answers: Fields = { ...mcpReq.inputResponses, ...carried?.answers };
  const { _meta: meta } = mcpReq;
  const token = meta?.progressToken;
  const { elicitation, sampling, roots } = capabilities;
  const modes = isFields(elicitation) ? elicitation : undefined;
  return {
    signal: mcpReq.signal,
    isResumed: carried !== undefined,
    can: {
      // One that names no mode means forms.
      form: modes !== undefined && ("form" in modes || Object.keys(modes).length === 0),
      url: modes !== undefined && "url" in modes,
      sample: sampling !== undefined,
      roots: roots !== undefined,
    },
    async progress(progress) {
      if (token === undefined) return;
      const params = { progressToken: token, ...progress };
      await mcpReq
        .notify({ method: "notifications/progress", params })
        .catch((error: unknown) => warn(errorMessage(error)));
    },
    log: (level, data) => mcpReq.log(level, data),
    async ask(questions) {
      const open = Object.entries(questions).filter(
        ([name, question]) => !isAnswer(question, answers[name]),
      );
      if (open.length === 0) {
        const given = Object.keys(questions).map((name) => [name, answers[name]]);
        return Object.fromEntries(given) as never;
      }
      const { inputRequired } = await import("@modelcontextprotocol/server");
      const inputRequests = Object.fromEntries(
        await Promise.all(
          open.map(async ([name, question]) => [name, await toRequest(question)] as const),
        ),
      );
      const asked = new Set(open.map(([name]) => name));
      const known = Object.entries(answers).filter(([name]) => !asked.has(name));
      const requestState = await seal({ of, answers: Object.fromEntries(known) }, request);
      throw new InputNeeded(inputRequired({ inputRequests, requestState }));
    },
  };
}

async function toRequest(question: ServedQuestion): Promise<InputRequest> {
  const { inputRequired } = await import("@modelcontextprotocol/server");
  switch (question.kind) {
    case "form": {
      const { message, schema: requestedSchema } = question;
      return inputRequired.elicit({ message, requestedSchema });
    }
    case "url":
      return inputRequired.elicitUrl({ message: question.message, url: question.url });
    case "sample":
      return inputRequired.createMessage(question.params);
    case "roots":
      return inputRequired.listRoots();
  }
}

/** Whether a client's answer has the form that the question asks for. Else it is asked again. */
function isAnswer(question: ServedQuestion, answer: unknown): boolean {
  if (!isFields(answer)) return false;
  switch (question.kind) {
    case "sample":
      return typeof answer["role"] === "string" && answer["content"] !== undefined;
    case "roots":
      return Array.isArray(answer["roots"]);
    case "url":
      return isAction(answer["action"]);
    case "form": {
      const { action, content } = answer;
      if (action !== "accept") return isAction(action);
      const required = question.schema.required ?? [];
      return isFields(content) && required.every((name) => content[name] !== undefined);
    }
  }
}

function isAction(value: unknown): boolean {
  return value === "accept" || value === "decline" || value === "cancel";
}
