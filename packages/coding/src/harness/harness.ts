import { sep } from "node:path";
import {
  type AgentEnd,
  type AgentEndEvent,
  type AgentEvent,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentOptions,
  type AgentRun,
  type AgentTool,
  type AgentToolResult,
  type ContextConfig,
  type ContinueOptions,
  contextLimits,
  type Decision,
  isLlmMessage,
  listCalls,
  jsonLines,
  type Limits,
  logging,
  type Middleware,
  type PromptInput,
  summarizeWith,
  type SummaryKind,
  userMessage,
} from "@gyre/agent";
import {
  type AnySchema,
  type Model,
  type StopReason,
  type ThinkingLevel,
  addUsage,
  type Usage,
  errorMessage,
  validateTranscript,
} from "@gyre/ai";
import { scriptedModelInfo } from "@gyre/ai/testing";
import {
  defaultSessionFolder,
  type Session,
  type SessionContext,
  type SessionSettings,
} from "@gyre/sessions";
import { type JobChange, type PermissionMode, type Toolset, UnknownToolError } from "@gyre/tools";
import type { Mcp } from "@gyre/tools/mcp";
import type { CommandRegistry } from "../extensions/command-registry.ts";
import type { Extensions } from "../extensions/extensions.ts";
import type { EditDiagnostics } from "../diagnostics/edit-diagnostics.ts";
import type { FileRecorder } from "../file-history/recorder.ts";
import {
  AgentTexts,
  agentTextFolder,
  callNoteFolder,
  describeHeld,
} from "../guidance/agent-texts.ts";
import {
  type Guidance,
  guidanceNews,
  guidancePlaces,
  guidanceTexts,
  readGuidance,
} from "../guidance/guidance.ts";
import { GuidanceWatch } from "../guidance/guidance-watch.ts";
import type { Skill } from "../guidance/skills.ts";
import { assertModel, isModelAllowed, isToolWithin, lowerMode, lowerSettings } from "./ceilings.ts";
import type { UserCall } from "./call-tool.ts";
import { OffloadedResults } from "./offloaded-results.ts";
import { type GivenRule, RuleBook } from "../permissions/rule-book.ts";
import { SessionLog } from "./session-log.ts";
import { sideQuery } from "./side-query.ts";
import {
  countTools,
  type Payment,
  PaymentLog,
  type Purpose,
  readSpending,
  type Spending,
} from "./spending.ts";
import { CodingAgentError } from "../core/errors.ts";
import { logFile } from "../core/log-file.ts";
import { type Models, type ModelsOptions, openModels } from "../models/models.ts";
import { recommendedThinking } from "../models/recommended-thinking.ts";
import { parseModelName } from "../text/model-name.ts";
import { findSmallModel } from "../models/small-model.ts";
import { notesIn, saveNotes } from "../guidance/session-notes.ts";
import { realPath } from "../settings/project-file.ts";
import type { Settings } from "../settings/settings.ts";
import { AbortableAgent } from "../extensions/abortable-agent.ts";
import { isOwnSession, limitForeign, markSettings } from "./own-settings.ts";
import {
  findAnnounced,
  listSteps,
  noticeOfMode,
  PLAN_TOOL,
  planTool,
  TODO_TOOL,
} from "../conversation/plan.ts";
import { noticeOfJob } from "../conversation/job-notice.ts";
import { movedPrompt, systemPrompt } from "./system-prompt.ts";
import { permissionsFor } from "./permissions.ts";
import { type Caller, type OpenedTools, openTools } from "./tools.ts";
import { readWaits } from "./waits.ts";
import type { DeniedCall, Harness, HarnessOptions, ModeState, Parts } from "./types.ts";
import type { NoticeMessage } from "../conversation/notice.ts";
import type { Outcome, PromptRequest } from "../conversation/types.ts";
import { assumeMode, isMode, modelValue } from "../text/choices.ts";
import { toLlmMessage, toLlmMessages } from "../conversation/user-command.ts";

export type { Approvals, DeniedCall, Harness, HarnessOptions } from "./types.ts";
export type { Outcome, PromptRequest } from "../conversation/types.ts";

/**
 * Makes all that a run needs. What a session was set to holds on, unless `explicit` says
 * otherwise: the requests of a session that is resumed begin as its last request did.
 */
export async function openHarness(options: HarnessOptions): Promise<AgentHarness> {
  const prepared = await prepareHarness(options);
  return prepared.open((own) => new AbortableAgent(own));
}

