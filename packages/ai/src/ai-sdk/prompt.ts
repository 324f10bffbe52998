import { toModelMessages } from "../convert/model-messages.ts";
import type { StreamOptions } from "../client/client.ts";
import { GENERATION_OPTIONS } from "../client/generation-options.ts";
import type { Context, Model } from "../messages/messages.ts";
import { type MessageConstraints, transformPrepared } from "../messages/transform-messages.ts";
import { prepareFiles } from "../providers/files/prepare.ts";
import {
  ANY_MODEL,
  type FormatFiles,
  USUAL_IMAGE_BYTES,
  USUAL_IMAGES,
} from "../providers/files/table.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import { withServiceTexts } from "../service-tools/to-text.ts";
import { toToolSchema } from "../schema/tool-schema.ts";
import type { AiSdkCall, AiSdkLanguageModel } from "./language-model.ts";

const MAX_ID_CHARS = 64;
const RULES: MessageConstraints = { ids: { pattern: /^[\w-]+$/, maxLength: MAX_ID_CHARS } };
const TAKEN = { sources: ["base64", "url"], models: ANY_MODEL } as const;
/** What a model takes, its provider says itself; an id of another service means nothing to it. */
const FILES: FormatFiles = () => ({
  image: { types: USUAL_IMAGES, ...TAKEN, maxBytes: USUAL_IMAGE_BYTES, withImages: true },
  pdf: TAKEN,
  text: TAKEN,
  audio: TAKEN,
  video: TAKEN,
  document: TAKEN,
});

/** The call of a model of the AI SDK, for a request of ours. */
export function writeCall(
  { specificationVersion }: Pick<AiSdkLanguageModel, "specificationVersion">,
  model: Model,
  { messages, systemPrompt, tools = [] }: Context,
  options: StreamOptions,
): Omit<AiSdkCall, "abortSignal"> {
  const { maxTokens, temperature, headers, thinkingLevel, toolChoice } = options;
  const isNew = specificationVersion === "v4";
  const service = { id: model.provider, name: model.provider };
  const sent = prepareFiles(messages, { model, service }, FILES);
  const prompt = toModelMessages(transformPrepared(withServiceTexts(sent, model), model, RULES), {
    ...(systemPrompt?.trim() && { systemPrompt }),
  }).messages;
  return {
    prompt: prompt.map((message) => mapParts(message, isNew ? toNewerPart : withUrl)),
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
    ...writeSettings(options),
    ...writeOutput(options, tools),
    ...(headers && { headers: { ...headers } }),
    ...(isNew && thinkingLevel && thinkingLevel !== "off" && { reasoning: thinkingLevel }),
  };
}

type Settings = Pick<
  AiSdkCall,
  "topP" | "topK" | "seed" | "stopSequences" | "presencePenalty" | "frequencyPenalty"
>;

/** The options that a call of the AI SDK has. Throws for those that it does not have. */
function writeSettings(options: StreamOptions): Settings {
  const settings: Record<string, unknown> = {};
  for (const name of GENERATION_OPTIONS) {
    const value = options[name];
    if (value === undefined || name === "outputFormat") continue;
    if (!SETTINGS.has(name)) {
      const message = `A model of the AI SDK has no option "${name}". Leave it out, or give providerOptions to fromAiSdk.`;
      throw new ProviderError(message, { kind: "bad_request", retryable: false });
    }
    settings[name] = value;
  }
  return settings;
}

/** What a provider of the AI SDK does beside tools is not known: the tool is asked, if there is one. */
function writeOutput(
  { outputFormat }: StreamOptions,
  tools: readonly { name: string }[],
): Pick<AiSdkCall, "responseFormat"> {
  if (!outputFormat || tools.some(({ name }) => name === outputFormat.tool)) return {};
  const { name, schema } = outputFormat;
  return { responseFormat: { type: "json", schema, ...(name !== undefined && { name }) } };
}

const SETTINGS: ReadonlySet<string> = new Set([
  "topP",
  "topK",
  "seed",
  "stopSequences",
  "presencePenalty",
  "frequencyPenalty",
] satisfies (keyof Settings)[]);

function writeChoice(
  choice: NonNullable<StreamOptions["toolChoice"]>,
): NonNullable<AiSdkCall["toolChoice"]> {
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.name };
}

function mapParts(
  message: { content: string | readonly object[] },
  map: (part: object) => object,
): object {
  const { content } = message;
  return typeof content === "string" ? message : { ...message, content: content.map(map) };
}

const ADDRESS = /^[a-z][a-z0-9+.-]*:/i;

/** Up to version 3 an address among data is an object: a text is base64. */
function withUrl(part: object): object {
  if (!("data" in part) || typeof part.data !== "string" || !ADDRESS.test(part.data)) return part;
  return { ...part, data: new URL(part.data) };
}

/** Version 4 says of the data of a file what they are. */
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
  if ("url" in part && typeof part.url === "string") {
    const { url, ...rest } = part;
    return {
      mediaType: "image/*",
      ...rest,
      type: "file",
      data: { type: "url", url: new URL(url) },
    };
  }
  if (!("data" in part) || typeof part.data !== "string") return part;
  const data = ADDRESS.test(part.data)
    ? { type: "url", url: new URL(part.data) }
    : { type: "data", data: part.data };
  return { ...part, type: "file", data };
}
