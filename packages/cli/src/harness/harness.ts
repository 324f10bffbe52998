import {
  type AgentEndEvent,
  type AgentEvent,
  type AgentRun,
  type AgentSink,
  callsOf,
  jsonLines,
  type Limits,
  logging,
  type Middleware,
  userMessage,
} from "@gyre/agent";
import {
  type AnySchema,
  isRetryable,
  type Model,
  type StopReason,
  type ThinkingLevel,
  addUsage,
  type Usage,
} from "@gyre/ai";
import { scriptedModelInfo } from "@gyre/ai/testing";
import {
  createJournal,
  type Session,
  type SessionContext,
  type SessionSettings,
} from "@gyre/sessions";
import type { PermissionMode, Toolset } from "@gyre/tools";
import type { Mcp } from "@gyre/tools/mcp";
import type { CommandRegistry } from "../extensions/command-registry.ts";
import type { Extensions } from "../extensions/extensions.ts";
import type { FileRecorder } from "../file-history/recorder.ts";
import { type Guidance, guidanceNews, guidanceTexts, readGuidance } from "../guidance/guidance.ts";
import type { Skill } from "../guidance/skills.ts";
import { answerAside } from "./answer-aside.ts";
import { KeptResults } from "./kept-results.ts";
import { logFile } from "../core/log-file.ts";
import { type Models, openModels } from "../models/models.ts";
import { notesIn, saveNotes } from "../guidance/session-notes.ts";
import type { Settings } from "../settings/settings.ts";
import { StoppableAgent } from "../extensions/stoppable-agent.ts";
import { summariser } from "./summarize.ts";
import { movedPrompt, systemPrompt } from "./system-prompt.ts";
import { permissionsFor } from "./permissions.ts";
import { openTools } from "./tools.ts";
import type { Harness, HarnessOptions, Parts, DeniedCall } from "./types.ts";
import type { Outcome, PromptRequest } from "../conversation/types.ts";
import { toLlmMessages } from "../conversation/user-command.ts";

export type { Approvals, DeniedCall, Harness, HarnessOptions } from "./types.ts";
export type { Outcome, PromptRequest } from "../conversation/types.ts";

/** How often a response that broke off is taken up again, for one prompt. */
export const MAX_RESUMES = 3;

/**
 * Makes all that a run needs. What a session was set to holds on, unless `explicit` says
 * otherwise; so the requests of a session that is gone on with begin as its last one did.
 */
export async function openHarness(options: HarnessOptions): Promise<Harness> {
  const context = await options.session?.context();
  const settings = remembered(options, context?.settings ?? {});
  const models = options.models ?? (await openModels({ ...options, settings }));
  const model = await models.current();
  const harness: { now?: Harness } = {};
  const parts: Parts = {
    options,
    settings,
    models,
    model,
    context,
    guidance: await readGuidance(options, settings),
    extensions: undefined,
    denied: [],
    mode: { now: settings.mode ?? "ask" },
    givenRules: [],
    kept: new KeptResults({
      session: () => harness.now?.session,
      messages: () => harness.now?.agent.state.messages ?? [],
    }),
  };
  parts.extensions = await extensionsOf(parts);
  // Sub-agents are under the same permissions, which need the folder that opens with the tools.
  const opened: { toolset?: Toolset } = {};
  const openedTools = (): Toolset => {
    if (opened.toolset) return opened.toolset;
    throw new Error("The tools are not open yet.");
  };
  const guard = permissionsFor(parts, openedTools);
  const recorder = await recorderOf(options, openedTools, () => harness.now?.session);
  // What is recorded is what was let through.
  const inner = recorder ? [recorder.middleware] : [];
  const around = [...(parts.extensions?.middleware ?? []), guard, ...inner];
  const toolset = await openTools(parts, around);
  opened.toolset = toolset;
  if (options.session && toolset.registry.has("notes")) {
    toolset.notes.restore(await notesIn(options.session));
  }
  harness.now = new HarnessOf(parts, toolset, around, recorder);
  return harness.now;
}

/** Plugins and hooks, where there are any. */
async function extensionsOf({ options, settings, denied }: Parts): Promise<Extensions | undefined> {
  const { plugins = [], hooks = {} } = settings;
  if (plugins.length === 0 && Object.keys(hooks).length === 0) return undefined;
  const { extensionsFor } = await import("../extensions/extensions.ts");
  return extensionsFor({
    ...options,
    settings,
    denied: ({ toolCall, tool }, reason) =>
      void denied.push({ toolCallId: toolCall.id, tool: tool.name, reason }),
  });
}

