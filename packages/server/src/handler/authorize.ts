import { isRecord } from "@gyre/ai";
import type { Identity } from "@gyre/protocol";
import { findSentToken } from "@gyre/protocol/http";

/**
 * Says who sends a request, or answers it: with 401, say. Called before anything else is done for a
 * request, and before a WebSocket is accepted. Leave the body unread. What it throws is answered with
 * 500 and without its message.
 */
export type Authorize = (request: Request) => Identity | Response | Promise<Identity | Response>;

const UNAUTHORIZED = 401;
/** The least length of a token. */
const MIN_TOKEN_CHARS = 16;

/**
 * The token of a request, as clients of `connectUrl(url, { token })` send it: `Authorization: Bearer`,
 * or a subprotocol of a WebSocket, where pages can set no header.
 */
export function readToken(request: Request): string | undefined {
  return findSentToken((name) => request.headers.get(name) ?? undefined);
}

/**
 * Knows users by the tokens that they send: `{ [token]: { user: "ada" } }`. Throws on a token of less
 * than 16 characters. For tokens that expire, or are signed, use `readToken`.
 */
export function authorizeByToken(users: Readonly<Record<string, Identity>>): Authorize {
  const known = Object.entries(users).map(([token, identity]) => {
    if (token.length < MIN_TOKEN_CHARS) {
      throw new Error(
        `The token of "${identity.user}" has less than ${MIN_TOKEN_CHARS} characters.`,
      );
    }
    return { digest: computeDigest(token), identity };
  });
  return async (request) => {
    const token = readToken(request);
    if (token === undefined) return refuse('A token is needed: "Authorization: Bearer …".');
    const given = await computeDigest(token);
    let found: Identity | undefined;
    // All are compared: the time that it takes says nothing about a token.
    for (const { digest, identity } of known) if ((await digest) === given) found = identity;
    return found ?? refuse("This is not a token of this server.");
  };
}

/** The refusal in the form that clients of the protocol read, and then stop to try. */
function refuse(message: string): Response {
  return Response.json({ error: { code: "unauthorized", message } }, { status: UNAUTHORIZED });
}

/** Of digests a comparison reveals nothing about what they were made of. */
async function computeDigest(text: string): Promise<string> {
  const bytes = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return String(new Uint8Array(bytes));
}

/** What `authorize` gave, checked: what is neither an identity nor a response lets no client in. */
export function checkAuthorized(given: unknown): Identity | Response {
  if (given instanceof Response) return given;
  if (isRecord(given) && isText(given["user"])) {
    const { user, tenant, roles } = given;
    if (tenant !== undefined && !isText(tenant)) throw invalid("a tenant that is no text");
    if (roles !== undefined && !(Array.isArray(roles) && roles.every(isText))) {
      throw invalid("roles that are no list of texts");
    }
    return { user, ...(tenant !== undefined && { tenant }), ...(roles !== undefined && { roles }) };
  }
  throw invalid(given === undefined || given === null ? String(given) : "no user");
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function invalid(what: string): TypeError {
  return new TypeError(`authorize returned ${what}: return { user: "…" }, or a Response.`);
}
