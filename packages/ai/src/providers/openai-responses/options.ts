import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses";
import { hasStructuredOutput } from "../services/openai-models.ts";
import { systemClock } from "../../common/clock.ts";
import { fetchInBackground } from "./background.ts";
import { continueConversation, continueResponse } from "./kept-state.ts";
import { type ResponseState, readState } from "./state.ts";
import { toStrictToolSchema } from "../options/strict-tools.ts";
import type { FormatOptions } from "../options/table.ts";
import { writeOwnTools, writeTools, writeXaiTools } from "./service-tools.ts";

const ofOpenAI: FormatOptions<ResponseCreateParamsStreaming>["services"]["openai"] = {
  serviceTier: (service_tier) => ({ service_tier }),
  reasoningSummary: (summary) => ({ reasoning: { summary } }),
  serviceTools: writeOwnTools,
  truncation: (truncation) => ({ truncation }),
  store: (store) => ({ store }),
  previousResponseId: continueResponse,
  conversation: continueConversation,
  background: (background, { request, wrapFetch }) => {
    if (!background) return {};
    const clock = request.options.clock ?? systemClock;
    wrapFetch((fetch) => fetchInBackground(fetch, clock));
    return { background, store: true };
  },
};

const services = {
  openai: ofOpenAI,
  "azure-openai-responses": ofOpenAI,
  xai: { serviceTools: writeXaiTools },
};

/** The options of OpenAI's Responses API. */
export const OPTIONS: FormatOptions<ResponseCreateParamsStreaming> = {
  common: {
    topP: (top_p) => ({ top_p }),
    parallelToolCalls: (value, { body }) => (body["tools"] ? { parallel_tool_calls: value } : {}),
    strictTools: (strict, { body }) => {
      if (!strict || !Array.isArray(body["tools"])) return {};
      return {
        tools: body["tools"].map((tool) =>
          // Tools of the service have none.
          tool.type === "function"
            ? {
                ...tool,
                parameters: toStrictToolSchema(tool.name, tool.parameters, "openai"),
                strict: true,
              }
            : tool,
        ),
      };
    },
    serviceTools: writeTools,
    verbosity: (verbosity) => ({ text: { verbosity } }),
    userId: (safety_identifier) => ({ safety_identifier }),
    logprobs: (top_logprobs, { body }) => ({
      top_logprobs,
      include: [
        ...(Array.isArray(body["include"]) ? body["include"] : []),
        "message.output_text.logprobs" as const,
      ],
    }),
  },
  output: {
    dialect: "openai",
    supports: ({ model, service }) => service.id in services && hasStructuredOutput(model.id),
    write: ({ name, schema }) => ({
      text: { format: { type: "json_schema", name, schema: { ...schema }, strict: true } },
    }),
  },
  services,
  // Its reference has the other fields as not supported, or under other names.
  taken: { xai: ["topP", "parallelToolCalls", "outputFormat", "serviceTools"] },
  refuse(name, { model, options, service }) {
    const conflict = explainConflict(name, readState(options, service.id));
    if (conflict !== undefined) return conflict;
    if (model.reasoning && (name === "topP" || name === "logprobs"))
      return "models that think have no settings for sampling. Leave it out.";
    if (!model.reasoning && name === "reasoningSummary") return "it does not think. Leave it out.";
    return undefined;
  },
};

/** What needs the service to keep a response. */
const KEEPING: ReadonlySet<string> = new Set(["background", "conversation", "previousResponseId"]);

function explainConflict(name: string, state: ResponseState): string | undefined {
  const isUsed = name !== "background" || state.background === true;
  if (KEEPING.has(name) && isUsed && state.store === false)
    return "the service has to keep the response for it, and store is false. Leave out one of them.";
  if (name === "conversation" && state.previousResponseId !== undefined)
    return "a request goes on from a conversation or from a response, and it has previousResponseId. Leave out one of them.";
  return undefined;
}
