import { dirname } from "node:path";
import { type Agent, type AgentTool, maxResultTokens, type Middleware } from "@gyre/agent";
import type { Model } from "@gyre/ai";
import {
  AGENT_KINDS,
  FolderError,
  type AgentKind,
  openToolset,
  TOOL_NAMES,
  type Toolset,
  UnknownToolError,
  type WebSearchOptions,
} from "@gyre/tools";
import type { Mcp } from "@gyre/mcp";
import { CodingAgentError } from "../core/errors.ts";
import { EDITOR_SCOPE, isMcpTool, PROGRAM_SCOPE, wantsMcp } from "../mcp/tools.ts";
import { guidanceTexts } from "../guidance/guidance.ts";
import { SKILL_TOOL } from "../guidance/skills.ts";
import { realPath } from "../settings/project-file.ts";
import { HostGate } from "../permissions/hosts.ts";
import { subAgentGuidance } from "./system-prompt.ts";
import { assertModel } from "./ceilings.ts";
import { selectTools } from "../extensions/tool-names.ts";
import type { Parts } from "./types.ts";
import { readRequestSettings } from "../models/request-settings.ts";
import { readWaits } from "./waits.ts";

/** The kind of sub-agent that another model is asked by. */
const ORACLE = {
  name: "oracle",
  tools: ["read", "grep", "find", "ls", "git", "skill"],
  onlyReads: true,
} as const;
/** Of the tokens that a result may take, the part that a page takes. */
const PAGE_SHARE = 0.85;

/** The tools of a harness, and MCP where there are servers. */
export interface OpenedTools {
  toolset: Toolset;
  mcp?: Mcp;
}

/** The agent that the tools are for, once it is made. */
export interface Caller {
  agent: Pick<Agent, "state"> | undefined;
}

/**
 * Opens the folder with its tools: our own, those of plugins and skills, and of MCP servers.
 * Sub-agents read `middleware` and `caller` when they are called.
 */
export async function openTools(
  parts: Parts,
  middleware: readonly Middleware[],
  caller: Caller,
): Promise<OpenedTools> {
  return opened(parts, middleware, caller).catch((error: unknown) => {
    throw noStateFolder(error) ?? wrongName(error) ?? wrongFolder(error) ?? error;
  });
}

async function opened(
  parts: Parts,
  middleware: readonly Middleware[],
  caller: Caller,
): Promise<OpenedTools> {
  const { options, settings, models, model, guidance, extensions, context } = parts;
  const { ownTools = [] } = options;
  // A session that had them lists them by name.
  const isOwn = (name: string): boolean =>
    ownTools.some((tool) => tool.name === name) &&
    !(options.explicit?.has("tools") && TOOL_NAMES.includes(name));
  const { own: tools, added } = selectTools({
    named: settings.tools?.filter((name) => !isMcpTool(name) && !isOwn(name)),
    plugins: extensions?.tools ?? [],
    // What a session had, or what a plugin has that was left out.
    isLenient:
      options.keepsRights ||
      settings.tools === context?.settings.tools ||
      (settings.plugins !== undefined && !options.explicit?.has("tools")),
    warn: options.warn,
  });
  const {
    domains,
    hidden,
    network = false,
    oracle,
    sandbox = "auto",
    writable,
    addDirs,
  } = settings;
  const { client } = models;
  const folder = realPath(options.cwd);
  const ofSkills = guidance.hasSkillTool
    ? [(await import("../guidance/skills-tool.ts")).skillTool(guidance.skills, folder)]
    : [];
  const agent = { ...readWaits(settings), ...readRequestSettings(settings) };
  const { approvals } = options;
  const mostDomains = options.policy?.mostDomains;
  const gate = typeof approvals === "function" && new HostGate(approvals, parts.ruleBook);
  /** What is registered beside our own tools; filled below. */
  const others: AgentTool[] = [...ofSkills, ...added];
  const toolset = await openToolset({
    root: options.cwd,
    tools: [
      ...tools.filter((name) => name !== SKILL_TOOL),
      ...(settings.webSearch !== undefined && settings.tools === undefined ? [SEARCH_TOOL] : []),
    ],
    sandbox: sandbox === "auto" ? "any" : sandbox,
    network,
    ...(domains && { domains }),
    ...(mostDomains && { mostDomains }),
    ...(gate && { decideHost: (host: string, port: number) => gate.decide(host, port) }),
    ...(writable && { writable }),
    ...(addDirs && { addDirs }),
    ...(hidden && { hidden }),
    ...(options.docs !== undefined && { readable: [dirname(options.docs)] }),
    environment: options.env,
    warn: options.warn,
    ...(options.trusted && { readOnlyFiles: options.trusted.places }),
    ...(options.ceilings && { secret: options.ceilings.secret }),
    kept: (key) => parts.results.read(key),
    explainFile: async (file) => {
      const { explainUnsendable } = await import("@gyre/ai/providers");
      return explainUnsendable(file, caller.agent?.state.model ?? model);
    },
    // With room for the line that says how to go on.
    pageTokens: () => maxResultTokens({}, model) * PAGE_SHARE,
    middleware,
    oracle: { client, agent, model: oracle === undefined ? model : await models.find(oracle) },
    [SEARCH_TOOL]: createSearch(
      settings.webSearch,
      { client, model: () => caller.agent?.state.model ?? model },
      options.env[SEARCH_HEADER],
    ),
    task: {
      client,
      agent,
      model: () => caller.agent?.state.model ?? model,
      thinkingLevel: () => caller.agent?.state.thinkingLevel ?? "off",
      guidance: subAgentGuidance({ folder, settings, more: guidanceTexts(guidance) }),
      moreTools: () => others,
      isAllowed: (name) => caller.agent?.state.tools.some((tool) => tool.name === name) ?? true,
      agents: listAgents(parts),
      findModel: (name) => findAllowed(name, parts),
    },
  });
  try {
    for (const tool of others) toolset.registry.register(tool);
    for (const tool of ownTools) registerOwn(tool, toolset);
    const tools = await withMcp(parts, toolset);
    others.push(...(tools.mcp?.tools ?? []));
    return tools;
  } catch (error) {
    await toolset.close();
    throw error;
  }
}

