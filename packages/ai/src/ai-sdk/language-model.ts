/**
 * What is used of a language model of the AI SDK, versions 3 and 4 of its specification, as
 * `@ai-sdk/provider` describes it. Structural, so that nothing of the AI SDK is installed.
 */
export interface AiSdkLanguageModel {
  readonly specificationVersion: "v3" | "v4";
  readonly provider: string;
  readonly modelId: string;
  // A method, so that models whose options are described more narrowly fit.
  doStream(options: never): PromiseLike<{ stream: ReadableStream<unknown> }>;
}

/** What a model is asked with; fields of version 4 that version 3 does not know are left out for it. */
export interface AiSdkCall {
  prompt: object[];
  tools?: { type: "function"; name: string; description: string; inputSchema: object }[];
  toolChoice?: { type: "auto" | "none" | "required" } | { type: "tool"; toolName: string };
  maxOutputTokens?: number;
  temperature?: number;
  topP?: number;
  topK?: number;
  seed?: number;
  stopSequences?: string[];
  presencePenalty?: number;
  frequencyPenalty?: number;
  responseFormat?: { type: "json"; schema: object; name?: string };
  abortSignal: AbortSignal;
  headers?: Record<string, string>;
  providerOptions?: object;
  reasoning?: string;
}
