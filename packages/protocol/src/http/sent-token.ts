import { TOKEN_PROTOCOL_PREFIX } from "../transports/websocket.ts";

const BEARER = /^Bearer +([\x21-\x7e]+)$/i;

/**
 * The token that a request carries: `Authorization: Bearer`, or one of the subprotocols of a
 * WebSocket, as browsers set no headers there. Undefined: it has none.
 */
export function findSentToken(header: (name: string) => string | undefined): string | undefined {
  return BEARER.exec(header("authorization") ?? "")?.[1] ?? findInProtocols(header);
}

function findInProtocols(header: (name: string) => string | undefined): string | undefined {
  const offered = (header("sec-websocket-protocol") ?? "").split(",").map((each) => each.trim());
  const found = offered.find((each) => each.startsWith(TOKEN_PROTOCOL_PREFIX));
  if (found === undefined) return undefined;
  const coded = found.slice(TOKEN_PROTOCOL_PREFIX.length);
  try {
    const binary = atob(coded.replaceAll("-", "+").replaceAll("_", "/"));
    return new TextDecoder().decode(Uint8Array.from(binary, (each) => each.charCodeAt(0)));
  } catch {
    // Not base64: it is a token, and no right one.
    return "";
  }
}
