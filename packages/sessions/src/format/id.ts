import { nearNames } from "@gyre/ai";
import { SESSION_VERSION, type SessionHeader } from "./entry.ts";
import { type NewSession, SessionError } from "./types.ts";

/** Without letters that are taken for digits. 32 of them: a byte gives one, evenly. */
const ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
/** 60 bits: among a million sessions, two with one id are a matter of one in two million. */
const ID_CHARS = 12;
const MAX_CANDIDATES = 5;

/** A fresh id of a session. */
export function createSessionId(): string {
  let id = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(ID_CHARS))) {
    id += ID_ALPHABET[byte % ID_ALPHABET.length];
  }
  return id;
}

/** The header of a new session. `now`: in milliseconds since 1970. */
export function createHeader(
  { cwd, id = createSessionId(), from, createdAt, headless }: NewSession,
  now: number,
): SessionHeader {
  const origin = from && { from };
  return {
    type: "session",
    version: SESSION_VERSION,
    id,
    createdAt: createdAt ?? now,
    cwd,
    ...origin,
    ...(headless && { headless }),
  };
}

/**
 * The session that an id means: the one with exactly this id, else the only one whose id begins
 * with it. Throws `SessionError`: `not_found`, or `ambiguous`.
 */
export function chooseSession<S extends { id: string; path?: string }>(
  idOrPrefix: string,
  sessions: readonly S[],
): S {
  const exact = sessions.filter(({ id }) => id === idOrPrefix);
  const found =
    exact.length > 0 || idOrPrefix === ""
      ? exact
      : sessions.filter(({ id }) => id.startsWith(idOrPrefix));
  const [session, ...others] = found;
  if (session === undefined) {
    const near = nearNames(
      idOrPrefix,
      sessions.map(({ id }) => id),
    );
    const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
    throw new SessionError("not_found", `There is no session "${idOrPrefix}".${hint}`);
  }
  if (others.length > 0) {
    const names = found.map(({ id, path = id }) => (exact.length > 0 ? path : id));
    const shown = names.slice(0, MAX_CANDIDATES);
    const more = found.length > shown.length ? `, and ${found.length - shown.length} more` : "";
    throw new SessionError(
      "ambiguous",
      `"${idOrPrefix}" can mean ${found.length} sessions: ${shown.join(", ")}${more}.`,
    );
  }
  return session;
}