/** A harness without its agent: all that takes time is done. */
export interface PreparedHarness {
  /** To be called once. `createAgent` gets the options of the agent. */
  open(createAgent: (options: AgentOptions) => AbortableAgent): AgentHarness;
  /** Where it is not opened. */
  close(): Promise<void>;
}

/** The same, for callers that make the agent themselves. */
export async function prepareHarness(options: HarnessOptions): Promise<PreparedHarness> {
  const stored = await options.session?.context();
  warnOfLostCalls(stored?.messages ?? [], options.warn);
  const isOwn = isOwnFile(options, stored);
  const context = stored && (isOwn ? stored : withoutForeign(stored, options));
  const settings = lowerSettings(mergeSettings(options, context?.settings ?? {}), options.ceilings);
  const hidesAddresses = options.ceilings !== undefined;
  const models = await findModels(options, { ...options, settings, hidesAddresses });
  const denied: DeniedCall[] = [];
  const log = new SessionLog(options.session, stored, options.isJournaled);
  const parts: Parts = {
    options,
    settings,
    models,
    model: await chooseModel(models, options),
    context,
    isOwn,
    guidance: await readGuidance(options, settings),
    extensions: await loadExtensions(options, settings, denied),
    denied,
    mode: startMode(settings, options.approvals !== "suspend" && (isOwn || !stored)),
    ruleBook: new RuleBook(realPath(options.cwd), options.ruleFile),
    results: new OffloadedResults(log, context?.messages),
    spending: await readSpending(options.session, context),
  };
  // Sub-agents are guarded as the agent is. The guards are made with the folder that opens with
  // the tools, so the list is filled when that is open.
  const guards: Middleware[] = [];
  const subAgentGuards: Middleware[] = [];
  const caller: Caller = { agent: undefined };
  for (const text of parts.guidance.held) options.warn(describeHeld(text));
  const tools = await openTools(parts, subAgentGuards, caller);
  const { toolset } = tools;
  try {
    const recorder = await openRecorder(options, toolset, log);
    const watch = watchGuidance(options, parts.guidance, toolset);
    const diagnostics = await openDiagnostics(settings, toolset);
    // Only calls that were allowed are recorded, so the recorders are the innermost.
    guards.push(
      ...(parts.extensions?.middleware ?? []),
      permissionsFor(parts, toolset, log),
      watch.middleware,
      ...(recorder ? [recorder.middleware] : []),
      ...(diagnostics ? [diagnostics.middleware] : []),
    );
    subAgentGuards.push(...(tools.mcp ? [tools.mcp.middleware] : []), ...guards);
    // What the user calls is no part of the session, and is asked about again after a crash.
    const unlogged = { ask: () => Promise.resolve(), decide: () => Promise.resolve() };
    const userGuards = [
      ...(parts.extensions?.middleware ?? []),
      permissionsFor(parts, toolset, unlogged),
      watch.middleware,
    ];
    if (options.session && toolset.registry.has("notes")) {
      toolset.notes.restore(await notesIn(options.session));
    }
    return {
      open(createAgent) {
        const recorders = { fileHistory: recorder, watch, diagnostics };
        const harness = new AgentHarness(
          parts,
          tools,
          { guards, userGuards },
          log,
          recorders,
          createAgent,
        );
        caller.agent = harness.agent;
        return harness;
      },
      async close() {
        await recorder?.close();
        await diagnostics?.close();
        await toolset.close();
        watch.close();
      },
    };
  } catch (error) {
    await toolset.close();
    throw error;
  }
}

function isOwnFile(
  { env, session, isJournaled }: HarnessOptions,
  stored: SessionContext | undefined,
): boolean {
  // What writes to the store of a worker decides what that runs anyway.
  if (isJournaled || !session || !stored) return true;
  return isOwnSession(env, session.header, stored.settings);
}

/**
 * A session whose settings this installation has not written. What the model reads first and may do
 * is for the user's settings to say.
 */
function withoutForeign(
  stored: SessionContext,
  { settings, warn }: HarnessOptions,
): SessionContext {
  warn(
    "The settings of this session were not written by this installation of gyre: its system prompt is not used, and it has no tools but those of your settings.",
  );
  return { ...stored, settings: limitForeign(stored.settings, settings) };
}

async function findModels(
  { models, adaptModels }: HarnessOptions,
  options: ModelsOptions,
): Promise<Models> {
  if (models) return models;
  const found = await openModels(options);
  return adaptModels?.(found) ?? found;
}

