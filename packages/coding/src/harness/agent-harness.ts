import {
  type AgentEvent,
  type AgentOptions,
  type AgentTool,
  type AgentToolResult,
  type ContextConfig,
  contextLimits,
  type Decision,
  type Middleware,
  userMessage,
} from "@gyre/agent";
import type { AnySchema, Model, ThinkingLevel, Usage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import { type PermissionMode, type Toolset, UnknownToolError } from "@gyre/tools";
import type { Mcp } from "@gyre/mcp";
import type { CommandRegistry } from "../extensions/command-registry.ts";
import type { Extensions } from "../extensions/extensions.ts";
import type { EditDiagnostics } from "../diagnostics/edit-diagnostics.ts";
import type { FileRecorder } from "../file-history/recorder.ts";
import { guidanceNews } from "../guidance/guidance.ts";
import type { GuidanceWatch } from "../guidance/guidance-watch.ts";
import type { Skill } from "../guidance/skills.ts";
import { assertMode, assertModel, isToolWithin, isWithinRoots } from "./ceilings.ts";
import type { UserCall } from "./aside/call-tool.ts";
import type { OffloadedResults } from "./session/offloaded-results.ts";
import type { TaintWatch } from "../permissions/taint-watch.ts";
import type { GivenRule, RuleBook } from "../permissions/rule-book.ts";
import type { SessionFiles } from "./session/session-files.ts";
import type { SessionLog } from "./session/session-log.ts";
import { sideQuery, type SideQueryOptions, sideQuestion } from "./aside/side-query.ts";
import { PaymentLog, type Purpose, type Spending } from "./session/spending.ts";
import { CodingAgentError } from "../core/errors.ts";
import type { Models } from "../models/models.ts";
import { recommendedThinking } from "../models/recommended-thinking.ts";
import type { Policy } from "../policy/policy.ts";
import { isModeWithin, MODE_NAMES } from "../text/choices.ts";
import { parseModelName } from "../text/model-name.ts";
import { saveNotes, saveTodos } from "../guidance/session-notes.ts";
import type { AbortableAgent } from "../extensions/abortable-agent.ts";
import { markSettings } from "./session/own-settings.ts";
import {
  findAnnounced,
  listSteps,
  noticeOfMode,
  PLAN_TOOL,
  planTool,
  TODO_TOOL,
} from "../conversation/plan.ts";
import { type ConversationQueue, createAgentQueue } from "../conversation/queue.ts";
import type { OpenedTools } from "./tools.ts";
import type { DeniedCall, Harness, HarnessOptions, ModeState, Parts } from "./types.ts";
import type { PromptRequest } from "../conversation/types.ts";
import type { FactSources } from "../guidance/opening-facts.ts";
import { createAgentOptions, createInstructions, type Guards } from "./agent-options.ts";
import {
  CompleteRuns,
  createLimits,
  type HarnessOutcome,
  isCutOff,
  type RunControl,
} from "./complete-run.ts";
import { PromptNotices } from "./notices.ts";
import type { Recorders } from "./recorders.ts";
import { Accounts } from "./session/accounts.ts";

/** See `openHarness`. */
export class AgentHarness implements Harness {
  readonly agent: AbortableAgent;
  readonly toolset: Toolset;
  readonly queue: ConversationQueue;
  readonly fileHistory: FileRecorder | undefined;
  readonly denied: readonly DeniedCall[];
  readonly skills: readonly Skill[];
  readonly mcp: Mcp | undefined;
  readonly #ruleBook: RuleBook;
  readonly #watch: GuidanceWatch;
  readonly #taint: TaintWatch;
  readonly #userGuards: readonly Middleware[];
  readonly #diagnostics: EditDiagnostics | undefined;
  readonly #extensions: Extensions | undefined;
  readonly #options: HarnessOptions;
  readonly #models: Models;
  readonly #mode: ModeState;
  readonly #log: SessionLog;
  readonly #results: OffloadedResults;
  readonly #files: SessionFiles;
  readonly #trigger: Pick<ContextConfig, "triggerTokens">;
  readonly spending: Spending;
  readonly #payments: PaymentLog;
  readonly #accounts: Accounts;
  readonly #runs: CompleteRuns;
  readonly #notices: PromptNotices;
  /** The mode that the model was last notified of. */
  #announced: string | undefined;
  readonly #planTool: AgentTool | undefined;

  constructor(
    parts: Parts,
    tools: OpenedTools,
    { guards, userGuards }: Guards,
    log: SessionLog,
    { fileHistory, watch, diagnostics, taint }: Recorders,
    createAgent: (options: AgentOptions) => AbortableAgent,
  ) {
    const { options, settings, models, context, guidance, results } = parts;
    const { toolset } = tools;
    this.toolset = toolset;
    this.fileHistory = fileHistory;
    this.#watch = watch;
    this.#taint = taint;
    this.#userGuards = userGuards;
    this.#diagnostics = diagnostics;
    this.#options = options;
    this.denied = parts.denied;
    this.skills = guidance.hasSkillTool ? guidance.skills : [];
    this.mcp = tools.mcp;
    this.#ruleBook = parts.ruleBook;
    this.#extensions = parts.extensions;
    this.#models = models;
    this.#mode = parts.mode;
    this.#log = log;
    this.#results = results;
    this.#files = parts.files;
    this.spending = parts.spending;
    this.#payments = new PaymentLog(() => log.session, options.warn);
    this.#accounts = new Accounts({
      spending: parts.spending,
      payments: this.#payments,
      countUsage: (usage) => this.agent.countUsage(usage),
    });
    const limits = { ...createLimits(settings), ...options.limits };
    const { compactAt } = settings;
    this.#trigger = compactAt === undefined ? {} : { triggerTokens: compactAt };
    const instructions = createInstructions(parts, toolset);
    this.#announced = findAnnounced(context?.messages ?? []);
    this.#planTool =
      options.reviewPlan && planTool(options.reviewPlan, (answer) => this.#carryOut(answer));
    const news = guidanceNews(guidance, instructions, context?.messages ?? []);
    this.#notices = new PromptNotices(news, settings.facts ?? true);
    toolset.jobs.onChange((change) => this.#notices.onJob(change));
    toolset.notes.onChange(async (text) => {
      if (log.session) await saveNotes(log.session, text);
    });
    toolset.todos.onChange((todos) => {
      if (log.session) saveTodos(log.session, todos, options.warn);
    });
    this.agent = createAgent(
      createAgentOptions(parts, {
        limits,
        trigger: this.#trigger,
        instructions,
        tools,
        offered: this.#withPlanTool(toolset.registry.list()),
        guards,
        log,
        accounts: this.#accounts,
        notices: this.#notices,
        currentModel: () => this.model,
        onEvent: (event) => this.#onEvent(event),
      }),
    );
    this.queue = createAgentQueue(
      this.agent,
      () => log.saved(),
      (content) => this.#files.store(content),
    );
    this.#runs = new CompleteRuns({
      agent: this.agent,
      limits,
      log,
      accounts: this.#accounts,
      extensions: parts.extensions,
    });
    this.#nameSession();
    this.#extensions?.attach({
      agent: this.agent,
      toolset,
      session: () => log.session,
      isResumed: (context?.messages.length ?? 0) > 0,
    });
  }

  get commands(): CommandRegistry | undefined {
    return this.#extensions?.commands;
  }

  get isCutOff(): boolean {
    return isCutOff(this.agent.state.messages);
  }

  get session(): Session | undefined {
    return this.#log.session;
  }

  get model(): Model {
    const { model } = this.agent.state;
    if (!model) throw new Error("A harness always has a model.");
    return model;
  }

  get usualThinking(): ThinkingLevel {
    return recommendedThinking(this.model);
  }

  get compactAt(): number {
    return contextLimits(this.#trigger, this.model).trigger;
  }

  get mode(): PermissionMode {
    return this.#mode.now;
  }

  get modes(): readonly PermissionMode[] {
    const { ceilings } = this.#options;
    const modes = this.policy?.modes ?? MODE_NAMES;
    return ceilings ? modes.filter((mode) => isModeWithin(mode, ceilings.mode)) : modes;
  }

  get policy(): Policy | undefined {
    return this.#options.policy;
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
    const content = await this.#files.store([...attachments, ...images]);
    const message = userMessage(this.#notices.addTo(passed), Date.now(), content);
    const hasPlanTool = this.#updatePlanTool();
    const notice = noticeOfMode(this.mode, this.#announced, hasPlanTool);
    this.#announced = notice?.mode ?? this.#announced;
    const { messages } = this.agent.state;
    const { facts, isAborted } = await this.agent.runAbortable(async (aborted) => {
      const whole = AbortSignal.any([aborted, ...(signal ? [signal] : [])]);
      const found = await this.#notices.findFacts(() => this.#factSources(whole), messages);
      return { facts: found, isAborted: aborted.aborted };
    });
    const before = [
      ...(facts ? [facts] : []),
      ...userCommands,
      ...this.#notices.take(),
      ...(notice ? [notice] : []),
    ];
    // An abort that came before the run is one of the run.
    const run = isAborted ? { ...control, signal: AbortSignal.abort() } : control;
    return this.#runs.start([...before, message], output, run);
  }

  #factSources(signal: AbortSignal): FactSources {
    return {
      toolset: this.toolset,
      tools: this.agent.state.tools.map(({ name }) => name),
      mode: this.mode,
      settings: this.#options.settings,
      now: new Date(),
      signal,
    };
  }

  async resume(output?: AnySchema, control: RunControl = {}): Promise<HarnessOutcome> {
    await this.start();
    if (control.decisions) await this.decide(control.decisions);
    return this.#runs.resume(output, control);
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

  takeSpending(): Partial<Record<Purpose, Usage>> {
    return this.#accounts.takeSpending();
  }

  ask(prompt: string, signal: AbortSignal): Promise<string> {
    return this.#askBeside(signal, (options) => sideQuery(prompt, options));
  }

  askAside(question: string, signal: AbortSignal): Promise<string> {
    return this.#askBeside(signal, (options) => sideQuestion(question, this.agent.state, options));
  }

  #askBeside(
    signal: AbortSignal,
    query: (options: SideQueryOptions) => Promise<string>,
  ): Promise<string> {
    const { client } = this.#models;
    return this.agent.runAbortable((aborted) =>
      query({
        client,
        model: this.model,
        signal: AbortSignal.any([signal, aborted]),
        spent: (model, usage) => this.#accounts.pay({ purpose: "sideQuestions", model, usage }),
      }),
    );
  }

  async callTool(call: UserCall): Promise<AgentToolResult> {
    const run = { sessionId: this.agent.sessionId, model: this.model, fallbacks: [] };
    const { callTool } = await import("./aside/call-tool.ts");
    return callTool(call, { toolset: this.toolset, guards: this.#userGuards, run });
  }

  async findModel(name: string): Promise<Model> {
    const model = await this.#models.find(parseModelName(name).model);
    assertModel(model, this.#options.ceilings);
    return model;
  }

  async setModel(name: string): Promise<Model> {
    const model = await this.findModel(name);
    const { thinking } = parseModelName(name);
    const isUsual = this.agent.state.thinkingLevel === this.usualThinking;
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

  giveRule(rule: string): Promise<void> {
    return this.#ruleBook.add(rule, "session");
  }

  revokeRule(rule: string): Promise<boolean> {
    return this.#ruleBook.remove(rule);
  }

  async addFolder(path: string): Promise<string | undefined> {
    const { addFolder } = await import("../permissions/add-folder.ts");
    const { toolset, fileHistory } = this;
    const { env, ceilings, policy } = this.#options;
    const isAllowed = (folder: string): boolean =>
      isWithinRoots(folder, ceilings) && (policy?.allowsFolder(folder) ?? true);
    const added = await addFolder(path, { toolset, fileHistory, env, isAllowed });
    if (added) this.#notices.add(added.notice);
    return added?.folder;
  }

  async setMode(mode: PermissionMode): Promise<void> {
    assertMode(mode, this.#options.ceilings);
    this.policy?.assertMode(mode);
    this.#mode.now = mode;
    this.#mode.isAssumed = false;
    this.agent.setTools(this.#withPlanTool(this.agent.state.tools));
    await this.#saveSettings();
  }

  /** The tools with the one that shows a plan in mode `plan`, and without it in others. */
  #withPlanTool(tools: readonly AgentTool[]): AgentTool[] {
    const others = tools.filter((tool) => tool !== this.#planTool);
    const { canReviewPlan = () => true } = this.#options;
    const isOffered = this.mode === "plan" && canReviewPlan();
    return this.#planTool && isOffered ? [...others, this.#planTool] : others;
  }

  /** The person who can be asked about a plan may have come or gone. Returns whether there is one. */
  #updatePlanTool(): boolean {
    const { tools } = this.agent.state;
    const next = this.#withPlanTool(tools);
    if (next.length !== tools.length) this.agent.setTools(next);
    return this.#planTool !== undefined && (this.#options.canReviewPlan?.() ?? true);
  }

  /** A plan was approved: its steps are the list, which the model keeps from now on. */
  async #carryOut({ mode, plan }: { mode: PermissionMode; plan: string }): Promise<void> {
    const names = this.agent.state.tools.map(({ name }) => name);
    await this.setMode(mode);
    this.#announced = mode;
    this.toolset.todos.replace(listSteps(plan));
    const most = this.#options.ceilings?.tools;
    const steps = most && !isToolWithin(TODO_TOOL, most) ? [] : [TODO_TOOL];
    await this.setTools([...names.filter((name) => name !== PLAN_TOOL), ...steps]);
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
    const context = await session.context(undefined, { files: "stored" });
    this.agent.replaceMessages(context.messages);
    this.#log.use(session, context);
  }

  saved(): Promise<void> {
    return this.#log.saved();
  }

  async close(): Promise<void> {
    this.#notices.close();
    this.agent.abort();
    await this.agent.waitForIdle();
    await this.#payments.save();
    await this.#log.saved();
    await this.#payments.saveTotal(this.spending);
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

  #onEvent(event: AgentEvent): void | Promise<void> {
    if (event.type === "message_end") {
      const { message } = event;
      this.#results.observe(message);
      this.#taint.observe(message);
      this.spending.addMessage(message);
      if (message.role === "assistant") this.#accounts.addRecent("answers", message.usage);
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
