import { isRecord } from "../common/records.ts";
import { errorMessage } from "../common/errors.ts";
import type { Failure, Model } from "../messages/messages.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import { explainErrorResponse } from "../providers/errors/response-error.ts";
import { explainTransportError } from "../providers/errors/transport-error.ts";
import { RefusedError } from "./reader.ts";

/** What went wrong, for people and for programs. */
export interface Explained {
  message: string;
  failure: Failure;
}

/**
 * Explains an error of the AI SDK: an `APICallError` by its status, headers and body, as our own
 * clients do; any other as one of the connection.
 */
export function explainError(error: unknown, model: Model, now: number, began: boolean): Explained {
  if (error instanceof RefusedError) {
    return { message: error.message, failure: { kind: "refused", retryable: false } };
  }
  if (error instanceof ProviderError) return error;
  const at = { service: model.provider, model: model.id };
  const status = isRecord(error) ? error["statusCode"] : undefined;
  const url = isRecord(error) && typeof error["url"] === "string" ? error["url"] : "";
  if (typeof status === "number") {
    const { responseBody: body, responseHeaders: headers } = error as Record<string, unknown>;
    const found = explainErrorResponse(
      {
        status,
        body: typeof body === "string" && body !== "" ? body : errorMessage(error),
        headers: { get: (name) => readHeader(headers, name) },
        url,
      },
      { ...at, now },
    );
    return { message: found.message, failure: found.failure };
  }
  if (isRecord(error) && !(error instanceof Error)) {
    // An error in the stream, in the words of the service.
    const body = JSON.stringify(error);
    const found = explainErrorResponse(
      { status: 0, body, headers: { get: () => null } },
      { ...at, now },
    );
    const { status: _, ...failure } = found.failure;
    return { message: found.message, failure };
  }
  const found = explainTransportError(error, { ...at, url, began });
  return { message: found.message, failure: found.failure };
}

function readHeader(headers: unknown, name: string): string | null {
  if (!isRecord(headers)) return null;
  const key = Object.keys(headers).find((each) => each.toLowerCase() === name.toLowerCase());
  const value = key === undefined ? undefined : headers[key];
  return typeof value === "string" ? value : null;
}
