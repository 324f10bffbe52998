import { randomUUID } from "node:crypto";
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { type Clock, errorMessage, redact } from "@gyre/ai";
import { sanitize } from "@gyre/ai/text";
import type { McpFetch } from "../contract/fetch.ts";
import type { McpOAuth } from "../config/config.ts";
import { McpError } from "../contract/error.ts";
import { guardedFetch, LoginProblem, type Lookup } from "./guarded-fetch.ts";
import type { LoginKey, LoginStore, StoredLogin } from "./login-store.ts";
import type { McpLogin } from "./login.ts";

/** Challenges of one request that are answered; then the server's refusal is the answer. */
const MAX_CHALLENGES = 2;
/** An access token is renewed this long before it ends. */
const RENEW_BEFORE_MS = 30_000;
const MAX_ERROR_CHARS = 300;
const MS_PER_SECOND = 1_000;
const STATUS = { unauthorized: 401, forbidden: 403 } as const;

/** A person has to log in before the server can be used. */
export class McpLoginError extends McpError {
  readonly needsLogin = true;
}

export interface OAuthSessionOptions {
  key: LoginKey;
  oauth: McpOAuth;
  store: LoginStore;
  /** For all requests of a login. */
  fetch: McpFetch;
  /** Opens the way to a person. Default: only what is stored is used, and renewed. */
  openLogin?: (options: { port?: number }) => Promise<McpLogin>;
  clock: Clock;
  lookup?: Lookup;
}

/** What a server wants before it answers. */
interface Challenge {
  /** It knows who we are, and wants that we may do more. */
  isStepUp: boolean;
  scope?: string;
  resourceMetadataUrl?: URL;
}

/** What a browser brings back. */
interface Granted {
  code: string;
  /** The authorization server that says so. */
  iss?: string;
}

/** The logins of one server: adds its token to requests, and gets another one where that is refused. */
export class OAuthSession {
  readonly #options: OAuthSessionOptions;
  readonly #server: URL;
  readonly #fetch: McpFetch;
  #login: StoredLogin | undefined;
  /** Renewing or logging in: all that are refused meanwhile wait for the same. */
  #working: Promise<void> | undefined;
  /** Scopes that a person was asked for. A server that wants the same again is not satisfied by them. */
  readonly #asked = new Set<string>();

  constructor(options: OAuthSessionOptions) {
    this.#options = options;
    this.#server = new URL(options.key.url);
    this.#fetch = guardedFetch(this.#server, options.fetch, options.lookup);
  }

  /** The same `fetch`, with our token for requests to the server. */
  wrap(fetch: McpFetch): McpFetch {
    return async (url, init) => {
      let token = await this.#token(init?.signal ?? undefined);
      let response = await fetch(url, withToken(init, token));
      for (let count = 0; count < MAX_CHALLENGES; count++) {
        const challenge = await readChallenge(response);
        // Without a header, a login may be found all the same; a person has to be there for that.
        const isPlain = !response.headers.has("www-authenticate");
        if (!challenge || (isPlain && !this.#options.openLogin)) break;
        await response.body?.cancel();
        await this.#renew(challenge, token, init?.signal ?? undefined);
        token = this.#login?.tokens?.access_token;
        response = await fetch(url, withToken(init, token));
      }
      return response;
    };
  }

  /** Has a person log in, whatever is stored. Rejects with `McpError`. */
  async logIn(signal?: AbortSignal): Promise<void> {
    await this.#once(() => this.#askPerson({ isStepUp: false }, signal));
  }

  /** Forgets all of it. */
  logOut(): void {
    this.#login = undefined;
    this.#options.store.write(this.#options.key, undefined);
  }

  async #token(signal: AbortSignal | undefined): Promise<string | undefined> {
    this.#login ??= this.#options.store.read(this.#options.key);
    const { tokens, expiresAt } = this.#login ?? {};
    const isOver =
      expiresAt !== undefined && expiresAt - RENEW_BEFORE_MS <= this.#options.clock.now();
    if (isOver && tokens?.refresh_token !== undefined) {
      await this.#once(async () => void (await this.#refresh(signal)));
    }
    return this.#login?.tokens?.access_token;
  }

  #once(work: () => Promise<void>): Promise<void> {
    this.#working ??= work().finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  /** Gets a token that may do what is asked, after one (or none) was refused. */
  async #renew(
    challenge: Challenge,
    refused: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    await this.#once(async () => {
      const before = this.#login;
      this.#login = this.#options.store.read(this.#options.key) ?? before;
      // Another request, or another process, has a new one by now.
      const current = this.#login?.tokens?.access_token;
      if (current !== undefined && current !== refused) return;
      if (!challenge.isStepUp && (await this.#refresh(signal))) return;
      await this.#askPerson(challenge, signal);
    });
  }

