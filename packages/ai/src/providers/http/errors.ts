import type { Failure, FailureKind } from "../../messages/messages.ts";
import { redact as redactKeys, REDACTED } from "../../common/redact.ts";
import { isRecord } from "../../common/records.ts";
import { isRetryable } from "../../messages/failure.ts";
import { ProviderError, type ResponseHeaders } from "./wire.ts";
import { longest, parseDuration, parseRateLimitReset, parseRetryAfter } from "./retry-after.ts";

/** The service's own words are cut here, in characters. */
export const MAX_SERVICE_WORDS = 500;
/** As much of a text as is looked at for a reason, in characters. */
const MAX_TEXT = 8_000;
/** A longer body is not parsed: an error says what it has to say in less. */
const MAX_JSON = 1_000_000;
/** How deep errors may be wrapped in one another. */
const MAX_DEPTH = 8;
/** Of a list of errors, as many are read. */
const MAX_LIST = 8;
const MS_PER_SECOND = 1_000;

/** Who was asked for what, and when it is now. `service` is its name for people. */
export interface AskedOf {
  service: string;
  model: string;
  /** Milliseconds since 1970. */
  now: number;
}

/** The error that a response's status, headers and body tell of. Never throws. */
export function errorOfResponse(
  response: { status: number; headers: Pick<ResponseHeaders, "get">; body: string; url?: string },
  at: AskedOf,
): ProviderError {
  const { headers, body } = response;
  const report = newReport();
  const page = isPage(body);
  if (page) report.hints.push(pageTitle(body));
  else read(body, report, at.now, 0);
  addCode(headers.get("x-amzn-errortype") ?? "", report);

  const status = response.status >= FIRST_ERROR ? response.status : report.status;
  const verdict = judge(report, status);
  const words = page ? "" : sentence(wordsOf(report), at.model);
  // An answer that is neither an error nor a stream: whoever gives it will do so again.
  const whole = status === undefined && !page && words === "" && verdict.kind === "unknown";
  if (whole) verdict.retryable = false;
  if (page) {
    // It comes from something in between, which knows nothing of keys.
    if (verdict.kind === "auth") verdict.kind = "unknown";
    verdict.retryable = isRetryable({ kind: verdict.kind, status });
  }
  const told = longest(report.waits);
  const wait =
    parseRetryAfter(headers, at.now) ??
    told ??
    (status === TOO_MANY ? parseRateLimitReset(headers, at.now) : undefined);
  const shouldRetry = headers.get("x-should-retry");
  if (shouldRetry === "true" || shouldRetry === "false") verdict.retryable = shouldRetry === "true";

  const failure = failureOf(verdict, status ?? response.status, wait);
  const requestId = requestIdOf(headers, report);
  if (requestId !== undefined) failure.requestId = requestId;

  const host = hostOf(response.url);
  const who = through(report, at);
  if (whole) {
    return new ProviderError(
      `${who} answered ${response.status} with something else than a stream. Check that what answers at its address can stream.`,
      failure,
    );
  }
  const what = page
    ? `${who} answered ${response.status} with an HTML page instead of JSON${host ? `, from ${host}` : ""}${titled(pageTitle(body))}.`
    : words === ""
      ? `${who} answered ${response.status} without saying why.`
      : `${who} answered ${response.status}: ${words}`;
  return new ProviderError(`${what} ${advice(failure, verdict, at, page)}`, failure);
}

/**
 * The error that an object inside a stream tells of, in any of the shapes that
 * services use, or a text. `name` is the exception's name where the stream's
 * framing tells it (`throttlingException`). Never throws.
 */
export function errorInStream(payload: unknown, at: AskedOf, name?: string): ProviderError {
  const report = newReport();
  if (name !== undefined) addCode(name, report);
  read(payload, report, at.now, 0);
  const verdict = judge(report, report.status);
  const failure = failureOf(verdict, report.status, longest(report.waits));
  if (report.requestId !== undefined) failure.requestId = report.requestId;
  const words = sentence(wordsOf(report) || (name ?? report.codes[0] ?? ""), at.model);
  const who = through(report, at);
  const what =
    words === ""
      ? `${who} broke off its answer without saying why.`
      : `${who} broke off its answer: ${words}`;
  return new ProviderError(`${what} ${advice(failure, verdict, at, false)}`, failure);
}