/** Records what becomes of files, where that is wanted. */
async function recorderOf(
  { env, fileHistory, warn }: HarnessOptions,
  toolset: () => Toolset,
  session: () => Session | undefined,
): Promise<FileRecorder | undefined> {
  if (!fileHistory) return undefined;
  const { FileRecorder, historyFolder } = await import("../file-history/recorder.ts");
  return new FileRecorder({
    workspace: () => toolset().env.workspace,
    session,
    isJobRunning: () =>
      toolset()
        .jobs.list()
        .some(({ end }) => !end),
    folder: historyFolder(env),
    warn,
  });
}

class HarnessOf implements Harness {
  readonly agent: StoppableAgent;
  readonly toolset: Toolset;
  readonly fileHistory: FileRecorder | undefined;
  readonly denied: readonly DeniedCall[];
  readonly skills: readonly Skill[];
  readonly mcp: Mcp | undefined;
  readonly givenRules: readonly string[];
  readonly #extensions: Extensions | undefined;
  readonly #options: HarnessOptions;
  readonly #models: Models;
  readonly #mode: { now: PermissionMode };
  /** Read by each run as it starts: what a prompt has used up is taken off between its runs. */
  readonly #limits: Limits;
  #saved: SessionSettings;
  #session: Session | undefined;
  #sink: AgentSink | undefined;
  #sessionError: string | undefined;
  /** What summaries have used since the last prompt ended. */
  #aside: Usage = {};
  /** What the model is told before the next prompt. */
  #news: string | undefined;
  /** Whether anything of the newest answer was shown. */
  #isShown = false;

  constructor(
    parts: Parts,
    toolset: Toolset,
    around: readonly Middleware[],
    fileHistory: FileRecorder | undefined,
  ) {
    const { options, settings, models, model, context, guidance } = parts;
    const { session } = options;
    this.toolset = toolset;
    this.fileHistory = fileHistory;
    this.#options = options;
    this.denied = parts.denied;
    this.skills = guidance.hasSkillTool ? guidance.skills : [];
    this.mcp = parts.mcp;
    this.givenRules = parts.givenRules;
    this.#extensions = parts.extensions;
    this.#models = models;
    this.#mode = parts.mode;
    this.#saved = context?.settings ?? {};
    this.#limits = limitsOf(settings);
    const tools = toolset.registry.list();
    const folder = toolset.env.workspace.root;
    const saved = this.#saved.systemPrompt;
    const told =
      saved === undefined
        ? systemPrompt({ folder, settings, more: guidanceTexts(guidance) })
        : movedPrompt(saved, folder);
    this.#news = guidanceNews(guidance, told, context?.messages ?? []);
    toolset.notes.onChange(async (text) => {
      if (this.#session) await saveNotes(this.#session, text);
    });
    this.agent = new StoppableAgent({
      protocol: models.client,
      convertToLlm: toLlmMessages,
      fallbackModels: models.fallbacks,
      limits: this.#limits,
      context: {
        pinned: () => pinned(guidance, told, toolset),
        keep: (key, text) => parts.kept.keep(key, text),
        summarise: summariser({
          client: models.client,
          model: () => (settings.oracle === undefined ? this.model : models.find(settings.oracle)),
          spent: (usage) => (this.#aside = addUsage(this.#aside, usage)),
        }),
        beforeCompaction: (signal, trigger) => this.#extensions?.compact(signal, trigger),
      },
      middleware: [
        ...(parts.mcp ? [parts.mcp.middleware] : []),
        ...(settings.log === undefined ? [] : [logTo(settings.log)]),
        ...around,
      ],
      sink: (event) => this.#take(event),
      ...(context && { recordedResult: (id: string) => context.recordedResult(id) }),
      initialState: {
        model,
        tools,
        thinkingLevel: settings.thinking ?? "off",
        systemPrompt: told,
        messages: context?.messages ?? [],
        ...(context?.compaction && { compaction: context.compaction }),
      },
    });
    this.#writeTo(session, context);
    this.#extensions?.attach({
      agent: this.agent,
      toolset,
      session: () => this.#session,
      isResumed: (context?.messages.length ?? 0) > 0,
    });
  }

