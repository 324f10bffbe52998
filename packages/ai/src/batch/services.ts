import type { CallRequest } from "../calls/call.ts";
import type { Model } from "../messages/messages.ts";
import type { RequestContext } from "../providers/http/format.ts";
import { findService } from "../providers/services/presets.ts";
import { ANTHROPIC_BATCHES } from "./anthropic.ts";
import { GOOGLE_BATCHES } from "./google.ts";
import { OPENAI_BATCHES } from "./openai.ts";

/** How far a batch has come. `failed`: the service did not accept its requests, and has no results. */
export type BatchState = "running" | "canceling" | "ended" | "failed";

/** A batch, as its service knows it. */
export interface Batch {
  /** What `checkBatch`, `collectBatch` and `cancelBatch` know it by, in any process. */
  id: string;
  state: BatchState;
  /** How many requests it has, and what became of them, as far as the service says. */
  counts: BatchCounts;
  /** Milliseconds since 1970: what is not handled then is not handled at all. */
  expiresAt?: number;
  /** Why it failed. */
  problem?: string;
}

/** Requests of a batch by what became of them. */
export interface BatchCounts {
  total?: number;
  running?: number;
  succeeded?: number;
  failed?: number;
  canceled?: number;
  expired?: number;
}

/** A request as its API format writes it, without what is only for streams. */
export interface WrittenRequest {
  id: string;
  body: Record<string, unknown>;
  headers: Readonly<Record<string, string>>;
}

/** What became of one request, as the service reports it. */
export type RawResult =
  | { id: string; type: "response"; body: unknown; status?: number; requestId?: string }
  | { id: string; type: "error"; error: unknown }
  | { id: string; type: "canceled" }
  | { id: string; type: "expired" };

/** A list of results: an address that has one in each line, or the results themselves. */
export type ResultList =
  | {
      write(request: RequestContext): CallRequest;
      read(line: Record<string, unknown>): RawResult | undefined;
      /** Fewer lines than this are not all of them. */
      expected?: number;
    }
  | { results: RawResult[] };

/** One step of submitting: a request, and the next step or the batch. */
export interface SubmitStep {
  write(request: RequestContext): CallRequest;
  read(body: Record<string, unknown>): SubmitStep | Batch;
  isOnce?: boolean;
}

/** How one service takes batches. */
export interface BatchService {
  maxRequests: number;
  /** Of the requests together, in characters. */
  maxChars: number;
  /** What an id may be, for services that are particular about it. */
  ids?: { pattern: RegExp; rule: string };
  submit(requests: readonly WrittenRequest[], model: Model): SubmitStep;
  writeCheck(id: string, request: RequestContext): CallRequest;
  writeCancel(id: string, request: RequestContext): CallRequest;
  readBatch(body: Record<string, unknown>, id: string): Batch;
  /** The results of a batch that has ended; `body` is what the service says of it. */
  listResults(body: Record<string, unknown>, id: string): ResultList[];
  /** The events that a stream of this whole response would have had. */
  toEvents(body: unknown): unknown[];
}

const BY_API: Readonly<Record<string, BatchService>> = {
  "anthropic-messages": ANTHROPIC_BATCHES,
  "openai-responses": OPENAI_BATCHES,
  "openai-completions": OPENAI_BATCHES,
  "google-generative-ai": GOOGLE_BATCHES,
};
const WITH_BATCHES: ReadonlySet<string> = new Set(["anthropic", "openai", "google"]);

/** The service that takes batches for a model, or nothing where there is no such. */
export function findBatchService({ api, provider }: Model): BatchService | undefined {
  // A server of one's own may be a gateway to one that has them.
  if (!WITH_BATCHES.has(provider) && findService(provider)) return undefined;
  return Object.hasOwn(BY_API, api) ? BY_API[api] : undefined;
}
