export * from "./guard.ts";
export * from "./http-server.ts";
export { closeServer, LISTENER_GRACE_MS, type Listener, listenOn, LOOPBACK } from "./listen.ts";
export * from "./metrics.ts";
export * from "./route.ts";
export * from "./tcp.ts";
export * from "./websocket-client.ts";
