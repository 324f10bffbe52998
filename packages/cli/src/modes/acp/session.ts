import { randomUUID } from "node:crypto";
import type {
  CreateElicitationRequest,
  CreateElicitationResponse,
  ContentBlock,
  NoticeSeverity,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import type { AgentEvent, AgentMessage } from "@gyre/agent";
import { toRecord, totalTokens } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  type EffectsReport,
  ruleFor,
  type Todo,
} from "@gyre/tools";
import type { AskQuestion, McpAnswer, McpQuestion, McpServerEntry } from "@gyre/mcp";
import { availableCommands, runSlashCommand, type SlashOutcome } from "./commands.ts";
import { configOptions, modeState } from "./config.ts";
import { AcpAuthError, AcpInvalidError } from "./error.ts";
import type { AcpFolder } from "./host.ts";
import {
  effectContent,
  effectOptions,
  effectsContent,
  MAX_PICKED,
  pickOptions,
} from "./effects.ts";
import { permissionOptions } from "./permission.ts";
import { findCommand, parsePrompt } from "./prompt.ts";
import { proposedContent, createCallView } from "./tool-call.ts";
import { createPlan, Updates } from "./updates.ts";
import { canKeep } from "../../text/effects-text.ts";
import { retryText } from "../print/progress.ts";
import { isMode, isThinkingLevel, type ModelChoice } from "@gyre/coding/internal/text/choices";
import type { Harness, Outcome } from "@gyre/coding/internal/harness/harness";

const MAX_TITLE_CHARS = 80;

/** The editor, as a session sees it. */
export interface AcpEditor {
  update(sessionId: string, update: SessionUpdate): Promise<void>;
  /** Rejects when `signal` fires first. */
  askPermission(
    request: RequestPermissionRequest,
    signal?: AbortSignal,
  ): Promise<RequestPermissionResponse>;
  /** Has the user fill in a form, or open a page. Rejects when `signal` fires first. */
  elicit(
    request: CreateElicitationRequest,
    signal: AbortSignal,
  ): Promise<CreateElicitationResponse>;
  /** Whether it says that it can do so. */
  canElicit(question: McpQuestion): boolean;
  /** What it says it can show. */
  shows: { notices: boolean; compactions: boolean };
}

export interface AcpSessionOptions {
  cwd: string;
  folder: AcpFolder;
  editor: AcpEditor;
  /** Where it is written down; the session closes it. */
  file?: Session;
  /** MCP servers of the editor. */
  mcpServers?: readonly McpServerEntry[];
}

/** A prompt that runs or waits: aborted when it is canceled. */
type Turn = AbortController;

/** One conversation with an editor: an agent, and what the editor gets of it. */
export class AcpSession {
  readonly id: string;
  readonly cwd: string;
  readonly #harness: Harness;
  readonly #editor: AcpEditor;
  readonly #folder: AcpFolder;
  readonly #models: readonly ModelChoice[];
  readonly #updates: Updates;
  readonly #turns = new Set<Turn>();
  readonly #forget: (() => void)[] = [];
  /** Settles when the prompts so far are answered. */
  #idle: Promise<unknown> = Promise.resolve();
  #title: string | undefined;

