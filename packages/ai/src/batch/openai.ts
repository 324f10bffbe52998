import { toRecord } from "../common/records.ts";
import type { CallRequest } from "../calls/call.ts";
import type { RequestContext } from "../providers/http/format.ts";
import { authHeaders } from "../providers/http/headers.ts";
import { joinUrl } from "../providers/http/url.ts";
import { createMissingError, readCount, readId, readTime } from "./fields.ts";
import type { Batch, BatchService, BatchState, RawResult, ResultList } from "./services.ts";

const ENDPOINTS: Readonly<Record<string, string>> = {
  "openai-responses": "/v1/responses",
  "openai-completions": "/v1/chat/completions",
};
const STATES: ReadonlyMap<unknown, BatchState> = new Map<unknown, BatchState>([
  ["failed", "failed"],
  ["completed", "ended"],
  ["expired", "ended"],
  ["cancelling", "canceling"],
  ["cancelled", "ended"],
]);
const CANCELED = "batch_cancelled";
const EXPIRED = "batch_expired";
const FIRST_STATUS = 200;
const LAST_STATUS = 599;
/** The only window that it has. */
const WINDOW = "24h";

/** OpenAI's Batch API: the requests are a file, and so are the results. */
export const OPENAI_BATCHES: BatchService = {
  maxRequests: 50_000,
  maxChars: 200 * 1000 * 1000,
  submit(requests, { api }) {
    const endpoint = ENDPOINTS[api] ?? "";
    const lines = requests.map(({ body, id }) =>
      JSON.stringify({ custom_id: id, method: "POST", url: endpoint, body }),
    );
    return {
      write: (context) => writeFile(context, `${lines.join("\n")}\n`),
      read({ id }) {
        const file = readId(id);
        return {
          isOnce: true,
          write: (context) => ({
            ...address(context, "/batches"),
            body: { input_file_id: file, endpoint, completion_window: WINDOW },
          }),
          read: (body) => readBatch(body, ""),
        };
      },
    };
  },
  writeCheck: (id, context) => ({ ...address(context, `/batches/${id}`), method: "GET" }),
  writeCancel: (id, context) => address(context, `/batches/${id}/cancel`),
  readBatch,
  listResults({ error_file_id: failed, output_file_id: done, request_counts }) {
    const counts = toRecord(request_counts);
    return [
      ...listFile(done, readCount(counts["completed"])),
      ...listFile(failed, readCount(counts["failed"])),
    ];
  },
  toEvents: (body) =>
    Array.isArray(toRecord(body)["choices"])
      ? [body, "[DONE]"]
      : [{ type: "response.completed", response: body }],
};

function address(context: RequestContext, path: string): CallRequest {
  return { url: joinUrl(context.baseUrl, path), headers: authHeaders(context, "bearer") };
}

/** A form with the file, written by hand: the driver sends texts. */
function writeFile(context: RequestContext, lines: string): CallRequest {
  const boundary = `gyre-${crypto.randomUUID()}`;
  const part = (head: string, body: string): string =>
    `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${body}\r\n`;
  const { headers, url } = address(context, "/files");
  return {
    url,
    headers: { ...headers, "content-type": `multipart/form-data; boundary=${boundary}` },
    body: `${part('name="purpose"', "batch")}${part(
      'name="file"; filename="batch.jsonl"\r\ncontent-type: application/jsonl',
      lines,
    )}--${boundary}--\r\n`,
  };
}

function readBatch(body: Record<string, unknown>, asked: string): Batch {
  const { completed, failed, total } = toRecord(body["request_counts"]);
  const state = STATES.get(body["status"]) ?? "running";
  const problems = toRecord(body["errors"])["data"];
  const [first] = Array.isArray(problems) ? problems.map(toRecord) : [];
  const line = readCount(first?.["line"]);
  return {
    id: readId(body["id"], asked),
    state,
    counts: {
      ...named("total", readCount(total)),
      ...named("succeeded", readCount(completed)),
      ...named("failed", readCount(failed)),
    },
    ...readTime(body["expires_at"]),
    ...(first && {
      problem: `${String(first["message"])}${line === undefined ? "" : ` (request ${line})`}`,
    }),
  };
}

function named<Name extends string>(
  name: Name,
  count: number | undefined,
): Partial<Record<Name, number>> {
  return count === undefined ? {} : ({ [name]: count } as Record<Name, number>);
}

function listFile(file: unknown, expected?: number): ResultList[] {
  if (typeof file !== "string") {
    if (!expected) return [];
    throw createMissingError(expected, "and names no file with them.");
  }
  return [
    {
      write: (context) => ({ ...address(context, `/files/${file}/content`), method: "GET" }),
      read: readResult,
      ...(expected !== undefined && { expected }),
    },
  ];
}

function readResult({
  custom_id: id,
  error,
  response,
}: Record<string, unknown>): RawResult | undefined {
  if (typeof id !== "string") return undefined;
  const { code } = toRecord(error);
  if (code === EXPIRED) return { id, type: "expired" };
  if (code === CANCELED) return { id, type: "canceled" };
  const { body, request_id: requestId, status_code: status } = toRecord(response);
  if (error) return { id, type: "error", error: { error } };
  if (typeof status !== "number" || status < FIRST_STATUS || status > LAST_STATUS) return undefined;
  return {
    id,
    type: "response",
    body,
    status,
    ...(typeof requestId === "string" && { requestId }),
  };
}
