import {
  type Agent,
  type AgentEndEvent,
  type AgentEvent,
  type AgentRun,
  type AgentSink,
  ANSWER_TOOL,
  callsOf,
  isRetryable,
  jsonLines,
  type Limits,
  logging,
  type Middleware,
  type ToolInvocation,
} from "@gyre/agent";
import {
  type AnySchema,
  type ImageContent,
  type Model,
  type StopReason,
  type ThinkingLevel,
  addUsage,
  type Usage,
} from "@gyre/ai";
import type { Fetch } from "@gyre/ai/providers";
import { journal, type Session, type SessionContext, type SessionSettings } from "@gyre/sessions";
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  openToolset,
  type PermissionMode,
  permissions,
  RuleError,
  TOOL_NAMES,
  type Toolset,
  UnknownToolError,
} from "@gyre/tools";
import type { Mcp, McpServerEntry } from "@gyre/tools/mcp";
import type { CommandRegistry } from "./extensions/command-registry.ts";
import { EXIT, ExitError } from "./exit-codes.ts";
import type { Extensions } from "./extensions/extensions.ts";
import { type Guidance, guidanceNews, guidanceTexts, readGuidance } from "./guidance/guidance.ts";
import { KeptResults } from "./kept-results.ts";
import { logFile } from "./log-file.ts";
import { EDITOR_SCOPE } from "./mcp/mcp-editor.ts";
import { isMcpTool, wantsMcp } from "./mcp/mcp-tools.ts";
import { type Models, openModels } from "./models.ts";
import { notesIn, saveNotes } from "./guidance/session-notes.ts";
import type { Settings } from "./settings/settings.ts";
import { SKILL_TOOL } from "./guidance/skills.ts";
import { StoppableAgent } from "./extensions/stoppable-agent.ts";
import { summariser } from "./summarise.ts";
import { movedPrompt, systemPrompt } from "./system-prompt.ts";
import type { Environment } from "./terminal.ts";
import { toolsOf } from "./extensions/tool-names.ts";

/** How often a response that broke off is taken up again, for one prompt. */
export const MAX_RESUMES = 3;

/** Who decides on what would be asked about. */
export type Approvals =
  /** Nobody: it is denied, and the model is told. */
  | "deny"
  /** Somebody, later: the run ends suspended, and goes on with their decision. */
  | "suspend"
  | ((request: ApprovalRequest) => Promise<ApprovalAnswer>);

export interface HarnessOptions {
  settings: Settings;
  /** The folder to work in, absolute. */
  cwd: string;
  env: Environment;
  approvals: Approvals;
  /** Where all is written down. Open, and closed by its owner after the harness. */
  session?: Session;
  /** Makes one when there is something to write down; the harness closes it. */
  newSession?: () => Promise<Session | undefined>;
  /** Settings that were asked for just now: they go before those that the session had. */
  explicit?: ReadonlySet<keyof Settings>;
  /** MCP servers whose tools the agent may find. */
  mcpServers?: readonly McpServerEntry[];
  /** A file for all that is sent and received. */
  verbose?: string;
  /** Told of what a person should know and nothing else says. */
  warn: (text: string) => void;
  /** For tests. */
  fetch?: Fetch;
}

export interface PromptRequest {
  text: string;
  images?: readonly ImageContent[];
  /** The answer has to fit this. */
  output?: AnySchema;
}

/** How a prompt ended. */
export interface Outcome {
  end: AgentEndEvent;
  /** Of all runs that the prompt took. */
  turns: number;
  usage: Usage;
  /** The typed answer, where one was asked for and came. */
  output?: unknown;
  /** Why there is none. */
  outputError?: string;
  /** Why the session could not be written to, which ended the run. */
  sessionError?: string;
}

export interface DeniedCall {
  toolCallId: string;
  tool: string;
  /** As the model was told. */
  reason: string;
  /** What it would have done, for people; absent where a hook refused it. */
  summary?: string;
  /** A rule for `--allow` that would have allowed it. */
  rule?: string;
}

/** An agent with a folder, tools, permissions and a session: what print, RPC and ACP have in common. */
export interface Harness {
  readonly agent: Agent;
  readonly toolset: Toolset;
  /** What is written to; nothing before `start()` where `newSession` makes it. */
  readonly session: Session | undefined;
  readonly model: Model;
  readonly mode: PermissionMode;
  /** What the calls that were denied would have done, in order. */
  readonly denied: readonly DeniedCall[];
  /** Commands of plugins. */
  readonly commands?: CommandRegistry | undefined;
  /** Has the session ready; the first prompt does that too. */
  start(): Promise<void>;
  /**
   * Runs on a prompt to its end. A response that broke off after something of it was shown
   * is taken up again, at most `MAX_RESUMES` times. Rejects where a hook does not let it through.
   */
  prompt(request: PromptRequest): Promise<Outcome>;
  /** Whether the conversation stops in the middle: a question or a result without an answer. */
  readonly isCutOff: boolean;
  /** Takes such a conversation up where it was cut off, to its end. */
  takeUp(output?: AnySchema): Promise<Outcome>;
  /** Models by name; throws what to tell the user. */
  setModel(name: string): Promise<Model>;
  setThinking(level: ThinkingLevel): Promise<void>;
  setMode(mode: PermissionMode): Promise<void>;
  /** Ends a run, jobs and tools. */
  close(): Promise<void>;
}

