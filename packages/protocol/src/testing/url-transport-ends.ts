import type { Envelope } from "../frames/envelope.ts";
import type { UrlTransport } from "../node/base/url-transport.ts";
import type { Transport } from "../transports/base/transport.ts";
import { openSocketRelay, type SocketPlace } from "./socket-relay.ts";
import type { TransportEnds } from "./transport-checks.ts";

const TOKEN = "t".repeat(32);
const HELLO: Envelope = { v: 1, type: "hello", id: "c_0", payload: { versions: [1] } };

export interface UrlEndsOptions {
  transport: UrlTransport;
  /** Where it listens. */
  url: string;
  /** Where a relay listens that leads there. Default: a free port. */
  relay?: SocketPlace;
  maxFrameBytes: number;
}

/**
 * Both ends of a transport whose frames are lines on a socket and whose token travels in `hello`,
 * for `transportChecks`. A relay between them can be stalled and cut.
 */
export async function openUrlTransportEnds(options: UrlEndsOptions): Promise<TransportEnds> {
  const { transport, url, relay: place, maxFrameBytes } = options;
  if (!transport.listen) throw new Error("This transport cannot listen.");
  let serve: (transport: Transport) => void = () => {};
  const served = new Promise<Transport>((resolve) => (serve = resolve));
  const listener = await transport.listen(new URL(url), {
    token: TOKEN,
    serve: (each) => serve(each),
    maxFrameBytes,
  });
  const address = new URL(listener.url);
  const relay = await openSocketRelay(place);
  relay.to(address.port === "" ? { path: address.pathname } : { port: Number(address.port) });
  const through =
    place && "path" in place
      ? `${address.protocol}//${place.path}`
      : `${address.protocol}//127.0.0.1:${relay.port}`;
  const connect = transport.connect(new URL(through), { token: TOKEN, maxFrameBytes });
  const one = await connect(new AbortController().signal);
  await one.send(HELLO);
  return {
    one,
    other: withoutHello(await served),
    inject: (text) => relay.inject(`${text}\n`),
    cut: () => relay.cut(),
    stall: (isStalled) => relay.stall(isStalled),
    end: async () => {
      await relay.close();
      await listener.close();
    },
  };
}

/** A transport without the frame that opened the connection. */
function withoutHello(transport: Transport): Transport {
  return {
    send: (envelope) => transport.send(envelope),
    receive: (handler) =>
      transport.receive({
        onFrame: (envelope) => {
          if (envelope.type !== "hello") handler.onFrame(envelope);
        },
        onFault: (error) => handler.onFault(error),
        onClose: (error) => handler.onClose(error),
      }),
    close: () => transport.close(),
  };
}
