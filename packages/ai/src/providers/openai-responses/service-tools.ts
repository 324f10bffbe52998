import type {
  ResponseCreateParamsStreaming,
  ResponseIncludable,
  Tool,
} from "openai/resources/responses/responses";
import type { OpenAIServiceTool, ServiceTool, XaiServiceTool } from "../../client/service-tools.ts";
import { toRecord } from "../../common/records.ts";
import { type ServiceToolTable, writeServiceTools } from "../options/service-tools.ts";
import type { Draft } from "../options/table.ts";
import { COMPUTER } from "./computer.ts";

const of = (tool: Tool): object => tool;

const TOOLS = {
  webSearch: {
    fields: ["allowedDomains", "location"],
    write: ({ allowedDomains, location }) =>
      of({
        type: "web_search",
        ...(allowedDomains && { filters: { allowed_domains: [...allowedDomains] } }),
        ...(location && { user_location: { type: "approximate" as const, ...location } }),
      }),
  },
  codeExecution: {
    fields: ["files"],
    write: ({ files }) =>
      of({
        type: "code_interpreter",
        // The service uses the container again that is in the conversation.
        container: { type: "auto", ...(files && { file_ids: [...files] }) },
      }),
  },
  fileSearch: {
    fields: ["stores", "maxResults"],
    write: ({ maxResults, stores }) =>
      of({
        type: "file_search",
        vector_store_ids: [...stores],
        ...(maxResults !== undefined && { max_num_results: maxResults }),
      }),
  },
  imageGeneration: {
    fields: ["size", "quality", "format", "background"],
    write: ({ background, format, quality, size }) =>
      of({
        type: "image_generation",
        ...(size !== undefined && { size }),
        ...(quality && { quality }),
        ...(format && { output_format: format }),
        ...(background && { background }),
      }),
  },
  mcp: {
    fields: ["name", "url", "authorization", "allowedTools"],
    write: ({ allowedTools, authorization, name, url }) =>
      of({
        type: "mcp",
        server_label: name,
        server_url: url,
        // No part of a response asks a person: a call that waits would wait forever.
        require_approval: "never",
        ...(authorization !== undefined && { authorization }),
        ...(allowedTools && { allowed_tools: [...allowedTools] }),
      }),
  },
} satisfies ServiceToolTable;

/** The tools of OpenAI's that xAI has, as its reference has them. */
const XAI_TOOLS: ServiceToolTable = {
  webSearch: {
    fields: ["allowedDomains", "blockedDomains"],
    write: ({ allowedDomains, blockedDomains }) => ({
      type: "web_search",
      ...((allowedDomains ?? blockedDomains) && {
        filters: {
          ...(allowedDomains && { allowed_domains: [...allowedDomains] }),
          ...(blockedDomains && { excluded_domains: [...blockedDomains] }),
        },
      }),
    }),
  },
  codeExecution: { fields: [], write: () => ({ type: "code_interpreter" }) },
  fileSearch: TOOLS.fileSearch,
  mcp: {
    fields: TOOLS.mcp.fields,
    // It asks no person, and does not know the field that says so.
    write: (tool) => ({ ...TOOLS.mcp.write(tool), require_approval: undefined }),
  },
};

const XAI_OWN_TOOLS: ServiceToolTable<XaiServiceTool> = {
  xSearch: {
    fields: ["allowedHandles", "excludedHandles", "from", "to", "images", "videos"],
    write: ({ allowedHandles, excludedHandles, from, images, to, videos }) => ({
      type: "x_search",
      ...(allowedHandles && { allowed_x_handles: [...allowedHandles] }),
      ...(excludedHandles && { excluded_x_handles: [...excludedHandles] }),
      ...(from !== undefined && { from_date: from }),
      ...(to !== undefined && { to_date: to }),
      ...(images !== undefined && { enable_image_understanding: images }),
      ...(videos !== undefined && { enable_video_understanding: videos }),
    }),
  },
};

const OWN_TOOLS: ServiceToolTable<OpenAIServiceTool> = {
  computer: {
    fields: ["preview"],
    write: ({ preview }) => {
      if (!preview) return of({ type: "computer" });
      const { environment, height: display_height, width: display_width } = preview;
      return of({ type: "computer_use_preview", display_width, display_height, environment });
    },
  },
};

/** What the service leaves out of its items unless it is asked. */
const INCLUDED: Readonly<Partial<Record<ServiceTool["type"], ResponseIncludable>>> = {
  webSearch: "web_search_call.action.sources",
  codeExecution: "code_interpreter_call.outputs",
  fileSearch: "file_search_call.results",
};

const XAI = "xai";
/** Of those above, what xAI knows. */
const XAI_INCLUDED: ReadonlySet<ResponseIncludable> = new Set(["file_search_call.results"]);

/** The tools of OpenAI and of xAI. */
export function writeTools(
  tools: readonly ServiceTool[],
  { body, request }: Draft,
): { tools: Tool[]; include: ResponseIncludable[] } {
  const before = Array.isArray(body["tools"]) ? body["tools"] : [];
  const included = Array.isArray(body["include"]) ? body["include"] : [];
  const { id, name } = request.service;
  const more = tools
    .flatMap(({ type }) => INCLUDED[type] ?? [])
    .filter((one) => id !== XAI || XAI_INCLUDED.has(one));
  const written = writeServiceTools(tools, id === XAI ? XAI_TOOLS : TOOLS, name);
  return {
    tools: [...before, ...written] as Tool[],
    include: [...new Set([...included, ...more])] as ResponseIncludable[],
  };
}

/**
 * The tools of OpenAI alone. The application's tool `computer` is the one that runs the calls of the
 * service's: the service knows how these look, and takes no description of it.
 */
export function writeOwnTools(
  tools: readonly OpenAIServiceTool[],
  { body, request }: Draft,
): Partial<ResponseCreateParamsStreaming> {
  const written = writeServiceTools(tools, OWN_TOOLS, request.service.name) as Tool[];
  const before: unknown[] = Array.isArray(body["tools"]) ? body["tools"] : [];
  const isComputer = (tool: unknown): boolean => toRecord(tool)["name"] === COMPUTER;
  const [computer] = tools;
  if (!computer) return {};
  return {
    tools: [...before.filter((tool) => !isComputer(tool)), ...written] as Tool[],
    // The older form is refused without it.
    ...(computer.preview && body["truncation"] === undefined && { truncation: "auto" }),
  };
}

/** The tools of xAI alone. */
export function writeXaiTools(
  tools: readonly XaiServiceTool[],
  { body, request }: Draft,
): Partial<ResponseCreateParamsStreaming> {
  const before: unknown[] = Array.isArray(body["tools"]) ? body["tools"] : [];
  const written = writeServiceTools(tools, XAI_OWN_TOOLS, request.service.name);
  // A tool that OpenAI's types do not have.
  return { tools: [...before, ...written] as Tool[] };
}
