import type { ConverseStreamRequest } from "@aws-sdk/client-bedrock-runtime";
import type { CacheBreakpoint } from "../../client/generation-options.ts";
import { toRecord } from "../../common/records.ts";
import { locateMessage, sortBreakpoints } from "../options/breakpoints.ts";
import { toStrictToolSchema } from "../options/strict-tools.ts";
import type { Draft, FormatOptions } from "../options/table.ts";
import { hasFeature } from "../services/claude-models.ts";
import { findFamily, hasCache } from "./request.ts";

/** The options of ConverseStream. */
export const OPTIONS: FormatOptions<ConverseStreamRequest> = {
  common: {
    topP: (topP) => ({ inferenceConfig: { topP } }),
    topK: (topK, { request }) => ({
      additionalModelRequestFields:
        findFamily(request.model) === "nova" ? { inferenceConfig: { topK } } : { top_k: topK },
    }),
    stopSequences: (texts) => ({ inferenceConfig: { stopSequences: [...texts] } }),
    strictTools: (strict, { body }) => {
      const { tools } = toRecord(body["toolConfig"]);
      if (!strict || !Array.isArray(tools)) return {};
      return {
        toolConfig: {
          tools: tools.map(({ toolSpec }) => ({
            toolSpec: {
              ...toolSpec,
              inputSchema: {
                json: { ...toStrictToolSchema(toolSpec.name, toolSpec.inputSchema.json, "claude") },
              },
              strict: true,
            },
          })),
        },
      };
    },
    cacheBreakpoints: writeBreakpoints,
  },
  output: {
    dialect: "claude",
    supports: ({ model }) => findFamily(model) === "claude" && hasFeature(model, "eagerInput"),
    write: ({ name, schema }) => ({
      outputConfig: {
        textFormat: {
          type: "json_schema",
          structure: { jsonSchema: { name, schema: JSON.stringify(schema) } },
        },
      },
    }),
  },
  services: {
    "amazon-bedrock": {
      guardrail: ({ id, version, trace, processing }) => ({
        guardrailConfig: {
          guardrailIdentifier: id,
          guardrailVersion: version,
          ...(trace && { trace }),
          ...(processing && { streamProcessingMode: processing }),
        },
      }),
      serviceTier: (type) => ({ serviceTier: { type } }),
      latency: (latency) => ({ performanceConfig: { latency } }),
      requestMetadata: (requestMetadata) => ({ requestMetadata: { ...requestMetadata } }),
    },
  },
  refuse(name, { model, options: { thinkingLevel = "off" } }) {
    const family = findFamily(model);
    if (name === "cacheBreakpoints" && !hasCache(model)) return "it has no cache. Leave it out.";
    if (name === "topK" && family !== "claude" && family !== "nova")
      return "only models of Anthropic and Amazon take it here. Use topP.";
    if (name !== "topP" && name !== "topK") return undefined;
    if (hasFeature(model, "fixedTemperature"))
      return "it has no settings for sampling. Leave it out.";
    if (name === "topK" && thinkingLevel !== "off")
      return "not while it thinks. Leave it out, or set thinkingLevel to off.";
    return undefined;
  },
};

interface Blocks {
  messages: { content: object[] }[];
  system?: object[];
  toolConfig?: { tools: object[] };
}

function writeBreakpoints(
  points: readonly CacheBreakpoint[],
  draft: Draft,
): Partial<ConverseStreamRequest> {
  const { request } = draft;
  const { messages, system, toolConfig } = withoutPoints(draft.body as unknown as Blocks);
  for (const { after, ttl } of sortBreakpoints(points, request)) {
    const point = { cachePoint: { type: "default", ...(ttl === "1h" && { ttl }) } };
    const [list, index] =
      after === "tools"
        ? [toolConfig?.tools, undefined]
        : after === "system"
          ? [system, undefined]
          : locate(after, messages, draft);
    if (!list || list.length === 0)
      throw new TypeError(`there is nothing to cache after ${after}.`);
    list.splice(index ?? list.length, 0, point);
  }
  return {
    messages,
    ...(system && { system }),
    ...(toolConfig && { toolConfig }),
  } as Partial<ConverseStreamRequest>;
}

function locate(
  after: number,
  messages: Blocks["messages"],
  draft: Draft,
): [object[] | undefined, number] {
  const { block, message } = locateMessage(after, draft);
  return [messages[message]?.content, block + 1];
}

/** Copies of what may have cache points, without those that this library sets by itself. */
function withoutPoints({ messages, system, toolConfig }: Blocks): Blocks {
  const rest = (blocks: readonly object[]): object[] =>
    blocks.filter((block) => !("cachePoint" in block));
  return {
    messages: messages.map((message) => ({ ...message, content: rest(message.content) })),
    ...(system && { system: rest(system) }),
    ...(toolConfig && { toolConfig: { ...toolConfig, tools: rest(toolConfig.tools) } }),
  };
}
