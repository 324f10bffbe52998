import { type ManualClock, manualClock } from "@gyre/ai/testing";
import type { Connection, RequestHandler } from "../server/connection.ts";
import type { Envelope } from "../frames/envelope.ts";
import { WireServer, type WireServerOptions, type WireService } from "../server/service.ts";
import { type Transport, createTransportPair } from "../transports/base/transport.ts";
import { WireClient, type WireClientOptions } from "../client/wire-client.ts";
import type { ConnectionState } from "../client/client-api.ts";

/** Answers by handlers, the same ones on each connection. */
function service(handlers: ReadonlyMap<string, RequestHandler>): WireService {
  return { connect: () => ({ handlers }), close: async () => {} };
}

export interface ServedClient {
  client: WireClient;
  clock: ManualClock;
  /** The serving ends, in order. */
  connections: Connection[];
  /** Our ends: closing one cuts the connection. */
  transports: Transport[];
  states: ConnectionState[];
  errors: unknown[];
  /** What the server got. */
  asked: Envelope[];
}

/** A client and a real server, with a new pair of transports for each connection. */
export function served(
  handlers: Record<string, RequestHandler> = {},
  options: Partial<WireClientOptions> & { server?: WireServerOptions } = {},
): ServedClient {
  const clock = manualClock(1000);
  const asked: Envelope[] = [];
  const noted = Object.entries(handlers).map(([type, handler]): [string, RequestHandler] => [
    type,
    (frame, ack) => {
      asked.push(frame);
      return handler(frame, ack);
    },
  ]);
  const server = new WireServer([service(new Map(noted))], { clock, ...options.server });
  const [connections, transports]: [Connection[], Transport[]] = [[], []];
  const [states, errors]: [ConnectionState[], unknown[]] = [[], []];
  const client = new WireClient({
    connect: async () => {
      const [near, far] = createTransportPair();
      transports.push(near);
      connections.push(server.serve(far));
      return near;
    },
    clock,
    random: () => 1,
    onState: (state) => states.push(state),
    onError: (error) => errors.push(error),
    ...options,
  });
  return { client, clock, connections, transports, states, errors, asked };
}

/** Answers with what it is asked. */
export const echo: RequestHandler = ({ payload }) => payload;
