import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { allowsAddress, allowsHost, parseDomain } from "./domains.ts";
import { type DomainProxy, openProxy } from "./proxy.ts";

/** Of the public internet, for those who look at addresses; connections to it go to our servers. */
const PUBLIC = "93.184.215.14";

let folder: string;
let proxy: DomainProxy;
let web: HttpServer;
let echo: Server;
/** What the servers got, and where the proxy connected to. */
let requests: string[] = [];
let connections: string[] = [];

const readPort = (server: Server | HttpServer): number => (server.address() as AddressInfo).port;
const NAMES: Readonly<Record<string, readonly string[]>> = {
  "allowed.example": [PUBLIC],
  "sub.wild.example": [PUBLIC],
  "other.example": [PUBLIC],
  "rebound.example": ["127.0.0.1"],
  "metadata.example": ["169.254.169.254"],
  "mixed.example": ["10.0.0.1", PUBLIC],
  "mapped.example": ["::ffff:127.0.0.1"],
  localhost: ["127.0.0.1"],
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-proxy-"));
  [requests, connections] = [[], []];
  web = createHttpServer((incoming, response) => {
    const { headers, method, url } = incoming;
    let body = "";
    incoming.setEncoding("utf8").on("data", (text: string) => (body += text));
    incoming.on("end", () => {
      const sent = ["proxy-authorization", "proxy-connection", "x-hop"].filter(
        (name) => name in headers,
      );
      requests.push(`${method} ${headers.host}${url} ${body}${sent.join()}`);
      response.end(`page ${url}`);
    });
  });
  echo = createServer((socket) => socket.pipe(socket));
  for (const server of [web, echo]) {
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  }
  const domains = [
    ...[
      "allowed.example",
      "*.wild.example",
      "rebound.example",
      "metadata.example",
      "mixed.example",
    ],
    ...["mapped.example", "127.0.0.1:99", "localhost:98"],
  ].map(parseDomain);
  proxy = await openProxy({
    folder,
    decide: async (host, port) => allowsHost(domains, { host, port }),
    allowsAddress: (host, port) => allowsAddress(domains, { host, port }),
    resolve: async (host) => {
      const found = NAMES[host];
      if (!found) throw new Error(`no such name: ${host}`);
      return found;
    },
    connect: (address, port) => {
      connections.push(`${address}:${port}`);
      return opened(connect(readPort(port === 443 ? echo : web), "127.0.0.1"));
    },
  });
});

afterEach(async () => {
  await proxy.close();
  web.closeAllConnections();
  web.close();
  echo.close();
  await rm(folder, { recursive: true, force: true });
});

function opened(socket: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.once("connect", () => resolve(socket));
    socket.once("error", reject);
  });
}

/** What comes back for these bytes, until the other side has said all or `isEnough`. */
function send(text: string, isEnough: (got: string) => boolean = () => false): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: proxy.path });
    let got = "";
    socket.setEncoding("latin1").on("data", (piece: string) => {
      got += piece;
      if (isEnough(got)) socket.destroy();
    });
    socket.once("close", () => resolve(got));
    socket.once("error", reject);
    socket.write(text, "latin1");
  });
}

const statuses = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
const CLOSE = "Connection: close\r\n\r\n";
const get = (url: string, host = /^http:\/\/([^/]*)/.exec(url)?.[1] ?? ""): string =>
  `GET ${url} HTTP/1.1\r\nHost: ${host}\r\n`;
