import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { connect } from "node:tls";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { tmpdir } from "node:os";
import { Agent, type AgentToolResult } from "@gyre/agent";
import { systemClock, textOf } from "@gyre/ai";
import { call, manualClock, scriptedModel } from "@gyre/ai/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type Destination,
  FETCH_TIMEOUT_MS,
  type FetchOptions,
  fetchTool,
  MAX_REDIRECTS,
  MAX_SHOWN_CHARS,
} from "./tool.ts";
import { dialServer } from "./run.ts";
import { permissions } from "../../permissions.ts";
import { modelText } from "../../testing/model-text.ts";
import { openWorkspace } from "../../workspace/workspace.ts";

const PUBLIC = "93.184.215.14";
const signal = new AbortController().signal;
const host = { call: (): Promise<never> => Promise.reject(new Error("Calls nothing.")) };

let server: Server;
let port: number;
let certificate: string;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let dialed: Destination[];
let lookedUp: string[];

beforeAll(async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  certificate = selfSigned("site.test", privateKey, publicKey);
  const key = privateKey.export({ type: "pkcs8", format: "pem" });
  server = createServer({ key, cert: certificate }, (request, response) =>
    answer(request, response),
  );
  // A client that does not trust us hangs up.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  port = typeof address === "object" && address ? address.port : 0;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

beforeEach(() => {
  dialed = [];
  lookedUp = [];
});

/** The way to the server of the test, which stands for one of the internet. */
const ways: Required<FetchOptions> = {
  lookup: (hostname) => {
    lookedUp.push(hostname);
    return Promise.resolve([PUBLIC]);
  },
  dial: (destination) => {
    dialed.push(destination);
    const { hostname } = destination;
    return connect({ host: "127.0.0.1", port, servername: hostname, ca: certificate });
  },
};

async function run(args: Record<string, unknown>, options = ways): Promise<AgentToolResult> {
  const tool = fetchTool({ clock: systemClock }, options);
  const result = await tool.execute(args, {
    id: "1",
    signal,
    update: () => {},
    host,
    messages: [],
  });
  if (typeof result === "string") throw new Error("A result has details.");
  return result;
}

function joinText(result: AgentToolResult): string {
  return modelText(result);
}

async function read(url: string, args: Record<string, unknown> = {}): Promise<string> {
  return joinText(await run({ url, ...args }));
}

function serve(body: string | Uint8Array, headers: Record<string, string> = {}): void {
  answer = (_request, response) => {
    response.writeHead(200, { "content-type": "text/plain", ...headers });
    response.end(body);
  };
}

describe("fetch", () => {
  it("reads a page as text, marked with where it is from", async () => {
    serve("<h1>Hi</h1><script>x</script><a href='/b'>b</a>", { "content-type": "text/html" });
    const text = await read("https://site.test/a#part");
    expect(text).toMatch(/^<source kind="web" name="https:\/\/site\.test\/a" mark="/);
    expect(text).toContain("# Hi\n\n[b](https://site.test/b)");
  });

  it("gives JSON as it is", async () => {
    serve('{"a": "<b>&amp;"}', { "content-type": "application/json; charset=utf-8" });
    expect(await read("https://site.test/")).toContain('\n{"a": "<b>&amp;"}\n');
  });

  it("asks for nothing but gzip, and sends no cookies", async () => {
    const asked: IncomingMessage["headers"][] = [];
    answer = (request, response) => {
      asked.push(request.headers);
      if (request.url === "/1") response.writeHead(302, { location: "/2", "set-cookie": "a=b" });
      else response.writeHead(200, { "content-type": "text/plain", "set-cookie": "c=d" });
      response.end("ok");
    };
    await read("https://site.test/1");
    await read("https://site.test/2");
    expect(asked).toHaveLength(3);
    for (const headers of asked) {
      expect(headers["accept-encoding"]).toBe("gzip");
      expect(headers.host).toBe("site.test");
      expect(headers.cookie).toBeUndefined();
      expect(headers.authorization).toBeUndefined();
    }
  });

  it("unpacks gzip and deflate", async () => {
    serve(gzipSync("packed"), { "content-encoding": "gzip" });
    expect(await read("https://site.test/")).toContain("packed");
    serve(deflateSync("flat"), { "content-encoding": "deflate" });
    expect(await read("https://site.test/")).toContain("flat");
  });

  it("takes no Brotli, which was not asked for", async () => {
    serve(brotliCompressSync("x"), { "content-encoding": "br" });
    await expect(read("https://site.test/")).rejects.toThrow('"br"');
  });

  it("stops at its size, also for what is small until it is unpacked", async () => {
    serve(gzipSync(Buffer.alloc(64 * 1024 * 1024, "a")), { "content-encoding": "gzip" });
    const result = await run({ url: "https://site.test/", maxBytes: 1_000 });
    expect(result.details).toMatchObject({ bytes: 1_000, cut: true });
    expect(joinText(result)).toContain(
      "longer than the 1,000 bytes that were downloaded. Give maxBytes (up to 5242880) for more.",
    );
  });

  it("says how to read on, and reads on", async () => {
    const long = `${"a".repeat(MAX_SHOWN_CHARS - 1)}👍${"b".repeat(10)}`;
    serve(long);
    const first = await read("https://site.test/");
    expect(first).toContain(`Read on with offset ${MAX_SHOWN_CHARS - 1}.`);
    expect(first).not.toContain("👍");
    const second = await read("https://site.test/", { offset: MAX_SHOWN_CHARS - 1 });
    expect(second).toContain(`\n👍${"b".repeat(10)}\n`);
    await expect(read("https://site.test/", { offset: 1e9 })).rejects.toThrow("past the end");
  });

  it("knows the encoding by the header, and by the page", async () => {
    serve(Buffer.from("Grüße", "latin1"), { "content-type": "text/plain; charset=ISO-8859-1" });
    expect(await read("https://site.test/")).toContain("Grüße");
    const page = Buffer.from('<meta charset="windows-1252"><p>Grüße', "latin1");
    serve(page, { "content-type": "text/html" });
    expect(await read("https://site.test/")).toContain("Grüße");
    serve("Grüße", { "content-type": "text/plain; charset=unheard-of" });
    expect(await read("https://site.test/")).toContain("Grüße");
  });

  it("takes away what a reader would not see", async () => {
    serve("a\u{E0041}\u202Eb\x1B[31mc");
    expect(await read("https://site.test/")).toContain("\nabc\n");
  });

  it("refuses what is not text", async () => {
    serve("x", { "content-type": "image/png", "content-length": "1" });
    await expect(read("https://site.test/")).rejects.toThrow("image/png (1 bytes)");
    answer = (_request, response) => response.end("a\0b");
    await expect(read("https://site.test/")).rejects.toThrow("not text");
  });

  it("reports an error of the server as one", async () => {
    answer = (_request, response) => {
      response.writeHead(404, { "content-type": "text/plain" });
      response.end("Gone fishing");
    };
    const result = await run({ url: "https://site.test/x" });
    expect(result.isError).toBe(true);
    expect(joinText(result)).toMatch(/^https:\/\/site\.test\/x answered 404 Not Found\.\n<source /);
    expect(joinText(result)).toContain("Gone fishing");
  });

  it("says so when a page is empty", async () => {
    serve("");
    expect(await read("https://site.test/")).toBe("https://site.test/ has no text.");
  });
});

describe("fetch and redirects", () => {
  const redirect = (to: (path: string) => string | undefined): void => {
    answer = (request, response) => {
      const location = to(request.url ?? "");
      if (location === undefined) response.writeHead(200, { "content-type": "text/plain" });
      else response.writeHead(301, { location });
      response.end("arrived");
    };
  };

  it("follows them within a server, checking each", async () => {
    redirect((path) => (path === "/5" ? undefined : `/${Number(path.slice(1)) + 1}`));
    expect(await read("https://site.test/0")).toContain('name="https://site.test/5"');
    expect(lookedUp).toHaveLength(MAX_REDIRECTS + 1);
  });

  it("stops after five", async () => {
    redirect((path) => `${path}x`);
    await expect(read("https://site.test/0")).rejects.toThrow("more than 5 times");
    expect(dialed).toHaveLength(MAX_REDIRECTS + 1);
  });

  it("reports another server, and does not even look up its name", async () => {
    redirect(() => "https://other.test/x?secret=1");
    const text = await read("https://site.test/0");
    expect(text).toContain("nothing was read");
    expect(text).toContain("https://other.test/x?secret=1");
    expect(lookedUp).toEqual(["site.test"]);
  });

  it.each([
    ["http://site.test/", "Only https"],
    ["file:///etc/passwd", "Only https"],
    ["https://127.0.0.1/", "this machine"],
    ["https://[::ffff:a9fe:a9fe]/", "metadata"],
    ["https://2130706433/", "this machine"],
    ["https://me:secret@site.test/", "user name or password"],
    ["https://", "not an address"],
  ])("does not follow one to %s", async (location, words) => {
    redirect(() => location);
    await expect(read("https://site.test/")).rejects.toThrow(words);
    expect(dialed).toHaveLength(1);
  });

  it.each([
    ["deny", { deny: ["fetch(https://site.test/admin/**)"] }, "full"],
    ["ask", { ask: ["fetch(https://site.test/admin/**)"] }, "full"],
    ["allow", { allow: ["fetch(https://site.test/docs/**)"] }, "ask"],
  ] as const)("follows none past a rule to %s", async (_effect, rules, mode) => {
    const asked: string[] = [];
    redirect((path) => {
      asked.push(path);
      return { "/docs/a": "/docs/b", "/docs/b": "/admin/x" }[path];
    });
    const workspace = await openWorkspace(tmpdir());
    try {
      const tool = fetchTool({ clock: systemClock, workspace }, ways);
      const guard = permissions({
        mode,
        rules,
        sandboxed: true,
        headless: true,
        workspace,
        tools: [tool],
      });
      const script = [call("fetch", { url: "https://site.test/docs/a" }), "Done"];
      const protocol = scriptedModel(script);
      const agent = new Agent({
        protocol,
        model: protocol.model,
        tools: [tool],
        middleware: [guard],
      });
      const results: string[] = [];
      agent.subscribe((event) => {
        if (event.type === "tool_execution_end") results.push(textOf(event.result));
      });
      await agent.prompt("Go");
      expect(results).toEqual([
        "https://site.test/docs/a redirects to another address, and nothing was read. " +
          "Fetch this address if you want it: https://site.test/admin/x",
      ]);
      expect(asked).toEqual(["/docs/a", "/docs/b"]);
    } finally {
      await workspace.close();
    }
  });

  it("checks the name again at each: it may lead elsewhere by then", async () => {
    redirect(() => "/again");
    const addresses = [[PUBLIC], ["169.254.169.254"]];
    const lookup = (): Promise<string[]> => Promise.resolve(addresses.shift() ?? []);
    await expect(run({ url: "https://site.test/" }, { ...ways, lookup })).rejects.toThrow(
      "site.test leads to 169.254.169.254, which is not fetched",
    );
    expect(dialed).toHaveLength(1);
  });
});

describe("fetch and addresses", () => {
  it.each([
    ["http://site.test/", "Only https"],
    ["ftp://site.test/", "Only https"],
    ["site.test", "not a whole address"],
    ["https://user@site.test/", "user name or password"],
    ["https://127.0.0.1/", "this machine"],
    ["https://127.1:8443/", "this machine"],
    ["https://2130706433/", "this machine"],
    ["https://0x7f000001/", "this machine"],
    ["https://0177.0.0.1/", "this machine"],
    ["https://①②⑦.0.0.1/", "this machine"],
    ["https://10.0.0.1/", "private"],
    ["https://169.254.169.254/latest/meta-data/", "metadata"],
    ["https://[::1]/", "not public"],
    ["https://[fd00:ec2::254]/", "not public"],
    ["https://[::ffff:127.0.0.1]/", "this machine"],
    ["https://[64:ff9b::7f00:1]/", "this machine"],
    ["https://[2002:7f00:1::]/", "6to4"],
  ])("refuses %s before anybody is asked", async (url, words) => {
    const tool = fetchTool({ clock: systemClock }, ways);
    expect(() => tool.access({ url })).toThrow(words);
    await expect(read(url)).rejects.toThrow(words);
    expect(dialed).toEqual([]);
  });

  it("does not show a password in its error", () => {
    const tool = fetchTool({ clock: systemClock }, ways);
    expect(() => tool.access({ url: "https://u:hunter22@site.test/" })).toThrow(/^(?!.*hunter22)/);
  });

  it.each([
    ["this machine", ["127.0.0.1"]],
    ["a public one beside a private one", [PUBLIC, "10.0.0.1"]],
    ["a mapped one", ["::ffff:192.168.0.1"]],
    ["a link", ["fe80::1%eth0"]],
  ])("refuses a name that leads to %s", async (_, addresses) => {
    const lookup = (): Promise<string[]> => Promise.resolve(addresses);
    await expect(run({ url: "https://rebind.test/" }, { ...ways, lookup })).rejects.toThrow(
      "is not fetched",
    );
    expect(dialed).toEqual([]);
  });

  it("connects to the address that was checked: the name is looked up once", async () => {
    serve("ok");
    await read("https://site.test:8443/");
    expect(lookedUp).toEqual(["site.test"]);
    expect(dialed).toEqual([{ hostname: "site.test", port: 8443, addresses: [PUBLIC] }]);
  });

  it("takes no server for another: its certificate must name it", async () => {
    serve("ok");
    await expect(read("https://evil.test/")).rejects.toThrow("cannot be reached");
  });

  it("dials the given address, and trusts no certificate because the environment says so", async () => {
    const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      const arrived = new Promise((done) => server.once("connection", done));
      // The name has no address anywhere: only the given one can have been used.
      const socket = dialServer({ hostname: "site.invalid", port, addresses: ["127.0.0.1"] });
      const failure = new Promise<Error>((done) => socket.once("error", done));
      await arrived;
      expect(await failure).toMatchObject({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    } finally {
      if (before === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before;
    }
  });

  it("reports what it would do: the server and the path for rules, all of it for people", () => {
    const tool = fetchTool({ clock: systemClock }, ways);
    expect(tool.access({ url: "https://SITE.test:443/a/../b?q=1#x" })).toEqual({
      kind: "network",
      targets: ["https://site.test/b"],
      summary: "Reads https://site.test/b?q=1",
    });
  });
});

/** Listened for from now on: it may come before it is waited for. */
async function catchFailure(call: unknown): Promise<string> {
  try {
    await call;
  } catch (error) {
    return String(error);
  }
  return "none";
}

describe("fetch and time", () => {
  it.each(["nothing", "a beginning"])("times out on a server that sends %s", async (sent) => {
    const clock = manualClock();
    const asked = new Promise<void>((done) => {
      answer = (_request, response) => {
        if (sent !== "nothing") response.write("beginning");
        done();
      };
    });
    const call = fetchTool({ clock }, ways).execute(
      { url: "https://site.test/" },
      { id: "1", signal, update: () => {}, host, messages: [] },
    );
    const failure = catchFailure(call);
    await asked;
    await clock.advance(FETCH_TIMEOUT_MS);
    expect(await failure).toContain("https://site.test/ took longer than 20 s");
    expect(clock.pending).toBe(0);
  });

  it("times out on a name that is never found", async () => {
    const clock = manualClock();
    const lookup = (): Promise<string[]> => new Promise(() => {});
    const tool = fetchTool({ clock }, { ...ways, lookup });
    const call = tool.execute(
      { url: "https://site.test/" },
      { id: "1", signal, update: () => {}, host, messages: [] },
    );
    const failure = catchFailure(call);
    await clock.advance(FETCH_TIMEOUT_MS);
    expect(await failure).toContain("took longer");
  });

  it("ends at once on abort, and hangs up", async () => {
    const abort = new AbortController();
    const hungUp = new Promise<void>((closed) => {
      answer = (request, response) => {
        request.socket.once("close", closed);
        response.write("beginning");
        abort.abort(new Error("The user said stop."));
      };
    });
    const tool = fetchTool({ clock: systemClock }, ways);
    const call = tool.execute(
      { url: "https://site.test/" },
      { id: "1", signal: abort.signal, update: () => {}, host, messages: [] },
    );
    await expect(call).rejects.toThrow("The user said stop.");
    await hungUp;
  });
});

/** A certificate for a name, made here so that none can run out. */
function selfSigned(name: string, privateKey: KeyObject, publicKey: KeyObject): string {
  const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
    const body = Buffer.concat(parts);
    const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 255];
    return Buffer.concat([Buffer.from([tag, ...length]), body]);
  };
  const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
  const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, "hex"));
  const time = (text: string): Buffer => der(0x18, Buffer.from(text));
  const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"));
  const subject = sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from(name)))));
  const altName = sequence(oid("551d11"), der(0x04, sequence(der(0x82, Buffer.from(name)))));
  const certified = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    subject,
    sequence(time("20200101000000Z"), time("99991231235959Z")),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(altName)),
  );
  const signature = der(0x03, Buffer.from([0]), sign("sha256", certified, privateKey));
  const whole = sequence(certified, ecdsaWithSha256, signature).toString("base64");
  return `-----BEGIN CERTIFICATE-----\n${whole}\n-----END CERTIFICATE-----\n`;
}
