export * from "./http/guard.ts";
export * from "./http/server.ts";
export {
  closeServer,
  type Listener,
  LISTENER_GRACE_MS,
  listenOn,
  type ListenOptions,
  LOOPBACK,
  type PortListener,
} from "./base/listen.ts";
export * from "./base/metrics.ts";
export * from "./http/exchange.ts";
export * from "../http/index.ts";
export { WebSocketUpgrades } from "./http/websocket-server.ts";
export * from "./socket.ts";
export * from "./base/token.ts";
export * from "./transports.ts";
export type { UrlTransport } from "./base/url-transport.ts";
