import { type Clock, systemClock } from "../../common/clock.ts";
import { isRecord } from "../../common/records.ts";
import type { Fetch } from "../../providers/http/fetch.ts";
import { httpFetch } from "../http/http-fetch.ts";
import { defaultKeyFile, readKeyFile, writeKeyFile } from "../keys/key-file.ts";
import type { KeyRequest } from "../keys/keys.ts";
import { OAuthError, type OAuthProvider, type OAuthTokens } from "./provider.ts";
import { requestTokens } from "./token-request.ts";

/** A token is renewed this long before it ends. */
const EARLY_MS = 60_000;

export interface OAuthStoreOptions {
  /** Default: the key file of the user, which is its owner's alone (mode 0600). */
  file?: string;
  env?: Readonly<Record<string, string | undefined>>;
  fetch?: Fetch;
  clock?: Clock;
}

/** The tokens of logins in the key file, each under the id of its service. */
export interface OAuthStore {
  /**
   * A token for a request, renewed where it is about to end. Undefined where no person has logged in. Rejects with
   * `OAuthError` where it cannot be renewed: then a person has to log in again.
   */
  get(service: Pick<KeyRequest, "id">, signal?: AbortSignal): Promise<string | undefined>;
  save(id: string, tokens: OAuthTokens): Promise<void>;
  /** Answers whether there was a login. */
  remove(id: string): Promise<boolean>;
}

/**
 * Keeps the tokens of `providers`. Several processes may have one file: where another has renewed a token meanwhile,
 * that one is used.
 */
export function createOAuthStore(
  providers: readonly OAuthProvider[],
  options: OAuthStoreOptions = {},
): OAuthStore {
  const { env = process.env, fetch = httpFetch, clock = systemClock } = options;
  const { file = defaultKeyFile(env) } = options;
  const renewals = new Map<string, Promise<OAuthTokens>>();

  const read = async (id: string): Promise<OAuthTokens | undefined> =>
    parseTokens((await readKeyFile(file)).get(id));

  async function save(id: string, tokens: OAuthTokens): Promise<void> {
    const entries = await readKeyFile(file);
    entries.set(id, { oauth: tokens });
    await writeKeyFile(file, entries);
  }

  async function renew(provider: OAuthProvider, old: OAuthTokens): Promise<OAuthTokens> {
    const { id, name } = provider;
    const { refreshToken } = old;
    const again = `Log in at ${name} again.`;
    if (refreshToken === undefined) {
      throw new OAuthError("expired_token", `The login at ${name} has ended. ${again}`);
    }
    try {
      const fields = { grant_type: "refresh_token", refresh_token: refreshToken };
      const given = await requestTokens(provider, fields, { fetch, clock });
      // Most servers give no other one for renewals.
      const tokens = { refreshToken, ...given };
      await save(id, tokens);
      return tokens;
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code !== "invalid_grant") throw error;
      const now = await read(id);
      if (now && now.refreshToken !== refreshToken) return now;
      throw new OAuthError(error.code, `The login at ${name} is not valid any more. ${again}`);
    }
  }

  return {
    async get({ id }, signal) {
      const provider = providers.find((one) => one.id === id);
      const tokens = provider && (await read(id));
      if (!provider || !tokens) return undefined;
      const { expiresAt = Number.POSITIVE_INFINITY } = tokens;
      if (expiresAt - clock.now() > EARLY_MS) return tokens.accessToken;
      // Requests that come meanwhile share a renewal: a second one would end the first's token.
      const renewal =
        renewals.get(id) ?? renew(provider, tokens).finally(() => renewals.delete(id));
      renewals.set(id, renewal);
      const { accessToken } = await renewal;
      signal?.throwIfAborted();
      return accessToken;
    },
    save,
    async remove(id) {
      const entries = await readKeyFile(file);
      if (!parseTokens(entries.get(id))) return false;
      entries.delete(id);
      await writeKeyFile(file, entries);
      return true;
    },
  };
}

function parseTokens(entry: unknown): OAuthTokens | undefined {
  const value = isRecord(entry) ? entry["oauth"] : undefined;
  if (!isRecord(value)) return undefined;
  const { accessToken, refreshToken, expiresAt, scope } = value;
  if (typeof accessToken !== "string") return undefined;
  return {
    accessToken,
    ...(typeof refreshToken === "string" && { refreshToken }),
    ...(typeof expiresAt === "number" && { expiresAt }),
    ...(typeof scope === "string" && { scope }),
  };
}
