import {
  type AgentEndEvent,
  type AgentEvent,
  type AgentListener,
  type AgentMessage,
  listCalls,
} from "@gyre/agent";
import { addUsage, type Clock, errorMessage, type ThinkingLevel, type Usage } from "@gyre/ai";
import { type Payload, ProtocolError, type WireClientApi } from "@gyre/protocol";
import { RemoteAgent, type RemoteState } from "@gyre/server/client";
import type { AskQuestion, McpAnswer } from "@gyre/mcp";
import type { PermissionMode } from "@gyre/tools";
import type { PlanAnswer, ReviewPlan } from "@gyre/coding/internal/conversation/plan";
import { userText } from "@gyre/coding/internal/conversation/prompt-text";
import type {
  ConnectionFact,
  ConversedAgent,
  ConversedTools,
  Outcome,
  PromptRequest,
  SharedRuns,
  ShownAgent,
} from "@gyre/coding/internal/conversation/types";
import { isCutOff } from "@gyre/coding/internal/harness/complete-run";
import { isMode, isThinkingLevel } from "@gyre/coding/internal/text/choices";
import { type Approve, Questions } from "./questions.ts";
import { RemoteQueue, type SentMessage } from "./remote-queue.ts";
import { NO_STATUS, readStatus, RemoteJobs, type RemoteStatus } from "./remote-status.ts";
import { ShownEvents } from "./shown-events.ts";
import { StatusQuestions } from "./status-questions.ts";

/** How often a message is sent that each time finds the session opened again. */
const MAX_SENDS = 3;
/** Before a session that cannot be opened now is tried again, in milliseconds. */
const REATTACH_MS = 1_000;
const CUT_OFF = "The server was restarted, and the run has ended. /retry continues it.";
const NO_COMMANDS =
  "A command of yours would run on this computer, and the session works on another one. Run it in a shell of your own, or have the agent run it.";

type ServerQuestion = RemoteStatus["questions"][number];

/** What a harness reports beside events. */
export interface HarnessPlace {
  approve: Approve;
  /** Has the user answer an MCP server. */
  answerServer: AskQuestion;
  /** Asks the user about a plan. Absent: a plan is an answer. */
  reviewPlan?: ReviewPlan | undefined;
  warn: (text: string) => void;
  /** What is shown beside the conversation is another by now. */
  update: () => void;
  /** Another client has changed what was said: it is shown again from here on. */
  replay: (note: string) => void;
  /** The session cannot be reached any more. */
  lost: (error: Error) => void;
}

export interface RemoteHarnessOptions extends HarnessPlace {
  client: WireClientApi;
  clock: Pick<Clock, "after">;
  /** Where pictures are that prompts name. */
  pictureFolder: string;
  connection: () => ConnectionFact;
}

/** A run, or several that are one to the user: it waits for an answer between them. */
interface ShownRun {
  turns: number;
  usage: Usage;
}

/**
 * An agent that runs on a server, for the same views as one in this process. What it shows follows the session over
 * connections that break and servers that are restarted: every event once, and nothing left out.
 */
export class RemoteHarness implements ShownAgent {
  readonly session = undefined;
  readonly refusesCommands: string = NO_COMMANDS;
  readonly keepsRules = false;
  readonly pictureFolder: string;
  readonly agent: ConversedAgent;
  readonly toolset: ConversedTools;
  readonly queue: RemoteQueue;
  readonly shared: SharedRuns;
  readonly #options: RemoteHarnessOptions;
  readonly #jobs: RemoteJobs;
  readonly #questions: Questions;
  readonly #serverQuestions: StatusQuestions<ServerQuestion, McpAnswer>;
  readonly #plans: StatusQuestions<RemoteStatus["plans"][number], PlanAnswer>;
  readonly #listeners = new Set<AgentListener>();
  #remote: RemoteAgent;
  /** Settles when the session is followed again. */
  #attached: Promise<void> = Promise.resolve();
  #events: ShownEvents;
  /** Events before the view has shown what there was; undefined: it has. */
  #early: { messages: readonly AgentMessage[]; calls: ReadonlySet<string>; events: (() => void)[] };
  #hasBegun = false;
  #status: RemoteStatus = NO_STATUS;
  #run: ShownRun | undefined;
  /** How the last run ended. */
  #last: Outcome | undefined;
  #waiters: ((outcome: Outcome) => void)[] = [];
  /** Prompts that are on their way. */
  #sending = 0;
  #isClosed = false;
  /** This client goes to another place: the snapshot of it is expected. */
  #isMoving = false;

