import {
  Agent,
  type AgentEndEvent,
  type AgentRun,
  type AgentSink,
  ANSWER_TOOL,
  isRetryable,
  jsonLines,
  type Limits,
  logging,
  type Middleware,
} from "@gyre/agent";
import {
  type AnySchema,
  hasContent,
  type ImageContent,
  type Model,
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
  type Toolset,
} from "@gyre/tools";
import { EXIT, ExitError } from "./exit-codes.ts";
import { logFile } from "./log-file.ts";
import { type Models, openModels } from "./models.ts";
import type { Settings } from "./settings.ts";
import { DEFAULT_TOOLS, systemPrompt } from "./system-prompt.ts";
import type { Environment } from "./terminal.ts";

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
}

export interface DeniedCall {
  toolCallId: string;
  tool: string;
  reason: string;
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
  /** Has the session ready; the first prompt does that too. */
  start(): Promise<void>;
  /**
   * Runs on a prompt to its end. A response that broke off after something of it was shown
   * is taken up again, at most `MAX_RESUMES` times.
   */
  prompt(request: PromptRequest): Promise<Outcome>;
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
  const parts: Parts = {
    options,
    settings,
    models,
    model,
    context,
    denied: [],
    mode: { now: settings.mode ?? "ask" },
  };
  // Sub-agents are under the same permissions, which need the folder that opens with the tools.
  const opened: { toolset?: Toolset } = {};
  const guard = permissionsFor(parts, () => {
    if (opened.toolset) return opened.toolset;
    throw new Error("The tools are not open yet.");
  });
  const toolset = await openTools(parts, [guard]);
  opened.toolset = toolset;
  return new HarnessOf(parts, toolset, guard);
}

/** What a harness is put together from. */
interface Parts {
  options: HarnessOptions;
  settings: Settings;
  models: Models;
  model: Model;
  context: SessionContext | undefined;
  denied: DeniedCall[];
  mode: { now: PermissionMode };
}

class HarnessOf implements Harness {
  readonly agent: Agent;
  readonly toolset: Toolset;
  readonly denied: readonly DeniedCall[];
  readonly #options: HarnessOptions;
  readonly #models: Models;
  readonly #mode: { now: PermissionMode };
  /** Read by each run as it starts: what a prompt has used up is taken off between its runs. */
  readonly #limits: Limits;
  #saved: SessionSettings;
  #session: Session | undefined;
  #sink: AgentSink | undefined;

  constructor(parts: Parts, toolset: Toolset, guard: Middleware) {
    const { options, settings, models, model, context } = parts;
    const { session } = options;
    this.toolset = toolset;
    this.#options = options;
    this.denied = parts.denied;
    this.#models = models;
    this.#mode = parts.mode;
    this.#saved = context?.settings ?? {};
    this.#limits = limitsOf(settings);
    const tools = toolset.registry.list();
    this.agent = new Agent({
      protocol: models.client,
      fallbackModels: models.fallbacks,
      limits: this.#limits,
      context: {},
      middleware: [...(settings.log === undefined ? [] : [logTo(settings.log)]), guard],
      sink: (event) => this.#sink?.(event),
      ...(context && { recordedResult: (id: string) => context.recordedResult(id) }),
      initialState: {
        model,
        tools,
        thinkingLevel: settings.thinking ?? "off",
        systemPrompt:
          this.#saved.systemPrompt ??
          systemPrompt({ folder: toolset.env.workspace.root, settings }),
        messages: context?.messages ?? [],
        ...(context?.compaction && { compaction: context.compaction }),
      },
    });
    this.#writeTo(session, context);
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
    const first = { ...(images && { images }), ...(output && { output }) };
    const whole = { ...this.#limits };
    let run: AgentRun<unknown> = this.agent.run(text, first);
    let turns = 0;
    let usage: Usage = {};
    try {
      for (let resumes = 0; ; resumes++) {
        const end = await run.result();
        turns += end.turns;
        usage = addUsage(usage, end.usage);
        const goOn = resumes < MAX_RESUMES && brokeOff(end) && takeOff(this.#limits, end);
        if (!goOn) return { end, turns, usage, ...(output && (await answerOf(run))) };
        run = output ? this.agent.continueRun({ output }) : this.agent.continueRun();
      }
    } finally {
      Object.assign(this.#limits, whole);
    }
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
  { options: { approvals, warn }, settings, mode, denied }: Parts,
  toolset: () => Toolset,
): Middleware {
  const { allow = [], ask = [], deny = [] } = settings;
  let isTold = false;
  const guard = asUsage(() =>
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
      ...(approvals === "deny" && { headless: true }),
      ...(typeof approvals === "function" && { ask: approvals }),
      onDecision: ({ callId, effect, reason, tool }) => {
        if (effect === "deny") denied.push({ toolCallId: callId, tool, reason });
      },
    }),
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

/** A rule that is wrong is what the user wrote. */
function asUsage<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof RuleError)
      throw new ExitError(EXIT.usage, error.message, { cause: error });
    throw error;
  }
}

async function openTools(
  { options, settings, models, model }: Parts,
  middleware: readonly Middleware[],
): Promise<Toolset> {
  const { tools = DEFAULT_TOOLS, network = false, oracle, sandbox = "auto" } = settings;
  const { client } = models;
  return openToolset({
    root: options.cwd,
    tools,
    sandbox: sandbox === "auto" ? "any" : sandbox,
    network,
    environment: options.env,
    middleware,
    ...(tools.includes("oracle") && {
      oracle: { client, model: oracle === undefined ? model : await models.find(oracle) },
    }),
    ...(tools.includes("task") && { task: { client, model } }),
  });
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

/** The response ended early, after something of it was shown, and another try may do better. */
function brokeOff({ finalMessage, stop }: AgentEndEvent): boolean {
  if (stop !== "error" || !finalMessage?.failure) return false;
  return hasContent(finalMessage) && isRetryable(finalMessage.failure);
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
