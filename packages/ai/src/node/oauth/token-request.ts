import type { Clock } from "../../common/clock.ts";
import { isRecord } from "../../common/records.ts";
import type { Fetch } from "../../providers/http/fetch.ts";
import { OAuthError, type OAuthProvider, type OAuthTokens } from "./provider.ts";

/** How long the server of tokens may take, and how much it may answer. */
const ANSWER_MS = 30_000;
const MAX_ANSWER_BYTES = 262_144;

export interface OAuthContext {
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** The answer to a form. Rejects with `OAuthError` for an error that the server names, and for what is no answer. */
export async function sendForm(
  url: string,
  fields: Readonly<Record<string, string | undefined>>,
  { fetch, signal }: OAuthContext,
): Promise<Record<string, unknown>> {
  checkUrl(url);
  const limit = AbortSignal.timeout(ANSWER_MS);
  const body = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) body.set(name, value);
  }
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
    body: body.toString(),
    redirect: "manual",
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
  });
  const answer = parse(await readLimited(response.body));
  const { error, error_description: description } = answer;
  if (typeof error === "string") {
    const more = typeof description === "string" ? `: ${description}` : "";
    throw new OAuthError(error, `${new URL(url).host} answered ${error}${more}`);
  }
  if (!response.ok) {
    throw new OAuthError(
      "server_error",
      `${new URL(url).host} answered with status ${response.status}.`,
    );
  }
  return answer;
}

/** Tokens that a form gives. */
export async function requestTokens(
  provider: OAuthProvider,
  fields: Readonly<Record<string, string | undefined>>,
  context: OAuthContext,
): Promise<OAuthTokens> {
  const { clientId, clientSecret, tokenUrl } = provider;
  const form = { client_id: clientId, client_secret: clientSecret, ...fields };
  const answer = await sendForm(tokenUrl, form, context);
  const { access_token: accessToken, refresh_token: refreshToken, scope } = answer;
  const seconds = Number(answer["expires_in"]);
  if (typeof accessToken !== "string" || accessToken === "") {
    throw new OAuthError("invalid_response", `${new URL(tokenUrl).host} gave no access token.`);
  }
  return {
    accessToken,
    ...(typeof refreshToken === "string" && { refreshToken }),
    ...(seconds > 0 && { expiresAt: context.clock.now() + seconds * 1000 }),
    ...(typeof scope === "string" && { scope }),
  };
}

/** Tokens go over TLS, except to this machine. */
export function checkUrl(url: string): void {
  const { protocol, hostname } = new URL(url);
  if (protocol === "https:" || ["127.0.0.1", "[::1]", "localhost"].includes(hostname)) return;
  throw new OAuthError("insecure_address", `Tokens are not sent to ${url}: it is not https.`);
}

async function readLimited(body: ReadableStream<Uint8Array> | null): Promise<string> {
  if (!body) return "";
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(parts).toString("utf8");
    size += value.byteLength;
    if (size > MAX_ANSWER_BYTES) {
      await reader.cancel();
      throw new OAuthError("invalid_response", "The answer for a token is too long.");
    }
    parts.push(value);
  }
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
