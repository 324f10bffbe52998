import type { Accumulator } from "../../stream/accumulate.ts";
import type { DoneReason } from "../../stream/events.ts";
import type {
  AssistantContent,
  ImageContent,
  ServiceToolContent,
  Usage,
} from "../../messages/messages.ts";
import { addGrounding, countSearches } from "./grounding.ts";
import { isNewer } from "./models.ts";
import { ArgumentsWriter } from "./partial-args.ts";
import type { Part, RawCall } from "./parts.ts";
import { ProviderError, ServiceFault } from "../errors/provider-error.ts";
import { addLogprobs } from "../options/logprobs.ts";
import type { RequestContext, ResponseReader } from "../http/format.ts";
import { parseObject } from "../http/json.ts";

// What comes back. Every field is what the documentation says, and checked where it matters.

interface Chunk {
  candidates?: Candidate[];
  promptFeedback?: { blockReason?: string; blockReasonMessage?: string };
  usageMetadata?: Record<string, unknown>;
  modelVersion?: string;
  responseId?: string;
  error?: unknown;
}

interface Candidate {
  index?: number;
  content?: { parts?: RawPart[] };
  finishReason?: string;
  finishMessage?: string;
  safetyRatings?: unknown;
  logprobsResult?: unknown;
  citationMetadata?: unknown;
  groundingMetadata?: unknown;
  urlContextMetadata?: unknown;
}

interface RawPart extends Omit<Part, "functionResponse"> {
  executableCode?: { id?: string };
  codeExecutionResult?: { id?: string };
  toolCall?: { id?: string; toolType?: string; args?: unknown };
  toolResponse?: { id?: string; toolType?: string; response?: unknown };
}

/** A call whose arguments come in pieces. */
interface OpenCall {
  contentIndex: number;
  id: string | undefined;
  writer: ArgumentsWriter;
  /** The service said that more of it follows. */
  goesOn: boolean;
}

/** Fields of a part beside its content. */
const ABOUT_PARTS = new Set(["thought", "thoughtSignature", "partMetadata", "mediaResolution"]);
const REFUSALS =
  /^((IMAGE_)?(SAFETY|RECITATION|PROHIBITED_CONTENT)|BLOCKLIST|SPII|LANGUAGE|MODEL_ARMOR)$/;
/** The model wrote a call that cannot be parsed, or that is not allowed. */
const FAULTS = /^(MALFORMED_\w+|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS)$/;
const NOT_FINISHED = "FINISH_REASON_UNSPECIFIED";

export class Reader implements ResponseReader {
  readonly #out: Accumulator;
  readonly #request: RequestContext;
  #text: { kind: "text" | "thinking"; contentIndex: number } | undefined;
  #call: OpenCall | undefined;
  #calls = 0;
  #codes = 0;
  #stopReason: string | undefined;
  #blocked: Chunk["promptFeedback"];

  constructor(out: Accumulator, request: RequestContext) {
    this.#out = out;
    this.#request = request;
  }

  /** Every chunk may have the reason to finish, and usage may come after it. */
  get finished(): boolean {
    return this.#stopReason !== undefined || this.#blocked !== undefined;
  }

  read(data: string): void {
    // Gateways that speak several formats end all of them so.
    if (data === "[DONE]") return;
    const chunk = parseObject(data) as Chunk;
    if (chunk.error) throw new ServiceFault(chunk);
    const { candidates = [], modelVersion, promptFeedback, responseId, usageMetadata } = chunk;
    const { message } = this.#out;
    if (responseId) message.responseId = responseId;
    if (modelVersion) message.servedModel = modelVersion;
    this.#out.start();
    if (promptFeedback) {
      this.#addDetail("promptFeedback", promptFeedback);
      if (promptFeedback.blockReason) this.#blocked = promptFeedback;
    }
    if (usageMetadata) this.#usage(usageMetadata);
    if (candidates.length > 1) this.#addDetail("choices", candidates.length);
    const candidate = candidates.find(({ index = 0 }) => index === 0);
    if (candidate) this.#candidate(candidate);
  }

