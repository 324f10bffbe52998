import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import { proxiedWebFetch } from "./proxied-web-fetch.ts";

const REQUEST = {
  method: "POST",
  headers: {},
  body: "{}",
  signal: new AbortController().signal,
  redirect: "manual",
} as const satisfies RequestInit;
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

async function listen(server: Server): Promise<number> {
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return (server.address() as AddressInfo).port;
}

/** A service, and a proxy that notes where it was asked to go. */
async function world(): Promise<{ service: string; proxy: string; asked: string[] }> {
  const asked: string[] = [];
  const service = await listen(createServer((_request, response) => response.end("hello")));
  const proxy = createServer((_request, response) => response.writeHead(500).end());
  proxy.on("connect", (request, socket) => {
    asked.push(request.url ?? "");
    const through = connect(service, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(through).pipe(socket);
    });
  });
  return {
    service: `http://127.0.0.1:${service}/`,
    proxy: `http://127.0.0.1:${await listen(proxy)}`,
    asked,
  };
}

it.each(["http_proxy", "HTTP_PROXY", "ALL_PROXY"])("goes through the proxy of %s", async (name) => {
  const { asked, proxy, service } = await world();
  const response = await proxiedWebFetch({ [name]: proxy })(service, REQUEST);
  expect(await new Response(response.body).text()).toBe("hello");
  expect(asked).toEqual([new URL(service).host]);
});

it("goes past it where NO_PROXY says so", async () => {
  const { asked, proxy, service } = await world();
  const response = await proxiedWebFetch({ HTTP_PROXY: proxy, NO_PROXY: "127.0.0.1" })(
    service,
    REQUEST,
  );
  expect(await new Response(response.body).text()).toBe("hello");
  expect(asked).toEqual([]);
});
