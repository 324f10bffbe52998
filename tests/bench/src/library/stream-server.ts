import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { makeBody } from "./stream-bodies.ts";

/** A process of its own that streams made-up responses: `/<wire>/<deltas>`, or `/line/<MB>`. */

const PIECE_BYTES = 16_384;

const made = new Map<string, Buffer>();

createServer((request, response) => {
  const [, kind = "", size = ""] = request.url?.split("/") ?? [];
  const key = `${kind}/${size}`;
  const body = made.get(key) ?? Buffer.from(makeBody(kind, Number(size)));
  made.set(key, body);
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let from = 0; from < body.length; from += PIECE_BYTES) {
      response.write(body.subarray(from, from + PIECE_BYTES));
    }
    response.end();
  });
}).listen(0, "127.0.0.1", function (this: { address(): AddressInfo | string | null }) {
  process.send?.(this.address());
});
process.on("disconnect", () => process.exit());