  /** Whole if the service said why it stopped. */
  end(): void {
    if (!this.finished) return;
    // First, so that the end of the text shows it.
    addGrounding(this.#out.message);
    this.#out.usage(countSearches(this.#out.message, isNewer(this.#request.model)));
    this.#endText();
    this.#endCall(this.#stopReason === "MAX_TOKENS");
    const error = this.#createError();
    if (error) throw error;
    this.#out.done(doneReason(this.#stopReason, this.#out.message.content));
  }

  #candidate(candidate: Candidate): void {
    const { content, finishMessage, finishReason, logprobsResult, safetyRatings } = candidate;
    for (const part of content?.parts ?? []) this.#part(part);
    addLogprobs(this.#out.report, this.#request.options, logprobsResult && [logprobsResult]);
    this.#addDetail("finishMessage", finishMessage);
    this.#addDetail("safetyRatings", safetyRatings);
    this.#collect("citationMetadata", candidate.citationMetadata);
    this.#collect("groundingMetadata", candidate.groundingMetadata);
    this.#collect("urlContextMetadata", candidate.urlContextMetadata);
    if (finishReason && finishReason !== NOT_FINISHED) {
      this.#stopReason = finishReason;
      this.#out.report.stopReason = finishReason;
    }
  }

  #part(part: RawPart): void {
    const { functionCall, inlineData, text, thought = false } = part;
    // An empty signature counts as absent.
    const signature = part.thoughtSignature || undefined;
    if (functionCall) return this.#functionCall(functionCall, signature);
    const kind = Object.keys(part).find((key) => !ABOUT_PARTS.has(key));
    if (text !== undefined || kind === undefined) return this.#say(text ?? "", thought, signature);
    this.#endText();
    this.#endCall();
    if (inlineData?.mimeType?.startsWith("image/") && inlineData.data && !thought) {
      const { data, mimeType } = inlineData;
      const image: ImageContent = { type: "image", data, mimeType };
      return this.#out.image(signature === undefined ? image : { ...image, ...{ signature } });
    }
    const tool = this.#serviceTool(part);
    if (tool) this.#out.serviceTool(tool);
    else this.#out.unknown(`part ${kind}`);
  }

  /** Neighboring texts are one block. A signed text is a block by itself, since it goes back so. */
  #say(text: string, thought: boolean, signature: string | undefined): void {
    if (text === "" && signature === undefined) return;
    this.#endCall();
    const kind = thought ? "thinking" : "text";
    if (this.#text?.kind !== kind || signature !== undefined) this.#endText();
    const start = (): number => (thought ? this.#out.thinkingStart() : this.#out.textStart());
    const { contentIndex } = (this.#text ??= { kind, contentIndex: start() });
    if (thought) this.#out.thinking(contentIndex, text);
    else this.#out.text(contentIndex, text);
    if (signature !== undefined) this.#endText(signature);
  }

  #endText(signature?: string): void {
    const open = this.#text;
    this.#text = undefined;
    if (open?.kind === "text") this.#out.textEnd(open.contentIndex, signature);
    else if (open) {
      this.#out.thinkingEnd(open.contentIndex, signature === undefined ? {} : { signature });
    }
  }

  #functionCall(raw: RawCall, signature: string | undefined): void {
    const { args, id, partialArgs = [], willContinue = false } = raw;
    const call = this.#getCall(raw);
    if (!call) return this.#out.unknown("end of no call");
    if (signature !== undefined) this.#out.identify(call.contentIndex, { signature });
    if (args && (!willContinue || Object.keys(args).length > 0)) {
      if (call.writer.began) this.#out.unknown("arguments that came before");
      else this.#out.toolCall(call.contentIndex, JSON.stringify(args));
    }
    for (const arg of partialArgs) this.#out.toolCall(call.contentIndex, call.writer.add(arg));
    call.id ??= id;
    call.goesOn = willContinue || partialArgs.some((arg) => arg.willContinue === true);
    // After pieces, more of them may come, whatever was said.
    if (!call.goesOn && partialArgs.length === 0) this.#endCall();
  }

