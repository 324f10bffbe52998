export * from "./guard.ts";
export * from "./http-server.ts";
export {
  closeServer,
  type Listener,
  LISTENER_GRACE_MS,
  listenOn,
  type ListenOptions,
  LOOPBACK,
  type PortListener,
} from "./listen.ts";
export * from "./metrics.ts";
export * from "./route.ts";
export * from "./socket.ts";
export * from "./stream-route.ts";
export * from "./token.ts";
export * from "./transports.ts";
export type { UrlTransport } from "./url-transport.ts";