  /** Whether there is a new token. */
  async #refresh(signal: AbortSignal | undefined): Promise<boolean> {
    const sdk = await import("@modelcontextprotocol/client");
    const { tokens, discovery } = this.#login ?? {};
    const client = this.#ownClient(tokens?.issuer) ?? this.#login?.client;
    if (!tokens?.refresh_token || !client || !discovery) return false;
    const resource = discovery.resourceMetadata?.resource;
    try {
      const renewed = await sdk.refreshAuthorization(discovery.authorizationServerUrl, {
        clientInformation: client,
        refreshToken: tokens.refresh_token,
        fetchFn: this.#fetchWith(signal),
        ...(discovery.authorizationServerMetadata && {
          metadata: discovery.authorizationServerMetadata,
        }),
        ...(resource !== undefined && { resource }),
      });
      const { issuer } = tokens;
      const scope = renewed.scope ?? tokens.scope;
      this.#keepTokens({
        ...renewed,
        ...(scope !== undefined && { scope }),
        ...(issuer !== undefined && { issuer }),
      });
      return true;
    } catch (error) {
      if (!(error instanceof sdk.OAuthError)) throw await this.#explained(error);
      // Another process may have used it up, and has the one that came of it.
      const stored = this.#options.store.read(this.#options.key);
      const isNewer = stored?.tokens && stored.tokens.access_token !== tokens.access_token;
      const { tokens: _, expiresAt: _1, ...rest } = this.#login ?? {};
      this.#keep(isNewer ? stored : rest);
      return isNewer === true;
    }
  }

  async #askPerson(challenge: Challenge, signal = new AbortController().signal): Promise<void> {
    const { openLogin, oauth } = this.#options;
    const { name } = this.#options.key;
    if (!openLogin) throw new McpLoginError(`The MCP server "${name}" wants a login.`);
    const port = oauth.callbackPort;
    const login = await openLogin(port === undefined ? {} : { port });
    try {
      await this.#authorize(login, challenge, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw await this.#explained(error);
    } finally {
      await login.close?.();
    }
  }

  async #authorize(login: McpLogin, challenge: Challenge, signal: AbortSignal): Promise<void> {
    const sdk = await import("@modelcontextprotocol/client");
    const before = this.#login;
    // The server may have moved to another authorization server since.
    const { tokens: _, expiresAt: _1, discovery: _2, ...kept } = before ?? {};
    this.#login = kept;
    const state = randomUUID();
    let callback: URL | undefined;
    let asked: string | undefined;
    const provider: OAuthClientProvider = {
      ...this.#storage(login),
      state: () => state,
      redirectToAuthorization: async (url) => {
        checkShown(url);
        asked = url.searchParams.get("scope") ?? undefined;
        callback = await login.authorize(url, signal);
      },
    };
    const granted = challenge.isStepUp ? before?.tokens?.scope : undefined;
    const own = this.#options.oauth.scopes?.join(" ");
    const scope = sdk.computeScopeUnion(granted, own, challenge.scope);
    if (challenge.isStepUp && this.#asked.has(scope ?? "")) {
      this.#keep(before ?? {});
      throw new McpError(
        `The MCP server "${this.#options.key.name}" refuses the request, though it was granted what it asks for.`,
      );
    }
    this.#asked.add(scope ?? "");
    const options = {
      serverUrl: this.#server,
      fetchFn: this.#fetchWith(signal),
      ...(scope !== undefined && { scope }),
      ...(challenge.resourceMetadataUrl && { resourceMetadataUrl: challenge.resourceMetadataUrl }),
    };
    try {
      await sdk.auth(provider, { ...options, forceReauthorization: true });
      if (!callback) throw new LoginProblem("the authorization server was not asked");
      const back = await this.#readCallback(callback, state);
      await this.#exchange(back, {
        login,
        verifier: await provider.codeVerifier(),
        scope: asked,
        signal,
      });
    } catch (error) {
      // What it may do now, it may do still.
      if (before?.tokens && challenge.isStepUp) this.#keep(before);
      throw error;
    }
  }

  /** Gets the token for a code. Once: a code that was refused is no good a second time. */
  async #exchange(
    { code, iss }: Granted,
    {
      login,
      verifier,
      scope,
      signal,
    }: { login: McpLogin; verifier: string; scope: string | undefined; signal: AbortSignal },
  ): Promise<void> {
    const sdk = await import("@modelcontextprotocol/client");
    const { discovery } = this.#login ?? {};
    const metadata = discovery?.authorizationServerMetadata;
    const issuer = metadata?.issuer;
    const client = this.#ownClient(issuer) ?? this.#login?.client;
    if (!discovery || !metadata || !client || issuer === undefined) {
      throw new LoginProblem("the authorization server was not asked");
    }
    const resource = discovery.resourceMetadata?.resource;
    const tokens = await sdk.exchangeAuthorization(discovery.authorizationServerUrl, {
      metadata,
      clientInformation: client,
      authorizationCode: code,
      ...(iss !== undefined && { iss }),
      codeVerifier: verifier,
      redirectUri: login.redirectUrl,
      ...(resource !== undefined && { resource }),
      fetchFn: this.#fetchWith(signal),
    });
    // One that says nothing of it grants what was asked for.
    const granted = tokens.scope ?? scope;
    this.#keepTokens({ ...tokens, issuer, ...(granted !== undefined && { scope: granted }) });
  }

  /** What a provider of the library keeps, kept in the store. */
  #storage(login: McpLogin): Omit<OAuthClientProvider, "redirectToAuthorization" | "state"> {
    const { oauth } = this.#options;
    let verifier = "";
    return {
      redirectUrl: login.redirectUrl,
      clientMetadata: {
        client_name: "Gyre",
        redirect_uris: [login.redirectUrl],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
      },
      ...(oauth.clientMetadataUrl !== undefined && { clientMetadataUrl: oauth.clientMetadataUrl }),
      clientInformation: (context) => {
        const own = this.#ownClient(context?.issuer);
        if (own) return own;
        const { client, redirectUrl } = this.#login ?? {};
        return redirectUrl === login.redirectUrl ? client : undefined;
      },
      saveClientInformation: (client) => {
        this.#keep({ ...this.#login, client, redirectUrl: login.redirectUrl });
      },
      tokens: () => this.#login?.tokens,
      saveTokens: (tokens) => this.#keepTokens(tokens),
      saveCodeVerifier: (text) => {
        verifier = text;
      },
      codeVerifier: () => verifier,
      saveDiscoveryState: (discovery) => {
        checkMetadata(discovery);
        this.#keep({ ...this.#login, discovery });
      },
      discoveryState: () => this.#login?.discovery,
      invalidateCredentials: (what) => {
        const { client: _, redirectUrl: _1, ...withoutClient } = this.#login ?? {};
        if (what === "client" || what === "all") this.#keep(withoutClient);
      },
    };
  }

  /** The code that the browser brought. Words of its error are those of anybody until the issuer is known. */
  async #readCallback(callback: URL, state: string): Promise<Granted> {
    const sdk = await import("@modelcontextprotocol/client");
    const { searchParams: params } = callback;
    if (params.get("state") !== state) {
      throw new LoginProblem("the browser came back from another login: log in again");
    }
    const iss = params.get("iss") ?? undefined;
    const metadata = this.#login?.discovery?.authorizationServerMetadata;
    sdk.validateAuthorizationResponseIssuer({
      iss,
      expectedIssuer: metadata?.issuer,
      issParameterSupported: metadata?.["authorization_response_iss_parameter_supported"] === true,
    });
    const code = params.get("code");
    if (code !== null && code !== "") return { code, ...(iss !== undefined && { iss }) };
    throw new LoginProblem(`it was not granted${formatCode(params.get("error"))}`);
  }

  /**
   * The client that is set, for the authorization server that it belongs to: the one that is set with it, else the first
   * that asks. Another one gets neither its name nor its secret.
   */
  #ownClient(issuer: string | undefined): StoredOAuthClientInformation | undefined {
    const { clientId, clientSecret, issuer: owner = this.#login?.ownIssuer } = this.#options.oauth;
    if (clientId === undefined || issuer === undefined) return undefined;
    if (owner === undefined) this.#keep({ ...this.#login, ownIssuer: issuer });
    else if (owner !== issuer) return undefined;
    return {
      client_id: clientId,
      issuer,
      ...(clientSecret !== undefined && { client_secret: clientSecret }),
    };
  }

  #keepTokens(tokens: StoredOAuthTokens): void {
    const { expires_in: seconds } = tokens;
    const { expiresAt: _, ...rest } = this.#login ?? {};
    this.#keep({
      ...rest,
      tokens,
      ...(seconds !== undefined && {
        expiresAt: this.#options.clock.now() + seconds * MS_PER_SECOND,
      }),
    });
  }

  #keep(login: StoredLogin): void {
    this.#login = login;
    this.#options.store.write(this.#options.key, login);
  }

  #fetchWith(signal: AbortSignal | undefined): McpFetch {
    return signal ? (url, init) => this.#fetch(url, { ...init, signal }) : this.#fetch;
  }

  /** In our words; those of the servers are for people alone. */
  async #explained(error: unknown): Promise<McpError> {
    if (error instanceof McpError) return error;
    const words = sanitize(redact(errorMessage(error)), { keepNewlines: false });
    const why = await explainLogin(error);
    return new McpError(`The login to the MCP server "${this.#options.key.name}" failed: ${why}.`, {
      cause: error,
      ...(error instanceof LoginProblem ? {} : { words: words.slice(0, MAX_ERROR_CHARS) }),
    });
  }
}

