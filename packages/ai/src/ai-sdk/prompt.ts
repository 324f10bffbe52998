import { toModelMessages } from "../convert/model-messages.ts";
import type { StreamOptions } from "../client/client.ts";
import type { Context, Model } from "../messages/messages.ts";
import { type MessageConstraints, transformMessages } from "../messages/transform-messages.ts";
import { toToolSchema } from "../schema/tool-schema.ts";
import type { AiSdkCall, AiSdkLanguageModel } from "./language-model.ts";

const MAX_ID_CHARS = 64;
const RULES: MessageConstraints = { ids: { pattern: /^[\w-]+$/, maxLength: MAX_ID_CHARS } };

/** The call of a model of the AI SDK, for a request of ours. */
export function writeCall(
  { specificationVersion }: Pick<AiSdkLanguageModel, "specificationVersion">,
  model: Model,
  { messages, systemPrompt, tools = [] }: Context,
  options: StreamOptions,
): Omit<AiSdkCall, "abortSignal"> {
  const { maxTokens, temperature, headers, thinkingLevel, toolChoice } = options;
  const isNew = specificationVersion === "v4";
  const prompt = toModelMessages(transformMessages(messages, model, RULES), {
    ...(systemPrompt?.trim() && { systemPrompt }),
  }).messages;
  return {
    prompt: isNew ? prompt.map(toNewer) : prompt,
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({
        type: "function" as const,
        name,
        description,
        inputSchema: toToolSchema(parameters),
      })),
      ...(toolChoice !== undefined && { toolChoice: writeChoice(toolChoice) }),
    }),
    ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(headers && { headers: { ...headers } }),
    ...(isNew && thinkingLevel && thinkingLevel !== "off" && { reasoning: thinkingLevel }),
  };
}

function writeChoice(
  choice: NonNullable<StreamOptions["toolChoice"]>,
): NonNullable<AiSdkCall["toolChoice"]> {
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.name };
}

/** Version 4 says of the data of a file what they are. */
function toNewer(message: { content: string | readonly object[] }): object {
  const { content } = message;
  if (typeof content === "string") return message;
  return { ...message, content: content.map(toNewerPart) };
}

function toNewerPart(part: object): object {
  if (
    "output" in part &&
    typeof part.output === "object" &&
    part.output &&
    "value" in part.output
  ) {
    const { value } = part.output;
    if (!Array.isArray(value)) return part;
    return { ...part, output: { ...part.output, value: value.map(toNewerPart) } };
  }
  if (!("data" in part) || typeof part.data !== "string") return part;
  return { ...part, type: "file", data: { type: "data", data: part.data } };
}
