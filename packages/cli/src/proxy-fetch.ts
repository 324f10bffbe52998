import { EnvHttpProxyAgent, fetch as undiciFetch } from "undici";
import type { Environment } from "./terminal.ts";

/** A `fetch` that goes through the proxy of the environment, and past it where NO_PROXY says so. */
export function proxyFetch(env: Environment): typeof fetch {
  const either = (...names: string[]): string | undefined =>
    names.map((name) => env[name]).find(Boolean);
  const all = either("all_proxy", "ALL_PROXY");
  const httpProxy = either("http_proxy", "HTTP_PROXY") ?? all;
  const httpsProxy = either("https_proxy", "HTTPS_PROXY") ?? all ?? httpProxy;
  const noProxy = either("no_proxy", "NO_PROXY");
  const dispatcher = new EnvHttpProxyAgent({
    ...(httpProxy !== undefined && { httpProxy }),
    ...(httpsProxy !== undefined && { httpsProxy }),
    ...(noProxy !== undefined && { noProxy }),
    // The wires have their own watch over silence.
    bodyTimeout: 0,
    headersTimeout: 0,
  });
  const through = (input: string, init: object): unknown =>
    undiciFetch(input, { ...init, dispatcher });
  // The same function in all that we use of it; only the types of two releases differ.
  return through as unknown as typeof fetch;
}
