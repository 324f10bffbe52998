import type { GoogleServiceTool, ServiceTool } from "../../client/service-tools.ts";
import { toRecord } from "../../common/records.ts";
import { type ServiceToolTable, writeServiceTools } from "../options/service-tools.ts";
import type { Draft } from "../options/table.ts";
import { isNewer } from "./models.ts";

const VERTEX = "google-vertex";

const TOOLS: ServiceToolTable = {
  webSearch: { fields: [], write: () => ({ googleSearch: {} }) },
  webFetch: { fields: [], write: () => ({ urlContext: {} }) },
  codeExecution: { fields: [], write: () => ({ codeExecution: {} }) },
  fileSearch: {
    fields: ["stores", "maxResults"],
    write: ({ maxResults, stores }) => ({
      fileSearch: {
        fileSearchStoreNames: [...stores],
        ...(maxResults !== undefined && { topK: maxResults }),
      },
    }),
  },
};
const { fileSearch: _, ...OTHERS } = TOOLS;
const ON_VERTEX: ServiceToolTable = {
  ...OTHERS,
  webSearch: {
    fields: ["blockedDomains"],
    write: ({ blockedDomains }) => ({
      googleSearch: blockedDomains ? { excludeDomains: [...blockedDomains] } : {},
    }),
  },
};

const OWN_TOOLS: ServiceToolTable<GoogleServiceTool> = {
  googleMaps: { fields: [], write: () => ({ googleMaps: {} }) },
  computer: {
    fields: ["excluded"],
    write: ({ excluded }) => ({
      computerUse: {
        environment: "ENVIRONMENT_BROWSER",
        ...(excluded && { excludedPredefinedFunctions: [...excluded] }),
      },
    }),
  },
};

/** The actions that the model knows without a declaration where it has a browser. */
const BROWSER_ACTIONS: ReadonlySet<unknown> = new Set([
  ...["open_web_browser", "wait_5_seconds", "go_back", "go_forward", "search", "navigate"],
  ...["click_at", "hover_at", "type_text_at", "key_combination", "scroll_document", "scroll_at"],
  "drag_and_drop",
]);

/** The tools that several services have. */
export function writeCommonTools(tools: readonly ServiceTool[], draft: Draft): object {
  const { id, name } = draft.request.service;
  return addTools(writeServiceTools(tools, id === VERTEX ? ON_VERTEX : TOOLS, name), draft);
}

/** The tools of Google alone. */
export function writeOwnTools(tools: readonly GoogleServiceTool[], draft: Draft): object {
  const written = writeServiceTools(tools, OWN_TOOLS, draft.request.service.name);
  const hasBrowser = tools.some(({ type }) => type === "computer");
  return addTools(written, draft, hasBrowser ? BROWSER_ACTIONS : new Set());
}

/** After the tools of the application, of which `known` need no declaration. */
function addTools(
  written: readonly object[],
  { body, request: { model } }: Draft,
  known: ReadonlySet<unknown> = new Set(),
): object {
  const before = Array.isArray(body["tools"]) ? body["tools"] : [];
  const kept = before.flatMap((tool: unknown) => {
    const { functionDeclarations: declared, ...rest } = toRecord(tool);
    if (!Array.isArray(declared)) return [tool];
    const left = declared.filter((one: unknown) => !known.has(toRecord(one)["name"]));
    return left.length > 0 ? [{ ...rest, functionDeclarations: left }] : [];
  });
  const isMixed = kept.some((tool) => "functionDeclarations" in toRecord(tool));
  const needsNewer = isMixed && known.size === 0;
  if (needsNewer && !isNewer(model)) {
    throw new TypeError(
      `model "${model.id}" takes no tools of the application beside those of the service. Use a model from gemini-3 on, or leave one kind out.`,
    );
  }
  return {
    tools: [...kept, ...written],
    // What its tools gave has to come back to it where it calls ours in between.
    ...(needsNewer && { toolConfig: { includeServerSideToolInvocations: true } }),
  };
}
