import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { record, replay, type ReplayClient } from "../testing/cassette.ts";
import type { ProtocolClient } from "../client/client.ts";

export { createModelClient, createProviderConfig, type ModelClientOptions } from "./client.ts";
export { createProxyFetch, httpFetch } from "./http/http-fetch.ts";
export { KeyCommandError, KeyFileError } from "./keys/key-error.ts";
export {
  createKeyStore,
  type KeyListing,
  type KeyRequest,
  type KeyOptions,
  type KeyPlace,
  type KeyStore,
  MissingKeyError,
} from "./keys/keys.ts";
export * from "./user-models.ts";

/** What was said to a model is for the owner's eyes. */
const OWNER_ONLY = 0o600;

/**
 * `record` into a file, which is made with its folders where it is missing, readable
 * by its owner alone. A file that is there is added to. Throws what the file system
 * throws: at once for the first line, later as the failure of a response.
 */
export function recordToFile(client: ProtocolClient, path: string): ProtocolClient {
  mkdirSync(dirname(path), { recursive: true });
  return record(client, (line) => appendFileSync(path, `${line}\n`, { mode: OWNER_ONLY }));
}

/** `replay` of a file that `recordToFile` made. Reads it at once. */
export function replayFile(path: string): ReplayClient {
  return replay(readFileSync(path, "utf8"));
}
export { MissingPackageError } from "./accounts/optional-package.ts";
export { OAuthError, type OAuthProvider, type OAuthTokens } from "./oauth/provider.ts";
export { type DeviceLoginOptions, login, loginByDevice, type LoginOptions } from "./oauth/login.ts";
export { createOAuthStore, type OAuthStore, type OAuthStoreOptions } from "./oauth/tokens.ts";
