import type { Agent } from "@gyre/agent";
import { isRecord } from "@gyre/ai";
import { ApprovalSigner } from "../common/approvals.ts";
import { type ChatStart, startFromClient, startFromStore, type StoredChat } from "./chat-start.ts";
import { logError, type OnError, reportError } from "../common/failures.ts";
import { readJsonBody, RequestError } from "../common/http.ts";
import { toRoute } from "../common/route.ts";
import { ReplayLog } from "../common/replay-log.ts";
import type { UIMessageChunk } from "./ui-chunks.ts";
import type { UIMessage } from "./ui-message-builder.ts";
import { listUIChunks, respondWithChunks, type UIResponseOptions } from "./ui-message-stream.ts";

/** Where conversations are kept. What it has wins over what a client sends. */
export interface ChatStore {
  load(chat: string): Promise<StoredChat | undefined>;
  /** Called before a run with a new message of the user, and when a run has ended. */
  save(chat: string, conversation: StoredChat): Promise<void>;
}

export interface ChatRouteOptions extends Omit<
  UIResponseOptions,
  "agent" | "continues" | "isContinued" | "history" | "nameApproval" | "messageId"
> {
  /** Signs the questions of a route without a store, so that no client approves calls that it made up. */
  secret?: string | undefined;
  store?: ChatStore;
  /**
   * A run goes on when its client leaves, and `GET …/ID/stream` plays it from its start: for
   * `resume` of `useChat`. In this process alone. Without it a closed request aborts its run.
   */
  resumable?: boolean;
  /** Called first, with the id of the conversation: a response refuses the request. */
  authorize?: (
    request: Request,
    chat: string,
  ) => Response | undefined | Promise<Response | undefined>;
  /** Default 8 MiB. */
  maxBodyBytes?: number;
  /**
   * Gets each error of which the page reads the kind alone: why a run failed, and what `createAgent`, `authorize` or
   * the store threw. Default: `console.error`.
   */
  onError?: OnError | undefined;
}

/**
 * An agent for one conversation. It must be a new one: its messages are replaced. The request has been read: `body` is
 * what the page sent, with the fields that it added, unchecked.
 */
export type CreateAgent = (
  request: Request,
  chat: string,
  body: Readonly<Record<string, unknown>>,
) => Agent | Promise<Agent>;

interface LiveChat {
  abort(): void;
  chunks: ReplayLog<UIMessageChunk>;
}

const STREAM_PATH = /\/([^/]+)\/(stream|stop)\/?$/;

/**
 * The route of `useChat`: `POST` with its messages runs the agent and streams the answer; `GET …/ID/stream`
 * goes on with a stream; `POST …/ID/stop` aborts the run. Refuses with a status and JSON.
 */
export function createChatRoute(
  createAgent: CreateAgent,
  given: ChatRouteOptions = {},
): (request: Request) => Promise<Response> {
  const options = { ...given, onError: given.onError ?? logError };
  const signer = options.secret === undefined ? undefined : new ApprovalSigner(options.secret);
  const live = new Map<string, LiveChat>();
  const route = new ChatRoute(createAgent, options, signer, live);
  return toRoute((request) => route.answer(request), options.onError);
}

class ChatRoute {
  readonly #createAgent: CreateAgent;
  readonly #options: ChatRouteOptions & { onError: OnError };
  readonly #signer: ApprovalSigner | undefined;
  readonly #live: Map<string, LiveChat>;

  constructor(
    createAgent: CreateAgent,
    options: ChatRouteOptions & { onError: OnError },
    signer: ApprovalSigner | undefined,
    live: Map<string, LiveChat>,
  ) {
    this.#createAgent = createAgent;
    this.#options = options;
    this.#signer = signer;
    this.#live = live;
  }