/** Damage of a session file may leave the result of a call without the message that made it. */
function warnOfLostCalls(messages: readonly AgentMessage[], warn: HarnessOptions["warn"]): void {
  const sent = messages.filter(isLlmMessage);
  for (const { fault, index } of validateTranscript(sent)) {
    const message = sent[index];
    if (fault !== "result-without-call" || message?.role !== "toolResult") continue;
    warn(
      `The message that called ${message.toolName} is lost: the model does not get the result of the call.`,
    );
  }
}

/** Plugins and hooks, where there are any. */
async function loadExtensions(
  options: HarnessOptions,
  settings: Settings,
  denied: DeniedCall[],
): Promise<Extensions | undefined> {
  const { plugins = [], hooks = {} } = settings;
  const count = plugins.length + (options.ownPlugins?.length ?? 0) + Object.keys(hooks).length;
  if (count === 0) return undefined;
  const { extensionsFor } = await import("../extensions/extensions.ts");
  return extensionsFor({
    ...options,
    settings,
    denied: ({ toolCall, tool }, reason) =>
      void denied.push({ toolCallId: toolCall.id, tool: tool.name, reason }),
  });
}

/** Records what calls do to files, where that is wanted. */
async function openRecorder(
  { env, fileHistory, warn }: HarnessOptions,
  { env: { workspace }, jobs }: Toolset,
  log: SessionLog,
): Promise<FileRecorder | undefined> {
  if (!fileHistory) return undefined;
  const { FileRecorder, historyFolder } = await import("../file-history/recorder.ts");
  return new FileRecorder({
    workspace,
    session: () => log.session,
    isJobRunning: () => jobs.list().some(({ end }) => !end),
    folder: historyFolder(env),
    warn,
  });
}

/** Adds the errors that language servers find to results of calls that change files, where that is wanted. */
async function openDiagnostics(
  settings: Settings,
  toolset: Toolset,
): Promise<EditDiagnostics | undefined> {
  if (settings.diagnostics === false) return undefined;
  const { EditDiagnostics: Opened } = await import("../diagnostics/edit-diagnostics.ts");
  return new Opened(toolset, settings);
}

/** Records what calls write for agents to read: it is not used before the user has seen it. */
function watchGuidance(
  { cwd, env, warn }: HarnessOptions,
  { files, skills, agents }: Guidance,
  { jobs }: Toolset,
): GuidanceWatch {
  return new GuidanceWatch({
    places: guidancePlaces(cwd, env),
    texts: new AgentTexts(agentTextFolder(env)),
    noteFolder: callNoteFolder(env),
    inUse: new Map([...files, ...agents].map(({ path, content }) => [realPath(path), content])),
    skills: skills.map(({ folder }) => folder),
    isJobRunning: () => jobs.list().some(({ end }) => !end),
    warn,
  });
}

/** What records what calls do. */
interface Recorders {
  fileHistory: FileRecorder | undefined;
  diagnostics: EditDiagnostics | undefined;
  watch: GuidanceWatch;
}

/** What decides on calls of the model, and on those of the user. */
interface Guards {
  guards: readonly Middleware[];
  userGuards: readonly Middleware[];
}

/** How a run of a harness is ended from outside, and what a person decided before it. */
export type RunControl = Pick<ContinueOptions, "signal" | "decisions">;

/** How a prompt ended, with the answer of its last run. */
export interface HarnessOutcome extends Outcome {
  end: AgentEnd<unknown>;
}

/** See `openHarness`. */
export class AgentHarness implements Harness {
  readonly agent: AbortableAgent;
  readonly toolset: Toolset;
  readonly fileHistory: FileRecorder | undefined;
  readonly denied: readonly DeniedCall[];
  readonly skills: readonly Skill[];
  readonly mcp: Mcp | undefined;
  readonly #ruleBook: RuleBook;
  readonly #watch: GuidanceWatch;
  readonly #userGuards: readonly Middleware[];
  readonly #diagnostics: EditDiagnostics | undefined;
  readonly #extensions: Extensions | undefined;
  readonly #options: HarnessOptions;
  readonly #models: Models;
  readonly #mode: ModeState;
  readonly #log: SessionLog;
  readonly #results: OffloadedResults;
  /** Read by each run as it starts: what a prompt has used is deducted between its runs. */
  readonly #limits: Limits;
  readonly #trigger: Pick<ContextConfig, "triggerTokens">;
  readonly spending: Spending;
  readonly #payments: PaymentLog;
  /** What was used since the last prompt ended: all of it by purpose, and what no run counts. */
  #recent = new Map<Purpose, Usage>();
  #outsideRuns: Usage = {};
  /** Whether the next prompt comes with what holds now. */
  #isWithFacts: boolean;
  /** What precedes the next prompt. */
  #pendingNotice: string | undefined;
  /** What has happened since the last run, for the next prompt. */
  readonly #notices: NoticeMessage[] = [];
  #isClosing = false;
  /** The mode that the model was last notified of. */
  #announced: string | undefined;
  readonly #planTool: AgentTool | undefined;

