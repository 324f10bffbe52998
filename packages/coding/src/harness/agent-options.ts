import {
  type AgentEvent,
  type AgentOptions,
  type AgentTool,
  type ContextConfig,
  jsonLines,
  type Limits,
  logging,
  type Middleware,
  summarizeWith,
  type SummaryKind,
} from "@gyre/agent";
import type { Model } from "@gyre/ai";
import type { Toolset } from "@gyre/tools";
import { type Guidance, guidanceNews, guidanceTexts } from "../guidance/guidance.ts";
import type { SessionLog } from "./session/session-log.ts";
import { countTools } from "./session/spending.ts";
import { logFile } from "../core/log-file.ts";
import { recommendedThinking } from "../models/recommended-thinking.ts";
import { readQueueModes, readRequestSettings } from "../models/request-settings.ts";
import { findSmallModel } from "../models/small-model.ts";
import { movedPrompt, systemPrompt } from "./system-prompt.ts";
import type { OpenedTools } from "./tools.ts";
import { readWaits } from "./waits.ts";
import type { Parts } from "./types.ts";
import { modelValue } from "../text/choices.ts";
import { toLlmMessage, toLlmMessages } from "../conversation/user-command.ts";
import type { PromptNotices } from "./notices.ts";
import type { Accounts } from "./session/accounts.ts";
import { isPromptGiven } from "./start-settings.ts";
import { unfinishedCalls } from "./stored-session.ts";

/** What decides on calls of the model, and on those of the user. */
export interface Guards {
  guards: readonly Middleware[];
  userGuards: readonly Middleware[];
}

/** What the options of an agent are made from, beside the parts of its harness. */
export interface AgentParts {
  limits: Limits;
  /** When the context is compacted. */
  trigger: Pick<ContextConfig, "triggerTokens">;
  instructions: string;
  tools: OpenedTools;
  /** The tools that the model has. */
  offered: AgentTool[];
  guards: readonly Middleware[];
  log: SessionLog;
  accounts: Accounts;
  notices: PromptNotices;
  currentModel: () => Model;
  onEvent: (event: AgentEvent) => void | Promise<void>;
}

/** The options of the agent of a harness: its session, tools, guards, context and queues. */
export function createAgentOptions(
  parts: Parts,
  {
    limits,
    trigger,
    instructions,
    tools: { toolset, mcp },
    offered,
    guards,
    log,
    accounts,
    notices,
    currentModel,
    onEvent,
  }: AgentParts,
): AgentOptions {
  const { options, settings, models, files, model, context, guidance, results, extensions } = parts;
  return {
    protocol: models.client,
    convertToLlm: toLlmMessages,
    fallbackModels: models.fallbacks,
    limits,
    ...readWaits(settings),
    ...readRequestSettings(settings),
    ...readQueueModes(settings),
    context: {
      ...trigger,
      convertMessage: toLlmMessage,
      pinned: () => pinned(guidance, instructions, toolset),
      storeResult: (key, text) => results.store(key, text),
      summarize: summarizeWith((what) => findSummarizer(what, currentModel(), parts), {
        protocol: models.client,
        onUsage: (usage, asked) =>
          accounts.pay({ purpose: "summaries", model: modelValue(asked), usage }),
      }),
      beforeCompaction: (signal, why) => extensions?.compact(signal, why),
    },
    middleware: [
      // A call of a sub-agent has a parent: its caller gets the notice.
      {
        tool: async (call, next) =>
          call.parentId === undefined ? notices.addToResult(await next()) : next(),
      },
      files.middleware,
      ...(mcp ? [mcp.middleware] : []),
      ...(settings.log === undefined ? [] : [logTo(settings.log)]),
      ...guards,
      countTools((payment) => accounts.record(payment)),
      log.middleware,
    ],
    sink: (event) => onEvent(event),
    onQueueChange: (change) => log.onQueueChange(change),
    ...(context && { unfinished: unfinishedCalls(context, parts) }),
    model,
    tools: offered,
    thinkingLevel: settings.thinking ?? recommendedThinking(model),
    instructions,
    messages: context?.messages ?? [],
    ...(context?.compaction && { compaction: context.compaction }),
    ...(context && { queued: context.queued }),
    ...(context?.interrupted && { interrupted: context.interrupted }),
    ...(context && options.approvals === "suspend" && { pending: context.pending }),
  };
}

/** The system prompt: that of the session, unless another one was asked for. */
export function createInstructions(
  { options, settings, context, guidance }: Parts,
  toolset: Toolset,
): string {
  const folder = toolset.env.workspace.root;
  const saved = isPromptGiven(options) ? undefined : context?.settings.systemPrompt;
  return saved === undefined
    ? systemPrompt({
        folder,
        settings,
        systemFile: guidance.system?.text,
        docs: options.docs,
        more: guidanceTexts(guidance),
      })
    : movedPrompt(saved, folder);
}

/** A small model summarizes results; turns are for the one that goes on with the summary. */
async function findSummarizer(
  what: SummaryKind,
  current: Model,
  { models, settings: { oracle, smallModel } }: Parts,
): Promise<Model> {
  if (what === "turns") return oracle === undefined ? current : models.find(oracle);
  if (smallModel !== undefined) return models.find(smallModel);
  return findSmallModel(current, await models.list());
}

/** What stays in the context after every compaction: notes, and guidance that the instructions lack. */
function pinned(guidance: Guidance, instructions: string, { notes }: Toolset): string | undefined {
  return (
    [guidanceNews(guidance, instructions, []), notes.text].filter(Boolean).join("\n\n") || undefined
  );
}

function logTo(path: string): Middleware {
  return logging(jsonLines(logFile(path)));
}