  async answer(request: Request): Promise<Response> {
    const [, id, action] = STREAM_PATH.exec(new URL(request.url).pathname) ?? [];
    if (id !== undefined && (request.method === "GET") === (action === "stream")) {
      return this.#control(request, decodeURIComponent(id), action === "stop");
    }
    if (request.method !== "POST") {
      throw new RequestError(
        405,
        "invalid_request",
        `There is no ${request.method} here: use POST.`,
      );
    }
    const body = await readJsonBody(request, this.#options.maxBodyBytes);
    const { id: given, messages } = body;
    const chat = typeof given === "string" ? given : "";
    if (!Array.isArray(messages)) {
      throw new RequestError(400, "invalid_request", 'The body has "messages", a list.');
    }
    const refusal = await this.#options.authorize?.(request, chat);
    if (refusal) return refusal;
    return this.#run(request, chat, messages, body);
  }

  /** Goes on with a stream, or stops its run. */
  async #control(request: Request, chat: string, isStop: boolean): Promise<Response> {
    const refusal = await this.#options.authorize?.(request, chat);
    if (refusal) return refusal;
    const running = this.#live.get(chat);
    if (isStop) running?.abort();
    // 204 is how `useChat` reads that nothing runs.
    if (isStop || !running) return new Response(undefined, { status: 204 });
    return respondWithChunks(running.chunks.read(), this.#options, () => {});
  }

  async #run(
    request: Request,
    chat: string,
    given: readonly unknown[],
    body: Readonly<Record<string, unknown>>,
  ): Promise<Response> {
    const { store, resumable = false, clientTools = [] } = this.#options;
    const isKept = store !== undefined || resumable;
    if (isKept && chat === "") {
      throw new RequestError(400, "invalid_request", 'The body has "id", the conversation.');
    }
    if (this.#live.has(chat)) {
      throw new RequestError(
        409,
        "session_busy",
        "The conversation has a run already: stop it first.",
      );
    }
    const chunks = new ReplayLog<UIMessageChunk>();
    let agent: Agent | undefined;
    let isAborted = false;
    const abort = (): void => {
      isAborted = true;
      agent?.abort();
    };
    // Before anything is awaited: a second request finds it.
    if (isKept) this.#live.set(chat, { abort, chunks });
    try {
      const stored = store && ((await store.load(chat)) ?? { messages: [], pending: [] });
      const start: ChatStart = stored
        ? startFromStore(stored, given, { clientTools, trigger: body["trigger"] })
        : await startFromClient(chat, given, this.#signer);
      if (
        start.messages.at(-1)?.role === "assistant" &&
        Object.keys(start.decisions).length === 0
      ) {
        throw new RequestError(409, "nothing_to_answer", "The last message is answered already.");
      }
      agent = await this.#createAgent(request, chat, body);
      // A page that is loaded again before the answer is whole finds the question.
      if (stored && start.messages.length > stored.messages.length) {
        await store.save(chat, { messages: start.messages, pending: stored.pending });
      }
      const stream = this.#listChunks(agent, chat, start, given);
      if (isAborted) agent.abort();
      if (!isKept) return respondWithChunks(stream, this.#options, abort);
      void this.#keep(stream, agent, chat, chunks);
    } catch (error) {
      if (isKept) this.#live.delete(chat);
      throw error;
    }
    return respondWithChunks(chunks.read(), this.#options, resumable ? () => {} : abort);
  }

  #listChunks(
    agent: Agent,
    chat: string,
    { messages, decisions }: ChatStart,
    given: readonly unknown[],
  ): AsyncIterable<UIMessageChunk> {
    agent.replaceMessages(messages);
    const run = agent.continueRun({ decisions });
    const last = given.at(-1);
    const signer = this.#signer;
    const { store, onError } = this.#options;
    return listUIChunks(run, {
      ...this.#options,
      history: messages,
      isContinued: true,
      continues: isAnswer(last) ? last : undefined,
      nameApproval: ({ id, name, arguments: input }) => {
        if (signer) return signer.sign({ chat, id, name, input });
        if (!store) reportError(new TypeError(explainUnsigned(name)), onError);
        return id;
      },
    });
  }

  /** Reads a run to its end, whether or not a client does, and stores what came of it. Never rejects. */
  async #keep(
    stream: AsyncIterable<UIMessageChunk>,
    agent: Agent,
    chat: string,
    chunks: ReplayLog<UIMessageChunk>,
  ): Promise<void> {
    try {
      for await (const chunk of stream) {
        if (chunk.type === "finish" || chunk.type === "abort") {
          await agent.waitForIdle();
          const { messages, pending } = agent.state;
          await this.#options.store?.save(chat, { messages, pending });
        }
        chunks.add(chunk);
      }
    } catch (error) {
      chunks.add({ type: "error", errorText: "hook: The conversation was not stored." });
      chunks.add({ type: "finish", finishReason: "error" });
      reportError(error, this.#options.onError);
    } finally {
      this.#live.delete(chat);
      chunks.end();
    }
  }
}

/** Before a person has answered in vain. */
function explainUnsigned(name: string): string {
  return `A person is asked about "${name}", and the answer will be refused: give createChatRoute a \`secret\` or a \`store\`.`;
}

function isAnswer(message: unknown): message is UIMessage {
  return isRecord(message) && message["role"] === "assistant" && Array.isArray(message["parts"]);
}
