import { toRecord } from "../common/records.ts";
import type { CallRequest } from "../calls/call.ts";
import type { RequestContext } from "../providers/http/format.ts";
import { authHeaders, mergeHeaders } from "../providers/http/headers.ts";
import { joinUrl } from "../providers/http/url.ts";
import { readCount, readId, readTime } from "./fields.ts";
import type { Batch, BatchService, RawResult } from "./services.ts";

const VERSION = "2023-06-01";
const BETA = "anthropic-beta";

/** Anthropic's Message Batches API. */
export const ANTHROPIC_BATCHES: BatchService = {
  maxRequests: 100_000,
  maxChars: 256 * 1024 * 1024,
  ids: {
    pattern: /^[a-zA-Z0-9_-]{1,64}$/,
    rule: "at most 64 letters, digits, _ and -",
  },
  submit: (requests) => ({
    isOnce: true,
    write(context) {
      // The features that any of them needs are named once, for all.
      const features = mergeHeaders(
        ...requests.map(({ headers }) => ({ [BETA]: headers[BETA] ?? "" })),
      );
      const body = {
        requests: requests.map(({ body: params, id }) => ({ custom_id: id, params })),
      };
      const { [BETA]: beta = "" } = features;
      return { ...address(context, ""), body, ...withBeta(context, beta) };
    },
    read: (body) => readBatch(body, ""),
  }),
  writeCheck: (id, context) => ({ ...address(context, `/${id}`), method: "GET" }),
  writeCancel: (id, context) => address(context, `/${id}/cancel`),
  readBatch,
  listResults(body, id) {
    const { total } = readBatch(body, id).counts;
    return [
      {
        // Not at the address that the service names: the key would go there.
        write: (context) => ({ ...address(context, `/${id}/results`), method: "GET" }),
        read: readResult,
        ...(total !== undefined && { expected: total }),
      },
    ];
  },
  toEvents: (message) => [{ type: "message_start", message }, { type: "message_stop" }],
};

function address(context: RequestContext, path: string): CallRequest {
  const { baseUrl } = context;
  return {
    url: joinUrl(baseUrl.replace(/\/v1$/, ""), `/v1/messages/batches${path}`),
    headers: headersFor(context),
  };
}

function headersFor(context: RequestContext): Record<string, string> {
  return { ...authHeaders(context, "x-api-key"), "anthropic-version": VERSION };
}

function withBeta(context: RequestContext, beta: string): Pick<CallRequest, "headers"> {
  return { headers: { ...headersFor(context), ...(beta !== "" && { [BETA]: beta }) } };
}

function readBatch(body: Record<string, unknown>, asked: string): Batch {
  const counts = toRecord(body["request_counts"]);
  const all = ["processing", "succeeded", "errored", "canceled", "expired"];
  const state = body["processing_status"];
  return {
    id: readId(body["id"], asked),
    state: state === "ended" || state === "canceling" ? state : "running",
    counts: {
      total: all.reduce((sum, name) => sum + (readCount(counts[name]) ?? 0), 0),
      running: readCount(counts["processing"]) ?? 0,
      succeeded: readCount(counts["succeeded"]) ?? 0,
      failed: readCount(counts["errored"]) ?? 0,
      canceled: readCount(counts["canceled"]) ?? 0,
      expired: readCount(counts["expired"]) ?? 0,
    },
    ...readTime(body["expires_at"]),
  };
}

function readResult({ custom_id: id, result }: Record<string, unknown>): RawResult | undefined {
  const { error, message, type } = toRecord(result);
  if (typeof id !== "string") return undefined;
  if (type === "succeeded") return { id, type: "response", body: message };
  if (type === "canceled" || type === "expired") return { id, type };
  return type === "errored" ? { id, type: "error", error } : undefined;
}
