import { EnvHttpProxyAgent, fetch as undiciFetch } from "undici";
import type { Environment } from "./environment.ts";

/** A global `fetch` that goes through the proxy of the environment, and past it where NO_PROXY says so. */
export function proxiedWebFetch(
  env: Environment,
): (url: string | URL, init?: RequestInit) => Promise<Response> {
  const dispatcher = createDispatcher(env);
  return async (url, init) => {
    // A response like any other; its types are those of another release.
    const request = { ...init, dispatcher } as Parameters<typeof undiciFetch>[1];
    const response: unknown = await undiciFetch(url, request);
    return response as Response;
  };
}

function createDispatcher(env: Environment): EnvHttpProxyAgent {
  const either = (...names: string[]): string | undefined =>
    names.map((name) => env[name]).find(Boolean);
  const all = either("all_proxy", "ALL_PROXY");
  const httpProxy = either("http_proxy", "HTTP_PROXY") ?? all;
  const httpsProxy = either("https_proxy", "HTTPS_PROXY") ?? all ?? httpProxy;
  const noProxy = either("no_proxy", "NO_PROXY");
  return new EnvHttpProxyAgent({
    ...(httpProxy !== undefined && { httpProxy }),
    ...(httpsProxy !== undefined && { httpsProxy }),
    ...(noProxy !== undefined && { noProxy }),
    // The wires have their own watch over silence.
    bodyTimeout: 0,
    headersTimeout: 0,
  });
}
