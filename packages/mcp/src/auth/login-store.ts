import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type {
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { isFields } from "../contract/fields.ts";
import { readPrivateJson, writePrivateJson } from "../config/private-json.ts";

/** What a login is of: a server by its name, the one who configured it, and its address. */
export interface LoginKey {
  name: string;
  scope: string;
  /** Another address is another server, whatever its name. */
  url: string;
}

/** What is remembered of a login to a server. All of it is secret. */
export interface StoredLogin {
  tokens?: StoredOAuthTokens;
  /** Milliseconds since 1970 at which the access token ends. */
  expiresAt?: number;
  /** What the authorization server knows us by. */
  client?: StoredOAuthClientInformation;
  /** The authorization server that the client of the configuration belongs to. */
  ownIssuer?: string;
  /** The address that the client was registered with. */
  redirectUrl?: string;
  /** Where the authorization server has what. */
  discovery?: OAuthDiscoveryState;
}

/** Keeps logins. */
export interface LoginStore {
  read(key: LoginKey): StoredLogin | undefined;
  /** Undefined: forgets it. */
  write(key: LoginKey, login: StoredLogin | undefined): void;
}

/** Logins that last as long as the process. */
export function memoryLogins(): LoginStore {
  const logins = new Map<string, StoredLogin>();
  return {
    read: (key) => logins.get(formatKey(key)),
    write(key, login) {
      if (login) logins.set(formatKey(key), login);
      else logins.delete(formatKey(key));
    },
  };
}

/**
 * Logins in a folder, a file each, their owner's alone (0600): what two processes write for two
 * servers does not get in each other's way. Its methods throw where the folder cannot be used.
 */
export function fileLogins(folder: string): LoginStore {
  const place = (key: LoginKey): string => {
    const name = key.name.replace(/[^\w-]+/g, "_").slice(0, MAX_NAME_CHARS);
    const mark = createHash("sha256").update(formatKey(key)).digest("hex").slice(0, MARK_CHARS);
    return join(folder, `${name}-${mark}.json`);
  };
  return {
    read(key) {
      const value = readPrivateJson(place(key));
      return isStoredLogin(value) ? value : undefined;
    },
    write(key, login) {
      if (login) writePrivateJson(place(key), login);
      else rmSync(place(key), { force: true });
    },
  };
}

const MAX_NAME_CHARS = 40;
const MARK_CHARS = 32;

function formatKey({ name, scope, url }: LoginKey): string {
  return JSON.stringify([scope, name, url]);
}

/** The file is ours alone, but may be of another version: then a login is due again. */
function isStoredLogin(value: unknown): value is StoredLogin {
  if (!isFields(value)) return false;
  const { tokens, client, discovery, expiresAt, ownIssuer, redirectUrl } = value;
  const hasToken = isFields(tokens) && typeof tokens["access_token"] === "string";
  const hasClient = isFields(client) && typeof client["client_id"] === "string";
  return (
    (tokens === undefined || hasToken) &&
    (client === undefined || hasClient) &&
    (discovery === undefined || isFields(discovery)) &&
    (expiresAt === undefined || typeof expiresAt === "number") &&
    (ownIssuer === undefined || typeof ownIssuer === "string") &&
    (redirectUrl === undefined || typeof redirectUrl === "string")
  );
}
