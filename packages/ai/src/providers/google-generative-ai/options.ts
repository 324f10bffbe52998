import type { GenerateContentRequest, GenerationConfig } from "@google/generative-ai";
import type { JsonSchema } from "../../schema/schema.ts";
import { toRecord } from "../../common/records.ts";
import { hasJsonSchema, isNewer } from "./models.ts";
import type { FormatOptions } from "../options/table.ts";
import { writeCommonTools, writeOwnTools } from "./service-tools.ts";

/** What the reference of the API has, and the types of its SDK do not. */
type Body = Omit<
  GenerateContentRequest,
  "generationConfig" | "safetySettings" | "cachedContent" | "toolConfig"
> & {
  generationConfig?: GenerationConfig & { seed?: number; responseJsonSchema?: JsonSchema };
  safetySettings?: readonly { category: string; threshold: string }[];
  cachedContent?: string;
  labels?: Readonly<Record<string, string>>;
  toolConfig?: { functionCallingConfig: { mode: "VALIDATED" } };
};

const ofGoogle: NonNullable<FormatOptions<Body>["services"]["google"]> = {
  safetySettings: (safetySettings) => ({ safetySettings }),
  cachedContent: (cachedContent) => ({ cachedContent }),
  serviceTools: writeOwnTools,
};

/** The options of the Gemini API and of Vertex AI. */
export const OPTIONS: FormatOptions<Body> = {
  common: {
    topP: (topP) => ({ generationConfig: { topP } }),
    topK: (topK) => ({ generationConfig: { topK } }),
    seed: (seed) => ({ generationConfig: { seed } }),
    stopSequences: (texts) => ({ generationConfig: { stopSequences: [...texts] } }),
    presencePenalty: (presencePenalty) => ({ generationConfig: { presencePenalty } }),
    frequencyPenalty: (frequencyPenalty) => ({ generationConfig: { frequencyPenalty } }),
    // A call that is forced fits its schema anyway.
    strictTools: (strict, { body }) => {
      const { functionCallingConfig: config } = toRecord(body["toolConfig"]);
      const { mode = "AUTO" } = toRecord(config);
      if (!strict || !body["tools"] || mode !== "AUTO") return {};
      return { toolConfig: { functionCallingConfig: { mode: "VALIDATED" } } };
    },
    serviceTools: writeCommonTools,
    logprobs: (logprobs) => ({
      generationConfig: { responseLogprobs: true, ...(logprobs > 0 && { logprobs }) },
    }),
  },
  output: {
    dialect: "gemini",
    supports: ({ model }) => (isNewer(model) ? true : hasJsonSchema(model) && "alone"),
    write: ({ schema }) => ({
      generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema },
    }),
  },
  services: {
    google: ofGoogle,
    "google-vertex": { ...ofGoogle, labels: (labels) => ({ labels }) },
  },
};
