import type { ChatRequest, Options } from "ollama";
import type { FormatOptions } from "../options/table.ts";

type Body = Omit<ChatRequest, "options"> & { options?: Partial<Options> };

/** The options of Ollama's chat API. */
export const OPTIONS: FormatOptions<Body> = {
  common: {
    topP: (top_p) => ({ options: { top_p } }),
    topK: (top_k) => ({ options: { top_k } }),
    minP: (min_p) => ({ options: { min_p } }),
    seed: (seed) => ({ options: { seed } }),
    stopSequences: (texts) => ({ options: { stop: [...texts] } }),
    presencePenalty: (presence_penalty) => ({ options: { presence_penalty } }),
    frequencyPenalty: (frequency_penalty) => ({ options: { frequency_penalty } }),
    logprobs: (top_logprobs) => ({
      logprobs: true,
      ...(top_logprobs > 0 && { top_logprobs }),
    }),
  },
  output: {
    dialect: "claude",
    // What the form allows is all that the model can write: no call.
    supports: () => "alone",
    write: ({ schema }) => ({ format: schema }),
  },
  services: {
    ollama: {
      repetitionPenalty: (repeat_penalty) => ({ options: { repeat_penalty } }),
      keepAlive: (keep_alive) => ({ keep_alive }),
    },
  },
};