/** Why a login failed, as the end of a sentence. */
async function explainLogin(error: unknown): Promise<string> {
  const sdk = await import("@modelcontextprotocol/client");
  if (error instanceof LoginProblem) return error.message;
  if (error instanceof sdk.IssuerMismatchError) {
    return "the answer is of another authorization server than the one that was asked";
  }
  if (error instanceof sdk.OAuthError) {
    return `the authorization server refuses it${formatCode(error.code)}`;
  }
  if (error instanceof sdk.RegistrationRejectedError) {
    return `the authorization server does not register us (it answered ${error.status}): set "oauth" with a clientId of your own`;
  }
  // Of a request that could not be made.
  if (error instanceof TypeError && error.message === "fetch failed") {
    return "the authorization server cannot be reached";
  }
  return "what the server or its authorization server answers is not as the protocol has it";
}

/** The code of an error, if it is one that is made for programs. */
function formatCode(code: string | null): string {
  return code !== null && /^[a-z_]{1,40}$/.test(code) ? ` (${code})` : "";
}

function withToken(init: RequestInit | undefined, token: string | undefined): RequestInit {
  if (token === undefined) return { ...init };
  const headers = new Headers(init?.headers);
  headers.set("authorization", `Bearer ${token}`);
  return { ...init, headers };
}