  get commands(): CommandRegistry | undefined {
    return this.#extensions?.commands;
  }

  get isCutOff(): boolean {
    const { messages } = this.agent.state;
    const last = messages.findLast(
      (message) =>
        message.role !== "userCommand" &&
        (message.role !== "assistant" || isWhole(message.stopReason)),
    );
    if (!last) return false;
    return last.role !== "assistant" || callsOf(last).length > 0;
  }

  get session(): Session | undefined {
    return this.#session;
  }

  get model(): Model {
    const { model } = this.agent.state;
    if (!model) throw new Error("A harness always has a model.");
    return model;
  }

  get mode(): PermissionMode {
    return this.#mode.now;
  }

  async start(): Promise<void> {
    const { newSession } = this.#options;
    if (!this.#session && newSession) this.#writeTo(await newSession(), undefined);
    await this.#save();
  }

  async prompt(request: PromptRequest): Promise<Outcome> {
    const { text, images = [], output, signal, userCommands = [] } = request;
    await this.start();
    if (signal?.aborted) throw new Error("Interrupted.");
    const asked = await this.#passed(text);
    const message = userMessage(this.#withNews(asked), Date.now(), images);
    const messages = [...userCommands, message];
    return this.#toItsEnd(
      () => (output ? this.agent.run(messages, { output }) : this.agent.run(messages)),
      output,
    );
  }

  async resume(output?: AnySchema): Promise<Outcome> {
    await this.start();
    return this.#toItsEnd(() => this.#continued(output), output);
  }

  #continued(output: AnySchema | undefined): AgentRun<unknown> {
    return output ? this.agent.continueRun({ output }) : this.agent.continueRun();
  }

  async #toItsEnd(begin: () => AgentRun<unknown>, output: AnySchema | undefined): Promise<Outcome> {
    const whole = { ...this.#limits };
    this.#sessionError = undefined;
    let run = begin();
    let turns = 0;
    let usage: Usage = {};
    try {
      for (let resumes = 0; ;) {
        const end = await run.result();
        turns += end.turns;
        usage = addUsage(addUsage(usage, end.usage), this.#aside);
        this.#aside = {};
        const more = await this.#wanted(end);
        if (more !== undefined) {
          run = output ? this.agent.run(more, { output }) : this.agent.run(more);
          continue;
        }
        const goOn = resumes++ < MAX_RESUMES && this.#brokeOff(end) && takeOff(this.#limits, end);
        if (!goOn) {
          const sessionError = this.#sessionError;
          return {
            end,
            turns,
            usage,
            ...(output && (await answerOf(run))),
            ...(sessionError !== undefined && { sessionError }),
          };
        }
        run = this.#continued(output);
      }
    } finally {
      Object.assign(this.#limits, whole);
    }
  }

  /** The prompt, after hooks have seen it. */
  #passed(text: string): string | Promise<string> {
    const extensions = this.#extensions;
    return extensions ? this.agent.beside((signal) => extensions.prompt(text, signal)) : text;
  }

  /** What a hook wants done before the agent may stop, if there is anything left for it. */
  async #wanted(end: AgentEndEvent): Promise<string | undefined> {
    const extensions = this.#extensions;
    if (!extensions || end.stop !== "done") return undefined;
    const more = await this.agent.beside((signal) => extensions.stop(signal));
    return more !== undefined && takeOff(this.#limits, end) ? more : undefined;
  }

  #withNews(text: string): string {
    const news = this.#news;
    this.#news = undefined;
    return news === undefined ? text : `${news}\n\n${text}`;
  }

