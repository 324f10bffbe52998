// A server with a browser page: the agent runs here, and the page watches, steers and stops it.
// `npm run example -- server`, or with a real model `npm run example -- server --model sonnet`.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { parseArgs } from "node:util";
import { Agent, type AgentOptions } from "@gyre/agent";
import { type Context, type Model } from "@gyre/ai";
import { scriptedModel } from "@gyre/ai/testing";
import { findModel } from "@gyre/ai/models";
import { createModelClient } from "@gyre/ai/node";
import { WireServer } from "@gyre/protocol";
import { listenHttp, listenOn, LOOPBACK, makeToken, type Route } from "@gyre/protocol/node";
import { type HostedSession, type SessionHost, SessionService } from "@gyre/server";

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: { model: { type: "string" } },
  allowPositionals: true,
});
const { model, protocol } = values.model === undefined ? scripted() : real(values.model);

/** Sessions that live as long as this program. */
const host: SessionHost = {
  create: async () => session(`tea_${randomUUID()}`),
  open: async () => undefined,
  list: async () => [],
};

function session(id: string): HostedSession {
  const agent = new Agent({ protocol, model, steering: "redirect" });
  return { id, agent, close: async () => agent.abort() };
}

// The page: plain files, for anybody on this machine.
const page = await readFile(new URL("page.html", import.meta.url));
const files = createServer((request, response) => {
  answer(request.url ?? "/", response).catch(() => response.writeHead(404).end());
});
const pagePort = await listenOn(files, { host: LOOPBACK, port: 0 });
const origin = `http://${LOOPBACK}:${pagePort}`;

async function answer(url: string, response: ServerResponse): Promise<void> {
  const [, name = "", path = ""] =
    /^\/modules\/(ai|agent|protocol|server)\/(.+\.js)$/.exec(url) ?? [];
  if (name === "") {
    response.writeHead(url === "/" ? 200 : 404, { "content-type": "text/html; charset=utf-8" });
    response.end(url === "/" ? page : "There is nothing here.");
    return;
  }
  // The packages as they were built: `dist` has what a browser can load, file by file.
  const dist = new URL(".", import.meta.resolve(`@gyre/${name}`));
  const file = new URL(path, dist);
  if (!file.href.startsWith(dist.href)) throw new Error("That leads out of the package.");
  const code = await readFile(file);
  response.writeHead(200, { "content-type": "text/javascript; charset=utf-8" }).end(code);
}

// The wire: only for those with the token, and for pages only of that one origin.
const token = makeToken();
const server = new WireServer([new SessionService(host)]);
const cut: Route = {
  method: "POST",
  path: "/api/cut",
  handle(_request, reply) {
    // After the answer, which has a socket too.
    reply.onClose(() => {
      for (const socket of wire.metrics.sockets) socket.destroy();
    });
    reply.begin(204);
    reply.end();
  },
};
const wire = await listenHttp({
  token,
  origins: [origin],
  routes: [cut],
  serve: (transport) => void server.serve(transport),
});

// What stands behind the # is never sent to a server: the page reads it.
console.log(`Open ${origin}/#port=${wire.port}&token=${token}`);
console.log("Open it twice, and both see one conversation. Ctrl+C ends it.");

interface Choice {
  model: Model;
  protocol: NonNullable<AgentOptions["protocol"]>;
}

function real(name: string): Choice {
  return { model: findModel(name), protocol: createModelClient() };
}

/** Repeats what was said and counts, slowly: something to watch, to steer and to cut off. */
function scripted(): Choice {
  const numbers = Array.from({ length: 100 }, (_, at) => at + 1).join(" ");
  const protocol = scriptedModel((context) => `You said "${lastWords(context)}". ${numbers}`, {
    chunkSize: 4,
    betweenMs: 40,
    keepCalls: false,
  });
  return { model: protocol.model, protocol };
}

function lastWords({ messages }: Context): string {
  const content = messages.findLast(({ role }) => role === "user")?.content ?? "";
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}