  constructor(
    parts: Parts,
    { toolset, mcp }: OpenedTools,
    { guards, userGuards }: Guards,
    log: SessionLog,
    { fileHistory, watch, diagnostics }: Recorders,
    createAgent: (options: AgentOptions) => AbortableAgent,
  ) {
    const { options, settings, models, model, context, guidance, results } = parts;
    this.toolset = toolset;
    this.fileHistory = fileHistory;
    this.#watch = watch;
    this.#userGuards = userGuards;
    this.#diagnostics = diagnostics;
    this.#options = options;
    this.#isWithFacts = options.facts ?? false;
    this.denied = parts.denied;
    this.skills = guidance.hasSkillTool ? guidance.skills : [];
    this.mcp = mcp;
    this.#ruleBook = parts.ruleBook;
    this.#extensions = parts.extensions;
    this.#models = models;
    this.#mode = parts.mode;
    this.#log = log;
    this.#results = results;
    this.spending = parts.spending;
    this.#payments = new PaymentLog(() => log.session, options.warn);
    this.#limits = { ...createLimits(settings), ...options.limits };
    const { compactAt } = settings;
    this.#trigger = compactAt === undefined ? {} : { triggerTokens: compactAt };
    const folder = toolset.env.workspace.root;
    const saved = isPromptGiven(options) ? undefined : context?.settings.systemPrompt;
    const instructions =
      saved === undefined
        ? systemPrompt({
            folder,
            settings,
            systemFile: guidance.system?.text,
            docs: options.docs,
            more: guidanceTexts(guidance),
          })
        : movedPrompt(saved, folder);
    this.#announced = findAnnounced(context?.messages ?? []);
    this.#planTool =
      options.reviewPlan && planTool(options.reviewPlan, (answer) => this.#carryOut(answer));
    this.#pendingNotice = guidanceNews(guidance, instructions, context?.messages ?? []);
    toolset.jobs.onChange((change) => this.#onJob(change));
    toolset.notes.onChange(async (text) => {
      if (log.session) await saveNotes(log.session, text);
    });
    this.agent = createAgent({
      protocol: models.client,
      convertToLlm: toLlmMessages,
      fallbackModels: models.fallbacks,
      limits: this.#limits,
      ...readWaits(settings),
      context: {
        ...this.#trigger,
        convertMessage: toLlmMessage,
        pinned: () => pinned(guidance, instructions, toolset),
        storeResult: (key, text) => results.store(key, text),
        summarize: summarizeWith((what) => this.#findSummarizer(what, settings, models), {
          protocol: models.client,
          onUsage: (usage, asked) =>
            this.#pay({ purpose: "summaries", model: modelValue(asked), usage }),
        }),
        beforeCompaction: (signal, trigger) => this.#extensions?.compact(signal, trigger),
      },
      middleware: [
        // A call of a sub-agent has a parent: its caller gets the notice.
        {
          tool: async (call, next) =>
            call.parentId === undefined ? this.#withNotices(await next()) : next(),
        },
        ...(mcp ? [mcp.middleware] : []),
        ...(settings.log === undefined ? [] : [logTo(settings.log)]),
        ...guards,
        countTools((payment) => this.#record(payment)),
        log.middleware,
      ],
      sink: (event) => this.#onEvent(event),
      onQueueChange: (change) => log.onQueueChange(change),
      ...(context && { unfinished: unfinishedCalls(context, parts) }),
      model,
      tools: this.#withPlanTool(toolset.registry.list()),
      thinkingLevel: settings.thinking ?? recommendedThinking(model),
      instructions,
      messages: context?.messages ?? [],
      ...(context?.compaction && { compaction: context.compaction }),
      ...(context && { queued: context.queued }),
      ...(context?.interrupted && { interrupted: context.interrupted }),
      ...(context && options.approvals === "suspend" && { pending: context.pending }),
    });
    this.#nameSession();
    this.#extensions?.attach({
      agent: this.agent,
      toolset,
      session: () => log.session,
      isResumed: (context?.messages.length ?? 0) > 0,
    });
  }

