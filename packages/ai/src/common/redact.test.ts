import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redact, REDACTED, redactHeaders, listSecrets } from "./redact.ts";

const MEGABYTE = 1_048_576;
/** Twenty characters as keys have them. */
const BODY = "aB3dE6gH9jK2mN5pQ8sT";
const AWS_ID = "AKIA0123456789ABCDEF";
const AWS_SECRET = "abcdefghij/ABCDEFGHIJ+0123456789abcdefgh";

const encode = (text: string): string => Buffer.from(text).toString("base64");

describe("given secrets", () => {
  const secret = "p/a+s?s-w0rd-of-the-day";

  it.each([
    ["as they are", secret],
    ["in a URL", encodeURIComponent(secret)],
    ["in a URL, in lower case", encodeURIComponent(secret).replace(/%../g, (c) => c.toLowerCase())],
    ["in base64", encode(secret)],
    ["in base64 for URLs", Buffer.from(secret).toString("base64url")],
    ["with a quote, in JSON", JSON.stringify(`${secret}"`).slice(1, -1)],
  ])("are hidden %s", (_, form) => {
    const shown = redact(`before ${form} after ${form}`, [secret, `${secret}"`]);
    expect(shown).toBe(`before ${REDACTED} after ${REDACTED}`);
  });

  it("are hidden inside longer base64, wherever they begin", () => {
    for (const user of ["", "u", "us", "use"]) {
      const shown = redact(encode(`${user}:${secret}:more`), [secret]);
      expect(shown).toContain(REDACTED);
      expect(Buffer.from(shown.split(REDACTED).join(""), "base64").toString()).not.toContain(
        secret.slice(1, -1),
      );
    }
  });

  it("are hidden whole where one is the beginning of another", () => {
    expect(redact("abcdefgh abcd", ["abcd", "abcdefgh"])).toBe(`${REDACTED} ${REDACTED}`);
  });

  it("of fewer than four characters are dummies, and the text stays readable", () => {
    expect(redact("The text is fine", ["", "e", "fin"])).toBe("The text is fine");
  });

  it("are taken by the letter: nothing in them is a pattern", () => {
    expect(redact("a.*b$& aXXb", ["a.*b$&"])).toBe(`${REDACTED} aXXb`);
  });

  it("may be long", () => {
    const secret = "x".repeat(MEGABYTE);
    expect(redact(`before ${secret} after`, [secret])).toBe(`before ${REDACTED} after`);
  });

  it("that are a part of the mark do no harm to it", () => {
    expect(redact("redacted: abcd", ["abcd", "redacted", "acte"])).toBe(`${REDACTED}: ${REDACTED}`);
  });

  it("never come through, whatever they are and whatever is around them", () => {
    const word = fc.string({ unit: "binary", minLength: 4, maxLength: 24 });
    fc.assert(
      fc.property(word, fc.string(), fc.string(), (secret, before, after) => {
        fc.pre(!REDACTED.includes(secret) && !before.includes("[") && !after.includes("]"));
        const shown = redact(`${before}${secret}${after}`, [secret]);
        // What is left on both sides of a mark may not be read as one text.
        for (const piece of shown.split(REDACTED)) expect(piece).not.toContain(secret);
      }),
    );
  });
});

