// Serves the page that `npm run build` made, and the sessions of its agents.
import { randomUUID } from "node:crypto";
import { serve } from "@hono/node-server";
import { serveStatic } from "@hono/node-server/serve-static";
import { createHandler } from "@gyre/server";
import { Hono } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import { secureHeaders } from "hono/secure-headers";
import { createAgent } from "./agent.mjs";

const PORT = Number(process.env.PORT ?? 3000);
const COOKIE = "user";

const app = new Hono();
const sources = ["'self'"];
app.use(secureHeaders({ contentSecurityPolicy: { defaultSrc: sources, imgSrc: ["data:"] } }));

// Everybody is a new user. A real program has them log in, and knows them by a cookie that it has signed.
app.get("/", async (context, next) => {
  if (getCookie(context, COOKIE) === undefined) {
    setCookie(context, COOKIE, randomUUID(), { httpOnly: true, sameSite: "Strict" });
  }
  await next();
});

const handler = createHandler({
  agents: ({ stored }) => createAgent(stored),
  authorize: (request) => {
    const user = /(?:^|; )user=([\w-]+)/.exec(request.headers.get("cookie") ?? "")?.[1];
    return user === undefined ? new Response("Open the page first.", { status: 401 }) : { user };
  },
});
app.all("/api/gyre/*", (context) => handler(context.req.raw));
app.use(serveStatic({ root: "./dist" }));

serve({ fetch: app.fetch, hostname: "127.0.0.1", port: PORT }, ({ port }) => {
  console.log(`Open http://127.0.0.1:${port}/`);
});