  /** A small model summarizes results; turns are for the one that goes on with the summary. */
  async #findSummarizer(
    what: SummaryKind,
    { oracle, smallModel }: Settings,
    models: Models,
  ): Promise<Model> {
    if (what === "turns") return oracle === undefined ? this.model : models.find(oracle);
    if (smallModel !== undefined) return models.find(smallModel);
    return findSmallModel(this.model, await models.list());
  }

  get commands(): CommandRegistry | undefined {
    return this.#extensions?.commands;
  }

  get isCutOff(): boolean {
    const { messages } = this.agent.state;
    const last = messages.findLast(
      (message) =>
        message.role !== "userCommand" &&
        message.role !== "notice" &&
        (message.role !== "assistant" || isComplete(message.stopReason)),
    );
    if (!last) return false;
    if (last.role !== "assistant" || last.stopReason === "pause") return true;
    return listCalls(last).length > 0;
  }

  get session(): Session | undefined {
    return this.#log.session;
  }

  get model(): Model {
    const { model } = this.agent.state;
    if (!model) throw new Error("A harness always has a model.");
    return model;
  }

  get compactAt(): number {
    return contextLimits(this.#trigger, this.model).trigger;
  }

  get mode(): PermissionMode {
    return this.#mode.now;
  }

  async start(): Promise<void> {
    const { newSession } = this.#options;
    if (!this.#log.session && newSession) {
      this.#log.use(await newSession());
      this.#nameSession();
    }
    await this.#saveSettings();
    await this.#payments.save();
  }

  async prompt(
    request: PromptRequest,
    control: Pick<RunControl, "signal"> = {},
  ): Promise<HarnessOutcome> {
    const { text, images = [], attachments = [], output, signal, userCommands = [] } = request;
    await this.start();
    if (signal?.aborted) throw new Error("Interrupted.");
    const passed = await this.#runPromptHooks(text);
    const message = userMessage(this.#withNotice(passed), Date.now(), [...attachments, ...images]);
    const notice = noticeOfMode(this.mode, this.#announced, this.#planTool !== undefined);
    this.#announced = notice?.mode ?? this.#announced;
    const facts = await this.#findFacts(signal);
    const before = [
      ...(facts ? [facts] : []),
      ...userCommands,
      ...this.#notices.splice(0),
      ...(notice ? [notice] : []),
    ];
    const first = this.#run([...before, message], output, control);
    return this.#runToCompletion(first, output, control);
  }

  /** With the first prompt since this was opened. */
  async #findFacts(signal: AbortSignal | undefined): Promise<NoticeMessage | undefined> {
    if (!this.#isWithFacts) return undefined;
    this.#isWithFacts = false;
    const { findFacts } = await import("../guidance/opening-facts.ts");
    const { messages, tools } = this.agent.state;
    const sources = {
      toolset: this.toolset,
      tools: tools.map(({ name }) => name),
      mode: this.mode,
      settings: this.#options.settings,
      now: new Date(),
      signal: signal ?? new AbortController().signal,
    };
    return findFacts(sources, messages);
  }

  async resume(output?: AnySchema, control: RunControl = {}): Promise<HarnessOutcome> {
    await this.start();
    if (control.decisions) await this.decide(control.decisions);
    return this.#runToCompletion(this.#continue(output, control), output, control);
  }

  #run(
    input: PromptInput,
    output: AnySchema | undefined,
    { signal }: RunControl,
  ): AgentRun<unknown> {
    const options = signal ? { signal } : {};
    return detached(
      output ? this.agent.run(input, { ...options, output }) : this.agent.run(input, options),
    );
  }

  #continue(output: AnySchema | undefined, control: RunControl): AgentRun<unknown> {
    return detached(
      output ? this.agent.continueRun({ ...control, output }) : this.agent.continueRun(control),
    );
  }

  async #runToCompletion(
    first: AgentRun<unknown>,
    output: AnySchema | undefined,
    control: RunControl,
  ): Promise<HarnessOutcome> {
    const whole = { ...this.#limits };
    this.#log.error = undefined;
    let run = first;
    let turns = 0;
    let usage: Usage = {};
    try {
      for (;;) {
        const end = await run.result();
        turns += end.turns;
        let used = addUsage(end.usage, this.#takeOutsideRuns());
        const more = await this.#runStopHooks(end);
        used = addUsage(used, this.#takeOutsideRuns());
        usage = addUsage(usage, used);
        if (more === undefined || !deduct(this.#limits, end.turns, used)) {
          const { error } = this.#log;
          return {
            end,
            turns,
            usage,
            spending: this.takeSpending(),
            ...(output && (await readAnswer(run))),
            ...(error !== undefined && { sessionError: error }),
          };
        }
        run = this.#run(more, output, control);
      }
    } finally {
      Object.assign(this.#limits, whole);
    }
  }

  /** Has hooks see a prompt that is stored already. Rejects where one refuses it. */
  async checkPrompt(text: string): Promise<void> {
    await this.#runPromptHooks(text);
  }

  /** The prompt, after hooks have seen it. */
  #runPromptHooks(text: string): string | Promise<string> {
    const extensions = this.#extensions;
    return extensions ? this.agent.runAbortable((signal) => extensions.prompt(text, signal)) : text;
  }

  /** What a hook wants done before the agent may stop. */
  async #runStopHooks(end: AgentEndEvent): Promise<string | undefined> {
    const extensions = this.#extensions;
    if (!extensions || end.stop !== "done") return undefined;
    return this.agent.runAbortable((signal) => extensions.stop(signal));
  }

  /** Counts what was asked of a model beside the answers, in the run that goes on if one does. */
  #pay(payment: Payment): void {
    const { usage } = payment;
    if (!this.agent.countUsage(usage)) this.#outsideRuns = addUsage(this.#outsideRuns, usage);
    this.#record(payment);
  }

  #record(payment: Payment): void {
    this.spending.add(payment);
    this.#addRecent(payment.purpose, payment.usage);
    this.#payments.add(payment);
  }

  #addRecent(purpose: Purpose, usage: Usage): void {
    this.#recent.set(purpose, addUsage(this.#recent.get(purpose) ?? {}, usage));
  }

  #takeOutsideRuns(): Usage {
    const usage = this.#outsideRuns;
    this.#outsideRuns = {};
    return usage;
  }

  takeSpending(): Partial<Record<Purpose, Usage>> {
    const recent = Object.fromEntries(this.#recent);
    this.#recent = new Map();
    return recent;
  }

  #withNotice(text: string): string {
    const notice = this.#pendingNotice;
    this.#pendingNotice = undefined;
    return notice === undefined ? text : `${notice}\n\n${text}`;
  }

  ask(prompt: string, signal: AbortSignal): Promise<string> {
    const { client } = this.#models;
    return this.agent.runAbortable((aborted) =>
      sideQuery(prompt, {
        client,
        model: this.model,
        signal: AbortSignal.any([signal, aborted]),
        spent: (model, usage) => this.#pay({ purpose: "sideQuestions", model, usage }),
      }),
    );
  }

  async callTool(call: UserCall): Promise<AgentToolResult> {
    const run = { sessionId: this.agent.sessionId, model: this.model, fallbacks: [] };
    const { callTool } = await import("./call-tool.ts");
    return callTool(call, { toolset: this.toolset, guards: this.#userGuards, run });
  }

  async setModel(name: string): Promise<Model> {
    const { model: wanted, thinking } = parseModelName(name);
    const model = await this.#models.find(wanted);
    assertModel(model, this.#options.ceilings);
    const isUsual = this.agent.state.thinkingLevel === recommendedThinking(this.model);
    this.agent.setModel(model);
    if (thinking) await this.setThinking(thinking);
    else if (isUsual) await this.setThinking(recommendedThinking(model));
    return model;
  }

  async setThinking(level: ThinkingLevel): Promise<void> {
    this.agent.setThinkingLevel(level);
    await this.#saveSettings();
  }

  get givenRules(): readonly GivenRule[] {
    return this.#ruleBook.all;
  }

  get keepsRules(): boolean {
    return this.#ruleBook.isKept;
  }

  revokeRule(rule: string): Promise<boolean> {
    return this.#ruleBook.remove(rule);
  }

  async setMode(mode: PermissionMode): Promise<void> {
    this.#mode.now = mode;
    this.#mode.isAssumed = false;
    this.agent.setTools(this.#withPlanTool(this.agent.state.tools));
    await this.#saveSettings();
  }

  /** The tools with the one that shows a plan in mode `plan`, and without it in others. */
  #withPlanTool(tools: readonly AgentTool[]): AgentTool[] {
    const others = tools.filter((tool) => tool !== this.#planTool);
    return this.#planTool && this.mode === "plan" ? [...others, this.#planTool] : others;
  }

  /** A plan was approved: its steps are the list, which the model keeps from now on. */
  async #carryOut({ mode, plan }: { mode: PermissionMode; plan: string }): Promise<void> {
    const names = this.agent.state.tools.map(({ name }) => name);
    await this.setMode(mode);
    this.#announced = mode;
    this.toolset.todos.replace(listSteps(plan));
    await this.setTools([...names.filter((name) => name !== PLAN_TOOL), TODO_TOOL]);
  }

  async setTools(names: readonly string[]): Promise<void> {
    const { registry } = this.toolset;
    const most = this.#options.ceilings?.tools;
    for (const name of names) {
      if (registry.has(name)) continue;
      if (most && !isToolWithin(name, most)) {
        throw new UnknownToolError(`The tool "${name}" is not offered here.`);
      }
      await this.toolset.add(name);
    }
    const wanted = new Set(names.map((name) => registry.get(name)));
    this.agent.setTools(this.#withPlanTool(registry.list().filter((tool) => wanted.has(tool))));
    await this.#saveSettings();
  }

  decide(decisions: Readonly<Record<string, Decision>>): Promise<void> {
    return this.#log.decide(decisions);
  }

  /** Goes on from an entry of the session, in place: null, from its beginning. */
  async goTo(entry: number | null): Promise<void> {
    const { session } = this.#log;
    if (!session) throw new CodingAgentError("bad_option", "There is no session to go back in.");
    await session.branch(entry);
    const context = await session.context();
    this.agent.replaceMessages(context.messages);
    this.#log.use(session, context);
  }

  saved(): Promise<void> {
    return this.#log.saved();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.agent.abort();
    await this.agent.waitForIdle();
    await this.#payments.save();
    await this.#log.saved();
    await this.fileHistory?.close();
    await this.#diagnostics?.close();
    await this.toolset.close();
    this.#watch.close();
    const { session } = this.#log;
    if (session !== this.#options.session) await session?.close();
  }

  /** Services may keep what belongs to one session together. */
  #nameSession(): void {
    const { session } = this.#log;
    if (session) this.agent.sessionId = session.header.id;
  }

  /** The model gets to know that a job has ended: with the next result or prompt. */
  #onJob({ job, isNews }: JobChange): void {
    if (isNews && job.end && !this.#isClosing) this.#notices.push(noticeOfJob(job));
  }

  /** A result, with what has happened meanwhile. */
  #withNotices(result: AgentToolResult): AgentToolResult {
    const notices = this.#notices.splice(0);
    if (notices.length === 0) return result;
    const texts = notices.map(({ text }) => ({ type: "text" as const, text: `[${text}]` }));
    return { ...result, content: [...result.content, ...texts] };
  }

  #onEvent(event: AgentEvent): void | Promise<void> {
    if (event.type === "message_end") {
      const { message } = event;
      this.#results.observe(message);
      this.spending.addMessage(message);
      if (message.role === "assistant") this.#addRecent("answers", message.usage);
    }
    return this.#log.write(event);
  }

  async #saveSettings(): Promise<void> {
    const { systemPrompt: prompt, thinkingLevel, tools } = this.agent.state;
    const { provider, id } = this.model;
    const own = new Set(this.toolset.registry.list());
    const rights = {
      systemPrompt: prompt,
      // A tool of a client is none of the program's, whatever its name.
      tools: tools.filter((tool) => own.has(tool)).map(({ name }) => name),
      mode: this.#mode.now,
    };
    const { session } = this.#log;
    const mark = session && markSettings(this.#options.env, session, rights);
    await this.#log.saveSettings({
      ...{ model: { provider, id }, thinkingLevel, ...rights },
      ...(mark !== undefined && { mark }),
    });
  }
}