/**
 * What a `fetch` or the reading of a body tells by throwing. `began`: bytes of the
 * body had come; `setBy`: what says the address. A `ProviderError` is given back as it is.
 * The original becomes `cause`, unless its words hold something that looks like a key.
 */
export function errorOfTransport(
  error: unknown,
  at: { service: string; model: string; url: string; began: boolean; setBy?: string },
): ProviderError {
  if (error instanceof ProviderError) return error;
  const chain = causes(error);
  const { kind, retryable, sign, what, todo } = transportTrouble(chain, at);
  const failure: Failure = { kind, retryable: retryable ?? isRetryable({ kind }) };
  const message = `${what}${sign === "" ? "" : ` (${redact(sign, at.model)})`}. ${todo}`;
  const clean = chain.every(({ message }) => redact(message, at.model) === message);
  return new ProviderError(message, failure, clean ? { cause: error } : {});
}

// What a report says

/** What could be read from an error, before it is judged. */
interface Report {
  /** The service's words, those nearest to the cause first. */
  said: string[];
  /** Further words that tell the kind, and are not shown. */
  hints: string[];
  codes: string[];
  waits: number[];
  status?: number;
  requestId?: string;
  /** Who failed behind the service that we asked. */
  upstream?: string;
  /** What the model wrote is there: it was at fault, not the request. */
  modelFault: boolean;
}

