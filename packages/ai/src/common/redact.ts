/** What stands where a secret stood. */
export const REDACTED = "[redacted]";

/** A given secret that is shorter is a dummy, as local servers take them: it would match everywhere. */
const MIN_SECRET_CHARS = 4;
/** Shorter pieces of base64 would match by chance. */
const MIN_BASE64_CHARS = 8;
/** How many bytes base64 takes at a time. */
const BASE64_GROUP = 3;
const BITS_PER_BYTE = 8;
const BITS_PER_BASE64_CHAR = 6;

/**
 * Every pattern below starts at a fixed word, and has nothing after its only open
 * repetition that could fail, so that the time is linear in the text.
 */
const VALUE = String.raw`[^\s"'\x60&,;<>()[\]{}\\]+`;

/** The start of a word, also right behind an escape of JSON or of a URL. */
const WORD_START = String.raw`(?:(?<![A-Za-z0-9])|(?<=\\[a-z]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}))`;

const AWS_ID = String.raw`(?:AKIA|ASIA)[A-Z0-9]{16}`;

/** Keys that are known by how they begin. */
const KNOWN_KEYS = new RegExp(
  `${WORD_START}(?:${[
    "c?sk-[A-Za-z0-9_-]{8,}",
    "AIza[A-Za-z0-9_-]{16,}",
    "(?:gsk|hf|fw|r8)_[A-Za-z0-9]{16,}",
    "(?:xai|pplx|nvapi)-[A-Za-z0-9_-]{16,}",
    "gh[a-z]_[A-Za-z0-9]{16,}",
    "github_pat_[A-Za-z0-9_]{16,}",
    "ABSK[A-Za-z0-9+/=]{32,}",
    String.raw`ya29\.[A-Za-z0-9._-]{16,}`,
    AWS_ID,
  ].join("|")})`,
  "g",
);

const HAS_AWS_ID = new RegExp(WORD_START + AWS_ID);
/** The secret half of an AWS pair is known only by its length and by the id near it. */
const AWS_SECRET = /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])/g;
/** A commit has as many characters. */
const HEX_ONLY = /^[0-9a-f]+$/i;

/** "Bearer auth" and the like are advice, not a key. */
const ADVICE = String.raw`(?:auth|authentication|authorization|tokens?|scheme|header)(?![\w~+/=-]|\.\w)`;
const BEARER = new RegExp(String.raw`(bearer(?:[ \t]{1,8}|%20|\+))(?!${ADVICE})${VALUE}`, "gi");

