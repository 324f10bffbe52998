// Serves page.html and the events of its runs. `npm start`, then open the address.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  readJsonBody,
  RequestError,
  resumeResponse,
  RunLog,
  toErrorResponse,
} from "@gyre/server/streams";
import { createAgent } from "./agent.mjs";

const PORT = Number(process.env.PORT ?? 3000);
/** Beyond it, the conversation that was begun first is forgotten. */
const MAX_CHATS = 1000;

/** Conversations by id, in memory: the agent, and the log of its last run. */
const chats = new Map();
const page = await readFile(new URL("page.html", import.meta.url), "utf8");

/** Only the style and the script of the page itself may run; no text of a model becomes a third. */
const formatHash = (tag) => {
  const [, text] = new RegExp(`<${tag}[^>]*>([^]*?)</${tag}>`).exec(page);
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
};
const headers = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; connect-src 'self'; img-src data:; script-src ${formatHash("script")}; style-src ${formatHash("style")}`,
};

async function answer(request) {
  const { pathname } = new URL(request.url);
  // Pages of others may not start runs, which cost money.
  if (request.headers.get("sec-fetch-site") === "cross-site" && request.method !== "GET") {
    throw new RequestError(403, "forbidden", "This server is for its own page.");
  }
  if (request.method === "GET" && pathname === "/") return new Response(page, { headers });
  const [, id, action] = /^\/chats\/([\w-]{36})\/(events|run|stop)$/.exec(pathname) ?? [];
  const chat = chats.get(id);
  if (action === "events" && request.method === "GET") return follow(request, chat);
  if (action === "run" && request.method === "POST") return run(id, await readJsonBody(request));
  if (action === "stop" && request.method === "POST") {
    chat?.log.abort();
    return new Response(undefined, { status: 204 });
  }
  throw new RequestError(404, "not_found", "There is nothing here.");
}

/** The last run and what comes of it: to a page that opens all of the conversation, to one that was cut off the rest. */
function follow(request, chat) {
  // A browser that gets 204 does not ask again.
  if (chat === undefined) return new Response(undefined, { status: 204 });
  const isNew = !request.headers.has("last-event-id");
  // An id that no event has: the log begins with a snapshot.
  const asked = isNew ? { headers: new Headers({ "last-event-id": "none" }) } : request;
  return resumeResponse(chat.log, { request: asked });
}

/** Starts a run: with the text of a person, or with what they decided about the calls that wait. */
function run(id, { text, decisions }) {
  const agent = chats.get(id)?.agent ?? createAgent();
  if (agent.isRunning) throw new RequestError(409, "session_busy", "Stop the answer first.");
  const waiting = agent.state.pending.map(({ toolCall }) => toolCall.id);
  if (decisions && !Object.keys(decisions).every((call) => waiting.includes(call))) {
    throw new RequestError(409, "not_pending", "That call has been decided already.");
  }
  const log = new RunLog({ history: agent.state.messages });
  log.record(decisions ? agent.continueRun({ decisions }) : agent.run(String(text)), agent);
  chats.set(id, { agent, log });
  if (chats.size > MAX_CHATS) chats.delete(chats.keys().next().value);
  return new Response(undefined, { status: 204 });
}

/** From Node to `Request`, and from `Response` to Node. */
async function serve(incoming, outgoing) {
  try {
    const { method, url, headers } = incoming;
    const body = method === "POST" ? Readable.toWeb(incoming) : undefined;
    const request = new Request(new URL(url, "http://localhost"), {
      method,
      headers,
      body,
      duplex: "half",
    });
    const response = await answer(request).catch((error) => {
      if (error instanceof RequestError) return toErrorResponse(error);
      console.error(error);
      return toErrorResponse(new RequestError(500, "internal", "The server failed."));
    });
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) await pipeline(Readable.fromWeb(response.body), outgoing);
    else outgoing.end();
  } catch (error) {
    // A page that is left closes its stream.
    if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") console.error(error);
    outgoing.destroy();
  }
}
const server = createServer((incoming, outgoing) => void serve(incoming, outgoing));
server.listen(PORT, "127.0.0.1", () => {
  console.log(`Open http://127.0.0.1:${server.address().port}/`);
});
