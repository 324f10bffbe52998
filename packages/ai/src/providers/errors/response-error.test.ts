import { describe, expect, it } from "vitest";
import type { FailureKind } from "../../messages/messages.ts";
import type { ProviderError } from "./provider-error.ts";
import { explainErrorEvent, explainErrorResponse } from "./response-error.ts";
import { MAX_SERVICE_WORDS } from "./text.ts";

const NOW = Date.UTC(2026, 0, 1);
const AT = { service: "Acme", model: "acme-large-2", now: NOW };

function answer(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
  url = "https://api.acme.test/v1/chat?key=abc123secret",
): ProviderError {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return explainErrorResponse({ status, headers: new Headers(headers), body: text, url }, AT);
}

const openai = (message: string, code: string | null = null, type = "invalid_request_error") => ({
  error: { message, type, param: null, code },
});
const anthropic = (type: string, message: string) => ({ type: "error", error: { type, message } });
const google = (code: number, status: string, message: string, details: unknown[] = []) => ({
  error: { code, status, message, details },
});

type Case = [label: string, status: number, body: unknown, kind: FailureKind, retryable: boolean];

describe("explainErrorResponse", () => {
  it.each<Case>([
    ["a bad key", 401, openai("That key is wrong.", "invalid_api_key"), "auth", false],
    ["no right to a model", 403, openai("You may not use this model."), "auth", false],
    [
      "a bad key reported as 400",
      400,
      { code: "Client specified an invalid argument", error: "Incorrect API key provided." },
      "auth",
      false,
    ],
    [
      "a bad key of Google",
      400,
      google(400, "INVALID_ARGUMENT", "API key not valid. Pass another."),
      "auth",
      false,
    ],
    [
      "a bad key by its reason",
      400,
      google(400, "INVALID_ARGUMENT", "Rejected.", [{ reason: "API_KEY_INVALID" }]),
      "auth",
      false,
    ],
    ["the limit of a key", 403, openai("Key limit exceeded for this month."), "quota", false],
    ["a vague type beside a status", 401, openai("Unauthorized", null, "api_error"), "auth", false],
    [
      "no credit",
      400,
      anthropic("invalid_request_error", "Your credit balance is too low for this."),
      "quota",
      false,
    ],
    [
      "a used up quota",
      429,
      openai("You exceeded your current quota.", "insufficient_quota", "insufficient_quota"),
      "quota",
      false,
    ],
    [
      "payment",
      402,
      { error: { code: 402, message: "This request requires more credits, or fewer max_tokens." } },
      "quota",
      false,
    ],
    [
      "a spending limit",
      429,
      { code: "Some resource has been exhausted", error: "The team used all available credits." },
      "quota",
      false,
    ],
    [
      "a usage limit",
      400,
      anthropic("invalid_request_error", "You have reached your specified API usage limits."),
      "quota",
      false,
    ],
    [
      "a rate limit",
      429,
      anthropic(
        "rate_limit_error",
        "This would exceed the limit of 30,000 input tokens per minute.",
      ),
      "rate_limit",
      true,
    ],
    [
      "a rate limit that names billing",
      429,
      openai(
        "Rate limit reached on tokens per minute (TPM): Limit 6000, Used 5000, Requested 1400. Need more? See https://acme.test/settings/billing",
        "rate_limit_exceeded",
        "tokens",
      ),
      "rate_limit",
      true,
    ],
    [
      "a request above the whole limit",
      429,
      openai(
        "Request too large on tokens per min (TPM): Limit 30000, Requested 30601. The input or output tokens must be reduced.",
        "rate_limit_exceeded",
        "tokens",
      ),
      "rate_limit",
      false,
    ],
    [
      "the same with 413",
      413,
      openai(
        "Request too large on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size.",
        "rate_limit_exceeded",
        "tokens",
      ),
      "overflow",
      false,
    ],
    [
      "a token rate of a tier",
      429,
      {
        error: {
          code: "429",
          message:
            "Requests have exceeded token rate limit of your current tier. Please retry after 2 seconds.",
        },
      },
      "rate_limit",
      true,
    ],
    [
      "throttled tokens",
      429,
      { message: "Too many tokens, please wait before trying again." },
      "rate_limit",
      true,
    ],
    [
      "a daily limit without a time",
      429,
      { message: "Too many tokens per day, please wait before trying again." },
      "rate_limit",
      false,
    ],
    [
      "an exhausted resource",
      429,
      google(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Try later."),
      "rate_limit",
      true,
    ],
    [
      "an engine under load",
      429,
      openai("The engine is currently overloaded", null, "engine_overloaded_error"),
      "overloaded",
      true,
    ],
    ["overload", 529, anthropic("overloaded_error", "Overloaded"), "overloaded", true],
    [
      "high demand",
      503,
      google(503, "UNAVAILABLE", "This model is experiencing high demand."),
      "overloaded",
      true,
    ],
    ["a server's fault", 500, anthropic("api_error", "Internal server error"), "unknown", true],
    ["a gateway's fault", 502, "", "unknown", true],
    ["a deadline", 504, google(504, "DEADLINE_EXCEEDED", "Deadline expired."), "timeout", true],
    ["a request timeout", 408, "", "timeout", true],
    ["a conflict", 409, "", "unknown", true],
    [
      "a wrong field",
      400,
      openai("Unknown parameter: 'foo'.", "unknown_parameter"),
      "bad_request",
      false,
    ],
    [
      "an unknown model",
      404,
      { error: 'model "x" not found, try pulling it first' },
      "bad_request",
      false,
    ],
    [
      "an unknown deployment",
      404,
      { error: { code: "DeploymentNotFound", message: "No such deployment." } },
      "bad_request",
      false,
    ],
    [
      "a list of mistakes",
      422,
      { detail: [{ loc: ["body", "messages"], msg: "Field required", type: "missing" }] },
      "bad_request",
      false,
    ],
    [
      "a body that is too large",
      413,
      anthropic("request_too_large", "Request exceeds the maximum allowed number of bytes."),
      "overflow",
      false,
    ],
    [
      "a wrong call of the model",
      400,
      {
        error: {
          message: "Tool call failed.",
          type: "invalid_request_error",
          code: "tool_use_failed",
        },
      },
      "bad_request",
      true,
    ],
    [
      "what the model wrote",
      400,
      { error: { message: "No.", failed_generation: "{" } },
      "bad_request",
      true,
    ],
    [
      "a model's slip in words",
      500,
      { error: "error parsing tool call: raw='{', err=unexpected end" },
      "bad_request",
      true,
    ],
    [
      "a content filter",
      400,
      {
        error: {
          code: "content_filter",
          message: "Filtered.",
          innererror: { code: "ResponsibleAIPolicyViolation" },
        },
      },
      "refused",
      false,
    ],
    [
      "a policy",
      400,
      anthropic("invalid_request_error", "Output blocked by content filtering policy"),
      "refused",
      false,
    ],
    [
      "a flagged prompt",
      400,
      openai(
        "Invalid prompt: flagged as potentially violating our usage policy.",
        "invalid_prompt",
      ),
      "refused",
      false,
    ],
    [
      "an invalid prompt that is no matter of policy",
      400,
      openai("Invalid request", "invalid_prompt"),
      "bad_request",
      false,
    ],
    [
      "moderation",
      403,
      {
        error: {
          code: 403,
          message: "Input was flagged",
          metadata: { reasons: ["x"], flagged_input: "y" },
        },
      },
      "refused",
      false,
    ],
    [
      "guidelines",
      403,
      { code: "The caller does not have permission", error: "Content violates usage guidelines." },
      "refused",
      false,
    ],
    [
      "an error with status 200",
      200,
      { error: { code: 429, message: "Slow down, too many requests" } },
      "rate_limit",
      true,
    ],
  ])("knows %s", (_, status, body, kind, retryable) => {
    expect(answer(status, body).failure).toMatchObject({ kind, retryable });
  });

  // Each in the manner of one service or server, in words of our own.
  it.each([
    "prompt is too long: 2101 tokens > 2000 maximum",
    "input length and `max_tokens` exceed context limit: 1900 + 200 > 2000",
    "The maximum context length here is 8192 tokens, but the messages came to 9001 tokens.",
    "maximum context length is 4096, you requested 5000 tokens (4000 in the messages, 1000 in the completion)",
    "This input exceeds the context window of acme-large-2.",
    "The input token count of 1100 exceeds the maximum of 1000.",
    "Input is too long for acme-large-2.",
    "Failed with: input tokens exceeded. The number of input tokens exceeds what is allowed.",
    "Too many input tokens. At most: 8192, input token count: 9000",
    "Prompt has 40000 tokens and is too large for model with 32768 maximum context length",
    "Please reduce the length of the messages. It is 8237 now, the limit is 8192",
    "The maximum prompt length is 1310 but this request has 5378 tokens.",
    "this request exceeds the available context size (4096 tokens)",
    "More tokens to keep from the first prompt than fit: 900 is greater than the context length",
    "Cannot keep 111 tokens when the context overflows: it was loaded with context length of only 100.",
    "The prompt (length 5000) is longer than the maximum model length of 4096.",
    "You sent 9000 input tokens and want 1 output tokens, but the context length is only 8192.",
    "'max_tokens' is too large: 1000. The maximum context length is 4096 tokens and there are 3500 input tokens",
    "The input (9000 tokens) is longer than the context length of the model (8192 tokens).",
    "prompt too long: over the max context length by 44",
    "`inputs` tokens + `max_new_tokens` must be <= 4097, but there are 5000 `inputs` tokens",
    "too many tokens: over the size limit by 1000. Use fewer inputs.",
    "the tokens in the prompt cannot exceed 4081 tokens, got 5000",
    "Body too large for acme-large-2. Max size: 8000 tokens.",
    "prompt token count of 1500 exceeds the limit of 1280",
    "bad params, context window exceeds limit",
    "The request exceeded the model's token limit of 2621 (it has 2700)",
    "The range of input length should be [1, 1290]",
    "The prompt exceeds max length",
    "more tokens in request than max tokens allowed: too many tokens",
    "Requested tokens (700) exceed context window of 512",
  ])("hears an overflow in: %s", (message) => {
    expect(answer(400, openai(message)).failure).toMatchObject({
      kind: "overflow",
      retryable: false,
    });
    expect(explainErrorEvent({ message }, AT).kind).toBe("overflow");
  });

  it("knows an overflow by its code alone", () => {
    expect(answer(400, openai("Nope.", "context_length_exceeded")).kind).toBe("overflow");
    expect(answer(413, { error: { code: "tokens_limit_reached", message: "No." } }).kind).toBe(
      "overflow",
    );
    expect(answer(400, openai("Nope.", null, "exceed_context_size_error")).kind).toBe("overflow");
  });

  it.each([
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
    "The maximum tokens you requested exceeds the limit of 4096. Ask for less.",
    "`max_tokens` must be less than or equal to `8192`, less than the `context_window` for this model",
    "'max_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 10 input tokens",
    "`max_tokens` must be greater than `thinking.budget_tokens`",
    "The limit of tokens was reached",
    "Invalid 'input[0].call_id': string too long. Expected at most 64 characters.",
    "tools.0.name exceeds maximum length of 64",
  ])("does not take for an overflow: %s", (message) => {
    expect(answer(400, openai(message)).failure).toMatchObject({
      kind: "bad_request",
      retryable: false,
    });
  });

  it("says what happened and what to do", () => {
    expect(answer(401, anthropic("authentication_error", "that key is wrong")).message).toBe(
      "Acme answered 401: that key is wrong. Check the key for Acme, and that it may use acme-large-2.",
    );
    expect(answer(500, "").message).toBe(
      "Acme answered 500 without saying why. Try again in a while.",
    );
    const whole = answer(200, { choices: [{ message: { content: "Hello" } }] });
    expect(whole.message).toBe(
      "Acme answered 200 with something other than a stream. Check that the server at its address can stream.",
    );
    expect(whole.failure).toEqual({ kind: "unknown", retryable: false, status: 200 });
    expect(answer(422, { detail: [{ loc: ["body", 0], msg: "Bad" }] }).message).toContain(
      "body.0: Bad.",
    );
  });

  it.each([
    ["one object", { message: "From AWS" }],
    ["a capital letter", { Message: "From AWS" }],
    ["a list", [google(400, "INVALID_ARGUMENT", "From AWS")]],
    ["a text in an object", { error: "From AWS" }],
    ["JSON in JSON", { error: { message: JSON.stringify({ error: { message: "From AWS" } }) } }],
    ["JSON as a JSON text", JSON.stringify(JSON.stringify({ detail: "From AWS" }))],
    ["plain text", "From \r\n\t AWS\n"],
    ["an event", 'event: error\ndata: {"error":{"message":"From AWS"}}\n\n'],
    ["terminal codes", "From\u001b\u202e AWS"],
  ])("finds the words in %s", (_, body) => {
    expect(answer(400, body).message).toContain("Acme answered 400: From AWS. ");
  });

  it("takes the words of the service behind a router", () => {
    const raw = JSON.stringify(openai("This model's maximum context length is 10 tokens."));
    const error = answer(502, {
      error: { code: 502, message: "Provider error", metadata: { provider_name: "Inner", raw } },
    });
    expect(error.kind).toBe("overflow");
    expect(error.message).toContain("Inner, through Acme, answered 502: This model's maximum");
  });

  it("reads a router's own headers", () => {
    const headers = { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": String(NOW + 5_000) };
    const error = answer(429, {
      error: { code: 429, message: "Rate limit exceeded: free-per-day", metadata: { headers } },
    });
    expect(error.failure).toMatchObject({ kind: "rate_limit", retryAfterMs: 5_000 });
  });

  it("knows AWS errors by their header", () => {
    const named = (name: string) =>
      answer(400, { message: "No." }, { "x-amzn-errortype": `${name}:http://acme.test/` }).kind;
    expect(named("ThrottlingException")).toBe("rate_limit");
    expect(named("UnrecognizedClientException")).toBe("auth");
    expect(named("ServiceQuotaExceededException")).toBe("quota");
    expect(named("ModelNotReadyException")).toBe("overloaded");
    expect(named("ValidationException")).toBe("bad_request");
  });

  it("reports an HTML page, its host and its title", () => {
    const page = "<!DOCTYPE html>\n<html><head><title>Just a\nmoment</title></head></html>";
    const error = answer(403, page);
    expect(error.message).toBe(
      'Acme answered 403 with an HTML page instead of JSON, from api.acme.test, titled "Just a moment". Check the address of Acme, and any proxy in between.',
    );
    expect(error.failure).toMatchObject({ kind: "unknown", retryable: false });
    expect(answer(503, page).failure).toMatchObject({ kind: "overloaded", retryable: true });
    expect(answer(200, page).failure).toMatchObject({ kind: "unknown", retryable: false });
    expect(answer(404, page, {}, "not an address").message).toContain("instead of JSON, titled");
  });

  it("obeys x-should-retry", () => {
    expect(answer(400, openai("No."), { "x-should-retry": "true" }).retryable).toBe(true);
    expect(answer(529, "", { "x-should-retry": "false" }).retryable).toBe(false);
    expect(answer(529, "", { "x-should-retry": "maybe" }).retryable).toBe(true);
  });

  it("notes how long to wait: by header, else by body, else by the limit's reset", () => {
    const reset = { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "9s" };
    const body = openai("Rate limit reached. Please try again in 4.77s.");
    expect(answer(429, body, { ...reset, "retry-after": "2" }).retryAfterMs).toBe(2_000);
    expect(answer(429, body, reset).retryAfterMs).toBe(4_770);
    expect(answer(429, openai("Rate limit reached."), reset).retryAfterMs).toBe(9_000);
    expect(answer(500, openai("Rather not."), reset).retryAfterMs).toBeUndefined();
    expect(answer(429, openai("Rate limit. Retry after 2 seconds.")).retryAfterMs).toBe(2_000);
    expect(answer(429, openai("Rate limit. Try again in 1m2s")).retryAfterMs).toBe(62_000);
  });

  it("may try again after a quota that says when it is renewed", () => {
    const quota = (words: string, quotaId: string) =>
      answer(
        429,
        google(429, "RESOURCE_EXHAUSTED", `You exceeded your current quota. ${words}`, [
          { violations: [{ quotaId }] },
          { retryDelay: "31s" },
        ]),
      ).failure;
    expect(quota("Please retry in 31.5s.", "TokensPerMinute")).toEqual({
      kind: "quota",
      retryable: true,
      retryAfterMs: 31_500,
      status: 429,
    });
    expect(quota("", "RequestsPerDayPerProject")).toMatchObject({ retryable: false });
    expect(quota("Metric a, limit: 0.", "TokensPerMinute")).toMatchObject({ retryable: false });
  });

  it("finds the request's id", () => {
    const ids = { "x-request-id": "a", "request-id": "b", "x-amzn-requestid": "c", "cf-ray": "d" };
    expect(answer(500, "", ids).requestId).toBe("a");
    expect(answer(500, "", { "apim-request-id": "e", "cf-ray": "d" }).requestId).toBe("e");
    expect(answer(500, { request_id: "f", error: "x" }, { "cf-ray": "d" }).requestId).toBe("f");
    expect(answer(500, "", { "cf-ray": "d" }).requestId).toBe("d");
    expect(answer(500, "").failure).not.toHaveProperty("requestId");
  });

  it("cuts long words, never inside a character", () => {
    const error = answer(400, `${"x".repeat(MAX_SERVICE_WORDS - 2)}${"😀".repeat(9)}`);
    const words = error.message.slice("Acme answered 400: ".length).split(" ")[0] ?? "";
    expect(words).toBe(`${"x".repeat(MAX_SERVICE_WORDS - 2)}…`);
  });

  it("stays quick and calm with hostile bodies", () => {
    const deep = `${'{"error":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    for (const unit of [
      "key-",
      "sk-",
      "input tokens ",
      "api key ",
      "[",
      '{"',
      "max_tokens is ",
      "a",
    ])
      expect(answer(400, unit.repeat(200_000)).kind).toBeTypeOf("string");
    expect(answer(400, deep).kind).toBe("bad_request");
    expect(answer(400, "null").kind).toBe("bad_request");
  });
});

describe("redaction", () => {
  // Put together here so that no scanner takes them for real ones.
  const tail = "Ab12".repeat(8);
  it.each([
    `Incorrect API key provided: sk-${tail}.`,
    `Incorrect API key provided: sk-proj-Ab12****************wxyz.`,
    `Authorization: Bearer ${tail}`,
    `API key AIza${tail} was not found`,
    `GET https://acme.test/v1?key=${tail}&alt=sse failed`,
    `the api key ${tail} is invalid`,
    `invalid subscription key "${tail.toLowerCase()}"`,
    `gsk_${tail} is not known`,
    `https://user:${tail}@acme.test/ said no`,
    `token: ${tail}`,
  ])("takes the key out of: %s", (words) => {
    for (const error of [answer(401, openai(words)), explainErrorEvent(words, AT)]) {
      expect(error.message).toContain("[redacted]");
      expect(error.message).not.toMatch(/Ab12/i);
    }
  });

  it.each([
    "Missing bearer token in header",
    "the x-api-key is wrong",
    "This api key: ****wxyz is not known",
    "The key may not use acme-large-2",
    "Add a key at https://acme.test/account/api-keys-2024-settings-page",
    "over by 44 tokens (ref: 0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f)",
    "max_tokens: 100000 > 64000",
  ])("leaves as it is: %s", (words) => {
    expect(answer(400, openai(words)).message).toContain(words);
  });

  it("leaves the model's name, however long", () => {
    const model = "acme-large-instruct-20260101";
    const body = `Your key may not use ${model} today`;
    const response = { status: 403, headers: new Headers(), body };
    expect(explainErrorResponse(response, { ...AT, model }).message).toContain(body);
  });
});

describe("explainErrorEvent", () => {
  it.each<[unknown, string | undefined, FailureKind, boolean]>([
    [{ error: { message: "No.", type: "overloaded_error" } }, undefined, "overloaded", true],
    [anthropic("overloaded_error", "Overloaded"), undefined, "overloaded", true],
    [anthropic("api_error", "Oops"), undefined, "unknown", true],
    [anthropic("invalid_request_error", "No."), undefined, "bad_request", false],
    [{ error: { message: "No.", code: 503 } }, undefined, "overloaded", true],
    [{ error: { message: "No.", code: "400" } }, undefined, "bad_request", false],
    [
      { error: { message: "No.", status_code: 400, code: "tool_use_failed" } },
      undefined,
      "bad_request",
      true,
    ],
    [
      {
        type: "response.failed",
        response: { status: "failed", error: { code: "rate_limit_exceeded", message: "No." } },
      },
      undefined,
      "rate_limit",
      true,
    ],
    [{ type: "error", code: "server_error", message: "No." }, undefined, "unknown", true],
    [{ code: "insufficient_quota", message: "No." }, undefined, "quota", false],
    [{ message: "No." }, "throttlingException", "rate_limit", true],
    [{ message: "No." }, "serviceUnavailableException", "overloaded", true],
    [{ message: "No." }, "modelTimeoutException", "timeout", true],
    [{ message: "No." }, "validationException", "bad_request", false],
    [{ message: "No." }, "internalServerException", "unknown", true],
    [{ message: "No." }, "modelStreamErrorException", "unknown", true],
    [
      { message: "Model produced invalid sequence in a call" },
      "modelStreamErrorException",
      "bad_request",
      true,
    ],
    [{ message: "Input is too long for acme-large-2." }, "validationException", "overflow", false],
    [{ throttlingException: { message: "No." } }, undefined, "rate_limit", true],
    ["The server is overloaded", undefined, "overloaded", true],
    ["Something odd", undefined, "unknown", true],
    [new Error("rate limit"), undefined, "rate_limit", true],
    [undefined, undefined, "unknown", true],
    [null, undefined, "unknown", true],
    [[], undefined, "unknown", true],
  ])("judges %j (%s)", (payload, name, kind, retryable) => {
    expect(explainErrorEvent(payload, AT, name).failure).toMatchObject({ kind, retryable });
  });

  it("says what happened and what to do", () => {
    expect(explainErrorEvent({ error: { message: "Too busy", code: 503 } }, AT).message).toBe(
      "Acme ended its response with an error: Too busy. Try again in a while, or use another model.",
    );
    expect(explainErrorEvent({}, AT).message).toBe(
      "Acme ended its response with an error that has no message. Try again in a while.",
    );
    expect(explainErrorEvent({}, AT, "internalServerException").message).toContain(
      ": internalServerException.",
    );
  });
});
