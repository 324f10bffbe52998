import { errorMessage, redact } from "@gyre/ai";
import { sanitize } from "@gyre/ai/text";
import { McpError } from "../contract/error.ts";

export const MAX_ERROR_CHARS = 1_000;
export const STATUS = {
  badRequest: 400,
  unauthorized: 401,
  forbidden: 403,
  notFound: 404,
} as const;

/** How the library begins what it says of a version; the server's own words follow. */
const UNKNOWN_VERSION = "Server's protocol version";

/** What is wrong with the way to a server, as the end of a sentence. */
export async function connectProblem(error: unknown): Promise<string> {
  const sdk = await import("@modelcontextprotocol/client");
  // In our words: those of a server may be meant for a model.
  if (error instanceof sdk.ProtocolError) return `it answered with the error ${error.code}`;
  const status = await readStatus(error);
  if (status !== undefined) {
    const wantsKey = status === STATUS.unauthorized || status === STATUS.forbidden;
    return `it answered ${status}${wantsKey ? ': it wants a key, which can be given in "headers"' : ""}`;
  }
  const { RequestTimeout, ConnectionClosed, SendFailed, ListPaginationExceeded } = sdk.SdkErrorCode;
  const plain: readonly string[] = [
    RequestTimeout,
    ConnectionClosed,
    SendFailed,
    ListPaginationExceeded,
  ];
  if (error instanceof sdk.SdkError && !plain.includes(error.code)) {
    return "its answer is not as the protocol has it";
  }
  const message = errorMessage(error);
  if (message.startsWith(UNKNOWN_VERSION)) {
    return "it speaks a version of the protocol that is not known";
  }
  return plainMessage(error).replace(/\.$/, "");
}

/** The status of HTTP that an error, or what caused it, is about. */
export async function readStatus(error: unknown): Promise<number | undefined> {
  const { SdkHttpError: HttpError } = await import("@modelcontextprotocol/client");
  for (const one of listCauses(error)) if (one instanceof HttpError) return one.status;
  return undefined;
}

/** The error of ours that is the cause of one of the library's. */
export function findMcpError(error: unknown): McpError | undefined {
  return listCauses(error).find((one) => one instanceof McpError);
}

const MAX_CAUSES = 10;

function listCauses(error: unknown): unknown[] {
  const causes: unknown[] = [];
  for (let one = error; one !== undefined && causes.length < MAX_CAUSES;) {
    causes.push(one);
    one = one instanceof Error ? one.cause : undefined;
  }
  return causes;
}

export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}

/** With its cause: only that of a failed `fetch` says what is wrong. */
function plainMessage(error: unknown): string {
  const failed = listCauses(error).find(
    (one) => one instanceof Error && one.message === "fetch failed" && one.cause instanceof Error,
  );
  const cause = failed instanceof Error ? failed.cause : undefined;
  const text =
    cause instanceof Error
      ? cause.message || ("code" in cause ? String(cause.code) : "fetch failed")
      : errorMessage(error);
  return sanitize(redact(text), { keepNewlines: false }).slice(0, MAX_ERROR_CHARS);
}
