import { isRetryable } from "../../messages/failure.ts";
import type { Failure, FailureKind } from "../../messages/messages.ts";
import * as patterns from "./patterns.ts";
import type { ErrorReport } from "./report.ts";
import { parseDuration } from "./retry-after.ts";
import { MAX_TEXT } from "./text.ts";

/** What kind of error a report is of. */
export interface Verdict {
  kind: FailureKind;
  retryable?: boolean;
  /** Set where it changes what the user can do. */
  because?: "model_fault" | "too_large" | "daily" | "not_found";
}

/** Classifies an error by its codes, its messages and its status. Adds waits that a message names. */
export function classify(
  report: ErrorReport,
  status: number | undefined,
  service: string,
): Verdict {
  const codes = report.codes.map(normalizeCode);
  // Addresses are full of words ("billing", "rate-limits") that mean nothing here.
  const text = [...report.messages, ...report.hints]
    .join("\n")
    .slice(0, MAX_TEXT)
    .replaceAll(patterns.ADDRESS, " ");
  for (const [, wait = ""] of text.matchAll(patterns.WAIT_IN_TEXT)) {
    const ms = parseDuration(wait) ?? parseDuration(`${wait}s`);
    if (ms !== undefined) report.waits.push(ms);
  }
  if (report.modelFault || codes.some((code) => patterns.MODEL_FAULT_CODES.has(code)))
    return { kind: "bad_request", retryable: true, because: "model_fault" };

  const kind =
    kindFromSize(report, text, status, service) ??
    kindFromCode(codes, text) ??
    kindFromText(text, status) ??
    (status === undefined ? undefined : kindFromStatus(status)) ??
    findKind(codes, patterns.VAGUE_CODES) ??
    "unknown";

  // Some services report a fault of the model in a message alone.
  if ((kind === "bad_request" || kind === "unknown") && patterns.MODEL_FAULT.test(text))
    return { kind: "bad_request", retryable: true, because: "model_fault" };
  if (kind === "rate_limit" || kind === "quota") return classifyLimit(kind, text, codes, report);
  if (kind === "bad_request") {
    if (
      status === patterns.NOT_FOUND ||
      patterns.MISSING.test(text) ||
      codes.some((code) => code.endsWith("notfound"))
    )
      return { kind, because: "not_found" };
  }
  // The service had accepted the request: what fails then without a reason is its own fault.
  if (kind === "unknown" && status === undefined) return { kind, retryable: true };
  return { kind };
}

/** Some services give an account without credit the code of a rate limit. */
function kindFromCode(codes: readonly string[], text: string): FailureKind | undefined {
  const kind = findKind(codes, patterns.CLEAR_CODES);
  return kind === "rate_limit" && patterns.QUOTA.test(text) ? "quota" : kind;
}

/** Services that answer a conversation that is too long with 400 and nothing else. */
const SILENT_OVERFLOW: ReadonlySet<string> = new Set(["Cerebras"]);
const BAD_REQUEST_STATUS = 400;

/** A status that alone says that the request was too large, whatever limit it met. */
function kindFromSize(
  { codes }: ErrorReport,
  text: string,
  status: number | undefined,
  service: string,
): FailureKind | undefined {
  if (status === patterns.TOO_LARGE_STATUS) return "overflow";
  const isSilent = status === BAD_REQUEST_STATUS && text.trim() === "" && codes.length === 0;
  return isSilent && SILENT_OVERFLOW.has(service) ? "overflow" : undefined;
}

function kindFromText(text: string, status: number | undefined): FailureKind | undefined {
  if (patterns.REFUSED.test(text)) return "refused";
  if (patterns.QUOTA.test(text)) return "quota";
  if (patterns.RATE.test(text)) return "rate_limit";
  if (status !== patterns.TOO_MANY && isOverflow(text)) return "overflow";
  if (patterns.AUTH.test(text)) return "auth";
  if (patterns.OVERLOADED.test(text)) return "overloaded";
  // An error of the client stays one, even if its message mentions a timeout.
  if (
    (status === undefined || status >= patterns.FIRST_SERVER_ERROR) &&
    patterns.TIMED_OUT.test(text)
  )
    return "timeout";
  return undefined;
}

function isOverflow(text: string): boolean {
  if (patterns.OUTPUT_SIDE.test(text)) {
    if (!patterns.INPUT_SIDE.test(text)) return false;
    const [, asked, context] = patterns.OUTPUT_OVER_CONTEXT.exec(text) ?? [];
    if (asked !== undefined && Number(asked) >= Number(context)) return false;
  }
  if (patterns.CONTEXT.test(text) && patterns.TOO_MUCH.test(text)) return true;
  return patterns.OVERFLOW.some((pattern) => pattern.test(text));
}

function kindFromStatus(status: number): FailureKind | undefined {
  if (status < patterns.FIRST_ERROR) return undefined;
  return (
    patterns.STATUS_KIND[status] ??
    (status >= patterns.FIRST_SERVER_ERROR ? "unknown" : "bad_request")
  );
}

/** Whether waiting helps against a limit, and if not, why. */
function classifyLimit(
  kind: "rate_limit" | "quota",
  text: string,
  codes: readonly string[],
  report: ErrorReport,
): Verdict {
  const [, limit, requested] = patterns.LIMIT_AND_REQUESTED.exec(text) ?? [];
  // A quota of nothing, whatever wait the service names.
  if (patterns.NO_QUOTA.test(text)) return { kind: "quota", retryable: false };
  if (kind === "rate_limit") {
    // More in one request than a whole period allows: no wait is long enough.
    const over = requested !== undefined && Number(requested) > Number(limit);
    if (over || patterns.TOO_LARGE.test(text))
      return { kind, retryable: false, because: "too_large" };
  }
  const daily = patterns.DAILY.test(text) || report.codes.some((code) => patterns.DAILY.test(code));
  const hasWait = report.waits.length > 0;
  if (kind === "rate_limit")
    return daily ? { kind, retryable: hasWait, because: "daily" } : { kind, retryable: true };
  // A quota is final, unless the service names the time of the next attempt.
  const again = hasWait && !daily && !codes.includes("insufficientquota");
  return { kind, retryable: again };
}

export function createFailure(
  { kind, retryable }: Verdict,
  status: number | undefined,
  retryAfterMs: number | undefined,
): Failure {
  const failure: Failure = { kind, retryable: retryable ?? isRetryable({ kind, status }) };
  if (retryAfterMs !== undefined) failure.retryAfterMs = retryAfterMs;
  if (status !== undefined) failure.status = status;
  return failure;
}

function findKind(
  codes: readonly string[],
  kinds: ReadonlyMap<string, FailureKind>,
): FailureKind | undefined {
  for (const code of codes) {
    const kind = kinds.get(code);
    if (kind !== undefined) return kind;
  }
  return undefined;
}

/** "com.example#ThrottlingException:http://…" and "rate_limit_error" are "throttling" and "ratelimit". */
function normalizeCode(code: string): string {
  return code
    .replace(/^[^#:]*#/, "")
    .replace(/:.*$/s, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .replace(/(?:error|exception)$/, "");
}
