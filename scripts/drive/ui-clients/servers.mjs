import { once } from "node:events";
import { createServer } from "node:http";
import { Agent } from "@gyre/agent";
import { scriptedModel } from "@gyre/ai/testing";
import { connectUrl } from "@gyre/protocol/node";
import { authorizeByToken, createHandler } from "@gyre/server";
import { RemoteAgent } from "@gyre/server/client";
import { toNodeListener, toUpgradeListener } from "@gyre/server/node";
import { compare, load } from "./shared.mjs";

/**
 * @typedef {import("./shared.mjs").Plan} Plan
 * @typedef {import("./shared.mjs").Findings} Findings
 * @typedef {(handler: import("@gyre/server").Handler) => Promise<import("node:http").Server>} Mount
 */

const PATH = "/api/gyre";

/**
 * Servers of other projects with the session service mounted as the guide says, below a route of their own.
 *
 * @param {Plan} plan
 * @returns {Promise<Findings>}
 */
export async function checkServers(plan) {
  const [{ default: express }, { default: fastify }] = await Promise.all([
    load(plan, "express"),
    load(plan, "fastify"),
  ]);
  /** @type {Record<string, Mount>} */
  const mounts = {
    Express: async (handler) => {
      const app = express();
      app.use(PATH, toNodeListener(handler));
      app.use(express.json());
      app.post("/own", (/** @type {any} */ request, /** @type {any} */ response) =>
        response.json(request.body),
      );
      return createServer(app);
    },
    Fastify: async (handler) => {
      const app = fastify();
      app.post("/own", (/** @type {any} */ request, /** @type {any} */ reply) =>
        reply.send(request.body),
      );
      await app.register(async (/** @type {any} */ inner) => {
        inner.removeAllContentTypeParsers();
        inner.addContentTypeParser(
          "*",
          (/** @type {any} */ _request, /** @type {any} */ _payload, /** @type {any} */ done) =>
            done(null),
        );
        inner.all(`${PATH}/*`, (/** @type {any} */ request, /** @type {any} */ reply) => {
          reply.hijack();
          toNodeListener(handler)(request.raw, reply.raw);
        });
      });
      await app.ready();
      return app.server;
    },
  };
  const problems = [];
  for (const [name, mount] of Object.entries(mounts)) problems.push(...(await tryOut(name, mount)));
  return { problems, figures: [`${Object.keys(mounts).join(", ")}: HTTP and WebSocket`] };
}

/**
 * @param {string} name
 * @param {Mount} mount
 * @returns {Promise<string[]>}
 */
async function tryOut(name, mount) {
  const token = crypto.randomUUID();
  const handler = createHandler({
    agents: ({ stored }) => {
      const script = scriptedModel(["Green.", "Black."]);
      return new Agent({ ...stored, model: script.model, protocol: script });
    },
    authorize: authorizeByToken({ [token]: { user: "ada" } }),
  });
  const server = await mount(handler);
  server.on("upgrade", toUpgradeListener(handler));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const origin = `127.0.0.1:${port}`;
  try {
    const overHttp = { connect: connectUrl(`http://${origin}${PATH}`, { token }) };
    const agent = await RemoteAgent.create(overHttp);
    const first = await agent.prompt("Which tea?");
    const overSocket = { connect: connectUrl(`ws://${origin}${PATH}/api/ws`, { token }) };
    const again = await RemoteAgent.attach(overSocket, agent.sessionId);
    const second = await again.prompt("And now?");
    await again.close();
    await agent.close();
    const own = await fetch(`http://${origin}/own`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"tea":"sencha"}',
    });
    const stranger = await fetch(`http://${origin}${PATH}/api/connect`, { method: "POST" });
    return [
      ...compare(`${name} over HTTP`, first.text, "Green."),
      ...compare(`${name} over WebSocket`, second.text, "Black."),
      ...compare(`${name}, a route of its own`, await own.json(), { tea: "sencha" }),
      ...compare(`${name}, without a token`, stranger.status, 401),
    ];
  } finally {
    await handler.close();
    server.closeAllConnections();
    server.close();
  }
}
