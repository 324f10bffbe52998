import type { AgentOptions, Middleware } from "@gyre/agent";
import type { NoticeMessage } from "../conversation/notice.ts";
import type { Extensions } from "../extensions/extensions.ts";
import { describeHeld } from "../guidance/agent-texts.ts";
import { readGuidance } from "../guidance/guidance.ts";
import { lowerSettings } from "./ceilings.ts";
import { OffloadedResults } from "./session/offloaded-results.ts";
import { RuleBook } from "../permissions/rule-book.ts";
import { SessionFiles } from "./session/session-files.ts";
import { SessionLog } from "./session/session-log.ts";
import { readSpending } from "./session/spending.ts";
import { notesIn, todosIn } from "../guidance/session-notes.ts";
import { realPath } from "../settings/project-file.ts";
import type { Settings } from "../settings/settings.ts";
import { AbortableAgent } from "../extensions/abortable-agent.ts";
import { permissionsFor } from "./permissions.ts";
import { type Caller, openTools } from "./tools.ts";
import type { DeniedCall, HarnessOptions, Parts } from "./types.ts";
import { AgentHarness } from "./agent-harness.ts";
import { openDiagnostics, openRecorder, watchGuidance, watchNames } from "./recorders.ts";
import { chooseModel, findModels, mergeSettings, startMode } from "./start-settings.ts";
import { isOwnFile, warnOfLostCalls, withoutForeign } from "./stored-session.ts";

export type { Approvals, DeniedCall, Harness, HarnessOptions } from "./types.ts";
export type { Outcome, PromptRequest } from "../conversation/types.ts";
export type { AgentHarness } from "./agent-harness.ts";
export type { HarnessOutcome, RunControl } from "./complete-run.ts";

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
  /** What holds now, for the model; undefined where a setting turns that off, or the conversation has it already. */
  findFacts(signal: AbortSignal): Promise<NoticeMessage | undefined>;
  /** Where it is not opened. */
  close(): Promise<void>;
}

/** The same, for callers that make the agent themselves. */
export async function prepareHarness(options: HarnessOptions): Promise<PreparedHarness> {
  const stored = await options.session?.context(undefined, { files: "stored" });
  warnOfLostCalls(stored?.messages ?? [], options.warn);
  const isOwn = isOwnFile(options, stored);
  const context = stored && (isOwn ? stored : withoutForeign(stored, options));
  const { policy } = options;
  const merged = lowerSettings(mergeSettings(options, context?.settings ?? {}), options.ceilings);
  const settings = policy?.lower(merged).settings ?? merged;
  policy?.assertFolder(options.cwd);
  const hidesAddresses = options.ceilings !== undefined;
  const found = await findModels(options, { ...options, settings, hidesAddresses });
  const denied: DeniedCall[] = [];
  const log = new SessionLog(options.session, stored, options.isJournaled);
  const files = new SessionFiles(log);
  const models = files.addTo(found);
  // It is asked for late, when a run can no longer be refused.
  if (policy && settings.smallModel !== undefined) await models.find(settings.smallModel);
  const parts: Parts = {
    options,
    settings,
    models,
    files,
    model: await chooseModel(models, options),
    context,
    isOwn,
    guidance: await readGuidance(options, settings),
    extensions: await loadExtensions(options, settings, denied),
    denied,
    mode: startMode(settings, options.approvals !== "suspend" && (isOwn || !stored), policy),
    ruleBook: new RuleBook(realPath(options.project ?? options.cwd), options.ruleFile),
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
    const taint = watchNames(parts, toolset, log);
    // Only calls that were allowed are recorded, so the recorders are the innermost.
    guards.push(
      ...(parts.extensions?.middleware ?? []),
      taint.middleware,
      permissionsFor(parts, toolset, log, taint),
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
    if (options.session) toolset.todos.replace(await todosIn(options.session));
    return {
      open(createAgent) {
        const recorders = { fileHistory: recorder, watch, diagnostics, taint };
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
      async findFacts(signal) {
        if (settings.facts === false) return undefined;
        const { findFacts } = await import("../guidance/opening-facts.ts");
        const names = toolset.registry.list().map(({ name }) => name);
        const sources = { toolset, tools: names, mode: parts.mode.now, settings: options.settings };
        return findFacts({ ...sources, now: new Date(), signal }, context?.messages ?? []);
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