describe("what looks like a key", () => {
  it.each([
    ["sk-", `sk-${BODY}`],
    ["sk-ant-", `sk-ant-api03-${BODY}_-${BODY}`],
    ["sk-proj-", `sk-proj-${BODY}`],
    ["sk-or-v1-", `sk-or-v1-${BODY}`],
    ["csk-", `csk-${BODY}`],
    ["AIza", `AIza${BODY}-_${BODY}`],
    ["gsk_", `gsk_${BODY}`],
    ["xai-", `xai-${BODY}`],
    ["ghp_", `ghp_${BODY}`],
    ["github_pat_", `github_pat_${BODY}_${BODY}`],
    ["hf_", `hf_${BODY}`],
    ["AKIA", AWS_ID],
    ["ABSK", `ABSK${BODY}${BODY}==`],
    ["ya29.", `ya29.${BODY}`],
  ])("is hidden: %s", (_, key) => {
    for (const [before, after] of [
      ["", ""],
      ["The key ", " is wrong."],
      ['{"message":"', '"}'],
      [String.raw`a line\n`, String.raw`\nanother`],
      ["?a=b%3D", "%26c"],
      ["(", ")"],
      ["KEY=", ";"],
    ]) {
      expect(redact(`${before}${key}${after}`)).toBe(`${before}${REDACTED}${after}`);
    }
  });

  it.each([
    ["Authorization: Bearer abc.def", `Authorization: Bearer ${REDACTED}`],
    ['{"authorization":"bearer abc"}', `{"authorization":"bearer ${REDACTED}"}`],
    ["authorization: Basic dXNlcjpwYXNz", `authorization: Basic ${REDACTED}`],
    ["authorization: abcdef", `authorization: ${REDACTED}`],
    ["x-api-key: abc", `x-api-key: ${REDACTED}`],
    ["'x-goog-api-key': 'abc'", `'x-goog-api-key': '${REDACTED}'`],
    [String.raw`{\"x-api-key\":\"abc\"}`, String.raw`{\"x-api-key\":\"[redacted]\"}`],
    ["https://a.test/v1?key=abc&alt=sse", `https://a.test/v1?key=${REDACTED}&alt=sse`],
    ["https://a.test/v1?alt=sse&api_key=abc", `https://a.test/v1?alt=sse&api_key=${REDACTED}`],
    ["x%3Fkey%3Dabc", `x%3Fkey%3D${REDACTED}`],
    ["apiKey=abc", `apiKey=${REDACTED}`],
    ["https://me:pass@a.test/", `https://me:${REDACTED}@a.test/`],
    ["set-cookie: a=b; c=d\nnext", `set-cookie: ${REDACTED}\nnext`],
    ["aws_secret_access_key = abc", `aws_secret_access_key = ${REDACTED}`],
    ["x-amz-security-token: abc", `x-amz-security-token: ${REDACTED}`],
  ])("is hidden by what stands before it: %s", (text, shown) => {
    expect(redact(text)).toBe(shown);
    expect(redact(shown)).toBe(shown);
  });

  it("is hidden in both halves of an AWS pair; a commit is not a key", () => {
    const commit = "0123456789abcdef0123456789abcdef01234567";
    expect(redact(`${AWS_ID}:${AWS_SECRET} at ${commit}`)).toBe(
      `${REDACTED}:${REDACTED} at ${commit}`,
    );
    expect(redact(`${AWS_ID}:${AWS_SECRET}`, [AWS_ID])).toBe(`${REDACTED}:${REDACTED}`);
    expect(redact(`${AWS_SECRET} alone`)).toBe(`${AWS_SECRET} alone`);
  });

  it.each([
    "Use Bearer auth, or a Bearer token.",
    "authentication_error: invalid x-api-key",
    "You need an API key: see the settings.",
    "the environment variable ANTHROPIC_API_KEY",
    "task-management-of-everything and desk-lamp-numbers",
    "hf_transfer is not installed; unknown key=temperature",
    "claude-sonnet-4-5, gpt-5-mini, https://a.test:8080/v1",
  ])("is not all that speaks of keys: %s", (text) => {
    expect(redact(text)).toBe(text);
  });
});

describe("a megabyte", () => {
  const fill = (piece: string): string =>
    piece.repeat(Math.ceil(MEGABYTE / piece.length)).slice(0, MEGABYTE);

  // Each of these would take minutes if a pattern went back over what it had read.
  it.each([
    "a",
    " ",
    "sk-",
    "sk-abcdefg ",
    "bearer ",
    "bearer\t\t\t\t\t\t\t\t\t",
    "api_key",
    "api_key        ",
    "authorization: basic ",
    "cookie:",
    "?key=",
    "%3D",
    "://a:",
    "://a:b",
    "AKIA",
    `${AWS_ID}/`,
    "AIza",
    "\\n",
    '\\"',
    "[redacted]",
  ])("of %j is read in one go", (piece) => {
    const text = fill(piece);
    expect(redact(text, ["aaaaaaaaaaab", "://a:://b"]).length).toBeGreaterThan(0);
  });

  it("keeps what is no secret", () => {
    const text = fill("All is well. ");
    expect(redact(`${text} sk-${BODY} ${text}`, ["secret"])).toBe(`${text} ${REDACTED} ${text}`);
  });
});

describe("headers", () => {
  it.each([
    "authorization",
    "Authorization",
    "X-Api-Key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "set-cookie",
    "x-amz-security-token",
    "proxy-authorization",
    "Ocp-Apim-Subscription-Key",
    "x-auth-token",
  ])("%s is hidden", (name) => {
    expect(redactHeaders({ [name]: "abc" })).toEqual({ [name]: REDACTED });
    expect(redactHeaders(new Headers({ [name]: "abc" }))).toEqual({
      [name.toLowerCase()]: REDACTED,
    });
  });

  it("others are shown, but for keys in them", () => {
    const headers = {
      "content-type": "application/json",
      "x-ratelimit-remaining-tokens": "99",
      "idempotency-key": "1",
      "x-note": `sk-${BODY}`,
    };
    expect(redactHeaders(headers)).toEqual({ ...headers, "x-note": REDACTED });
  });
});

it("the secrets of a request are its key and the credentials of its headers", () => {
  const model = { headers: { "api-key": "one", accept: "text/plain" } };
  const options = { apiKey: "two", headers: { Authorization: "Bearer three" } };
  expect(listSecrets(model, options, {})).toEqual(["one", "one", "two", "Bearer three", "three"]);
});