/** Between a name and its value, as headers, JSON, JSON in a string and URLs write it. */
const IS = String.raw`(?:\\?["'])?(?:[ \t]{0,8}[:=][ \t]{0,8}|%3D)(?:\\?["'])?`;
const NAMED = new RegExp(
  String.raw`((?:api[-_]?key|subscription-key|secret[-_]?access[-_]?key|(?:access|security|session|auth)[-_]?token|client[-_]?secret)${IS})${VALUE}`,
  "gi",
);
/** Keys in addresses, and what makes an address a key itself: signatures of S3, Google Cloud, Azure and CloudFront. */
const SIGNATURES = "x-(?:amz|goog)-(?:credential|signature)|signature|policy|sig";
const QUERY_KEY = new RegExp(
  `((?:^|[?&]|%3F|%26)(?:key|token|${SIGNATURES})(?:=|%3D))${VALUE}`,
  "gi",
);
const SCHEME = String.raw`(?:basic|digest|key|token)[ \t]{1,8}`;
/** What was redacted already stays: else its scheme would be taken for the credential. */
const AUTHORIZATION = new RegExp(
  String.raw`(authorization${IS}(?:${SCHEME})?)(?!bearer|${SCHEME}\[redacted\])${VALUE}`,
  "gi",
);
const COOKIE = new RegExp(String.raw`(cookie(?:\\?["'])?[ \t]{0,8}:[ \t]{0,8})[^\r\n"\\]+`, "gi");
const URL_PASSWORD = /(:\/\/[^\s/?#@:]{0,256}:)[^\s/?#@]{1,1024}(?=@)/g;
const ESCAPED_PASSWORD = /(%3A%2F%2F[^\s%]{0,256}%3A)[^\s%]{1,1024}(?=%40)/gi;

const PATTERNS: readonly RegExp[] = [
  ...[BEARER, AUTHORIZATION, NAMED, QUERY_KEY, COOKIE, URL_PASSWORD, ESCAPED_PASSWORD],
];

const SECRET_HEADER =
  /(?:^|-)(?:authorization|cookie|(?:api|subscription|access|secret)-?key|(?:security|session|access|auth|subscription)-?token|secret|password)$/i;

/**
 * The text with `[redacted]` for each of the secrets, also where they are written in
 * base64, JSON or a URL, and for all that looks like a key of a known service, a
 * credential of a header or the value of a key in a URL. A given secret of fewer than
 * four characters is taken for a dummy. Takes time in proportion to the text.
 */
export function redact(text: string, secrets: readonly string[] = []): string {
  const forms = [...new Set(secrets.flatMap(listForms))];
  // The longest first: one secret may be the beginning of another.
  forms.sort((a, b) => b.length - a.length);
  // No pattern is made of them: one that fails to compile is quoted in the error.
  const pieces = forms.reduce((all, form) => all.flatMap((piece) => piece.split(form)), [text]);
  const given = pieces.join(REDACTED);
  // Asked of the text as it came: the id may be one of the secrets.
  const paired = HAS_AWS_ID.test(text)
    ? given.replace(AWS_SECRET, (found) => (HEX_ONLY.test(found) ? found : REDACTED))
    : given;
  let hidden = paired.replace(KNOWN_KEYS, REDACTED);
  for (const pattern of PATTERNS) hidden = hidden.replace(pattern, `$1${REDACTED}`);
  return hidden;
}

interface WalkedHeaders {
  forEach(take: (value: string, name: string) => void): void;
}

type HeaderList = WalkedHeaders | Readonly<Record<string, string>>;

/** The headers as they may be shown: credentials hidden, what is left put through `redact`. */
export function redactHeaders(headers: HeaderList): Record<string, string> {
  return Object.fromEntries(
    listEntries(headers).map(([name, value]) => [
      name,
      SECRET_HEADER.test(name) ? REDACTED : redact(value),
    ]),
  );
}

/**
 * What of a model and of the options of a request must not be shown: the key, and the
 * values of headers that hold credentials. For the second argument of `redact`.
 */
export function listSecrets(
  ...sources: readonly { apiKey?: string; headers?: Readonly<Record<string, string>> }[]
): string[] {
  return sources.flatMap(({ apiKey, headers = {} }) => {
    const values = listEntries(headers).flatMap(([name, value]) =>
      // With the scheme and without: an error may name the token alone.
      SECRET_HEADER.test(name) ? [value, value.slice(value.lastIndexOf(" ") + 1)] : [],
    );
    return apiKey === undefined ? values : [apiKey, ...values];
  });
}

function listEntries(headers: HeaderList): [string, string][] {
  if (!isHeaders(headers)) return Object.entries(headers);
  const entries: [string, string][] = [];
  headers.forEach((value, name) => entries.push([name, value]));
  return entries;
}

/** Not by its class: to name that is to load all of `fetch`, where it is loaded when it is named. */
function isHeaders(headers: HeaderList): headers is WalkedHeaders {
  return typeof headers["forEach"] === "function";
}

/** A secret in all the ways in which it is likely to be written. */
function listForms(secret: string): string[] {
  if (secret.length < MIN_SECRET_CHARS) return [];
  const bytes = new TextEncoder().encode(secret);
  // Decoded again, because half a surrogate pair has no form in a URL.
  const inUrl = encodeURIComponent(new TextDecoder().decode(bytes));
  const lowerCase = inUrl.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  const inJson = JSON.stringify(secret).slice(1, -1);
  return [secret, inUrl, lowerCase, inJson, ...base64Forms(bytes)];
}

/**
 * The secret in base64, whole and as it looks inside something longer: that depends
 * on where in a group of three bytes it begins. Of the latter without the characters
 * that it shares with its neighbors.
 */
function base64Forms(bytes: Uint8Array): string[] {
  const whole = base64(bytes);
  const forms = [whole, whole.replaceAll("=", "")];
  for (let before = 0; before < BASE64_GROUP; before++) {
    const shifted = new Uint8Array(before + bytes.length);
    shifted.set(bytes, before);
    const from = Math.ceil((before * BITS_PER_BYTE) / BITS_PER_BASE64_CHAR);
    const to = Math.floor((shifted.length * BITS_PER_BYTE) / BITS_PER_BASE64_CHAR);
    forms.push(base64(shifted).slice(from, to));
  }
  const long = forms.filter((form) => form.length >= MIN_BASE64_CHARS);
  return long.flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
}

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}
