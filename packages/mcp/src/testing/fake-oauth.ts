import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What a fake answers with in place of its own: a value, or the whole of a response. */
export interface Override {
  status?: number;
  headers?: Record<string, string>;
  /** An object is JSON. */
  body?: unknown;
}

/**
 * An authorization server on loopback that lets everybody in, and checks what clients send: PKCE, the
 * address to come back to, the resource, and who registered. It notes each request.
 */
export class FakeOAuth {
  readonly seen: {
    method: string;
    path: string;
    params: URLSearchParams;
    headers: IncomingMessage["headers"];
  }[] = [];
  readonly problems: string[] = [];
  /** By path: what is answered instead. */
  readonly overrides: Map<string, Override> = new Map();
  /** Added to the metadata, or in its place. */
  metadata: Record<string, unknown> = {};
  /** Added to the address that the browser is sent back to; undefined takes a parameter away. */
  callback: Record<string, string | undefined> = {};
  expiresIn: number | undefined = 3600;
  /** Tokens that are good, with their scopes. */
  readonly tokens: Map<string, string> = new Map();
  readonly #refresh = new Map<string, string>();
  readonly #codes = new Map<
    string,
    { challenge: string; redirect: string; scope: string; client: string }
  >();
  readonly #clients = new Map<string, string[]>();
  readonly #server: Server;
  url = "";

  constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        this.problems.push(String(error));
        response.writeHead(500).end();
      });
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((done) => {
      this.#server.listen(0, "127.0.0.1", done);
    });
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => {
      this.#server.close(done);
    });
  }

  count(path: string): number {
    return this.seen.filter((one) => one.path === path).length;
  }

  /** A token is good no more, and neither is what renews it. */
  revoke({ refresh = false }: { refresh?: boolean } = {}): void {
    this.tokens.clear();
    if (refresh) this.#refresh.clear();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += String(piece);
    const url = new URL(request.url ?? "/", this.url);
    const isForm = request.headers["content-type"]?.includes("form") ?? false;
    const params = isForm ? new URLSearchParams(body) : url.searchParams;
    const path = url.pathname;
    this.seen.push({ method: request.method ?? "", path, params, headers: request.headers });
    const send = (value: unknown, status = 200, headers: Record<string, string> = {}): void => {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(text);
    };
    const override = this.overrides.get(path);
    if (override) return send(override.body ?? "", override.status ?? 200, override.headers);
    switch (path) {
      case "/.well-known/oauth-authorization-server":
        return send({
          issuer: this.url,
          authorization_endpoint: `${this.url}/authorize`,
          token_endpoint: `${this.url}/token`,
          registration_endpoint: `${this.url}/register`,
          response_types_supported: ["code"],
          grant_types_supported: ["authorization_code", "refresh_token"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
          authorization_response_iss_parameter_supported: true,
          ...this.metadata,
        });
      case "/register": {
        const id = `client-${this.#clients.size + 1}`;
        const { redirect_uris: redirects } = JSON.parse(body) as { redirect_uris: string[] };
        this.#clients.set(id, redirects);
        return send(
          { ...(JSON.parse(body) as object), client_id: id, token_endpoint_auth_method: "none" },
          201,
        );
      }
      case "/authorize":
        return this.#authorize(params, response);
      case "/token":
        return this.#token(params, send);
      default:
        return send({ error: "not_found" }, 404);
    }
  }

  #authorize(params: URLSearchParams, response: ServerResponse): void {
    const redirect = params.get("redirect_uri") ?? "";
    const client = params.get("client_id") ?? "";
    const registered = this.#clients.get(client);
    if (registered && !registered.includes(redirect)) this.problems.push(`redirect ${redirect}`);
    if (params.get("code_challenge_method") !== "S256") this.problems.push("no S256");
    if (params.get("resource") === null) this.problems.push("no resource in /authorize");
    const code = randomUUID();
    const scope = params.get("scope") ?? "";
    this.#codes.set(code, {
      challenge: params.get("code_challenge") ?? "",
      redirect,
      scope,
      client,
    });
    const back = new URL(redirect);
    const all = { code, state: params.get("state") ?? "", iss: this.url, ...this.callback };
    for (const [name, value] of Object.entries(all)) {
      if (value !== undefined) back.searchParams.set(name, value);
    }
    response.writeHead(302, { location: back.href }).end();
  }

  #token(params: URLSearchParams, send: (value: unknown, status?: number) => void): void {
    if (params.get("resource") === null) this.problems.push("no resource in /token");
    let scope: string;
    if (params.get("grant_type") === "refresh_token") {
      const old = params.get("refresh_token") ?? "";
      const granted = this.#refresh.get(old);
      if (granted === undefined) return send({ error: "invalid_grant" }, 400);
      this.#refresh.delete(old);
      scope = granted;
    } else {
      const code = this.#codes.get(params.get("code") ?? "");
      this.#codes.delete(params.get("code") ?? "");
      const verifier = params.get("code_verifier") ?? "";
      const challenge = createHash("sha256").update(verifier).digest("base64url");
      if (!code || code.challenge !== challenge) return send({ error: "invalid_grant" }, 400);
      if (code.redirect !== params.get("redirect_uri")) this.problems.push("another redirect");
      if (code.client !== params.get("client_id")) this.problems.push("another client");
      ({ scope } = code);
    }
    const access = `access-${randomUUID()}`;
    const refresh = `refresh-${randomUUID()}`;
    this.tokens.set(access, scope);
    this.#refresh.set(refresh, scope);
    send({
      access_token: access,
      token_type: "Bearer",
      refresh_token: refresh,
      ...(scope !== "" && { scope }),
      ...(this.expiresIn !== undefined && { expires_in: this.expiresIn }),
    });
  }
}
