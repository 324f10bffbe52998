import { createServer, type IncomingMessage, type Server } from "node:http";
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server as TcpServer,
} from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { complete } from "../../client/client.ts";
import { createModelClient } from "../client.ts";
import { createProxyFetch } from "./http-fetch.ts";
import { readProxies } from "./proxy.ts";

const INIT = {
  method: "POST",
  headers: {},
  body: "{}",
  signal: new AbortController().signal,
  redirect: "manual",
} as const;
const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

async function listen(server: Server | TcpServer): Promise<number> {
  cleanups.push(() => {
    server.close();
    if ("closeAllConnections" in server) server.closeAllConnections();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return (server.address() as AddressInfo).port;
}

/** A proxy that leads every connection to one port, and notes what it was asked. */
async function startProxy(port: number, status = 200) {
  const asked: IncomingMessage[] = [];
  const proxy = createServer((_request, response) => response.writeHead(501).end());
  proxy.on("connect", (request, socket) => {
    asked.push(request);
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\n\r\n`);
      return;
    }
    const through = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(through).pipe(socket);
    });
    socket.on("error", () => through.destroy());
    through.on("error", () => socket.destroy());
  });
  return { asked, url: `http://127.0.0.1:${await listen(proxy)}` };
}

function startService(): Promise<number> {
  return listen(createServer((_request, response) => response.end("hello")));
}

async function read(env: Record<string, string>, url: string): Promise<string> {
  const response = await createProxyFetch(env)?.(url, INIT);
  return new Response(response?.body).text();
}

describe("a proxy of the environment", () => {
  it.each(["http_proxy", "HTTP_PROXY", "ALL_PROXY"])("is that of %s", async (name) => {
    const proxy = await startProxy(await startService());
    expect(await read({ [name]: proxy.url }, "http://service.example/v1")).toBe("hello");
    expect(proxy.asked.map(({ url }) => url)).toEqual(["service.example:80"]);
  });

  it("is used for a connection with TLS, to the service by its name", async () => {
    let hello = Buffer.alloc(0);
    const server = createTcpServer((socket) => {
      socket.once("data", (bytes) => {
        hello = bytes;
        socket.destroy();
      });
    });
    const proxy = await startProxy(await listen(server));
    await expect(read({ HTTPS_PROXY: proxy.url }, "https://service.example/")).rejects.toThrow(
      "fetch failed",
    );
    expect(proxy.asked.map(({ url }) => url)).toEqual(["service.example:443"]);
    // The first message of TLS, with the name that the certificate is for.
    expect(hello[0]).toBe(0x16);
    expect(hello.includes("service.example")).toBe(true);
  });

  it("gets the user name and password of its address", async () => {
    const proxy = await startProxy(await startService());
    const url = proxy.url.replace("//", "//ann:p%40ss@");
    await read({ HTTP_PROXY: url }, "http://service.example/");
    expect(proxy.asked[0]?.headers["proxy-authorization"]).toBe(
      `Basic ${Buffer.from("ann:p@ss").toString("base64")}`,
    );
  });

  it.each([
    [403, "refused a connection to service.example:80 with status 403"],
    [407, "wants a user name and a password"],
  ])("that refuses with %i is named, without its password", async (status, text) => {
    const proxy = await startProxy(0, status);
    const url = proxy.url.replace("//", "//ann:secret@");
    const failed = read({ HTTP_PROXY: url }, "http://service.example/");
    await expect(failed).rejects.toMatchObject({
      cause: { message: expect.stringContaining(text) },
    });
    await expect(failed).rejects.not.toMatchObject({
      cause: { message: expect.stringContaining("secret") },
    });
  });

  it("that is not there is named", async () => {
    const failed = read({ HTTP_PROXY: "http://127.0.0.1:1" }, "http://service.example/");
    await expect(failed).rejects.toMatchObject({
      cause: { message: expect.stringContaining("The proxy http://127.0.0.1:1 cannot be reached") },
    });
  });

  it.each(["socks5://127.0.0.1:1080", "http://"])("has to be one of HTTP: %s", (value) => {
    expect(() => createModelClient({ env: { HTTPS_PROXY: value } })).toThrow(
      "HTTPS_PROXY has to be the address of an HTTP proxy",
    );
  });

  it("is used by a client of models", async () => {
    const proxy = await startProxy(await startService());
    const client = createModelClient({ env: { HTTP_PROXY: proxy.url, GROQ_API_KEY: "k" } });
    const model = {
      id: "m",
      name: "m",
      api: "openai-completions",
      provider: "groq",
      baseUrl: "http://models.example/v1",
    };
    await complete(client, model, { messages: [{ role: "user", content: "Hi" }] }).catch(() => {});
    expect(proxy.asked.map(({ url }) => url)).toEqual(["models.example:80"]);
  });
});

describe("NO_PROXY", () => {
  const finds = (list: string, url: string): boolean =>
    readProxies({ HTTP_PROXY: "proxy.example:8080", NO_PROXY: list })?.find(new URL(url)) !==
    undefined;

  it.each([
    ["", "http://a.example", true],
    ["*", "http://a.example", false],
    ["a.example", "http://a.example", false],
    ["A.example, b.example", "https://b.example:8443/x", false],
    ["a.example", "http://b.a.example", true],
    [".a.example", "http://b.a.example", false],
    ["*.a.example", "http://b.a.example", false],
    [".a.example", "http://ba.example", true],
    ["a.example:80", "http://a.example", false],
    ["a.example:81", "http://a.example", true],
    ["a.example:443", "https://a.example", false],
    ["127.0.0.1 localhost", "http://localhost:11434", false],
    ["[::1]", "http://[::1]:8080", false],
  ])("%s and %s: through the proxy is %s", (list, url, through) => {
    expect(finds(list, url)).toBe(through);
  });

  it("is not asked for where there is no proxy", () => {
    expect(readProxies({ NO_PROXY: "*", HTTPS_PROXY: "" })).toBeUndefined();
  });
});
