import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { type Model } from "@gyre/ai";
import { say, scriptedModel } from "@gyre/ai/testing";
import { ModelService } from "../models/models-service.ts";
import { listenHttp } from "../node/http/server.ts";
import { listenTcp } from "../node/tcp.ts";
import { createStreamRoutes } from "../http/stream-route.ts";
import { WireServer } from "../server/service.ts";

// A server in a process of its own, so that its memory is measured without the attacker's.
// The token is its argument. It prints its ports, and for each line on stdin its peak memory in
// bytes.

const KIB = 1024;
/** As many as a large catalog has. */
const LISTED_MODELS = 300;

const token = process.argv[2] ?? "";
const model = scriptedModel(() => [say("Hello there, and welcome.")], {
  chunkSize: 2,
  keepCalls: false,
});
const others = Array.from({ length: LISTED_MODELS }, (_, at): Model => ({
  ...model.model,
  id: `other-${at}`,
  name: `Other ${at}`,
}));
const service = new ModelService({ client: model, models: () => [model.model, ...others] });
const server = new WireServer([service]);
const serve = (transport: Parameters<WireServer["serve"]>[0]): void => void server.serve(transport);
const tcp = await listenTcp({ token, serve });
const http = await listenHttp({ token, serve, routes: createStreamRoutes(service) });
console.log(JSON.stringify({ tcp: tcp.port, http: http.port }));

createInterface({ input: process.stdin }).on("line", () => {
  console.log(maxRss());
});
// The parent is gone.
process.stdin.on("end", () => process.exit(0));

/** The peak of the memory. On Linux, `resourceUsage` starts with that of the parent. */
function maxRss(): number {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS * KIB;
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return Number(kib) * KIB;
}
