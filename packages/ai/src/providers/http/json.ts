import { errorMessage } from "../../common/errors.ts";
import { isRecord } from "../../common/records.ts";
import { toWellFormed } from "../../messages/transform-messages.ts";
import { ProviderError } from "../errors/provider-error.ts";

const SHOWN_CHARS = 80;

/** Parses a payload that has to be a JSON object, or an array. Throws a `ProviderError` otherwise. */
export function parseObject(data: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    // Reported below, with everything else that is not an object.
  }
  if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  throw new ProviderError(
    `The response has an event that is not a JSON object: ${data.slice(0, SHOWN_CHARS)}. Try again.`,
    { kind: "incomplete" },
  );
}

/** Parses a text that may be JSON; returns `otherwise` if it is not. */
export function parseJsonOr(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}

/** Parses a signature that a reader wrote as JSON. Throws a `ProviderError` on any other. */
export function parseSignature(signature: string, what: string): unknown {
  try {
    return JSON.parse(signature);
  } catch {
    throw new ProviderError(
      `The transcript has ${what} with a signature that is not JSON, so that it is not from this format. Take the signature out.`,
      { kind: "bad_request", retryable: false },
    );
  }
}

/** JSON without lone halves of surrogate pairs, which most services reject. */
export function writeJson(payload: unknown, service: string): string {
  let text: string | undefined;
  let why = "it is no data.";
  try {
    text = JSON.stringify(payload);
  } catch (error) {
    why = errorMessage(error);
  }
  if (text === undefined) {
    throw new ProviderError(`The request for ${service} cannot be written as JSON: ${why}`, {
      kind: "bad_request",
      retryable: false,
    });
  }
  // `JSON.stringify` escapes only lone halves like this.
  if (!/\\ud[89a-f]/.test(text)) return text;
  return JSON.stringify(payload, (_, value: unknown) => {
    if (typeof value === "string") return toWellFormed(value);
    if (!isRecord(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [toWellFormed(key), item]),
    );
  });
}
