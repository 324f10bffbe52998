import type { FailureKind } from "../../messages/messages.ts";

/** Statuses, codes and phrases by which services name their errors. */

export const FIRST_ERROR = 400;
export const FIRST_SERVER_ERROR = 500;
export const NOT_FOUND = 404;
export const TOO_LARGE_STATUS = 413;
export const TOO_MANY = 429;

export const STATUS_KIND: Readonly<Record<number, FailureKind>> = {
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

// `normalizeCode` leaves letters and digits alone, without "error" or "exception" at the end.

/** Codes that have one meaning everywhere. */
export const CLEAR_CODES: ReadonlyMap<string, FailureKind> = indexCodes([
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
    servicequotaexceeded usagelimitreached arrearage allocationquotafreetieronly`,
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

/** Codes that services also use for other errors: the last resort. */
export const VAGUE_CODES: ReadonlyMap<string, FailureKind> = indexCodes([
  ["auth", "permission permissiondenied accessdenied forbidden"],
  ["rate_limit", "resourceexhausted"],
  ["refused", "invalidprompt"],
  [
    "bad_request",
    `invalidrequest invalidargument badrequest validation failedprecondition outofrange
    invalidvalue unprocessableentity requesttoolarge`,
  ],
]);

export const MODEL_FAULT_CODES: ReadonlySet<string> = new Set([
  "toolusefailed",
  "jsonvalidatefailed",
  "outputparsefailed",
]);

export const MODEL_FAULT: RegExp =
  /\btool call validation failed\b|\b(?:error|failed) (?:in |to )?pars(?:e|ing) (?:the )?tool call|\bfailed to (?:call a function|generate (?:valid )?json|validate json)\b|\bmodel (?:produced|generated|returned) (?:an? )?(?:invalid|malformed)\b/i;

export const REFUSED: RegExp =
  /\bcontent (?:management |moderation |safety |usage )?polic(?:y|ies)\b|\bcontent[ _-]?filter|\busage (?:polic(?:y|ies)|guidelines)\b|\b(?:requires|failed|by|blocked by) moderation\b|\bflagged (?:as|by|for)\b|\bfor safety reasons\b|\bsafety (?:system|filters?)\b|\bcontent exists risk\b|\bunsafe or sensitive content\b|敏感内容/i;

export const QUOTA: RegExp =
  /\bexceeded (?:your )?(?:current |monthly |weekly )?(?:quota|budget)\b|\binsufficient (?:\w+ )?(?:balance|credits?|funds|quota)\b|\bcredit balance is\b|\b(?:billing|spend|spending|budget) (?:hard )?(?:limit|cap)\b|\b(?:out of|no|any|more|available|remaining|used all|add) credits\b|\b(?:api|your|session|hourly|daily|weekly|monthly) usage limits?\b|\busage limits? (?:was |has been )?(?:reached|exceeded)\b|\b(?:monthly|weekly|key) limit\b|\bpayment required\b|\baccount is not active\b|\bout of call volume quota\b|\bquota exceeded\b(?! for (?:quota )?metric)|\bfree tier\b.{0,40}\bexhausted\b|\bbalance is insufficient\b|\baccount\b.{0,40}\bis suspended\b|\bpayment is past due\b|\brequires a subscription\b|余额不足|欠费|请充值/i;

export const RATE: RegExp =
  /\brate[ _-]?limit|\btoo many (?:\w+ )?requests\b|\bthrottl|\b(?:tokens?|requests?)[ _-]per[ _-](?:sec|min|hour|day)|\b[TR]P[MD]\b|\bplease wait before trying again\b/i;

export const OUTPUT_SIDE: RegExp =
  /\bmax(?:imum)?[_ ]?(?:output|completion|new)?[_ ]?tokens?\b|\b(?:output|completion|thinking|reasoning) tokens\b/i;
export const INPUT_SIDE: RegExp =
  /\b(?:inputs?|prompts?|messages|conversation|in (?:the |your )?request)\b/i;
/** The request asks for more output than the whole context holds, so that no input would fit. */
export const OUTPUT_OVER_CONTEXT: RegExp =
  /\bmax\w*tokens\w*\W+(?:is too large|exceeds?)\D{0,20}(\d+).{0,80}?\bcontext length\D{0,12}(\d+)/i;

export const CONTEXT: RegExp = /\bcontext[ _-]?(?:length|window|size|limit)\b/i;
export const TOO_MUCH: RegExp =
  /exceed|overflow|\btoo (?:long|large|many|big)\b|\bmax(?:imum)?\b|\b(?:longer|larger|greater|more|bigger) than\b|\bnot enough\b|\breached\b|\bbeyond\b|\bonly\b/i;
export const OVERFLOW: readonly RegExp[] = [
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
  // The prompt has N tokens, but the context size is M; its length must be less than max_seq_len.
  /\bprompt has [\d,.]+ tokens?, but\b.{0,40}\bcontext size\b/i,
  /\b(?:prompt|input)[_ ]?tokens?\b.{0,40}\bmust be less than\b/i,
  /\binputs?\W{1,3}must have (?:less|fewer) than \d+ tokens\b/i,
  /\bcurrent length is \d+ while (?:the )?limit is \d+/i,
  /\btotal message size\b.{0,20}\bexceeds\b/i,
  /\btokens? limit exceeded\b/i,
  /\b(?:prompt|输入|上下文)\s*(?:长度)?\s*(?:超长|过长|超出)/i,
];

export const AUTH: RegExp =
  /\b(?:incorrect|invalid|missing|expired|wrong|unknown|no)\b.{0,24}\b(?:api|access|subscription|auth\w*)[ _-]?(?:key|token|header)\b|\bapi[ _-]?key\b.{0,40}\b(?:not valid|invalid|expired|not found|missing|required|incorrect|not provided|revoked|disabled)\b|\bauthentication (?:fail\w*|error|required|credentials)\b|\bunauthori[sz]ed\b|\bsecurity token\b.{0,40}\b(?:invalid|expired)\b|\binvalid (?:authentication|credentials)\b/i;

export const OVERLOADED: RegExp =
  /\boverloaded\b|\bhigh demand\b|\b(?:no|insufficient|at|over|out of) capacity\b|\bcapacity (?:exceeded|constraints?)\b|\btemporarily unavailable\b|\bserver(?: is)? busy\b|\bservice unavailable\b/i;

export const TIMED_OUT: RegExp = /\btimed out\b|\bdeadline exceeded\b/i;

export const MISSING: RegExp =
  /\b(?:model|deployment)\b.{0,80}\b(?:not found|not exist|unknown|identifier is invalid)\b|\b(?:unknown|invalid) model\b/i;
export const DAILY: RegExp = /\bper[ _-]day\b|perday|\bdaily\b|\b[TR]PD\b/i;
/** A quota of nothing: the account has no access at all. */
export const NO_QUOTA: RegExp = /\blimit: 0\b/i;
export const LIMIT_AND_REQUESTED: RegExp = /\blimit\D{0,4}(\d+)\b.{0,80}\brequested\D{0,4}(\d+)\b/i;
export const TOO_LARGE: RegExp = /\brequest (?:is )?too large\b/i;
export const WAIT_IN_TEXT: RegExp =
  /\b(?:retry|try again|wait)(?: (?:in|after|for))? ((?:\d+(?:\.\d+)?(?:ms|[smhd]))+|\d+(?:\.\d+)?(?= seconds?\b))/gi;
export const ADDRESS: RegExp = /\bhttps?:\/\/\S+/gi;

function indexCodes(
  lists: readonly (readonly [FailureKind, string])[],
): ReadonlyMap<string, FailureKind> {
  return new Map(lists.flatMap(([kind, list]) => list.split(/\s+/).map((code) => [code, kind])));
}
