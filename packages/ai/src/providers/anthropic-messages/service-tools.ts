import type { BetaToolUnion } from "@anthropic-ai/sdk/resources/beta/messages";
import type { AnthropicServiceTool, ServiceTool } from "../../client/service-tools.ts";
import { toRecord } from "../../common/records.ts";
import { isOwn } from "../../messages/transform-messages.ts";
import { mergeHeaders } from "../http/headers.ts";
import { type ServiceToolTable, writeServiceTools } from "../options/service-tools.ts";
import type { Draft } from "../options/table.ts";

const MCP_BETA = "mcp-client-2025-11-20";
const COMPUTER_BETAS = {
  "20250124": "computer-use-2025-01-24",
  "20251124": "computer-use-2025-11-24",
} as const;
/** Claude on Google's cloud has no other tool of the service than this. */
const ON_VERTEX = "google-vertex-anthropic";

const of = (tool: BetaToolUnion): object => tool;

const WEB_SEARCH: ServiceToolTable = {
  webSearch: {
    fields: ["maxUses", "allowedDomains", "blockedDomains", "location"],
    write: ({ allowedDomains, blockedDomains, location, maxUses }) =>
      of({
        type: "web_search_20250305",
        name: "web_search",
        ...(maxUses !== undefined && { max_uses: maxUses }),
        ...(allowedDomains && { allowed_domains: [...allowedDomains] }),
        ...(blockedDomains && { blocked_domains: [...blockedDomains] }),
        ...(location && { user_location: { type: "approximate" as const, ...location } }),
      }),
  },
};

const TOOLS: ServiceToolTable = {
  ...WEB_SEARCH,
  webFetch: {
    fields: ["maxUses", "allowedDomains", "blockedDomains", "maxContentTokens", "citations"],
    write: ({ allowedDomains, blockedDomains, citations, maxContentTokens, maxUses }) =>
      of({
        type: "web_fetch_20250910",
        name: "web_fetch",
        ...(maxUses !== undefined && { max_uses: maxUses }),
        ...(allowedDomains && { allowed_domains: [...allowedDomains] }),
        ...(blockedDomains && { blocked_domains: [...blockedDomains] }),
        ...(maxContentTokens !== undefined && { max_content_tokens: maxContentTokens }),
        ...(citations !== undefined && { citations: { enabled: citations } }),
      }),
  },
  codeExecution: {
    fields: [],
    write: () => of({ type: "code_execution_20250825", name: "code_execution" }),
  },
  mcp: {
    fields: ["name", "url", "authorization", "allowedTools"],
    write: ({ allowedTools, name }) =>
      of({
        type: "mcp_toolset",
        mcp_server_name: name,
        ...(allowedTools && {
          default_config: { enabled: false },
          configs: Object.fromEntries(allowedTools.map((tool) => [tool, { enabled: true }])),
        }),
      }),
  },
};

const OWN_TOOLS: ServiceToolTable<AnthropicServiceTool> = {
  computer: {
    fields: ["width", "height", "displayNumber", "version"],
    write: ({ displayNumber, height, version = "20251124", width }) =>
      of({
        type: `computer_${version}`,
        name: "computer",
        display_width_px: width,
        display_height_px: height,
        ...(displayNumber !== undefined && { display_number: displayNumber }),
      }),
  },
  toolSearch: {
    fields: ["by"],
    write: ({ by }) =>
      of(
        by === "regex"
          ? { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" }
          : { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" },
      ),
  },
};

/** The tools that several services have. */
export function writeCommonTools(tools: readonly ServiceTool[], draft: Draft): object {
  const { name, id } = draft.request.service;
  const written = writeServiceTools(tools, id === ON_VERTEX ? WEB_SEARCH : TOOLS, name);
  const servers = tools.flatMap((tool) =>
    tool.type === "mcp"
      ? [
          {
            type: "url",
            name: tool.name,
            url: tool.url,
            ...(tool.authorization !== undefined && { authorization_token: tool.authorization }),
          },
        ]
      : [],
  );
  if (servers.length > 0) addBeta(draft, MCP_BETA);
  const container = tools.some(({ type }) => type === "codeExecution")
    ? findContainer(draft)
    : undefined;
  return {
    ...addTools(written, draft),
    ...(servers.length > 0 && { mcp_servers: servers }),
    ...(container !== undefined && { container }),
  };
}

/** The tools of Anthropic alone. */
export function writeOwnTools(tools: readonly AnthropicServiceTool[], draft: Draft): object {
  const written = writeServiceTools(tools, OWN_TOOLS, draft.request.service.name);
  for (const tool of tools) {
    if (tool.type === "computer") addBeta(draft, COMPUTER_BETAS[tool.version ?? "20251124"]);
  }
  return addTools(written, draft);
}

/**
 * After the tools of the application. One with the name of a tool of the service is the one that runs
 * its calls: the service knows how these look, and takes no description of it.
 */
function addTools(written: readonly object[], { body, request }: Draft): object {
  const names = new Set(written.map((tool) => toRecord(tool)["name"]));
  const before = Array.isArray(body["tools"]) ? body["tools"] : [];
  const kept = before.filter((tool: unknown) => !names.has(toRecord(tool)["name"] ?? ""));
  // Tools that are declared for old calls alone forbid every call.
  const isFree = !request.context.tools?.length && request.options.toolChoice === undefined;
  return {
    tools: [...kept, ...written],
    ...(isFree && body["tool_choice"] !== undefined && { tool_choice: { type: "auto" } }),
  };
}

function addBeta({ headers }: Draft, beta: string): void {
  Object.assign(headers, mergeHeaders(headers, { "anthropic-beta": beta }));
}

/** The container of the conversation, as long as it is there: code finds the files of before. */
function findContainer({ request: { context, model, options } }: Draft): string | undefined {
  const last = context.messages.findLast(
    (message) => message.role === "assistant" && message.container !== undefined,
  );
  if (last?.role !== "assistant" || !last.container || !isOwn(last, model)) return undefined;
  const { expiresAt, id } = last.container;
  const now = options.clock?.now() ?? Date.now();
  return Date.parse(expiresAt) > now ? id : undefined;
}