/**
 * Makes all that a run needs. What a session was set to holds on, unless `explicit` says
 * otherwise; so the requests of a session that is gone on with begin as its last one did.
 */
export async function openHarness(options: HarnessOptions): Promise<Harness> {
  const context = await options.session?.context();
  const settings = remembered(options, context?.settings ?? {});
  const models = await openModels({ ...options, settings });
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
    kept: new KeptResults({
      session: () => harness.now?.session,
      messages: () => harness.now?.agent.state.messages ?? [],
    }),
  };
  parts.extensions = await extensionsOf(parts);
  // Sub-agents are under the same permissions, which need the folder that opens with the tools.
  const opened: { toolset?: Toolset } = {};
  const guard = permissionsFor(parts, () => {
    if (opened.toolset) return opened.toolset;
    throw new Error("The tools are not open yet.");
  });
  const around = [...(parts.extensions?.middleware ?? []), guard];
  const toolset = await openTools(parts, around).catch((error: unknown) => {
    throw noStateFolder(error) ?? wrongName(error) ?? error;
  });
  opened.toolset = toolset;
  if (options.session && toolset.registry.has("notes")) {
    toolset.notes.restore(await notesIn(options.session));
  }
  harness.now = new HarnessOf(parts, toolset, around);
  return harness.now;
}

/** What a harness is put together from. */
interface Parts {
  options: HarnessOptions;
  settings: Settings;
  models: Models;
  model: Model;
  context: SessionContext | undefined;
  guidance: Guidance;
  extensions: Extensions | undefined;
  denied: DeniedCall[];
  mode: { now: PermissionMode };
  kept: KeptResults;
  /** Made with the tools, where there are servers. */
  mcp?: Mcp;
}

/** Plugins and hooks, where there are any. */
async function extensionsOf({ options, settings, denied }: Parts): Promise<Extensions | undefined> {
  const { plugins = [], hooks = {} } = settings;
  if (plugins.length === 0 && Object.keys(hooks).length === 0) return undefined;
  const { extensionsFor } = await import("./extensions/extensions.ts");
  return extensionsFor({
    ...options,
    settings,
    denied: ({ toolCall, tool }, reason) =>
      void denied.push({ toolCallId: toolCall.id, tool: tool.name, reason }),
  });
}

class HarnessOf implements Harness {
  readonly agent: StoppableAgent;
  readonly toolset: Toolset;
  readonly denied: readonly DeniedCall[];
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

  constructor(parts: Parts, toolset: Toolset, around: readonly Middleware[]) {
    const { options, settings, models, model, context, guidance } = parts;
    const { session } = options;
    this.toolset = toolset;
    this.#options = options;
    this.denied = parts.denied;
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
        beforeCompaction: (signal) => this.#extensions?.compact(signal),
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
      (message) => message.role !== "assistant" || isWhole(message.stopReason),
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

  async prompt({ text, images, output }: PromptRequest): Promise<Outcome> {
    await this.start();
    const asked = await this.#passed(text);
    const first = { ...(images && { images }), ...(output && { output }) };
    return this.#toItsEnd(() => this.agent.run(this.#withNews(asked), first), output);
  }

  async takeUp(output?: AnySchema): Promise<Outcome> {
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

  async close(): Promise<void> {
    this.agent.abort();
    await this.agent.waitForIdle();
    await this.toolset.close();
    if (this.#session !== this.#options.session) await this.#session?.close();
  }

  #writeTo(session: Session | undefined, context: SessionContext | undefined): void {
    if (!session) return;
    this.#session = session;
    this.#sink = journal(session, context);
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
    ...(model && isOpen("model") && { model: `${model.provider}/${model.id}` }),
    ...(thinkingLevel && isOpen("thinking") && { thinking: thinkingLevel }),
    ...(tools && isOpen("tools") && { tools }),
  };
}

function permissionsFor(
  { options: { approvals, warn, explicit }, settings, mode, denied, extensions }: Parts,
  toolset: () => Toolset,
): Middleware {
  const { allow = [], ask = [], deny = [] } = settings;
  let isTold = false;
  const guard = asUsage(
    () =>
      permissions({
        mode: () => mode.now,
        rules: { allow: [...allow], ask: [...ask], deny: [...deny] },
        async sandboxed() {
          const { kind, missing } = await toolset().env.sandbox();
          if (missing !== undefined && !isTold) {
            isTold = true;
            warn(`Commands run without a sandbox, and are asked about. ${missing}`);
          }
          return kind !== "none";
        },
        workspace: () => toolset().env.workspace,
        ...(extensions && {
          tools: [...TOOL_NAMES.map((name) => ({ name })), ...extensions.tools],
          advice: (call: ToolInvocation) => extensions.advice(call),
        }),
        ...(approvals === "deny" && { headless: true }),
        ...(typeof approvals === "function" && { ask: approvals }),
        onDecision: ({ callId, effect, reason, tool, summary, rule }) => {
          if (effect !== "deny") return;
          const more = {
            ...(summary !== undefined && { summary }),
            ...(rule !== undefined && { rule }),
          };
          denied.push({ toolCallId: callId, tool, reason, ...more });
        },
      }),
    explicit,
  );
  return {
    ...guard,
    async tool(call, next) {
      // The way to give a typed answer is no tool of ours, and does nothing.
      const isAnswer = call.tool.name === ANSWER_TOOL && !toolset().registry.has(ANSWER_TOOL);
      return isAnswer || !guard.tool ? next() : guard.tool(call, next);
    },
  };
}

/** A tool that is not there is what the user wrote. */
function wrongName(error: unknown): ExitError | undefined {
  if (!(error instanceof UnknownToolError)) return undefined;
  return new ExitError(EXIT.usage, error.message, { cause: error });
}

/** A rule that is wrong is what the user wrote. */
function asUsage<T>(make: () => T, explicit: HarnessOptions["explicit"]): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof RuleError)) throw error;
    throw new ExitError(EXIT.usage, ruleText(error.message, explicit), { cause: error });
  }
}

