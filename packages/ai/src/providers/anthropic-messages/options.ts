import type {
  CacheControlEphemeral,
  MessageCreateParamsStreaming,
  MessageParam,
  TextBlockParam,
  ToolChoice,
} from "@anthropic-ai/sdk/resources/messages";
import type { CacheBreakpoint } from "../../client/generation-options.ts";
import { isRecord } from "../../common/records.ts";
import { mergeHeaders } from "../http/headers.ts";
import { locateMessage } from "../options/breakpoints.ts";
import { toStrictToolSchema } from "../options/strict-tools.ts";
import type { Draft, FormatOptions } from "../options/table.ts";
import { hasFeature } from "../services/claude-models.ts";
import { writeCommonTools, writeOwnTools } from "./service-tools.ts";

/** Older models take two that newer ones, and the types with them, have no more. */
type Body = MessageCreateParamsStreaming & { top_p?: number; top_k?: number };

const SPEED_BETA = "fast-mode-2026-02-01";

/** The options of Anthropic's Messages API. */
export const OPTIONS: FormatOptions<Body> = {
  common: {
    topP: (top_p) => ({ top_p }),
    topK: (top_k) => ({ top_k }),
    stopSequences: (texts) => ({ stop_sequences: [...texts] }),
    parallelToolCalls: (value, { body }) => {
      if (!body["tools"]) return {};
      const choice = (body["tool_choice"] ?? { type: "auto" }) as ToolChoice;
      if (choice.type === "none") return {};
      return { tool_choice: { ...choice, disable_parallel_tool_use: !value } };
    },
    strictTools: (strict, { body }) => {
      if (!strict || !Array.isArray(body["tools"])) return {};
      return {
        tools: body["tools"].map((tool) =>
          // Tools of the service have none.
          tool.input_schema === undefined
            ? tool
            : {
                ...tool,
                input_schema: toStrictToolSchema(tool.name, tool.input_schema, "claude"),
                strict: true,
              },
        ),
      };
    },
    userId: (user_id) => ({ metadata: { user_id } }),
    cacheBreakpoints: writeBreakpoints,
    serviceTools: writeCommonTools,
  },
  output: {
    dialect: "claude",
    // Both came with 4.5. Elsewhere an account may not have it: on Vertex AI it is off by default.
    supports: ({ model, service }) => service.id === "anthropic" && hasFeature(model, "eagerInput"),
    write: ({ schema }) => ({
      output_config: { format: { type: "json_schema", schema: { ...schema } } },
    }),
  },
  services: {
    anthropic: {
      serviceTier: (service_tier) => ({ service_tier }),
      speed: (speed, { headers }) => {
        Object.assign(headers, mergeHeaders(headers, { "anthropic-beta": SPEED_BETA }));
        return { speed };
      },
      inferenceGeo: (inference_geo) => ({ inference_geo }),
      serviceTools: writeOwnTools,
    },
  },
  refuse(name, { model, options: { thinkingLevel = "off" } }) {
    if (name !== "topP" && name !== "topK") return undefined;
    if (hasFeature(model, "fixedTemperature"))
      return "it has no settings for sampling. Leave it out.";
    if (name === "topK" && thinkingLevel !== "off")
      return "not while it thinks. Leave it out, or set thinkingLevel to off.";
    return undefined;
  },
};

function writeBreakpoints(points: readonly CacheBreakpoint[], draft: Draft): Partial<Body> {
  const parts = withoutMarks(draft.body as unknown as Parts);
  for (const { after, ttl } of points) {
    const mark: CacheControlEphemeral = { type: "ephemeral", ...(ttl === "1h" && { ttl }) };
    const block = findBlock(after, parts, draft);
    if (!isRecord(block)) throw new TypeError(`there is nothing to cache after ${after}.`);
    Object.assign(block, { cache_control: mark });
  }
  return parts;
}

interface Parts extends Pick<MessageCreateParamsStreaming, "messages" | "tools"> {
  system?: TextBlockParam[];
}

function findBlock(after: CacheBreakpoint["after"], parts: Parts, draft: Draft): unknown {
  if (after === "tools") return parts.tools?.at(-1);
  if (after === "system") return parts.system?.at(-1);
  const { block, message } = locateMessage(after, draft);
  const content = parts.messages[message]?.content;
  return typeof content === "string" ? undefined : content?.[block];
}

/** Copies of what may have marks, without those that this library sets by itself. */
function withoutMarks({ messages, system, tools }: Parts): Parts {
  return {
    messages: messages.map((message): MessageParam => {
      const { content, role } = message;
      return typeof content === "string"
        ? message
        : ({ role, content: content.map(withoutMark) } as MessageParam);
    }),
    ...(system && { system: system.map(withoutMark) }),
    ...(tools && { tools: tools.map(withoutMark) }),
  };
}

function withoutMark<Block extends object>(block: Block): Block {
  const copy = { ...block };
  if ("cache_control" in copy) delete copy.cache_control;
  return copy;
}