  ask(prompt: string, signal: AbortSignal): Promise<string> {
    const { client } = this.#models;
    return this.agent.beside((stopped) =>
      answerAside(prompt, {
        client,
        model: this.model,
        signal: AbortSignal.any([signal, stopped]),
        spent: (usage) => (this.#aside = addUsage(this.#aside, usage)),
      }),
    );
  }

  async setModel(name: string): Promise<Model> {
    const model = await this.#models.find(name);
    this.agent.setModel(model);
    return model;
  }

  async setThinking(level: ThinkingLevel): Promise<void> {
    this.agent.setThinkingLevel(level);
    await this.#save();
  }

  async setMode(mode: PermissionMode): Promise<void> {
    this.#mode.now = mode;
    await this.#save();
  }

  async setTools(names: readonly string[]): Promise<void> {
    const { registry } = this.toolset;
    const wanted = new Set(names.map((name) => registry.get(name)));
    this.agent.setTools(registry.list().filter((tool) => wanted.has(tool)));
    await this.#save();
  }

  async close(): Promise<void> {
    this.agent.abort();
    await this.agent.waitForIdle();
    await this.fileHistory?.close();
    await this.toolset.close();
    if (this.#session !== this.#options.session) await this.#session?.close();
  }

  #writeTo(session: Session | undefined, context: SessionContext | undefined): void {
    if (!session) return;
    this.#session = session;
    this.#sink = createJournal(session, context);
    this.agent.sessionId = session.header.id;
  }

  #take(event: AgentEvent): void | Promise<void> {
    if (event.type === "message_start") this.#isShown = false;
    else if (event.type === "message_update") this.#isShown = true;
    const writing = this.#sink?.(event);
    if (!(writing instanceof Promise)) return;
    return writing.catch((error: unknown) => {
      this.#sessionError = error instanceof Error ? error.message : String(error);
      throw error;
    });
  }

  /**
   * The response ended early, after something of it was shown, and another try may do better.
   * Before that it was tried again already. Half a call is shown, and is not in the message.
   */
  #brokeOff({ finalMessage, stop }: AgentEndEvent): boolean {
    if (stop !== "error" || !finalMessage?.failure) return false;
    return this.#isShown && isRetryable(finalMessage.failure);
  }

  /** Writes down what is set now, as far as it is not written down already. */
  async #save(): Promise<void> {
    if (!this.#session) return;
    const { systemPrompt: prompt, thinkingLevel, tools } = this.agent.state;
    const { provider, id } = this.model;
    const now: Required<SessionSettings> = {
      model: { provider, id },
      thinkingLevel,
      systemPrompt: prompt,
      tools: tools.map(({ name }) => name),
      mode: this.#mode.now,
    };
    const saved: Record<string, unknown> = { ...this.#saved };
    const changed = Object.entries(now).filter(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify(saved[key]),
    );
    if (changed.length === 0) return;
    await this.#session.append({ type: "settings", settings: Object.fromEntries(changed) });
    this.#saved = now;
  }
}

/** The answer was not broken off by trouble. */
function isWhole(reason: StopReason): boolean {
  return reason !== "error" && reason !== "aborted" && reason !== "redirected";
}

/** What is set, with what the session had where nothing else was asked for. */
function remembered({ settings, explicit }: HarnessOptions, had: SessionSettings): Settings {
  const { model, thinkingLevel, tools } = had;
  const isOpen = (key: keyof Settings): boolean => !explicit?.has(key);
  return {
    ...settings,
    ...(model &&
      isOpen("model") &&
      !isScripted(model) && { model: `${model.provider}/${model.id}` }),
    ...(thinkingLevel && isOpen("thinking") && { thinking: thinkingLevel }),
    ...(tools && isOpen("tools") && { tools }),
  };
}

/** What a session was begun with where there was no key is no model to go on with. */
function isScripted({ provider }: Pick<Model, "provider">): boolean {
  return provider === scriptedModelInfo.provider;
}

/** What is in sight after every compaction: notes, and instructions that the first message lacks. */
function pinned(guidance: Guidance, told: string, { notes }: Toolset): string | undefined {
  return [guidanceNews(guidance, told, []), notes.text].filter(Boolean).join("\n\n") || undefined;
}

function limitsOf({ maxCost, maxTurns }: Settings): Limits {
  return {
    ...(maxTurns !== undefined && { maxTurns }),
    ...(maxCost !== undefined && { maxCostUsd: maxCost }),
  };
}

/** Takes off what a run has used; tells whether anything is left. */
function takeOff(limits: Limits, { turns, usage }: AgentEndEvent): boolean {
  if (limits.maxTurns !== undefined) limits.maxTurns -= turns;
  if (limits.maxCostUsd !== undefined) limits.maxCostUsd -= usage.cost?.total ?? 0;
  return Object.values(limits).every((left: number) => left > 0);
}

async function answerOf(run: AgentRun<unknown>): Promise<Pick<Outcome, "output" | "outputError">> {
  try {
    return { output: await run.output() };
  } catch (error) {
    return { outputError: error instanceof Error ? error.message : String(error) };
  }
}

function logTo(path: string): Middleware {
  return logging(jsonLines(logFile(path)));
}