/**
 * What is known of calls without a result. A question that a person was asked is asked again. So is
 * one that was answered, if this installation has not made the file, or it is not among the user's own
 * sessions: anyone can have written the answer.
 */
function unfinishedCalls(
  { pending, unfinished }: SessionContext,
  { isOwn, options: { approvals, env, session } }: Parts,
): NonNullable<AgentLoopConfig["unfinished"]> {
  const asked = new Set(approvals === "suspend" ? [] : pending.map(({ toolCall }) => toolCall.id));
  const own = `${realPath(defaultSessionFolder(env))}${sep}`;
  const isKept = isOwn && session?.path !== undefined && realPath(session.path).startsWith(own);
  return (id) => {
    const known = asked.has(id) ? "run" : unfinished(id);
    const isApproval = typeof known === "object" && "type" in known && known.type === "approve";
    return isApproval && !isKept ? "run" : known;
  };
}

/** Listeners and the sink get the events: none have to be kept for a reader. */
function detached(run: AgentRun<unknown>): AgentRun<unknown> {
  run.detach();
  return run;
}

/** Whether the answer is complete. */
function isComplete(reason: StopReason): boolean {
  return reason !== "error" && reason !== "aborted" && reason !== "redirected";
}

/** Whether another system prompt was asked for just now than the session has. */
function isPromptGiven({ explicit, keepsRights = false }: HarnessOptions): boolean {
  const isGiven = explicit?.has("systemPrompt") || explicit?.has("appendSystemPrompt");
  return !keepsRights && isGiven === true;
}

