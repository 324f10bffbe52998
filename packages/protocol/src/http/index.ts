export * from "./connections.ts";
export * from "./exchange.ts";
export * from "./file-route.ts";
export * from "./place.ts";
export * from "./route.ts";
export * from "./router.ts";
export * from "./sent-token.ts";
export * from "./stream-route.ts";
export * from "./web.ts";
export {
  createSocketTransport,
  WEBSOCKET_PROTOCOL,
  type WebSocketLike,
} from "../transports/websocket.ts";
