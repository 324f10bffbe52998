import { isRecord } from "../../common/records.ts";
import { isRetryable } from "../../messages/failure.ts";
import type { Failure, FailureKind } from "../../messages/messages.ts";
import { ProviderError } from "./provider-error.ts";
import { cleanText, isLoopback, MAX_TEXT, parseHost, redact, truncate } from "./text.ts";

/** How many causes are followed, and how many errors of a list are read. */
const MAX_DEPTH = 8;
const MAX_LIST = 8;

/**
 * Explains what `fetch` or the reading of a body threw. `began`: bytes of the body had come;
 * `setBy`: the setting that holds the address. A `ProviderError` is returned as it is. The
 * original becomes `cause`, unless its message holds something that looks like a key.
 */
export function explainTransportError(
  error: unknown,
  at: { service: string; model: string; url: string; began: boolean; setBy?: string },
): ProviderError {
  if (error instanceof ProviderError) return error;
  const chain = listCauses(error);
  const { kind, retryable, sign, what, todo } = describeTransportError(chain, at);
  const failure: Failure = { kind, retryable: retryable ?? isRetryable({ kind }) };
  const message = `${what}${sign === "" ? "" : ` (${redact(sign, at.model)})`}. ${todo}`;
  const clean = chain.every(({ message }) => redact(message, at.model) === message);
  return new ProviderError(message, failure, clean ? { cause: error } : {});
}

interface TransportFailure {
  kind: FailureKind;
  retryable?: boolean;
  /** The code or the text by which the error was recognized. */
  sign: string;
  what: string;
  todo: string;
}

interface Cause {
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
const CONNECTION_TEXT =
  /^(?:terminated|fetch failed|failed to fetch|load failed|network ?error)|\bsocket\b|\bnetwork\b|\bconnection\b|\bother side closed\b|\bpremature close\b|\bdecod|\bdecompress|\bunexpected end of file\b|\bincorrect header check\b/i;
const ADDRESS_TEXT = /\b(?:invalid url|failed to parse url|unknown scheme)\b/i;
const PORT_TEXT = /\bbad port\b/i;
const HEADER_TEXT =
  /\binvalid header value\b|\bbytestring\b|\binvalid (?:header|value).*\bheaders?\b/i;

function describeTransportError(
  chain: readonly Cause[],
  at: { service: string; url: string; began: boolean; setBy?: string },
): TransportFailure {
  const host = parseHost(at.url) || "the address that was given";
  const findCode = (pattern: RegExp): string | undefined =>
    chain.find(({ code }) => pattern.test(code))?.code;
  const findMessage = (pattern: RegExp): string | undefined =>
    chain.findLast(({ message }) => pattern.test(message))?.message;
  const hasName = (name: string): boolean => chain.some((link) => link.name === name);

  const fail = (
    kind: FailureKind,
    sign: string,
    what: string,
    todo: string,
    retryable?: boolean,
  ): TransportFailure => ({
    kind,
    sign,
    what,
    todo,
    ...(retryable !== undefined && { retryable }),
  });

  const sender = `${at.service} at ${host}`;
  let sign = findCode(STALLED_CODES);
  if (sign !== undefined) return fail("stalled", sign, `${sender} stopped sending`, "Try again.");
  sign = findCode(WAITED_CODES) ?? (hasName("TimeoutError") ? "TimeoutError" : undefined);
  if (sign !== undefined) {
    const what = `${sender} did not answer in time`;
    return fail("timeout", sign, what, "Try again, or allow more time.");
  }
  if (hasName("AbortError"))
    return fail("aborted", "", "The request was aborted", "Send it again.");
  if (findMessage(HEADER_TEXT) !== undefined) {
    const what = `A header for ${host} holds a character that HTTP does not allow`;
    // Without the message: it quotes the header, which may be the key.
    return fail("bad_request", "", what, `Check the key for ${at.service} for stray characters.`);
  }
  const port = findMessage(PORT_TEXT) && "bad port";
  sign = port ?? findCode(/^ERR_INVALID_URL$/) ?? (findMessage(ADDRESS_TEXT) && "invalid address");
  if (sign !== undefined) {
    const rule = port ? "fetch refuses this port" : "it begins with http:// or https://";
    const todo = `Correct ${at.setBy || "it"}; ${rule}.`;
    return fail("bad_request", sign, `The address of ${at.service} cannot be used`, todo);
  }
  sign = findCode(REFUSED_CODES);
  if (sign !== undefined) {
    const todo = `Check that ${at.service} runs there, and its address.`;
    // A local server does not start because of a retry.
    const retryable = isLoopback(host) ? false : undefined;
    return fail("network", sign, `Nothing answers at ${host}`, todo, retryable);
  }
  sign = findCode(NAME_CODES);
  if (sign !== undefined) {
    const todo = `Check the address of ${at.service} and the connection to the network.`;
    return fail("network", sign, `The name ${host} was not found`, todo);
  }
  sign = findCode(CERTIFICATE_CODES);
  if (sign !== undefined) {
    const todo = "Check the address, the clock of this machine and any proxy in between.";
    return fail("network", sign, `The certificate of ${host} is not trusted`, todo, false);
  }
  sign = findCode(CONNECTION_CODES) ?? findCode(DECODING_CODES) ?? findMessage(CONNECTION_TEXT);
  const first = chain[0]?.message ?? "";
  // The end of the body did not come, whatever the reason.
  if (at.began) {
    const what = `The response of ${at.service} from ${host} broke off`;
    return fail("incomplete", shorten(sign ?? first), what, "Try again.");
  }
  if (sign !== undefined) {
    const todo = `Check the network, and that ${at.service} can be reached from here.`;
    return fail("network", shorten(sign), `The connection to ${host} failed`, todo);
  }
  const todo = `Check the settings for ${at.service}.`;
  return fail("unknown", shorten(first), `The request to ${host} failed`, todo);
}

const MAX_SIGN = 200;

function shorten(text: string): string {
  return truncate(cleanText(text), MAX_SIGN).replace(/\.+$/, "");
}

/** The error and its causes, from the outside in. */
function listCauses(error: unknown): Cause[] {
  const causes: Cause[] = [];
  const visit = (value: unknown, depth: number): void => {
    if (depth > MAX_DEPTH || value === undefined || value === null) return;
    if (!isRecord(value)) {
      const message = typeof value === "string" ? value.slice(0, MAX_TEXT) : "";
      causes.push({ code: "", name: "", message });
      return;
    }
    const text = (key: string): string =>
      typeof value[key] === "string" ? value[key].slice(0, MAX_TEXT) : "";
    causes.push({ code: text("code"), name: text("name"), message: text("message") });
    visit(value["cause"], depth + 1);
    // An error for each address that was tried.
    if (Array.isArray(value["errors"]))
      for (const inner of value["errors"].slice(0, MAX_LIST)) visit(inner, depth + 1);
  };
  visit(error, 0);
  return causes;
}