  private constructor(
    harness: Harness,
    models: readonly ModelChoice[],
    { cwd, editor, file, folder }: AcpSessionOptions,
  ) {
    this.id = file?.header.id ?? randomUUID();
    this.cwd = cwd;
    this.#harness = harness;
    this.#editor = editor;
    this.#folder = folder;
    this.#models = models;
    this.#updates = new Updates({
      cwd,
      files: harness.toolset.env,
      send: (update) => this.#send(update),
    });
    this.#forget.push(
      harness.agent.subscribe((event) => this.#event(event)),
      harness.toolset.todos.onChange((todos) => void this.#send(createPlan(todos))),
    );
  }

  /** Opens one. Throws an error with a message for the user; the file is then closed. */
  static async open(options: AcpSessionOptions): Promise<AcpSession> {
    const { folder, file, mcpServers } = options;
    let session: AcpSession | undefined;
    const approvals = (request: ApprovalRequest): Promise<ApprovalAnswer> =>
      session ? session.#ask(request) : Promise.resolve({ allow: false });
    const answerServer: AskQuestion = (question, signal) =>
      session ? session.#answerServer(question, signal) : Promise.resolve({ action: "decline" });
    try {
      const harness = await folder.open({
        approvals,
        answerServer,
        ...(file && { session: file }),
        ...(mcpServers && { mcpServers }),
      });
      session = new AcpSession(harness, await folder.models(), options);
      session.#title = await session.#storedTitle();
      return session;
    } catch (error) {
      await file?.close();
      throw error;
    }
  }

  /** What can be set, in both of the protocol's ways. */
  configuration(): { modes: SessionModeState; configOptions: SessionConfigOption[] } {
    return {
      modes: modeState(this.#harness),
      configOptions: configOptions(this.#harness, this.#models),
    };
  }

  /** What an editor wants to know once it has the session. */
  async introduce(): Promise<void> {
    await this.#send({
      sessionUpdate: "available_commands_update",
      availableCommands: availableCommands(this.#harness),
    });
    await this.#sendUsage(this.#past().findLast((message) => message.role === "assistant"));
  }

  /** Sends the editor the whole conversation so far. */
  async replay(): Promise<void> {
    let todos: readonly Todo[] | undefined;
    for await (const message of this.#transcript()) {
      await this.#updates.past(message);
      todos = plannedIn(message) ?? todos;
    }
    await this.#updates.closeCalls();
    if (todos) await this.#send(createPlan(todos));
    if (this.#title !== undefined) await this.#sendTitle(this.#title);
  }

  /**
   * Answers a prompt, after those before it. Rejects where it could not be answered, but
   * never because it was canceled.
   */
  prompt(blocks: readonly ContentBlock[], signal?: AbortSignal): Promise<PromptResponse> {
    const turn = new AbortController();
    this.#turns.add(turn);
    const stop = (): void => this.#cancel([turn]);
    signal?.addEventListener("abort", stop, { once: true });
    const answer = this.#idle
      .then(() => this.#answer(turn, blocks))
      .finally(() => {
        this.#turns.delete(turn);
        signal?.removeEventListener("abort", stop);
      });
    // The caller of the prompt gets how it ended.
    this.#idle = answer.catch(() => undefined);
    return answer;
  }

  /** Ends the prompt that runs and those that wait, with "cancelled" as their answer. */
  cancel(): void {
    this.#cancel([...this.#turns]);
  }

  async setConfig(id: string, value: string): Promise<SessionConfigOption[]> {
    const { mode } = this.#harness;
    switch (id) {
      case "mode":
        if (!isMode(value)) throw new AcpInvalidError(`There is no mode "${value}".`);
        await this.#harness.setMode(value);
        break;
      case "thinking":
        if (!isThinkingLevel(value)) throw new AcpInvalidError(`There is no level "${value}".`);
        await this.#harness.setThinking(value);
        break;
      case "model":
        await this.#harness.setModel(value);
        break;
      default:
        throw new AcpInvalidError(`There is no option "${id}".`);
    }
    if (this.#harness.mode !== mode) await this.#sendMode();
    return this.configuration().configOptions;
  }

  async setMode(mode: string): Promise<void> {
    await this.#sendConfig(await this.setConfig("mode", mode));
  }

  /** A word to the user, where the editor can show one. */
  async notice(severity: NoticeSeverity, title: string): Promise<void> {
    if (!this.#editor.shows.notices) return;
    await this.#send({ sessionUpdate: "notice", severity, title });
  }

  /** Ends what runs, writes it down, and lets go of everything. */
  async close(): Promise<void> {
    this.cancel();
    await this.#idle;
    for (const forget of this.#forget) forget();
    try {
      await this.#harness.close();
    } finally {
      await this.#harness.session?.close();
    }
  }

  #send(update: SessionUpdate): Promise<void> {
    return this.#editor.update(this.id, update);
  }

  #past(): readonly AgentMessage[] {
    return this.#harness.agent.state.messages;
  }

  /** What it is called, or what was asked first. */
  async #storedTitle(): Promise<string | undefined> {
    const { session } = this.#harness;
    const last = session?.findIds("title").at(-1);
    const entry = last === undefined ? undefined : await session?.read(last);
    if (entry?.type === "title") return cutTitle(entry.title);
    const first = this.#past().find((message) => message.role === "user");
    return first && makeTitle(first);
  }

  /** All of it, also what a compaction stands for by now. */
  async *#transcript(): AsyncGenerator<AgentMessage> {
    const { session } = this.#harness;
    if (!session) {
      yield* this.#past();
      return;
    }
    const messages = new Set(session.findIds("message"));
    for (const id of session.findBranch()) {
      const entry = messages.has(id) ? await session.read(id) : undefined;
      if (entry?.type === "message") yield entry.message;
    }
  }

  async #answer(turn: Turn, blocks: readonly ContentBlock[]): Promise<PromptResponse> {
    if (turn.signal.aborted) return { stopReason: "cancelled" };
    const command = findCommand(blocks);
    const result = command && (await this.#command(command, turn.signal));
    if (result && result.markdown !== "") await this.#updates.say(result.markdown);
    if (result && result.prompt === undefined && !result.retry) {
      return { stopReason: turn.signal.aborted ? "cancelled" : "end_turn" };
    }
    const ask = async (): Promise<Outcome> => {
      if (result?.retry) return this.#harness.resume();
      const request =
        result?.prompt === undefined ? parsePrompt(blocks, this.cwd) : { text: result.prompt };
      if (this.#title === undefined) await this.#sendTitle(request.text);
      return this.#harness.prompt(request);
    };
    try {
      const outcome = await ask();
      return { stopReason: turn.signal.aborted ? "cancelled" : await this.#stopReason(outcome) };
    } catch (error) {
      if (turn.signal.aborted) return { stopReason: "cancelled" };
      throw error;
    } finally {
      await this.#updates.closeCalls();
    }
  }

  async #command(
    command: { name: string; rest: string },
    signal: AbortSignal,
  ): Promise<SlashOutcome | undefined> {
    const { env = {}, layers, settings } = this.#folder;
    const { mode } = this.#harness;
    const before = JSON.stringify(this.configuration().configOptions);
    const result = await runSlashCommand(command, {
      harness: this.#harness,
      signal,
      env,
      setup: { cwd: this.cwd, ...(settings && { settings }), ...(layers && { layers }) },
      models: () => this.#folder.models(),
    });
    const { configOptions: after } = this.configuration();
    if (JSON.stringify(after) !== before) await this.#sendConfig(after);
    if (this.#harness.mode !== mode) await this.#sendMode();
    const title = result && (await this.#storedTitle());
    if (title !== undefined && title !== this.#title) await this.#sendTitle(title);
    return result;
  }

  #cancel(turns: readonly Turn[]): void {
    const [running] = this.#turns;
    for (const turn of turns) turn.abort();
    // The first is the one that runs.
    if (running?.signal.aborted) this.#harness.agent.abort();
  }

  async #event(event: AgentEvent): Promise<void> {
    const [running] = this.#turns;
    // A cancel may have come while there was no run to abort.
    if (running?.signal.aborted) this.#harness.agent.abort();
    await this.#updates.event(event);
    switch (event.type) {
      case "message_end":
        return this.#sendUsage(event.message);
      case "retry":
        return this.notice("info", retryText(event));
      case "fallback":
        return this.notice("warning", `${event.to.id} is asked instead of ${event.from.id}.`);
      case "compaction":
        if (!this.#editor.shows.compactions) return undefined;
        return this.#send({
          sessionUpdate: "compaction_update",
          compactionId: randomUUID(),
          status: "completed",
        });
      default:
        return undefined;
    }
  }

  async #sendUsage(message: AgentMessage | undefined): Promise<void> {
    if (message?.role !== "assistant") return;
    const used = totalTokens(message.usage);
    if (used === 0) return;
    const { compactAt, spending } = this.#harness;
    const { cost } = spending.session;
    await this.#send({
      sessionUpdate: "usage_update",
      used,
      // What the footer of the terminal counts by: beyond it the context is compacted.
      size: compactAt,
      ...(cost && { cost: { amount: cost.total, currency: "USD" } }),
    });
  }

  async #sendTitle(text: string): Promise<void> {
    const title = cutTitle(text);
    if (title === "") return;
    this.#title = title;
    const updatedAt = new Date().toISOString();
    await this.#send({ sessionUpdate: "session_info_update", title, updatedAt });
  }

  async #sendMode(): Promise<void> {
    await this.#send({ sessionUpdate: "current_mode_update", currentModeId: this.#harness.mode });
  }

  async #sendConfig(options: SessionConfigOption[]): Promise<void> {
    await this.#send({ sessionUpdate: "config_option_update", configOptions: options });
  }

  /** Asks the user. No answer is a no. */
  async #ask(request: ApprovalRequest): Promise<ApprovalAnswer> {
    const { callId, tool, args, access, reason, signal, effects } = request;
    const isForeign = await this.#updates.announce(callId, tool, args);
    const rule = ruleFor(request);
    const summary = [access?.summary, reason].filter(Boolean).join("\n\n");
    const question: RequestPermissionRequest = {
      sessionId: this.id,
      toolCall: {
        toolCallId: callId,
        name: tool,
        ...createCallView(tool, args, this.cwd),
        status: "pending",
        rawInput: args,
        content: [
          ...(effects
            ? effectsContent(effects, this.cwd)
            : proposedContent(tool, args, this.cwd, this.#updates.before(callId))),
          { type: "content", content: { type: "text", text: summary } },
        ],
      },
      options: effects ? effectOptions(effects, rule) : permissionOptions(rule),
    };
    const chosen = await this.#chosen(question, signal);
    const answer = await this.#toAnswer(chosen, question, request, rule);
    const isAllowed = answer.allow !== false;
    // What a sub-agent does is not sent: its call is over for the editor with the answer.
    if (isForeign) await this.#updates.setStatus(callId, isAllowed ? "completed" : "failed");
    else if (isAllowed) await this.#updates.setStatus(callId, "in_progress");
    return answer;
  }

  /** What an option means. One that was not offered is a no. */
  async #toAnswer(
    chosen: string | undefined,
    question: RequestPermissionRequest,
    { fingerprint, effects, signal }: ApprovalRequest,
    rule: string | undefined,
  ): Promise<ApprovalAnswer> {
    const isOffered = question.options.some(({ optionId }) => optionId === chosen);
    switch (isOffered ? chosen : undefined) {
      case "always":
        return rule === undefined ? { allow: false } : { allow: "always", rule };
      case "allow":
      case "keep":
        return { allow: true, fingerprint };
      case "direct":
        return { allow: true, fingerprint, direct: true };
      case "pick": {
        const keep = effects && (await this.#pick(question, effects, signal));
        return keep && keep.length > 0 ? { allow: true, fingerprint, keep } : { allow: false };
      }
      default:
        return chosen === undefined
          ? { allow: false, reason: "the question was canceled." }
          : { allow: false };
    }
  }

  /** Asks about the effects of a command one by one; nothing where the user does not answer. */
  async #pick(
    question: RequestPermissionRequest,
    { effects }: EffectsReport,
    signal: AbortSignal | undefined,
  ): Promise<number[] | undefined> {
    const all = effects.filter(canKeep);
    const kept: number[] = [];
    for (const [index, effect] of all.entries()) {
      const left = all.length - index - 1;
      const isLast = left > 0 && index + 1 >= MAX_PICKED;
      const chosen = await this.#chosen(
        {
          ...question,
          toolCall: { ...question.toolCall, content: effectContent(effect, this.cwd) },
          options: pickOptions(left).filter(
            ({ optionId }) => !isLast || optionId.endsWith("-rest"),
          ),
        },
        signal,
      );
      if (chosen === undefined) return undefined;
      if (chosen.startsWith("keep")) kept.push(effect.id);
      if (chosen === "keep-rest") kept.push(...all.slice(index + 1).map(({ id }) => id));
      if (chosen.endsWith("-rest")) break;
    }
    return kept;
  }

  async #answerServer(question: McpQuestion, signal: AbortSignal): Promise<McpAnswer> {
    const { answerInEditor } = await import("./server-question.ts");
    const editor = this.#editor;
    try {
      return await answerInEditor(
        question,
        this.id,
        {
          ...(editor.canElicit(question) && {
            elicit: (request, until) => editor.elicit(request, until),
          }),
          choose: (request, until) => this.#chosen({ ...request, sessionId: this.id }, until),
          notice: (text) => this.notice("warning", text),
        },
        signal,
      );
    } catch (error) {
      if (signal.aborted) return { action: "cancel" };
      throw error;
    }
  }

  async #chosen(
    question: RequestPermissionRequest,
    signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    try {
      const { outcome } = await this.#editor.askPermission(question, signal);
      return outcome.outcome === "selected" ? outcome.optionId : undefined;
    } catch (error) {
      // The run was stopped, or the editor is gone: both are no answer.
      if (signal?.aborted) return undefined;
      throw error;
    }
  }

  async #stopReason({ end, sessionError }: Outcome): Promise<StopReason> {
    const { stop, limit, finalMessage } = end;
    switch (stop) {
      case "aborted":
        return "cancelled";
      case "limit":
        await this.#updates.say(`Stopped: the limit \`${limit ?? "of this run"}\` was reached.`);
        return limit === "maxTotalTokens" || limit === "maxTruncatedTurnsInARow"
          ? "max_tokens"
          : "max_turn_requests";
      case "error":
      case "sink": {
        const { failure, errorMessage = "The run failed." } = finalMessage ?? {};
        if (sessionError !== undefined) throw new Error(sessionError);
        if (failure?.kind === "refused") return "refusal";
        if (failure?.kind === "auth") throw new AcpAuthError(errorMessage);
        throw new Error(errorMessage);
      }
      default:
        return finalMessage?.stopReason === "length" ? "max_tokens" : "end_turn";
    }
  }
}

function makeTitle({ content }: Extract<AgentMessage, { role: "user" }>): string | undefined {
  const text =
    typeof content === "string" ? content : content.find((block) => block.type === "text")?.text;
  return text === undefined ? undefined : cutTitle(text) || undefined;
}

function cutTitle(text: string): string {
  const [line = ""] = text.trim().split("\n", 1);
  return line.length <= MAX_TITLE_CHARS ? line : `${line.slice(0, MAX_TITLE_CHARS)}…`;
}

/** The plan that a message sets, if it does. */
function plannedIn(message: AgentMessage): Todo[] | undefined {
  if (message.role !== "assistant") return undefined;
  const call = message.content.findLast(
    (block) => block.type === "toolCall" && block.name === "todo",
  );
  const todos: unknown = call?.type === "toolCall" ? call.arguments["todos"] : undefined;
  return Array.isArray(todos) ? todos.filter(isTodo) : undefined;
}

function isTodo(value: unknown): value is Todo {
  const { content, status } = toRecord(value);
  return typeof content === "string" && /^(?:pending|in_progress|done)$/.test(String(status));
}