const WORD_KEYS = ["message", "Message", "msg", "error_message", "errorMessage", "detail"];
const CODE_KEYS = ["code", "type", "status", "name", "reason", "__type", "error_type", "quotaId"];
const STATUS_KEYS = ["code", "status", "status_code", "statusCode"];
const WAIT_SECONDS_KEYS = ["retry_after", "retry_after_seconds", "resets_in_seconds"];
const INNER_KEYS = ["error", "errors", "response", "innererror", "details", "violations"];
const JSON_START = /^\s*[[{"]/;
const EVENT_START = /^\s*(?:event|data):/;
const EVENT_DATA = /^data:(.+)$/m;
const AWS_EXCEPTION = /^[A-Za-z]+Exception$/;

function newReport(): Report {
  return { said: [], hints: [], codes: [], waits: [], modelFault: false };
}

function read(value: unknown, report: Report, now: number, depth: number): void {
  if (depth > MAX_DEPTH) return;
  if (typeof value === "string") readText(value, report, now, depth);
  else if (Array.isArray(value))
    for (const item of value.slice(0, MAX_LIST)) read(item, report, now, depth + 1);
  else if (isRecord(value)) readRecord(value, report, now, depth);
}

function readText(text: string, report: Report, now: number, depth: number): void {
  // Some send an error as an event even where they answer with an error's status.
  const data = EVENT_START.test(text) ? (EVENT_DATA.exec(text)?.[1] ?? text) : text;
  if (JSON_START.test(data) && data.length <= MAX_JSON) {
    try {
      const parsed: unknown = JSON.parse(data);
      read(parsed, report, now, depth + 1);
      return;
    } catch {
      // Not JSON after all: then it is words.
    }
  }
  const words = isPage(text) ? `An HTML page came${titled(pageTitle(text))}` : tidy(text);
  if (words !== "") report.said.push(words);
}

function readRecord(
  value: Record<string, unknown>,
  report: Report,
  now: number,
  depth: number,
): void {
  for (const key of CODE_KEYS) if (typeof value[key] === "string") addCode(value[key], report);
  for (const key of STATUS_KEYS) {
    const status = statusOf(value[key]);
    if (status !== undefined) report.status ??= status;
  }
  for (const key of WAIT_SECONDS_KEYS) {
    const seconds = value[key];
    if (typeof seconds === "number" && seconds >= 0)
      report.waits.push(Math.ceil(seconds * MS_PER_SECOND));
  }
  const delay = value["retryDelay"];
  const delayMs = typeof delay === "string" ? parseDuration(delay) : undefined;
  if (delayMs !== undefined) report.waits.push(delayMs);
  const requestId = value["request_id"] ?? value["requestId"];
  if (typeof requestId === "string") report.requestId ??= requestId;
  if ("failed_generation" in value) report.modelFault = true;

  readMetadata(value["metadata"], report, now, depth);
  for (const key of INNER_KEYS) read(value[key], report, now, depth + 1);
  const where = value["loc"];
  for (const key of WORD_KEYS) {
    const words = value[key];
    const place = Array.isArray(where) && typeof words === "string" ? `${where.join(".")}: ` : "";
    read(place === "" ? words : `${place}${String(words)}`, report, now, depth + 1);
  }
  for (const [key, inner] of Object.entries(value))
    if (AWS_EXCEPTION.test(key) && isRecord(inner)) {
      addCode(key, report);
      read(inner, report, now, depth + 1);
    }
}

/** What a router tells of the service behind it; its words go before the router's. */
function readMetadata(value: unknown, report: Report, now: number, depth: number): void {
  if (!isRecord(value)) return;
  if (typeof value["provider_name"] === "string") report.upstream ??= tidy(value["provider_name"]);
  if ("flagged_input" in value) report.codes.push("moderation");
  read(value["raw"], report, now, depth + 1);
  const headers = value["headers"];
  if (!isRecord(headers)) return;
  const known = new Map<string, string>();
  for (const [name, text] of Object.entries(headers))
    if (/^(?:retry-after|x-ratelimit)[a-z-]*$/i.test(name) && /^[\d.a-z]+$/i.test(String(text)))
      known.set(name.toLowerCase(), String(text));
  const limits = { get: (name: string) => known.get(name) ?? null };
  const wait = parseRetryAfter(limits, now) ?? parseRateLimitReset(limits, now);
  if (wait !== undefined) report.waits.push(wait);
}

function addCode(code: string, report: Report): void {
  const trimmed = code.trim();
  if (trimmed === "") return;
  // A code that is a sentence is read as one.
  if (trimmed.includes(" ")) report.hints.push(trimmed.slice(0, MAX_TEXT));
  else report.codes.push(trimmed);
}

function statusOf(value: unknown): number | undefined {
  const status = typeof value === "string" ? Number(value) : value;
  return typeof status === "number" && status >= FIRST_ERROR && status < 600 ? status : undefined;
}

// What kind of trouble it is

interface Verdict {
  kind: FailureKind;
  retryable?: boolean;
  /** More than the kind, where it changes what the user can do. */
  because?: "model_fault" | "too_large" | "daily" | "not_found";
}

const FIRST_ERROR = 400;
const FIRST_SERVER_ERROR = 500;
const NOT_FOUND = 404;
const TOO_LARGE_STATUS = 413;
const TOO_MANY = 429;

const STATUS_KIND: Readonly<Record<number, FailureKind>> = {
  401: "auth",
  402: "quota",
  403: "auth",
  408: "timeout",
  409: "unknown",
  // A model behind the service failed.
  424: "unknown",
  425: "unknown",
  429: "rate_limit",
  451: "refused",
  498: "overloaded",
  499: "unknown",
  503: "overloaded",
  529: "overloaded",
};

// Codes are compared by letters and digits alone, without "error" or "exception" at the end.

/** Codes that say it all. */
const CLEAR_CODES: ReadonlyMap<string, FailureKind> = byCode([
  [
    "auth",
    `authentication unauthenticated unauthorized invalidapikey apikeyinvalid apikeyexpired
    invalidauthentication unrecognizedclient expiredtoken invalidsignature incompletesignature
    missingauthenticationtoken invalidclienttokenid signaturedoesnotmatch`,
  ],
  [
    "quota",
    `insufficientquota billing billinghardlimitreached billingnotactive paymentrequired
    insufficientbalance insufficientcredits insufficientfunds exceededcurrentquota
    servicequotaexceeded usagelimitreached arrearage`,
  ],
  [
    "rate_limit",
    `ratelimit ratelimited ratelimitexceeded ratelimitreached toomanyrequests throttling
    throttled`,
  ],
  [
    "overloaded",
    `overloaded engineoverloaded serviceunavailable unavailable modelnotready slowdown
    servicetiercapacityexceeded nocapacity`,
  ],
  [
    "overflow",
    `contextlengthexceeded contextwindowexceeded exceedcontextsize tokenslimitreached
    modelmaxprompttokensexceeded maxprompttokensexceeded`,
  ],
  [
    "bad_request",
    `modelnotfound notfound resourcenotfound deploymentnotfound unsupportedparameter
    unsupportedvalue missingrequiredparameter`,
  ],
  [
    "refused",
    `contentfilter contentpolicyviolation responsibleaipolicyviolation moderation
    datainspectionfailed`,
  ],
  ["timeout", "timeout modeltimeout requesttimeout deadlineexceeded"],
]);

/** Codes that services also use for other trouble: asked where nothing else tells. */
const VAGUE_CODES: ReadonlyMap<string, FailureKind> = byCode([
  ["auth", "permission permissiondenied accessdenied forbidden"],
  ["rate_limit", "resourceexhausted"],
  ["refused", "invalidprompt"],
  [
    "bad_request",
    `invalidrequest invalidargument badrequest validation failedprecondition outofrange
    invalidvalue unprocessableentity requesttoolarge`,
  ],
]);

const MODEL_FAULT_CODES = new Set(["toolusefailed", "jsonvalidatefailed", "outputparsefailed"]);

const MODEL_FAULT =
  /\btool call validation failed\b|\b(?:error|failed) (?:in |to )?pars(?:e|ing) (?:the )?tool call|\bfailed to (?:call a function|generate (?:valid )?json|validate json)\b|\bmodel (?:produced|generated|returned) (?:an? )?(?:invalid|malformed)\b/i;

const REFUSED =
  /\bcontent (?:management |moderation |safety |usage )?polic(?:y|ies)\b|\bcontent[ _-]?filter|\busage (?:polic(?:y|ies)|guidelines)\b|\b(?:requires|failed|by|blocked by) moderation\b|\bflagged (?:as|by|for)\b|\bfor safety reasons\b|\bsafety (?:system|filters?)\b|\bcontent exists risk\b/i;

const QUOTA =
  /\bexceeded your (?:current |monthly |weekly )?(?:quota|budget)\b|\binsufficient (?:\w+ )?(?:balance|credits?|funds|quota)\b|\bcredit balance is\b|\b(?:billing|spend|spending|budget) (?:hard )?(?:limit|cap)\b|\b(?:out of|no|more|available|remaining|used all|add) credits\b|\b(?:api|your|hourly|daily|weekly|monthly) usage limits?\b|\busage limits? (?:was |has been )?(?:reached|exceeded)\b|\b(?:monthly|weekly|key) limit\b|\bpayment required\b|\baccount is not active\b|\bout of call volume quota\b/i;

const RATE =
  /\brate[ _-]?limit|\btoo many (?:\w+ )?requests\b|\bthrottl|\b(?:tokens?|requests?)[ _-]per[ _-](?:sec|min|hour|day)|\b[TR]P[MD]\b|\bplease wait before trying again\b/i;

const OUTPUT_SIDE =
  /\bmax(?:imum)?[_ ]?(?:output|completion|new)?[_ ]?tokens?\b|\b(?:output|completion|thinking|reasoning) tokens\b/i;
const INPUT_SIDE = /\b(?:inputs?|prompts?|messages|conversation|in (?:the |your )?request)\b/i;
/** More output than the whole context holds is asked for, so that no input would fit. */
const OUTPUT_OVER_CONTEXT =
  /\bmax\w*tokens\w*\W+(?:is too large|exceeds?)\D{0,20}(\d+).{0,80}?\bcontext length\D{0,12}(\d+)/i;

const CONTEXT = /\bcontext[ _-]?(?:length|window|size|limit)\b/i;
const TOO_MUCH =
  /exceed|overflow|\btoo (?:long|large|many|big)\b|\bmax(?:imum)?\b|\b(?:longer|larger|greater|more|bigger) than\b|\bnot enough\b|\breached\b|\bbeyond\b|\bonly\b/i;
const OVERFLOW = [
  // The prompt is too long; input length (N) too large.
  /\b(?:prompt|input|inputs|conversation|context|messages)(?: length| size| tokens)?(?: \([^)]{0,40}\))?(?: is| are| was)? too (?:long|large)\b/i,
  // The prompt (N) exceeds, is longer than.
  /\b(?:prompt|input|conversation)(?: length| size)?(?: \([^)]{0,40}\))? (?:exceeds?|exceeded|is (?:longer|larger|greater) than)\b/i,
  // N input tokens, which is too many.
  /\b(?:input|prompt|requested|request|total|number of)\b.{0,60}\btokens?\b.{0,60}(?:\bexceed|\bmore than\b|\bgreater than\b|\btoo (?:many|long|large)\b)/i,
  // Too many tokens; exceeds the model's limit of N tokens; at most N tokens.
  /(?:\bexceed(?:s|ed|ing)?\b|\btoo (?:many|large)\b|\bmore than\b|\b(?:can)?not exceed\b).{0,60}\btokens?\b/i,
  /\breduce the (?:length|size) of (?:the |your )?(?:messages|prompt|input|conversation)\b/i,
  /\bmax(?:imum)? (?:prompt|input|context|model|sequence) length\b/i,
  /\binput length should be\b/i,
  /\binputs?\W{1,3}tokens? \+ /i,
  /\bcontext the overflows\b|\bcontext overflow/i,
];

const AUTH =
  /\b(?:incorrect|invalid|missing|expired|wrong|unknown|no)\b.{0,24}\b(?:api|access|subscription|auth\w*)[ _-]?(?:key|token|header)\b|\bapi[ _-]?key\b.{0,40}\b(?:not valid|invalid|expired|not found|missing|required|incorrect|not provided|revoked|disabled)\b|\bauthentication (?:fail\w*|error|required|credentials)\b|\bunauthori[sz]ed\b|\bsecurity token\b.{0,40}\b(?:invalid|expired)\b|\binvalid (?:authentication|credentials)\b/i;

const OVERLOADED =
  /\boverloaded\b|\bhigh demand\b|\b(?:no|insufficient|at|over|out of) capacity\b|\bcapacity (?:exceeded|constraints?)\b|\btemporarily unavailable\b|\bserver(?: is)? busy\b|\bservice unavailable\b/i;

const TIMED_OUT = /\btimed out\b|\bdeadline exceeded\b/i;

const MISSING =
  /\b(?:model|deployment)\b.{0,80}\b(?:not found|not exist|unknown|identifier is invalid)\b|\b(?:unknown|invalid) model\b/i;
const DAILY = /\bper[ _-]day\b|perday|\bdaily\b|\b[TR]PD\b/i;
/** A quota of nothing: the account may not use this at all. */
const NO_QUOTA = /\blimit: 0\b/i;
const LIMIT_AND_REQUESTED = /\blimit\D{0,4}(\d+)\b.{0,80}\brequested\D{0,4}(\d+)\b/i;
const TOO_LARGE = /\brequest (?:is )?too large\b/i;
const WAIT_IN_WORDS =
  /\b(?:retry|try again|wait)(?: (?:in|after|for))? ((?:\d+(?:\.\d+)?(?:ms|[smhd]))+|\d+(?:\.\d+)?(?= seconds?\b))/gi;
const ADDRESS = /\bhttps?:\/\/\S+/gi;

function judge(report: Report, status: number | undefined): Verdict {
  const codes = report.codes.map(codeKey);
  // Addresses are full of words ("billing", "rate-limits") that mean nothing here.
  const words = [...report.said, ...report.hints]
    .join("\n")
    .slice(0, MAX_TEXT)
    .replaceAll(ADDRESS, " ");
  for (const [, wait = ""] of words.matchAll(WAIT_IN_WORDS)) {
    const ms = parseDuration(wait) ?? parseDuration(`${wait}s`);
    if (ms !== undefined) report.waits.push(ms);
  }
  if (report.modelFault || codes.some((code) => MODEL_FAULT_CODES.has(code)))
    return { kind: "bad_request", retryable: true, because: "model_fault" };

  const kind =
    firstOf(codes, CLEAR_CODES) ??
    kindByWords(words, status) ??
    (status === undefined ? undefined : kindByStatus(status)) ??
    firstOf(codes, VAGUE_CODES) ??
    "unknown";

  // A model's slip is told in words alone by some.
  if ((kind === "bad_request" || kind === "unknown") && MODEL_FAULT.test(words))
    return { kind: "bad_request", retryable: true, because: "model_fault" };
  if (kind === "rate_limit" || kind === "quota") return limited(kind, words, codes, report);
  if (kind === "bad_request") {
    if (
      status === NOT_FOUND ||
      MISSING.test(words) ||
      codes.some((code) => code.endsWith("notfound"))
    )
      return { kind, because: "not_found" };
    if (status === TOO_LARGE_STATUS) return { kind, because: "too_large" };
  }
  // The request was taken; what fails after that without a reason is the service's trouble.
  if (kind === "unknown" && status === undefined) return { kind, retryable: true };
  return { kind };
}

function kindByWords(words: string, status: number | undefined): FailureKind | undefined {
  if (REFUSED.test(words)) return "refused";
  if (QUOTA.test(words)) return "quota";
  if (RATE.test(words)) return "rate_limit";
  if (status !== TOO_MANY && isOverflow(words)) return "overflow";
  if (AUTH.test(words)) return "auth";
  if (OVERLOADED.test(words)) return "overloaded";
  // A client's own fault is not made a timeout by a word.
  if ((status === undefined || status >= FIRST_SERVER_ERROR) && TIMED_OUT.test(words))
    return "timeout";
  return undefined;
}

function isOverflow(words: string): boolean {
  if (OUTPUT_SIDE.test(words)) {
    if (!INPUT_SIDE.test(words)) return false;
    const [, asked, context] = OUTPUT_OVER_CONTEXT.exec(words) ?? [];
    if (asked !== undefined && Number(asked) >= Number(context)) return false;
  }
  if (CONTEXT.test(words) && TOO_MUCH.test(words)) return true;
  return OVERFLOW.some((pattern) => pattern.test(words));
}

function kindByStatus(status: number): FailureKind | undefined {
  if (status < FIRST_ERROR) return undefined;
  return STATUS_KIND[status] ?? (status >= FIRST_SERVER_ERROR ? "unknown" : "bad_request");
}

/** Whether waiting helps against a limit, and if not, why. */
function limited(
  kind: "rate_limit" | "quota",
  words: string,
  codes: readonly string[],
  report: Report,
): Verdict {
  const [, limit, requested] = LIMIT_AND_REQUESTED.exec(words) ?? [];
  if (kind === "rate_limit") {
    // More in one request than a whole period allows: no wait is long enough.
    const over = requested !== undefined && Number(requested) > Number(limit);
    if (over || TOO_LARGE.test(words)) return { kind, retryable: false, because: "too_large" };
  }
  const daily = DAILY.test(words) || report.codes.some((code) => DAILY.test(code));
  const told = report.waits.length > 0;
  if (kind === "rate_limit")
    return daily ? { kind, retryable: told, because: "daily" } : { kind, retryable: true };
  // A quota is final, unless the service itself names the time of the next try.
  const again = told && !daily && !NO_QUOTA.test(words) && !codes.includes("insufficientquota");
  return { kind, retryable: again };
}

function failureOf(
  { kind, retryable }: Verdict,
  status: number | undefined,
  retryAfterMs: number | undefined,
): Failure {
  const failure: Failure = { kind, retryable: retryable ?? isRetryable({ kind, status }) };
  if (retryAfterMs !== undefined) failure.retryAfterMs = retryAfterMs;
  if (status !== undefined) failure.status = status;
  return failure;
}

function byCode(
  lists: readonly (readonly [FailureKind, string])[],
): ReadonlyMap<string, FailureKind> {
  return new Map(lists.flatMap(([kind, list]) => list.split(/\s+/).map((code) => [code, kind])));
}

function firstOf(
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
function codeKey(code: string): string {
  return code
    .replace(/^[^#:]*#/, "")
    .replace(/:.*$/s, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .replace(/(?:error|exception)$/, "");
}

const REQUEST_ID_HEADERS = ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id"];

function requestIdOf(headers: Pick<ResponseHeaders, "get">, report: Report): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const id = headers.get(name);
    if (id) return id;
  }
  // Names the connection to a network in front of the service: better than nothing.
  return report.requestId ?? headers.get("cf-ray") ?? undefined;
}

// What the connection says

interface Trouble {
  kind: FailureKind;
  retryable?: boolean;
  /** The code or the words that told us. */
  sign: string;
  what: string;
  todo: string;
}

interface Link {
  code: string;
  name: string;
  message: string;
}

const REFUSED_CODES = /^(?:ECONNREFUSED|ConnectionRefused)$/;
const NAME_CODES = /^(?:ENOTFOUND|EAI_\w+)$/;
const WAITED_CODES =
  /^(?:UND_ERR_HEADERS_TIMEOUT|UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT|ESOCKETTIMEDOUT)$/;
const STALLED_CODES = /^UND_ERR_BODY_TIMEOUT$/;
const CERTIFICATE_CODES = /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)|ALTNAME/;
const CONNECTION_CODES =
  /^(?:ECONN\w+|EPIPE|ENETUNREACH|ENETDOWN|EHOSTUNREACH|EHOSTDOWN|EPROTO|EADDRNOTAVAIL|UND_ERR_(?!INVALID)\w+|ERR_(?:SSL|TLS|HTTP2|STREAM)_\w+|HPE_\w+|FailedToOpenSocket)$/;
const DECODING_CODES = /^(?:Z_\w+|ERR__?(?:BROTLI|ZSTD)\w*|ZSTD_\w+)$/;
const CONNECTION_WORDS =
  /^(?:terminated|fetch failed|failed to fetch|load failed|network ?error)|\bsocket\b|\bnetwork\b|\bconnection\b|\bother side closed\b|\bpremature close\b|\bdecod|\bdecompress|\bunexpected end of file\b|\bincorrect header check\b/i;
const ADDRESS_WORDS = /\b(?:invalid url|failed to parse url|unknown scheme|bad port)\b/i;
const HEADER_WORDS =
  /\binvalid header value\b|\bbytestring\b|\binvalid (?:header|value).*\bheaders?\b/i;

function transportTrouble(
  chain: readonly Link[],
  at: { service: string; url: string; began: boolean; setBy?: string },
): Trouble {
  const host = hostOf(at.url) || "the address that was given";
  const coded = (pattern: RegExp): string | undefined =>
    chain.find(({ code }) => pattern.test(code))?.code;
  const worded = (pattern: RegExp): string | undefined =>
    chain.findLast(({ message }) => pattern.test(message))?.message;
  const named = (name: string): boolean => chain.some((link) => link.name === name);

  let sign = coded(STALLED_CODES);
  if (sign !== undefined)
    return {
      kind: "stalled",
      sign,
      what: `${at.service} at ${host} stopped sending`,
      todo: "Try again.",
    };
  sign = coded(WAITED_CODES) ?? (named("TimeoutError") ? "TimeoutError" : undefined);
  if (sign !== undefined)
    return {
      kind: "timeout",
      sign,
      what: `${at.service} at ${host} did not answer in time`,
      todo: "Try again, or allow more time.",
    };
  if (named("AbortError"))
    return { kind: "aborted", sign: "", what: "The request was aborted", todo: "Send it again." };
  if (worded(HEADER_WORDS) !== undefined)
    // The words are left out: they quote the header, which may be the key.
    return {
      kind: "bad_request",
      sign: "",
      what: `A header for ${host} holds a character that HTTP does not allow`,
      todo: `Check the key for ${at.service} for stray characters.`,
    };
  sign = coded(/^ERR_INVALID_URL$/) ?? (worded(ADDRESS_WORDS) && "invalid address");
  if (sign !== undefined)
    return {
      kind: "bad_request",
      sign,
      what: `The address of ${at.service} cannot be used`,
      todo: `Correct ${at.setBy || "it"}; it begins with http:// or https://.`,
    };
  sign = coded(REFUSED_CODES);
  if (sign !== undefined)
    return {
      kind: "network",
      // A server of one's own does not start by being asked again.
      ...(isLoopback(host) && { retryable: false }),
      sign,
      what: `Nothing answers at ${host}`,
      todo: `Check that ${at.service} runs there, and its address.`,
    };
  sign = coded(NAME_CODES);
  if (sign !== undefined)
    return {
      kind: "network",
      sign,
      what: `The name ${host} was not found`,
      todo: `Check the address of ${at.service} and the connection to the network.`,
    };
  sign = coded(CERTIFICATE_CODES);
  if (sign !== undefined)
    return {
      kind: "network",
      retryable: false,
      sign,
      what: `The certificate of ${host} is not trusted`,
      todo: "Check the address, the clock of this machine and any proxy in between.",
    };
  sign = coded(CONNECTION_CODES) ?? coded(DECODING_CODES) ?? worded(CONNECTION_WORDS);
  const first = chain[0]?.message ?? "";
  // Whatever breaks the reading of a body, its end did not come.
  if (at.began)
    return {
      kind: "incomplete",
      sign: shortSign(sign ?? first),
      what: `The answer of ${at.service} from ${host} broke off`,
      todo: "Try again.",
    };
  if (sign !== undefined)
    return {
      kind: "network",
      sign: shortSign(sign),
      what: `The connection to ${host} failed`,
      todo: `Check the network, and that ${at.service} can be reached from here.`,
    };
  return {
    kind: "unknown",
    sign: shortSign(first),
    what: `The request to ${host} failed`,
    todo: `Check the settings for ${at.service}.`,
  };
}

const MAX_SIGN = 200;

function shortSign(text: string): string {
  return cut(tidy(text), MAX_SIGN).replace(/\.+$/, "");
}

/** The error and what caused it, from the outside in. */
function causes(error: unknown): Link[] {
  const links: Link[] = [];
  const visit = (value: unknown, depth: number): void => {
    if (depth > MAX_DEPTH || value === undefined || value === null) return;
    if (!isRecord(value)) {
      const message = typeof value === "string" ? value.slice(0, MAX_TEXT) : "";
      links.push({ code: "", name: "", message });
      return;
    }
    const text = (key: string): string =>
      typeof value[key] === "string" ? value[key].slice(0, MAX_TEXT) : "";
    links.push({ code: text("code"), name: text("name"), message: text("message") });
    visit(value["cause"], depth + 1);
    // One for each address that was tried.
    if (Array.isArray(value["errors"]))
      for (const inner of value["errors"].slice(0, MAX_LIST)) visit(inner, depth + 1);
  };
  visit(error, 0);
  return links;
}

// Words for people

/** What was said at the root of the trouble, and what whoever handed it on made of it. */
function wordsOf({ said: [root = "", ...others] }: Report): string {
  const outer = others.at(-1) ?? "";
  return outer === "" || root.includes(outer) ? root : `${root} (${outer})`;
}

function through(report: Report, { service }: AskedOf): string {
  const { upstream = "" } = report;
  return upstream === "" || upstream === service
    ? service
    : `${cut(upstream, MAX_SIGN)}, through ${service},`;
}

function advice(
  { kind, retryable }: Failure,
  { because }: Verdict,
  { service, model }: AskedOf,
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
      if (because === "too_large") return "Make the request smaller.";
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

/** The service's words as a sentence that can be shown. */
function sentence(words: string, model: string): string {
  const shown = cut(redact(words, model), MAX_SERVICE_WORDS);
  return shown === "" || /[.!?…]$/.test(shown) ? shown : `${shown}.`;
}

// Control and direction characters could change what a terminal shows.
const UNSEEN = /[\s\p{Cc}\p{Cf}]+/gu;

function tidy(text: string): string {
  return text.slice(0, MAX_TEXT).replaceAll(UNSEEN, " ").trim();
}

function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  // Not between the two halves of a character.
  return `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

const KEY_WORD =
  /\bkeys?\b|\b(?:access|auth\w*|bearer|security)[ _-]tokens?\b|\bsecrets?\b|\bcredentials?\b|\btoken\s?[:=]/i;
const LONG_TOKEN = /(?<![\w/.-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}(?![\w-])/g;

/** The text without anything in it that looks like a key. The model's name is none. */
function redact(text: string, model: string): string {
  const clean = redactKeys(text);
  if (!KEY_WORD.test(clean)) return clean;
  return clean.replaceAll(LONG_TOKEN, (token) => (model.includes(token) ? token : REDACTED));
}

function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/i.test(host);
}

const PAGE = /^\s*(?:<!doctype html|<html|<head|<body|<!--[^]{0,200}?<html)/i;
const TITLE = /<title[^>]{0,200}>([^<]{0,200})/i;

function isPage(text: string): boolean {
  return PAGE.test(text.slice(0, MAX_TEXT));
}

function pageTitle(text: string): string {
  return tidy(TITLE.exec(text.slice(0, MAX_TEXT))?.[1] ?? "");
}

function titled(title: string): string {
  return title === "" ? "" : `, titled "${redact(title, "")}"`;
}

/** Never more than the host: a path or a query may hold a key. */
function hostOf(url: string | undefined): string {
  try {
    return url === undefined ? "" : new URL(url).host;
  } catch {
    return "";
  }
}
