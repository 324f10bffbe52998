import { isRetryable } from "../../messages/failure.ts";
import type { Failure } from "../../messages/messages.ts";
import { classify, createFailure, type Verdict } from "./classify.ts";
import { FIRST_ERROR, TOO_MANY } from "./patterns.ts";
import { ProviderError } from "./provider-error.ts";
import { addCode, createReport, type ErrorReport, readReport } from "./report.ts";
import {
  findLongest,
  type HeaderLookup,
  parseRateLimitReset,
  parseRetryAfter,
} from "./retry-after.ts";
import { formatSentence, formatTitle, isPage, parseHost, parseTitle, truncate } from "./text.ts";

const MAX_NAME = 200;

/** Which service and model a request goes to, and the time. `service` is its name for people. */
export interface RequestTarget {
  service: string;
  model: string;
  /** Milliseconds since 1970. */
  now: number;
}

/** Explains an error response by its status, headers and body. Never throws. */
export function explainErrorResponse(
  response: { status: number; headers: HeaderLookup; body: string; url?: string },
  at: RequestTarget,
): ProviderError {
  const { headers, body } = response;
  const report = createReport();
  const page = isPage(body);
  if (page) report.hints.push(parseTitle(body));
  else readReport(body, report, at.now, 0);
  addCode(headers.get("x-amzn-errortype") ?? "", report);

  const status = response.status >= FIRST_ERROR ? response.status : report.status;
  const verdict = classify(report, status, at.service);
  const message = page ? "" : formatSentence(formatMessages(report), at.model);
  // A response that is neither an error nor a stream: the next one will be the same.
  const whole = status === undefined && !page && message === "" && verdict.kind === "unknown";
  if (whole) verdict.retryable = false;
  if (page) {
    // A page comes from something in between, which does not check keys.
    if (verdict.kind === "auth") verdict.kind = "unknown";
    verdict.retryable = isRetryable({ kind: verdict.kind, status });
  }
  const wait =
    parseRetryAfter(headers, at.now) ??
    findLongest(report.waits) ??
    (status === TOO_MANY ? parseRateLimitReset(headers, at.now) : undefined);
  const shouldRetry = headers.get("x-should-retry");
  if (shouldRetry === "true" || shouldRetry === "false") verdict.retryable = shouldRetry === "true";

  const failure = createFailure(verdict, status ?? response.status, wait);
  const requestId = findRequestId(headers, report);
  if (requestId !== undefined) failure.requestId = requestId;

  const host = parseHost(response.url);
  const sender = formatSender(report, at);
  if (whole) {
    return new ProviderError(
      `${sender} answered ${response.status} with something other than a stream. Check that the server at its address can stream.`,
      failure,
    );
  }
  const what = page
    ? `${sender} answered ${response.status} with an HTML page instead of JSON${host ? `, from ${host}` : ""}${formatTitle(parseTitle(body))}.`
    : message === ""
      ? `${sender} answered ${response.status} without saying why.`
      : `${sender} answered ${response.status}: ${message}`;
  return new ProviderError(`${what} ${formatAdvice(failure, verdict, at, page)}`, failure);
}

/**
 * Explains an error inside a stream: an object in any of the shapes that services use, or a
 * text. `name` is the exception's name, where the framing has one (`throttlingException`).
 * Never throws.
 */
export function explainErrorEvent(
  payload: unknown,
  at: RequestTarget,
  name?: string,
): ProviderError {
  const report = createReport();
  if (name !== undefined) addCode(name, report);
  readReport(payload, report, at.now, 0);
  const verdict = classify(report, report.status, at.service);
  const failure = createFailure(verdict, report.status, findLongest(report.waits));
  if (report.requestId !== undefined) failure.requestId = report.requestId;
  const message = formatSentence(
    formatMessages(report) || (name ?? report.codes[0] ?? ""),
    at.model,
  );
  const sender = formatSender(report, at);
  const what =
    message === ""
      ? `${sender} ended its response with an error that has no message.`
      : `${sender} ended its response with an error: ${message}`;
  return new ProviderError(`${what} ${formatAdvice(failure, verdict, at, false)}`, failure);
}

const REQUEST_ID_HEADERS = ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id"];

function findRequestId(headers: HeaderLookup, report: ErrorReport): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const id = headers.get(name);
    if (id) return id;
  }
  // Names only the connection to a network in front of the service, as a last resort.
  return report.requestId ?? headers.get("cf-ray") ?? undefined;
}

/** The message nearest to the cause, followed by the outermost one if that adds something. */
function formatMessages({ messages: [root = "", ...others] }: ErrorReport): string {
  const outer = others.at(-1) ?? "";
  return outer === "" || root.includes(outer) ? root : `${root} (${outer})`;
}

/** The service, with the one behind it that failed. */
function formatSender(report: ErrorReport, { service }: RequestTarget): string {
  const { upstream = "" } = report;
  return upstream === "" || upstream === service
    ? service
    : `${truncate(upstream, MAX_NAME)}, through ${service},`;
}

/** What the user can do about a failure. */
function formatAdvice(
  { kind, retryable }: Failure,
  { because }: Verdict,
  { service, model }: RequestTarget,
  page: boolean,
): string {
  if (page && !retryable) return `Check the address of ${service}, and any proxy in between.`;
  switch (kind) {
    case "auth":
      return `Check the key for ${service}, and that it may use ${model}.`;
    case "quota":
      return retryable
        ? "Wait until the quota is renewed, or raise it."
        : `Check the plan and the credit of the account at ${service}.`;
    case "rate_limit":
      if (because === "too_large") return "Make the request smaller, or raise the account's limit.";
      if (because === "daily") return "Wait until the limit is renewed, or raise it.";
      return "Wait a little, or send fewer requests.";
    case "overloaded":
      return "Try again in a while, or use another model.";
    case "overflow":
      return "Shorten the conversation, or use a model with a larger context.";
    case "bad_request":
      if (because === "model_fault") return "Ask again: it was the model's output that was wrong.";
      if (because === "not_found")
        return `Check the name of the model, ${model}, and the address of ${service}.`;
      return "Change the request: sent again as it is, it would fail again.";
    case "refused":
      return `Change what is asked: the rules of ${service} do not allow it.`;
    case "timeout":
      return "Try again, or allow more time.";
    default:
      return retryable
        ? "Try again in a while."
        : `Check the settings for ${service}, or ask those who run it.`;
  }
}
