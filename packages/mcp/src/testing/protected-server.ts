import { listenMcp, type McpListener } from "../serve/listen.ts";
import type { McpOffer } from "../serve/offer.ts";
import type { FakeOAuth } from "./fake-oauth.ts";

/** An MCP server that wants a token of an authorization server, and says which. */
export interface ProtectedServer {
  url: string;
  /** Each authorization header that came. */
  readonly seen: (string | null)[];
  /** Scopes that a token has to have. */
  needed: string[];
  /** Of the document that says who grants tokens. */
  metadata: Record<string, unknown>;
  /** Where that document is; undefined: the header does not say. */
  metadataUrl: string | undefined;
  close(): Promise<void>;
}

const METADATA = "/.well-known/oauth-protected-resource/mcp";

export async function protectedServer(
  oauth: FakeOAuth,
  offer: Partial<McpOffer> = {},
): Promise<ProtectedServer> {
  const seen: (string | null)[] = [];
  const challenge = (status: number, more: string): Response => {
    const where =
      server.metadataUrl === undefined ? "" : `, resource_metadata="${server.metadataUrl}"`;
    const headers = { "www-authenticate": `Bearer ${more}${where}` };
    return new Response(null, { status, headers });
  };
  const listener: McpListener = await listenMcp({
    version: "1",
    tools: [],
    ...offer,
    check(request) {
      const { pathname } = new URL(request.url);
      if (pathname === METADATA) return Response.json(server.metadata);
      if (pathname !== "/mcp") return undefined;
      const header = request.headers.get("authorization");
      seen.push(header);
      const scope = oauth.tokens.get(header?.replace(/^Bearer /, "") ?? "");
      if (scope === undefined) return challenge(401, 'error="invalid_token"');
      const granted = scope.split(" ");
      const isEnough = server.needed.every((one) => granted.includes(one));
      if (isEnough) return undefined;
      return challenge(403, `error="insufficient_scope", scope="${server.needed.join(" ")}"`);
    },
  });
  const { origin } = new URL(listener.url);
  const server: ProtectedServer = {
    url: `${origin}/mcp`,
    seen,
    needed: [],
    metadata: { resource: `${origin}/mcp`, authorization_servers: [oauth.url] },
    metadataUrl: `${origin}${METADATA}`,
    close: () => listener.close(),
  };
  return server;
}
