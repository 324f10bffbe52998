import { WEBSOCKET_PATH } from "@gyre/protocol/http";
import type { SessionStorage } from "@gyre/sessions";
import { MemorySessions } from "@gyre/sessions/memory";
import type { SessionHost } from "../sessions/session-host.ts";

/** Whether requests to one server share memory, or each may be in an isolate of its own. */
export type ServerMemory = "shared" | "isolated";

/** By which a runtime is known. */
interface RuntimeSigns {
  navigator?: { userAgent?: unknown };
  EdgeRuntime?: unknown;
  process?: { env?: Readonly<Record<string, string | undefined>> };
}

/**
 * What this runtime does: Cloudflare Workers, edge functions of Vercel and AWS Lambda may answer two
 * requests of one client in two places.
 */
export function detectMemory(signs: RuntimeSigns = globalThis): ServerMemory {
  const isIsolated =
    signs.navigator?.userAgent === "Cloudflare-Workers" ||
    typeof signs.EdgeRuntime === "string" ||
    signs.process?.env?.["AWS_LAMBDA_FUNCTION_NAME"] !== undefined;
  return isIsolated ? "isolated" : "shared";
}

/** Why a request cannot be served where requests share no memory, a sentence; undefined: it can. */
export function findMemoryProblem(
  path: string,
  { host, storage }: { host?: SessionHost; storage?: SessionStorage },
): string | undefined {
  if (!host && (!storage || storage instanceof MemorySessions)) {
    return "Requests share no memory in this runtime, so the next one would not find a session: give createHandler a storage that they share, such as Postgres, or a host of durable workers.";
  }
  if (path === WEBSOCKET_PATH) return undefined;
  return "Requests share no memory in this runtime, so a connection over HTTP cannot be kept: connect with a WebSocket (ws: or wss:), which is one request.";
}
