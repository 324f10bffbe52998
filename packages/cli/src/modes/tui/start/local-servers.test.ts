import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { openModels } from "@gyre/coding/internal/models/models";
import {
  findLocalServers,
  LOCAL_SERVICES,
  type LocalSearch,
  type LocalServer,
  type LocalService,
  MAX_ANSWER_BYTES,
} from "./local-servers.ts";

const open: Server[] = [];
/** So long that only a hanging test would meet it. */
const PATIENT_MS = 20_000;

afterEach(async () => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
});

/** A server on a free port of loopback. */
async function serve(listener: RequestListener, host = "127.0.0.1"): Promise<number> {
  const server = createServer(listener);
  open.push(server);
  await new Promise<void>((ready) => server.listen(0, host, ready));
  return (server.address() as AddressInfo).port;
}

function answering(body: unknown, status = 200): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

const OLLAMA = { models: [{ name: "llama3.1", model: "llama3.1" }, { name: "qwen3:8b" }] };

function openAi(...ids: unknown[]): unknown {
  return { object: "list", data: ids.map((id) => ({ id, object: "model" })) };
}

/** One of the known services, at another port. */
function service(id: string, port: number): LocalService {
  const known = LOCAL_SERVICES.find((one) => one.id === id);
  if (!known) throw new Error(`There is no ${id}.`);
  return { ...known, port };
}

function find(more: Partial<LocalSearch>): Promise<LocalServer[]> {
  return findLocalServers({ env: {}, timeoutMs: PATIENT_MS, ...more });
}

async function found(id: string, listener: RequestListener): Promise<LocalServer[]> {
  return find({ services: [service(id, await serve(listener))] });
}

describe("a local server", () => {
  it("is found with its models, as --model takes them", async () => {
    const port = await serve(answering(OLLAMA));
    expect(await find({ services: [service("ollama", port)] })).toEqual([
      {
        service: "ollama",
        name: "Ollama",
        place: `127.0.0.1:${port}`,
        models: ["ollama/llama3.1", "ollama/qwen3:8b"],
        variables: { OLLAMA_HOST: `http://127.0.0.1:${port}` },
      },
    ]);
  });

  it.each(["lmstudio", "llamacpp", "vllm"])("of %s is asked at /v1/models", async (id) => {
    const asked: (string | undefined)[] = [];
    const [server] = await found(id, (request, response) => {
      asked.push(request.url);
      answering(openAi("some/model"))(request, response);
    });
    expect(asked).toEqual(["/v1/models"]);
    expect(server?.models).toEqual([`${id}/some/model`]);
  });

  it("is found on ::1 as well", async () => {
    const port = await serve(answering(OLLAMA), "::1");
    const [server] = await find({ services: [service("ollama", port)] });
    expect(server?.place).toBe(`[::1]:${port}`);
  });

  it("gives names that models are opened by, at the place where it was found", async () => {
    const port = await serve(answering(openAi("/models/a b.gguf")));
    const [server] = await find({ services: [service("llamacpp", port)] });
    const env = server?.variables ?? {};
    expect(env).toEqual({ LLAMACPP_BASE_URL: `http://127.0.0.1:${port}/v1` });
    const models = await openModels({ settings: {}, env });
    expect(await models.find(server?.models[0] ?? "")).toMatchObject({
      provider: "llamacpp",
      id: "/models/a b.gguf",
    });
  });

  it("is sent no key", async () => {
    const headers: string[] = [];
    const port = await serve((request, response) => {
      headers.push(...Object.keys(request.headers));
      answering(OLLAMA)(request, response);
    });
    await find({ services: [service("ollama", port)], env: { OLLAMA_API_KEY: "hush" } });
    expect(headers).not.toContain("authorization");
    expect(headers).toContain("accept");
  });

  it("needs no variable where its service is looked for anyway", async () => {
    const body = new Response(JSON.stringify(OLLAMA));
    const fetch: LocalSearch["fetch"] = async (url) =>
      url.startsWith("http://127.0.0.1:11434/") ? body : Promise.reject(new Error("closed"));
    const [server] = await find({ fetch });
    expect(server?.variables).toEqual({});
  });
});