const tunnelTo = (target: string): Promise<string> =>
  send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`, (got) => got.includes("200 "));

describe("a proxy for some domains", () => {
  it("opens a tunnel to a host that is listed, and passes bytes on both ways", async () => {
    const target = "allowed.example:443";
    const got = await send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\nhello`, (text) =>
      text.endsWith("hello"),
    );
    expect(got).toBe("HTTP/1.1 200 Connection Established\r\n\r\nhello");
    expect(connections).toEqual([`${PUBLIC}:443`]);
    expect(proxy.denials()).toEqual([]);
  });

  it("passes on a request, without what is for the proxy", async () => {
    const got = await send(
      "POST http://sub.wild.example/a?b HTTP/1.1\r\nHost: sub.wild.example\r\nContent-Length: 4\r\n" +
        "Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: close\r\nX-Hop: 1\r\nConnection: close, x-hop\r\n\r\nbody",
    );
    expect(statuses(got)).toEqual([200]);
    expect(got).toContain("page /a?b");
    expect(requests).toEqual(["POST sub.wild.example/a?b body"]);
  });

  it("denies others with a sentence that says what to set, once for each", async () => {
    const got = await tunnelTo("other.example:443");
    const sentence =
      "The sandbox denied a connection to other.example: the user can allow it with the setting `domains`.";
    expect(statuses(got)).toEqual([403]);
    expect(got).toContain(sentence);
    await send(get("http://other.example/secret?token=hunter22") + CLOSE);
    await tunnelTo("allowed.example:22");
    expect(proxy.denials()).toEqual([sentence, expect.stringContaining("allowed.example:22:")]);
    expect(proxy.denials().join()).not.toContain("hunter22");
    expect(connections).toEqual([]);
  });

  it.each([
    ["rebound.example:443", "127.0.0.1 (this machine)"],
    ["metadata.example:443", "169.254.169.254 (link-local, with clouds' metadata)"],
    ["mapped.example:443", "::ffff:127.0.0.1 (this machine)"],
  ])("does not connect to an address that is not public: %s", async (target, where) => {
    expect(statuses(await tunnelTo(target))).toEqual([403]);
    expect(proxy.denials()[0]).toContain(where);
    expect(connections).toEqual([]);
  });

  it("connects to those of the addresses that are public, and to private ones that are listed", async () => {
    await tunnelTo("mixed.example:443");
    await tunnelTo("127.0.0.1:99");
    await tunnelTo("localhost:98");
    expect(connections).toEqual([`${PUBLIC}:443`, "127.0.0.1:99", "127.0.0.1:98"]);
  });

  it.each([
    ...[
      "allowed.example",
      "allowed.example:0",
      "allowed.example:99999",
      "user@allowed.example:443",
    ],
    ...[
      "other.example@allowed.example:443",
      "allowed.example:443@other.example:443",
      "0x7f.1:443",
      "2130706433:443",
    ],
    ...[
      "127.1:99",
      "[::1%lo]:443",
      "allowed.example\u00ad:443",
      "[::1:443",
      ":443",
      "http://allowed.example/",
    ],
    ...[
      "allowed.example.:443:443",
      "*.wild.example:443",
      "allowed%2eexample:443",
      "allowed.example\0:443",
    ],
  ])("opens no tunnel to %j", async (target) => {
    const got = await send(`CONNECT ${target} HTTP/1.1\r\nHost: allowed.example\r\n\r\n`);
    expect(statuses(got)).toEqual([400]);
    expect(connections).toEqual([]);
  });

  it.each([
    "[::1]:443",
    "[::ffff:127.0.0.1]:99",
    "[::ffff:7f00:1]:99",
    "127.0.0.1:443",
    "10.0.0.1:443",
  ])("denies the address %s", async (target) => {
    expect(statuses(await tunnelTo(target))).toEqual([403]);
    expect(connections).toEqual([]);
  });

  it.each([
    ["another host in the header", get("http://allowed.example/", "other.example")],
    ["another port in the header", get("http://allowed.example/", "allowed.example:81")],
    ["two headers", `${get("http://allowed.example/")}Host: other.example\r\n`],
    ["no host in the address", get("/", "allowed.example")],
    ["a user in the address", get("http://other.example@allowed.example/", "allowed.example")],
    [
      "a backslash in the address",
      get("http://allowed.example\\@other.example/", "allowed.example"),
    ],
    ["another scheme", get("ftp://allowed.example/", "allowed.example")],
    ["https without a tunnel", get("https://allowed.example/", "allowed.example")],
    ["a fragment", get("http://allowed.example#@other.example/", "allowed.example")],
    [
      "an upgrade",
      `${get("http://allowed.example/")}Upgrade: websocket\r\nConnection: upgrade\r\n`,
    ],
    [
      "two lengths",
      `${get("http://allowed.example/")}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n`,
    ],
    ["a bare line feed", "GET http://allowed.example/\nHost: other.example HTTP/1.1\r\n"],
  ])("refuses a request with %s", async (_name, text) => {
    expect(statuses(await send(text + CLOSE))).toEqual([400]);
    expect(requests).toEqual([]);
  });

  it("decides on each request of a connection", async () => {
    const got = await send(
      `${get("http://allowed.example/one")}\r\n${get("http://other.example/two")}\r\n${get("http://allowed.example/three")}${CLOSE}`,
    );
    expect(statuses(got)[0]).toBe(200);
    expect(statuses(got)[1]).toBe(403);
    expect(requests.some((line) => line.includes("two"))).toBe(false);
  });

  it("says that a host cannot be reached", async () => {
    await proxy.close();
    proxy = await openProxy({
      folder,
      decide: async () => true,
      resolve: async () => {
        throw new Error("ENOTFOUND");
      },
    });
    expect(statuses(await tunnelTo("missing.example:443"))).toEqual([502]);
  });

  it("ends tunnels when it is closed", async () => {
    const got = send("CONNECT allowed.example:443 HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect.poll(() => connections.length, { interval: 5 }).toBe(1);
    await proxy.close();
    expect(statuses(await got).every((status) => status === 200)).toBe(true);
  });
});