/** The settings, with those of the session where nothing else was asked for. */
function mergeSettings(
  { settings, explicit, keepsRights = false }: HarnessOptions,
  had: SessionSettings,
): Settings {
  const { model, thinkingLevel, tools, mode } = had;
  const isOpen = (key: keyof Settings): boolean => keepsRights || !explicit?.has(key);
  return {
    ...settings,
    ...(model && isOpen("model") && !isScripted(model) && { model: modelValue(model) }),
    ...(thinkingLevel && isOpen("thinking") && { thinking: thinkingLevel }),
    ...(tools && isOpen("tools") && { tools }),
    ...(keepsRights && { mode: keptMode(mode, settings) }),
  };
}

/**
 * The mode at the start. Without a setting it is assumed where the user is there or has begun it, and not for
 * runs that other processes continue, nor for a session that another person may have written.
 */
function startMode(settings: Settings, isUsers: boolean): ModeState {
  const now = settings.mode ?? (isUsers ? assumeMode(settings) : "ask");
  return { now, isAssumed: settings.mode === undefined && now === "auto" };
}

/** The mode of a session. One without a mode was made elsewhere, and gets no more than questions. */
function keptMode(mode: string | undefined, settings: Settings): PermissionMode {
  if (mode === undefined) return lowerMode(settings.mode ?? "ask", "ask");
  return isMode(mode) ? mode : "plan";
}

