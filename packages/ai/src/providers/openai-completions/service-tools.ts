import type { ServiceTool } from "../../client/service-tools.ts";
import { type ServiceToolTable, writeServiceTools } from "../options/service-tools.ts";
import type { Draft } from "../options/table.ts";

/** The services with this format that document tools of their own. */
const SERVICES: Readonly<Record<string, ServiceToolTable>> = {
  openrouter: {
    // Which domains it may search depends on who searches for the model: some ignore it.
    webSearch: { fields: [], write: () => ({ type: "openrouter:web_search" }) },
    webFetch: { fields: [], write: () => ({ type: "openrouter:web_fetch" }) },
  },
  groq: {
    webSearch: { fields: [], write: () => ({ type: "browser_search" }) },
    codeExecution: { fields: [], write: () => ({ type: "code_interpreter" }) },
  },
};

/** The tools of OpenRouter and of Groq; other services have none. */
export function writeTools(tools: readonly ServiceTool[], { body, request }: Draft): object {
  const { id, name } = request.service;
  const before = Array.isArray(body["tools"]) ? body["tools"] : [];
  return { tools: [...before, ...writeServiceTools(tools, SERVICES[id] ?? {}, name)] };
}
