/** A service that gives tokens to people who log in, by OAuth 2. Which services permit that is for them to say. */
export interface OAuthProvider {
  /** The id of the service whose key the token is: what models carry in `provider`. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  readonly clientId: string;
  /** Of an app whose secret is no secret, as those on users' machines; most have none. */
  readonly clientSecret?: string;
  readonly tokenUrl: string;
  /** Where a person logs in with a browser on this machine. */
  readonly authorizationUrl?: string;
  /** Where a code is had that a person enters on any other machine (RFC 8628). */
  readonly deviceUrl?: string;
  readonly scopes?: readonly string[];
  /** Further parameters of the address that a person is sent to. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Where the browser comes back to, on 127.0.0.1. Default: any free port, and `/callback`. */
  readonly redirect?: { readonly port?: number; readonly path?: string };
}

/** What a login gives. */
export interface OAuthTokens {
  readonly accessToken: string;
  readonly refreshToken?: string;
  /** Milliseconds since 1970. Absent: it is not known when it ends. */
  readonly expiresAt?: number;
  readonly scope?: string;
}

/** A login, or the renewal of one, has failed. `code` is that of the service (`access_denied`), or our own. */
export class OAuthError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.name = "OAuthError";
    this.code = code;
  }
}