const SEARCH_TOOL = "web_search";
/** A header for the search engine, such as the one with a key: `X-Subscription-Token: abc`. */
const SEARCH_HEADER = "GYRE_WEB_SEARCH_HEADER";

/** What searches: the service of the model, unless the user has named a search engine. */
function createSearch(
  given: string | undefined,
  service: WebSearchOptions,
  header = "",
): WebSearchOptions {
  if (given === undefined || given === "service") return service;
  const [, name = "", value = ""] = /^\s*([\w-]+)\s*:\s*(.*?)\s*$/.exec(header) ?? [];
  return { url: given, ...(name !== "" && { headers: { [name]: value } }) };
}

/** The kinds of sub-agents: our own, the oracle where a model is set for it, and those of files. */
function listAgents({ guidance: { agents }, settings: { oracle } }: Parts): readonly AgentKind[] {
  if (oracle === undefined) return [...AGENT_KINDS, ...agents];
  const wise = { ...ORACLE, description: `${oracle}, for advice`, model: oracle };
  return [...AGENT_KINDS, wise, ...agents.filter(({ name }) => name !== wise.name)];
}

/** A model by name, where the session may have it. */
async function findAllowed(name: string, { models, options }: Parts): Promise<Model> {
  const model = await models.find(name);
  assertModel(model, options.ceilings);
  return model;
}

/** Rules are about names: a tool of the program takes no name of ours by accident. */
function registerOwn(tool: AgentTool, { registry }: Toolset): void {
  const { name } = tool;
  if (registry.has(name)) {
    const hint = TOOL_NAMES.includes(name) ? ` To replace it, add "-${name}".` : "";
    throw new CodingAgentError("bad_option", `tools: there is a tool "${name}" already.${hint}`);
  }
  registry.register(tool);
}

/** Adds the tools of MCP servers, which are closed with the others. */
async function withMcp({ options, settings }: Parts, toolset: Toolset): Promise<OpenedTools> {
  const { answerServer, cwd, env, warn, approvals, explicit, mcpServers = [] } = options;
  const isWanted = wantsMcp(settings.tools);
  // What a session had before says nothing of servers that an editor passes on now.
  const servers = mcpServers.filter(
    ({ scope }) =>
      isWanted || scope === PROGRAM_SCOPE || (scope === EDITOR_SCOPE && !explicit?.has("tools")),
  );
  if (servers.length === 0) return { toolset };
  if (options.policy?.rules.mcp === false) {
    // Those of an editor are no settings.
    warn(`The policy ${options.policy.path} does not allow MCP servers.`);
    return { toolset };
  }
  const { openProgramMcp } = await import("../mcp/open.ts");
  const ask = typeof approvals === "function" ? { ask: approvals } : {};
  const mcp = await openProgramMcp({
    ...{ servers, cwd, env, warn, toolset, ...ask },
    ...(answerServer && { answerServer }),
  });
  try {
    for (const tool of mcp.tools) toolset.registry.register(tool);
  } catch (error) {
    await mcp.close();
    throw error;
  }
  const close = async (): Promise<void> => {
    await mcp.close();
    await toolset.close();
  };
  return { toolset: { ...toolset, close }, mcp };
}

/** A tool that is not there is what the user wrote. */
function wrongName(error: unknown): CodingAgentError | undefined {
  if (!(error instanceof UnknownToolError)) return undefined;
  return new CodingAgentError("bad_option", error.message, { cause: error });
}

function wrongFolder(error: unknown): CodingAgentError | undefined {
  if (!(error instanceof FolderError)) return undefined;
  return new CodingAgentError("bad_option", error.message, { cause: error });
}

/** What to do where the folder for what is running cannot be made. */
function noStateFolder(error: unknown): CodingAgentError | undefined {
  if (!(error instanceof Error) || !("syscall" in error)) return undefined;
  if (error.syscall !== "mkdir" && error.syscall !== "mkdtemp") return undefined;
  const hint = "Set XDG_STATE_HOME to a folder that may be written to.";
  return new CodingAgentError("failed", `${error.message}. ${hint}`, { cause: error });
}