async function readChallenge(response: Response): Promise<Challenge | undefined> {
  const { unauthorized, forbidden } = STATUS;
  if (response.status !== unauthorized && response.status !== forbidden) return undefined;
  const { extractWWWAuthenticateParams: readHeader } = await import("@modelcontextprotocol/client");
  const { error, scope, resourceMetadataUrl } = readHeader(response);
  const isStepUp = response.status === forbidden;
  if (isStepUp && error !== "insufficient_scope") return undefined;
  return {
    isStepUp,
    ...(scope !== undefined && { scope }),
    ...(resourceMetadataUrl && { resourceMetadataUrl }),
  };
}

/** Without these, it cannot be known who answers, and a code that is stolen can be used. */
function checkMetadata({ authorizationServerMetadata: metadata }: OAuthDiscoveryState): void {
  if (!metadata) throw new LoginProblem("its authorization server does not describe itself");
  if (metadata.code_challenge_methods_supported?.includes("S256") !== true) {
    throw new LoginProblem("its authorization server does not protect codes (PKCE with S256)");
  }
}

/** What a browser is given to open must be a page of the web. */
function checkShown({ protocol, hostname, username, password }: URL): void {
  const isHere = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  const isWeb = protocol === "https:" || (protocol === "http:" && isHere);
  if (!isWeb || username !== "" || password !== "") {
    throw new LoginProblem("the page for the login is not an https address");
  }
}