  /** The call that something belongs to: a name begins a new one, unless the id is the same. */
  #getCall({ args, id, name, partialArgs }: RawCall): OpenCall | undefined {
    const open = this.#call;
    if (open && (!name || (id !== undefined && id === open.id))) return open;
    if (!name && !args && !partialArgs) return undefined;
    this.#endText();
    this.#endCall();
    this.#calls++;
    const given =
      id || ["call", this.#out.message.responseId, this.#calls].filter(Boolean).join("_");
    const contentIndex = this.#out.toolCallStart(given, name ?? "");
    return (this.#call = { contentIndex, id, writer: new ArgumentsWriter(), goesOn: false });
  }

  /** Arguments that were cut off are left open, so that they do not pass for whole. */
  #endCall(isCut = false): void {
    const call = this.#call;
    if (!call) return;
    this.#call = undefined;
    if (!isCut || !call.goesOn) this.#out.toolCall(call.contentIndex, call.writer.close());
    this.#out.toolCallEnd(call.contentIndex);
  }

  #serviceTool(raw: RawPart): ServiceToolContent | undefined {
    const { codeExecutionResult, executableCode, toolCall, toolResponse } = raw;
    const type = "serviceTool";
    if (toolCall) {
      const { args: input, id = "", toolType: name = "tool" } = toolCall;
      return { type, id, name, input, raw };
    }
    if (toolResponse) {
      const { id = "", response: output, toolType: name = "tool" } = toolResponse;
      return { type, id, name, output, raw };
    }
    const code = executableCode ?? codeExecutionResult;
    if (!code) return undefined;
    if (executableCode) this.#codes++;
    const id = code.id ?? `code_${this.#codes}`;
    const what = executableCode ? { input: executableCode } : { output: codeExecutionResult };
    return { type, id, name: "code_execution", ...what, raw };
  }

  #usage(raw: Record<string, unknown>): void {
    // Each one is of the whole response so far.
    this.#out.report.usage = raw;
    this.#out.usage(toUsage(raw));
  }

  #addDetail(name: string, value: unknown): void {
    if (value !== undefined) (this.#out.report.details ??= {})[name] = value;
  }

  #collect(name: string, value: unknown): void {
    if (value === undefined) return;
    const known = this.#out.report.details?.[name];
    if (Array.isArray(known)) known.push(value);
    else this.#addDetail(name, [value]);
  }

  #createError(): ProviderError | undefined {
    const { name } = this.#request.service;
    const why = this.#blocked?.blockReason ?? this.#stopReason ?? "";
    const words = this.#blocked?.blockReasonMessage ?? this.#out.report.details?.["finishMessage"];
    const reason = typeof words === "string" && words !== "" ? `${why}: ${words}` : why;
    if (this.#blocked || REFUSALS.test(why)) {
      const what = this.#blocked ? "refused the request" : "refused to go on";
      return new ProviderError(
        `${name} ${what} (${reason}). Rephrase the request, or leave out what it objects to.`,
        { kind: "refused", retryable: false },
      );
    }
    if (!FAULTS.test(why)) return undefined;
    return new ProviderError(
      `The model of ${name} made a call that cannot be used (${reason}). Try again.`,
      {
        kind: "incomplete",
        retryable: true,
      },
    );
  }
}

function doneReason(reason: string | undefined, content: readonly AssistantContent[]): DoneReason {
  if (reason === "MAX_TOKENS") return "length";
  // The service says STOP for calls as well.
  return content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop";
}

function toUsage(raw: Record<string, unknown>): Usage {
  const usage: Usage = {};
  const count = (name: string): number | undefined => {
    const value = raw[name];
    return typeof value === "number" ? value : undefined;
  };
  const prompt = count("promptTokenCount");
  const cached = count("cachedContentTokenCount");
  const written = count("candidatesTokenCount");
  const thought = count("thoughtsTokenCount");
  const total = count("totalTokenCount");
  if (prompt !== undefined) {
    // What the service's own tools gave to read is not in the count of the prompt.
    usage.input = Math.max(0, prompt - (cached ?? 0)) + (count("toolUsePromptTokenCount") ?? 0);
  }
  if (written !== undefined || thought !== undefined)
    usage.output = (written ?? 0) + (thought ?? 0);
  if (cached !== undefined) usage.cacheRead = cached;
  if (thought !== undefined) usage.reasoning = thought;
  if (total !== undefined) usage.totalTokens = total;
  return usage;
}