/** Says where the rule was written. Those of the command line are put to those of the files. */
function ruleText(message: string, explicit: HarnessOptions["explicit"]): string {
  return message.replace(/^rules\.(allow|ask|deny)\[\d+\]/, (_, key: keyof Settings) =>
    explicit?.has(key)
      ? `A rule of --${key}, or of "${key}" in the settings`
      : `A rule of "${key}" in the settings`,
  );
}

async function openTools(parts: Parts, middleware: readonly Middleware[]): Promise<Toolset> {
  const { options, settings, models, model, guidance, extensions, context } = parts;
  const { own: tools, added } = toolsOf({
    named: settings.tools?.filter((name) => !isMcpTool(name)),
    plugins: extensions?.tools ?? [],
    // What a session had, or what a plugin has that was left out.
    isLenient:
      settings.tools === context?.settings.tools ||
      (settings.plugins !== undefined && !options.explicit?.has("tools")),
    warn: options.warn,
  });
  const { network = false, oracle, sandbox = "auto" } = settings;
  const { client } = models;
  const toolset = await openToolset({
    root: options.cwd,
    tools: tools.filter((name) => name !== SKILL_TOOL),
    sandbox: sandbox === "auto" ? "any" : sandbox,
    network,
    environment: options.env,
    kept: (key) => parts.kept.read(key),
    middleware,
    ...(tools.includes("oracle") && {
      oracle: { client, model: oracle === undefined ? model : await models.find(oracle) },
    }),
    ...(tools.includes("task") && { task: { client, model } }),
  });
  if (guidance.hasSkillTool) {
    const { skillTool } = await import("./guidance/skills-tool.ts");
    toolset.registry.register(skillTool(guidance.skills, toolset.env.workspace.root));
  }
  for (const tool of added) toolset.registry.register(tool);
  return withMcp(parts, toolset);
}

/** Adds the way to the tools of MCP servers, which end with the others. */
async function withMcp(parts: Parts, toolset: Toolset): Promise<Toolset> {
  const { cwd, env, warn, approvals, explicit, mcpServers = [] } = parts.options;
  const isWanted = wantsMcp(parts.settings.tools);
  // What a session had before says nothing of servers that an editor passes on now.
  const servers = mcpServers.filter(
    ({ scope }) => isWanted || (scope === EDITOR_SCOPE && !explicit?.has("tools")),
  );
  if (servers.length === 0) return toolset;
  try {
    const { openProgramMcp } = await import("./mcp/mcp-open.ts");
    const mcp = await openProgramMcp({ servers, cwd, env, warn, approvals, toolset });
    for (const tool of mcp.tools) toolset.registry.register(tool);
    parts.mcp = mcp;
    return {
      ...toolset,
      async close() {
        await mcp.close();
        await toolset.close();
      },
    };
  } catch (error) {
    await toolset.close();
    throw error;
  }
}

/** What to do where the folder for what is running cannot be made. */
function noStateFolder(error: unknown): ExitError | undefined {
  if (!(error instanceof Error) || !("syscall" in error)) return undefined;
  if (error.syscall !== "mkdir" && error.syscall !== "mkdtemp") return undefined;
  const hint = "Set XDG_STATE_HOME to a folder that may be written to.";
  return new ExitError(EXIT.failed, `${error.message}. ${hint}`, { cause: error });
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
