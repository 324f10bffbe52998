import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FrameDriver, FrameWorld } from "../../testing/frame-driver.ts";
import { runServe } from "./serve.ts";

const MODEL = { provider: "anthropic", id: "claude-sonnet-5-5" };
const CONTEXT = { messages: [{ role: "user", content: "Hi.", timestamp: 1 }] };

let world: FrameWorld;
let server: FrameDriver;
let closes: (() => void)[] = [];

beforeEach(async () => {
  world = await FrameWorld.open();
});

afterEach(async () => {
  await server.end();
  for (const close of closes) close();
  closes = [];
  await world.close();
});

/** An address where a service is, by the name that only its operator knows. */
async function serveUpstream(answer: RequestListener): Promise<string> {
  const upstream = createServer(answer);
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  closes.push(() => {
    upstream.closeAllConnections();
    upstream.close();
  });
  return `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/tenant-7`;
}

/** What a response and a run that fail show to a client: every frame of both. */
async function showFailures(url: string): Promise<string> {
  world.set("ANTHROPIC_BASE_URL", url);
  server = world.start(runServe, { stdio: true });
  const id = await server.create({ tools: [] });
  await server.ask("prompt", { text: "Hi." }, id);
  // Where it would be tried again and again, the first error is enough.
  await server.next(({ type }) => type === "retry" || type === "agent_end");
  await server.ask("abort", {}, id);
  await server.next(({ type }) => type === "agent_end");
  await server.ask("stream_request", { model: MODEL, context: CONTEXT }, "s_1");
  await server.next(({ type, stream }) => type === "error" && stream === "s_1");
  await server.ask("session_attach", {}, id);
  await server.next(({ type }) => type === "snapshot");
  return server.stdout;
}

describe("the address of a service is in no frame", () => {
  it.each<[string, RequestListener | string]>([
    ["nothing answers there", "http://127.0.0.1:9/tenant-7"],
    ["its name is not known", "http://llm.corp.invalid:8443/tenant-7"],
    ["the address has credentials", "http://tenant-7:secret-of-operator@127.0.0.1:9/"],
    ["the address cannot be used", "127.0.0.1:9/tenant-7"],
    [
      "it redirects to another place",
      (_, response) =>
        response.writeHead(302, { location: "http://llm.corp.invalid/tenant-7" }).end(),
    ],
    [
      "its error names it",
      ({ headers }, response) =>
        response
          .writeHead(400, { "content-type": "application/json" })
          .end(
            JSON.stringify({ error: { message: `No route at http://${headers.host}/tenant-7.` } }),
          ),
    ],
    [
      "it answers with a page",
      (_, response) =>
        response
          .writeHead(404, { "content-type": "text/html" })
          .end("<html><title>No</title></html>"),
    ],
  ])("where %s", async (_, upstream) => {
    const url = typeof upstream === "string" ? upstream : await serveUpstream(upstream);
    const shown = await showFailures(url);
    expect(shown).toContain("errorMessage");
    for (const word of ["127.0.0.1", "llm.corp", "tenant-7", "secret-of-operator"]) {
      expect(shown).not.toContain(word);
    }
  });
});
