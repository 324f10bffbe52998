import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { NodeReply, NodeRequest, WEBSOCKET_PATH, WebSocketUpgrades } from "@gyre/protocol/node";
import { findApiPath, type Handler, type HandlerRequest } from "../../handler/handler.ts";

/** A listener for requests of `node:http`, which Express and Fastify take as well. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void;

/** A listener for the event `upgrade` of a server of `node:http`. */
export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

export interface UpgradeListenerOptions {
  /** Gets requests for other WebSockets of the server. Default: they get 404. */
  otherwise?: UpgradeListener;
  /** Default `MAX_FRAME_BYTES`. */
  maxFrameBytes?: number;
}

/**
 * A handler for `node:http`, written straight to the socket: `createServer(toNodeListener(handler))`,
 * or `app.use("/api/gyre", toNodeListener(handler))` before whatever reads bodies.
 */
export function toNodeListener(handler: Handler): NodeListener {
  return (request, response) => {
    void handler.answer(new MountedRequest(request), new NodeReply(response));
  };
}

/** The WebSockets of a handler: `server.on("upgrade", toUpgradeListener(handler))`. */
export function toUpgradeListener(
  handler: Handler,
  { otherwise, maxFrameBytes }: UpgradeListenerOptions = {},
): UpgradeListener {
  const upgrades = new WebSocketUpgrades(maxFrameBytes === undefined ? {} : { maxFrameBytes });
  return (message, socket, head) => {
    const request = new MountedRequest(message);
    if (otherwise && !request.isForSocket) return otherwise(message, socket, head);
    void upgrades.answer(message, socket, head, handler.admitSocket(request));
  };
}

/** Express has the whole address in a field of its own, where it has cut off the path of the mount. */
interface MountedMessage extends IncomingMessage {
  readonly originalUrl?: unknown;
}

class MountedRequest extends NodeRequest implements HandlerRequest {
  constructor(message: IncomingMessage) {
    super(message, findApiPath);
  }

  get isForSocket(): boolean {
    return this.path === WEBSOCKET_PATH;
  }

  toRequest(): Request {
    const message: MountedMessage = this.message;
    const { headers, originalUrl, socket, url = "/" } = message;
    const scheme = socket instanceof TLSSocket ? "https" : "http";
    const path = typeof originalUrl === "string" ? originalUrl : url;
    const sent = new Headers();
    for (const [name, value = []] of Object.entries(headers)) {
      for (const each of [value].flat()) sent.append(name, each);
    }
    const address = `${scheme}://${headers.host ?? "localhost"}${path}`;
    // An invalid address has no route either; `authorize` needs the headers.
    const known = URL.canParse(address) ? address : "http://localhost/";
    return new Request(known, { method: this.method, headers: sent });
  }
}
