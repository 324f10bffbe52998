import { toRecord } from "../common/records.ts";
import type { CallRequest } from "../calls/call.ts";
import { keyHeaders } from "../providers/google-generative-ai/request.ts";
import type { RequestContext } from "../providers/http/format.ts";
import { joinUrl } from "../providers/http/url.ts";
import { createMissingError, readCount, readId } from "./fields.ts";
import type { Batch, BatchService, BatchState, RawResult } from "./services.ts";

const STATES: ReadonlyMap<unknown, BatchState> = new Map<unknown, BatchState>([
  ["SUCCEEDED", "ended"],
  ["CANCELLED", "ended"],
  ["EXPIRED", "ended"],
  ["FAILED", "failed"],
]);
/** Of an item that was not handled any more; the other statuses are errors of the item. */
const CANCELED_CODE = 1;
const EXPIRED_CODE = 4;
/** The codes of other items are those of gRPC: the status that a single call would have had. */
const HTTP_STATUS: Readonly<Record<number, readonly [code: number, status: string]>> = {
  3: [400, "INVALID_ARGUMENT"],
  5: [404, "NOT_FOUND"],
  7: [403, "PERMISSION_DENIED"],
  8: [429, "RESOURCE_EXHAUSTED"],
  9: [400, "FAILED_PRECONDITION"],
  13: [500, "INTERNAL"],
  14: [503, "UNAVAILABLE"],
  16: [401, "UNAUTHENTICATED"],
};
/** It becomes a part of an address. */
const FILE_NAME = /^files\/[\w-]+$/;

/** Batches of the Gemini API, with the requests and the results in the batch itself. */
export const GOOGLE_BATCHES: BatchService = {
  // Its limit is the size alone; this is more than fits.
  maxRequests: 100_000,
  maxChars: 20 * 1000 * 1000,
  submit: (requests, { id: model }) => ({
    isOnce: true,
    write: (context) => ({
      ...address(context, `models/${model.replace(/^models\//, "")}:batchGenerateContent`),
      body: {
        batch: {
          displayName: `gyre-${crypto.randomUUID()}`,
          inputConfig: {
            requests: {
              requests: requests.map(({ body, id: key }) => ({ request: body, metadata: { key } })),
            },
          },
        },
      },
    }),
    read: (body) => readBatch(body, ""),
  }),
  writeCheck: (id, context) => ({ ...address(context, id), method: "GET" }),
  writeCancel: (id, context) => ({ ...address(context, `${id}:cancel`), body: {} }),
  readBatch,
  listResults(body, id) {
    const { output, responses } = findOutput(body);
    const { total: expected = 0 } = readBatch(body, id).counts;
    if (typeof output === "string") {
      if (!FILE_NAME.test(output)) throw createMissingError(expected, "in a file without a name.");
      return [{ write: (context) => writeDownload(output, context), read: readLine, expected }];
    }
    // What was canceled or has expired may have fewer.
    const isWhole = String(toRecord(body["metadata"])["state"]).endsWith("SUCCEEDED");
    if (isWhole && responses.length < expected) {
      throw createMissingError(expected, `and has ${responses.length}.`);
    }
    return [{ results: responses.map(readResult) }];
  },
  toEvents: (body) => [body],
};

function address(context: RequestContext, path: string): CallRequest {
  return { url: joinUrl(context.baseUrl, path), headers: keyHeaders(context) };
}

/** It is an operation whose `metadata` is the batch; a canceled one is answered with nothing. */
function readBatch(body: Record<string, unknown>, asked: string): Batch {
  const metadata = toRecord(body["metadata"]);
  const stats = toRecord(metadata["batchStats"]);
  const state = String(metadata["state"]).replace(/^(BATCH|JOB)_STATE_/, "");
  const counts: Readonly<Record<keyof Batch["counts"] & string, unknown>> = {
    total: stats["requestCount"],
    running: stats["pendingRequestCount"],
    succeeded: stats["successfulRequestCount"],
    failed: stats["failedRequestCount"],
    canceled: undefined,
    expired: undefined,
  };
  const known = Object.entries(counts).flatMap(([name, value]) => {
    const count = readCount(value);
    return count === undefined ? [] : [[name, count] as const];
  });
  const { message } = toRecord(body["error"]);
  return {
    id: readId(
      [body["name"], metadata["name"]].find((name) => typeof name === "string"),
      asked,
    ),
    state: STATES.get(state) ?? (body["done"] === true ? "ended" : "running"),
    counts: Object.fromEntries(known),
    ...(typeof message === "string" && { problem: message }),
  };
}

/** The results themselves, or the name of a file that has them: the service decides by their size. */
function findOutput(body: Record<string, unknown>): { output?: unknown; responses: unknown[] } {
  const places = [toRecord(body["response"]), toRecord(toRecord(body["metadata"])["output"])];
  for (const place of places) {
    const list = toRecord(place["inlinedResponses"])["inlinedResponses"];
    if (Array.isArray(list)) return { responses: list };
    if (place["responsesFile"] !== undefined) {
      return { output: place["responsesFile"], responses: [] };
    }
  }
  return { responses: [] };
}

function writeDownload(file: string, context: RequestContext): CallRequest {
  const { href, origin } = new URL(context.baseUrl);
  const path = href.slice(origin.length);
  return {
    url: `${joinUrl(`${origin}/download${path}`, `${file}:download`)}?alt=media`,
    headers: keyHeaders(context),
    method: "GET",
  };
}

function readLine(line: Record<string, unknown>): RawResult | undefined {
  const { key = toRecord(line["metadata"])["key"] } = line;
  return typeof key === "string" ? readResult({ ...line, metadata: { key } }, 0) : undefined;
}

function readResult(item: unknown, at: number): RawResult {
  const { error, metadata, response } = toRecord(item);
  // A batch of another program may have requests without a name.
  const { key } = toRecord(metadata);
  const id = typeof key === "string" ? key : String(at);
  if (response !== undefined) return { id, type: "response", body: response };
  const { code } = toRecord(error);
  if (code === CANCELED_CODE) return { id, type: "canceled" };
  if (code === EXPIRED_CODE) return { id, type: "expired" };
  const [http, status] = (typeof code === "number" && HTTP_STATUS[code]) || [];
  const known = http === undefined ? {} : { code: http, status };
  return { id, type: "error", error: { error: { ...toRecord(error), ...known } } };
}