describe("an address in the environment", () => {
  async function places(id: string, env: Record<string, string>): Promise<string[]> {
    const asked: string[] = [];
    const fetch: LocalSearch["fetch"] = async (url) => {
      asked.push(url);
      throw new Error("closed");
    };
    await find({ services: [service(id, 4000)], env, fetch });
    return asked;
  }

  it.each([
    ["127.0.0.1", ["http://127.0.0.1:4000/api/tags"]],
    ["127.0.0.1:5000", ["http://127.0.0.1:5000/api/tags"]],
    [":5000", ["http://127.0.0.1:5000/api/tags"]],
    ["0.0.0.0", ["http://127.0.0.1:4000/api/tags"]],
    ["[::]:5000", ["http://[::1]:5000/api/tags"]],
    ["http://127.0.0.2:5000/", ["http://127.0.0.2:5000/api/tags"]],
    ["localhost:5000", ["http://127.0.0.1:5000/api/tags", "http://[::1]:5000/api/tags"]],
  ])("of loopback counts: %s", async (host, expected) => {
    expect(await places("ollama", { OLLAMA_HOST: host })).toEqual(expected);
  });

  it("has its path kept", async () => {
    const env = { LMSTUDIO_BASE_URL: "http://127.0.0.1:5000/other/v1/" };
    expect(await places("lmstudio", env)).toEqual(["http://127.0.0.1:5000/other/v1/models"]);
  });

  it.each([
    "models.example",
    "http://10.0.0.1:11434",
    "http://localhost.example:5000",
    "http://127.0.0.1.example:5000",
    "https://127.0.0.1:5000",
    "http://me:hush@127.0.0.1:5000",
    "http://[::ffff:10.0.0.1]:5000",
    "::::",
  ])("elsewhere is not asked: %s", async (host) => {
    expect(await places("ollama", { OLLAMA_HOST: host })).toEqual([
      "http://127.0.0.1:4000/api/tags",
      "http://[::1]:4000/api/tags",
    ]);
  });
});

describe("any other program that answers", () => {
  it.each([
    ["a page", "<!doctype html><title>Hello</title>"],
    ["nothing", ""],
    ["null", null],
    ["a number", 7],
    ["a list", [{ id: "x", object: "model" }]],
    ["no models", { object: "list", data: [] }],
    ["another list", { data: [{ id: "x" }] }],
    ["other entries", { object: "list", data: [null, 1, { id: "x", object: "user" }] }],
    ["names that are none", openAi("", 7, null, ["x"], { a: 1 }, " x")],
    ["names that a terminal obeys", openAi("\x1b]0;x\x07y", "a\nb", "a\u202eb")],
    ["an endless name", openAi("x".repeat(201))],
  ])("with %s is no server", async (_what, body) => {
    expect(await found("vllm", answering(body))).toEqual([]);
  });

  it.each([401, 404, 500])("with status %i is no server", async (status) => {
    expect(await found("ollama", answering(OLLAMA, status))).toEqual([]);
  });

  it("with a redirect is not followed", async () => {
    const asked: string[] = [];
    const target = await serve((request, response) => {
      asked.push("target");
      answering(OLLAMA)(request, response);
    });
    const servers = await found("ollama", (_request, response) => {
      response.writeHead(302, { location: `http://127.0.0.1:${target}/api/tags` }).end();
    });
    expect([servers, asked]).toEqual([[], []]);
  });

  it("with more than a list can have is cut off", async () => {
    let sent = 0;
    const servers = await found("ollama", (_request, response) => {
      const piece = " ".repeat(65_536);
      const more = (): void => {
        while (!response.destroyed) {
          sent += piece.length;
          if (!response.write(piece)) return;
        }
      };
      response.writeHead(200).on("drain", more);
      more();
    });
    expect(servers).toEqual([]);
    expect(sent).toBeGreaterThan(MAX_ANSWER_BYTES);
  });

  it.each([
    ["says nothing", false],
    ["never ends", true],
  ])("and %s is not waited for", async (_what, isBegun) => {
    const limit = new AbortController();
    const port = await serve((_request, response) => {
      if (isBegun) response.writeHead(200).write('{"models": [');
      setImmediate(() => limit.abort());
    });
    const services = [service("ollama", port)];
    expect(await find({ services, timeLimit: () => limit.signal })).toEqual([]);
  });

  it("does not hide one that answers well", async () => {
    const bad = await serve(answering("<html>"));
    const good = await serve(answering(OLLAMA));
    const servers = await find({ services: [service("vllm", bad), service("ollama", good)] });
    expect(servers.map((server) => server.service)).toEqual(["ollama"]);
  });
});

it("a search that is called off rejects", async () => {
  const reason = new Error("enough");
  const signal = AbortSignal.abort(reason);
  await expect(find({ services: [service("ollama", 1)], signal })).rejects.toBe(reason);
});