/** The model that is set. One that the ceilings leave out is refused if it was asked for just now. */
async function chooseModel(models: Models, options: HarnessOptions): Promise<Model> {
  const { ceilings, explicit, keepsRights } = options;
  const isAsked = !keepsRights && explicit?.has("model");
  const model = await models.current();
  if (isAsked) assertModel(model, ceilings);
  const [first] = ceilings?.models ?? [];
  return first === undefined || isModelAllowed(model, ceilings) ? model : models.find(first);
}

/** A session that began without a key has the scripted model, which is not to be resumed with. */
function isScripted({ provider }: Pick<Model, "provider">): boolean {
  return provider === scriptedModelInfo.provider;
}

/** What stays in the context after every compaction: notes, and guidance that the instructions lack. */
function pinned(guidance: Guidance, instructions: string, { notes }: Toolset): string | undefined {
  return (
    [guidanceNews(guidance, instructions, []), notes.text].filter(Boolean).join("\n\n") || undefined
  );
}

function createLimits({ maxCost, maxTurns = Infinity }: Settings): Limits {
  return {
    maxTurns,
    ...(maxCost !== undefined && { maxCostUsd: maxCost }),
  };
}

/** Deducts what was used. Answers whether anything is left. */
function deduct(limits: Limits, turns: number, usage: Usage): boolean {
  if (limits.maxTurns !== undefined) limits.maxTurns -= turns;
  if (limits.maxCostUsd !== undefined) limits.maxCostUsd -= usage.cost?.total ?? 0;
  return Object.values(limits).every((left: number) => left > 0);
}

async function readAnswer(
  run: AgentRun<unknown>,
): Promise<Pick<Outcome, "output" | "outputError">> {
  try {
    return { output: await run.output() };
  } catch (error) {
    return { outputError: errorMessage(error) };
  }
}

function logTo(path: string): Middleware {
  return logging(jsonLines(logFile(path)));
}