  private constructor(options: RemoteHarnessOptions, remote: RemoteAgent, status: RemoteStatus) {
    this.#options = options;
    this.pictureFolder = options.pictureFolder;
    this.#remote = remote;
    this.#questions = new Questions({
      remote: () => this.#remote,
      approve: options.approve,
      warn: options.warn,
    });
    this.#jobs = new RemoteJobs({
      hasMovable: () => this.#runsCommand,
      moveAll: () => this.#report(this.request("background")),
    });
    const { answerServer, reviewPlan, warn } = options;
    this.#serverQuestions = new StatusQuestions<ServerQuestion, McpAnswer>({
      ask: answerServer,
      send: (question, answer) => this.request("answer_question", { question, ...answer }),
      warn,
    });
    this.#plans = new StatusQuestions({
      ask: async ({ plan }, signal) => reviewPlan?.(plan, signal),
      send: (question, answer) => this.request("answer_plan", { question, ...answer }),
      warn,
    });
    this.queue = new RemoteQueue({
      remote: () => this.#remote,
      waiting: () => this.#status.waiting,
      send: (message, send) => this.#send(message, send),
      changed: () => options.update(),
    });
    const { state } = remote;
    this.#events = this.#createEvents(state);
    this.#early = { messages: state.messages, calls: state.pendingToolCalls, events: [] };
    if (this.#isActive) this.#run = { turns: 0, usage: {} };
    this.#takeStatus(status);
    this.agent = this.#createAgent();
    this.toolset = this.#createTools();
    this.shared = this.#createRuns();
    this.#addPartial(state);
    this.#listen(remote);
  }

  /** Follows a session that is there, or a new one in a folder of the server. */
  static async open(
    options: RemoteHarnessOptions,
    session: { id: string } | { create: Payload },
  ): Promise<RemoteHarness> {
    // What comes before the harness is made is part of what it is made from.
    const made: { harness?: RemoteHarness; status: RemoteStatus } = { status: NO_STATUS };
    const follower = {
      onStatus: (status: Payload): void => {
        made.status = readStatus(status);
        if (made.harness) made.harness.#takeStatus(made.status);
      },
      onSettings: (): void => options.update(),
      onSnapshot: (): void => {
        if (made.harness) made.harness.#resume();
      },
      onClosed: (error: Error): void => {
        if (made.harness) made.harness.#onClosed(error);
      },
      onError: (error: unknown, where: string): void =>
        options.warn(`${where}: ${errorMessage(error)}`),
    };
    const { client } = options;
    const remote =
      "id" in session
        ? await RemoteAgent.attach(client, session.id, follower)
        : await RemoteAgent.create(client, session.create, follower);
    made.harness = new RemoteHarness(options, remote, made.status);
    made.harness.#follower = follower;
    await made.harness.#offerToShowPlans();
    return made.harness;
  }

  #follower: Parameters<typeof RemoteAgent.attach>[2] = {};

  get sessionId(): string {
    return this.#remote.sessionId;
  }

  get model(): { provider: string; id: string; name: string } {
    const { model } = this.#remote.state;
    const { provider = "", id = "no model" } = model ?? {};
    const known = this.#status.model;
    const isKnown = known?.provider === provider && known.id === id;
    return isKnown ? known : { provider, id, name: id };
  }

  get usualThinking(): ThinkingLevel {
    const { usualThinking } = this.#status;
    const { thinkingLevel } = this.#remote.state;
    return usualThinking !== undefined && isThinkingLevel(usualThinking)
      ? usualThinking
      : thinkingLevel;
  }

  get mode(): PermissionMode {
    const mode = this.#remote.state.info["mode"];
    return typeof mode === "string" && isMode(mode) ? mode : "ask";
  }

  get modes(): readonly PermissionMode[] | undefined {
    const { modes } = this.#status;
    return modes.length > 0 ? modes : undefined;
  }

  get compactAt(): number {
    return this.#status.compactAt ?? Infinity;
  }

  get spending(): { readonly session: Usage } {
    return { session: this.#status.used };
  }

  get remote(): { connection: ConnectionFact; branch: string | undefined } {
    return { connection: this.#options.connection(), branch: this.#status.branch };
  }

  get isCutOff(): boolean {
    return isCutOff(this.#remote.state.messages);
  }

  /** The folder of the session, at the server. */
  get folder(): string {
    const { cwd } = this.#remote.state.info;
    return typeof cwd === "string" ? cwd : "";
  }

  beginEvents(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    for (const deliver of this.#early.events.splice(0)) deliver();
    const { state } = this.#remote;
    if (!state.isStreaming) this.#questions.update(state.pending);
    this.#askStatus();
  }

  async prompt({ text, images = [], attachments: files = [] }: PromptRequest): Promise<Outcome> {
    const attachments = [...files, ...images];
    const options = attachments.length > 0 ? { attachments } : {};
    return this.#begin({ text, attachments }, () =>
      // Another client may have begun a run just now.
      this.#remote.prompt(text, { ...options, whileRunning: "steer" }),
    );
  }

  resume(): Promise<Outcome> {
    return this.#begin(undefined, () => this.#remote.continue());
  }

  async setModel(name: string): Promise<{ provider: string; id: string; name: string }> {
    await this.#remote.setModel(name);
    return this.model;
  }

  setThinking(level: ThinkingLevel): Promise<void> {
    return this.#remote.setThinkingLevel(level);
  }

  setMode(mode: PermissionMode): Promise<void> {
    return this.#remote.setPermissionMode(mode);
  }

  /** Goes on from an entry of the session; null: from its beginning. The view shows what is said there again. */
  async goTo(entry: number | null): Promise<void> {
    this.#isMoving = true;
    try {
      await this.request("go_to", { entry });
    } finally {
      this.#isMoving = false;
    }
  }

  /** Has the host of the session do something. */
  request(name: string, payload: Payload = {}, signal?: AbortSignal): Promise<Payload> {
    return this.#remote.request(name, payload, signal);
  }

  /** Leaves the session, which goes on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#withdrawAll();
    await this.#remote.close();
  }

  get isRunning(): boolean {
    return this.#run !== undefined || this.#isActive;
  }

  get #isActive(): boolean {
    const { isStreaming, pending } = this.#remote.state;
    return isStreaming || pending.length > 0;
  }

  #createAgent(): ConversedAgent {
    const getState = (): ConversedAgent["state"] => {
      const { messages, thinkingLevel, pendingToolCalls } = this.#remote.state;
      return this.#hasBegun
        ? { messages, thinkingLevel, pendingToolCalls }
        : { messages: this.#early.messages, thinkingLevel, pendingToolCalls: this.#early.calls };
    };
    return {
      get state() {
        return getState();
      },
      subscribe: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
      hasQueuedMessages: () => this.queue.list().length > 0,
      abort: () => this.#abort(),
      waitForIdle: () => this.#remote.waitForIdle(),
    };
  }

  #createTools(): ConversedTools {
    const getFolder = (): string => this.folder;
    const getStatus = (): RemoteStatus => this.#status;
    return {
      env: {
        workspace: {
          get root() {
            return getFolder();
          },
        },
        // Nothing runs here.
        spoolFolder: "",
      },
      jobs: this.#jobs,
      todos: {
        get items() {
          return getStatus().todos;
        },
      },
    };
  }

  #createRuns(): SharedRuns {
    const isRunning = (): boolean => this.isRunning && !this.#isClosed;
    return {
      get isRunning() {
        return isRunning();
      },
      follow: () => this.#waitForEnd(),
    };
  }

  #createEvents(state: RemoteState): ShownEvents {
    return new ShownEvents(state, (event) => this.#emit(event));
  }

  #emit(event: AgentEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        void listener(event);
      } catch (error) {
        this.#options.warn(errorMessage(error));
      }
    }
  }

  /** As much of an answer as was there before this client was. It grows while it waits to be shown. */
  #addPartial(state: RemoteState): void {
    const before = { ...state, streamMessage: structuredClone(state.streamMessage) };
    this.#deliver(() => this.#events.addPartial(before));
  }

  #listen(remote: RemoteAgent): void {
    remote.subscribe((event) => {
      const { state } = remote;
      this.#count(event);
      this.#deliver(() => {
        this.#events.take(event, state);
        this.#follow(event, state);
      });
    });
  }

  /** Now, or when the view has shown what there was before. */
  #deliver(run: () => void): void {
    if (this.#hasBegun) run();
    else this.#early.events.push(run);
  }

  #count(event: AgentEvent): void {
    if (event.type === "agent_start") this.#run ??= { turns: 0, usage: {} };
    if (event.type !== "agent_end") return;
    const { turns, usage } = this.#run ?? { turns: 0, usage: {} };
    this.#run = { turns: turns + event.turns, usage: addUsage(usage, event.usage) };
  }

  /** Questions, and the end of what is one run to the user. */
  #follow(event: AgentEvent, state: RemoteState): void {
    if (event.type === "tool_execution_start" || event.type === "tool_execution_end") {
      this.#questions.withdraw(event.toolCallId);
    }
    if (event.type !== "agent_end") return;
    this.#questions.update(state.pending);
    if (state.pending.length === 0) this.#finish(event);
  }

  #finish(end: AgentEndEvent): void {
    const { turns = 0, usage = {} } = this.#run ?? {};
    this.#run = undefined;
    const outcome = { end, turns, usage };
    this.#last = outcome;
    for (const resolve of this.#waiters.splice(0)) resolve(outcome);
  }

  /** A snapshot stands for what was missed. */
  #resume(): void {
    const { state } = this.#remote;
    this.#deliver(() => {
      if (this.#isMoving) this.#events = this.#createEvents(state);
      else if (!this.#events.resume(state)) this.#options.replay("the conversation was changed");
      this.#questions.update(state.isStreaming ? [] : state.pending);
      if (this.#isActive) this.#run ??= { turns: 0, usage: {} };
      else if (this.#run) this.#cutOff();
    });
    this.#options.update();
  }

  /** A run has ended with a server, and how is not known. */
  #cutOff(): void {
    this.#events.drop();
    const end: AgentEndEvent = {
      type: "agent_end",
      messages: [],
      stop: "error",
      turns: 0,
      usage: {},
      errorMessage: CUT_OFF,
      undelivered: [],
      pending: [],
    };
    this.#emit(end);
    this.#options.warn(CUT_OFF);
    this.#finish(end);
  }

  #takeStatus(status: RemoteStatus): void {
    this.#status = status;
    this.#jobs.update(status.jobs);
    this.#askStatus();
    this.#options.update();
  }

  /** Asks what the status has open, once the view shows what there was before. */
  #askStatus(): void {
    if (!this.#hasBegun || this.#isClosed) return;
    this.#serverQuestions.update(this.#status.questions);
    this.#plans.update(this.#status.plans);
  }

  #withdrawAll(): void {
    this.#questions.withdrawAll();
    this.#serverQuestions.update([]);
    this.#plans.update([]);
  }

  /** A server without plans has them as answers. */
  async #offerToShowPlans(): Promise<void> {
    if (!this.#options.reviewPlan) return;
    await this.request("show_plans").catch((error: unknown) => {
      if (!(error instanceof ProtocolError)) throw error;
    });
  }

  /** Whether a command runs in the foreground. */
  get #runsCommand(): boolean {
    const { isStreaming, messages, pendingToolCalls } = this.#remote.state;
    if (!isStreaming || pendingToolCalls.size === 0) return false;
    const last = messages.findLast(({ role }) => role === "assistant");
    if (last?.role !== "assistant") return false;
    return listCalls(last).some(({ id, name }) => name === "shell" && pendingToolCalls.has(id));
  }

  #report(asked: Promise<unknown>): void {
    asked.catch((error: unknown) => this.#options.warn(errorMessage(error)));
  }

  #onClosed(error: Error): void {
    if (this.#isClosed) return;
    this.#withdrawAll();
    this.#attached = this.#reattach(error);
  }

  /** The session was closed at the server, as one that stops does: it is opened again when it can be. */
  async #reattach(first: Error): Promise<void> {
    const { client, clock, lost } = this.#options;
    let last = first;
    for (;;) {
      if (this.#isClosed) return;
      if (client.state.type === "closed") return lost(last);
      try {
        this.#remote = await RemoteAgent.attach(client, this.sessionId, this.#follower);
        this.#listen(this.#remote);
        await this.#offerToShowPlans();
        return this.#resume();
      } catch (error) {
        last = error instanceof Error ? error : new Error(String(error));
        if (!isPassing(error)) return lost(last);
        await new Promise<void>((resolve) => void clock.after(REATTACH_MS, resolve));
      }
    }
  }

  async #begin(
    message: SentMessage | undefined,
    send: () => Promise<AgentEndEvent | undefined>,
  ): Promise<Outcome> {
    this.#last = undefined;
    this.#sending++;
    let end: AgentEndEvent | undefined;
    try {
      await this.#send(message, async () => {
        end = await send();
      });
    } finally {
      this.#sending--;
    }
    if (this.#run) return this.#waitForEnd();
    // A host may have done it without a run.
    if (!this.#last && end) return { end, turns: end.turns, usage: end.usage };
    return this.#last ?? this.#waitForEnd();
  }

  #waitForEnd(): Promise<Outcome> {
    return new Promise((resolve) => {
      if (this.isRunning || !this.#last) this.#waiters.push(resolve);
      else resolve(this.#last);
    });
  }

  /** Sends something once: again only where the session was opened again without it. */
  async #send(message: SentMessage | undefined, send: () => Promise<unknown>): Promise<void> {
    const before = this.#countSent(message);
    for (let sends = 1; ; sends++) {
      try {
        await send();
        return;
      } catch (error) {
        if (!isReopened(error) || this.#isClosed) throw error;
        await this.#attached;
        if (this.#countSent(message) > before) return;
        if (sends >= MAX_SENDS || !message) throw error;
      }
    }
  }

  /** How often the session has a message of this text, read or waiting. */
  #countSent(message: SentMessage | undefined): number {
    if (!message) return 0;
    const { text } = message;
    const read = this.#remote.state.messages.filter(
      (each) => each.role === "user" && userText(each.content).includes(text),
    );
    const waiting = this.#status.waiting.filter((each) => text.startsWith(each.text));
    return read.length + waiting.length;
  }

  #abort(): void {
    const { isStreaming, pending } = this.#remote.state;
    const report = (error: unknown): void => this.#options.warn(errorMessage(error));
    if (!isStreaming && pending.length > 0) {
      this.#questions.withdrawAll();
      const denied = { type: "deny", reason: "interrupted" } as const;
      const decisions = pending.map(({ toolCall }) => [toolCall.id, denied] as const);
      this.#remote.approve(Object.fromEntries(decisions)).catch(report);
    } else if (!isStreaming && this.#sending === 0) return;
    this.#remote.abort().catch(report);
  }
}

/** The session was closed, or opened again, since the request was sent. */
function isReopened(error: unknown): boolean {
  if (!(error instanceof ProtocolError)) return false;
  return error.code === "stream_not_found" || error.code === "session_not_found";
}

/** Another attempt may succeed: the server is about to stop, or another process still has the session. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof ProtocolError)) return true;
  return ["unavailable", "session_busy", "timeout", "internal_error"].includes(error.code);
}
