import { createHash } from "node:crypto";
import { mkdtemp, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { catalog, CATALOG_DATE } from "@gyre/ai/models";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runModels } from "./models.ts";
import { EXIT, ExitError } from "../core/exit-codes.ts";
import { textIo } from "../testing/command-io.ts";
import { openModels } from "@gyre/coding/internal/models/models";
import { refreshFacts, type RefreshParts } from "./refresh-facts.ts";
import {
  knownModels,
  MAX_FACTS_BYTES,
  storedFactsPath,
} from "@gyre/coding/internal/models/stored-facts";

const NOW = Date.parse("2031-05-06T12:00:00Z");
const FACTS = {
  date: "2031-05-06",
  models: [
    { provider: "anthropic", id: "claude-sonnet-4-5", contextWindow: 300_000, price: { input: 9 } },
    { provider: "anthropic", id: "claude-opus-9", contextWindow: 2_000_000, reasoning: true },
  ],
};

let folder = "";
let env: Record<string, string> = {};
const servers: Server[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-facts-"));
  env = { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, HOME: folder, ANTHROPIC_API_KEY: "sk-k" };
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  await rm(folder, { recursive: true, force: true });
});

/** A server on this machine; the answer is its address. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("There is no port.");
  return `http://127.0.0.1:${address.port}/facts.json`;
}

function computeHash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

async function refresh(
  settings: RefreshParts["settings"],
  parts: Partial<RefreshParts> = {},
): Promise<unknown> {
  const io = textIo({ env });
  return refreshFacts(io, { settings, now: () => NOW, ...parts });
}

/** Serves a text, and expects just that. */
async function refreshFrom(text: string, hash = computeHash(text)): Promise<unknown> {
  const catalogUrl = await serve((_, response) => response.end(text));
  return refresh({ catalogUrl, catalogHash: hash });
}

/** What is stored, with the time of the file: the same after all that fails. */
async function readStored(): Promise<unknown> {
  const path = storedFactsPath(env);
  const { ino } = await stat(path);
  return { ino, text: await readFile(path, "utf8"), files: await readdir(dirname(path)) };
}

describe("gyre models --refresh", () => {
  it("fetches facts of the day, and all that asks for models has them", async () => {
    const requests: unknown[] = [];
    const text = JSON.stringify(FACTS);
    const catalogUrl = await serve((request, response) => {
      requests.push([request.method, request.url, request.headers["authorization"]]);
      response.end(text);
    });
    const facts = await refresh({ catalogUrl: `${catalogUrl}#sha256=${computeHash(text)}` });
    expect(facts).toEqual(FACTS);
    expect(requests).toEqual([["GET", "/facts.json", undefined]]);
    expect((await stat(storedFactsPath(env))).mode & 0o777).toBe(0o600);
    expect(await readdir(join(folder, "gyre"))).toEqual(["models.json"]);

    const models = await openModels({ settings: {}, env });
    expect(await models.find("anthropic/claude-opus-9")).toEqual({
      provider: "anthropic",
      id: "claude-opus-9",
      name: "claude-opus-9",
      api: "anthropic-messages",
      contextWindow: 2_000_000,
      reasoning: true,
    });
    const known = catalog().find(({ id }) => id === "claude-sonnet-4-5");
    expect(await models.find("anthropic/claude-sonnet-4-5")).toEqual({
      ...known,
      contextWindow: 300_000,
      price: { input: 9 },
    });
    const own = { models: [{ provider: "anthropic", id: "claude-opus-9", contextWindow: 5 }] };
    const mine = await openModels({ settings: { models: own }, env });
    expect((await mine.find("anthropic/claude-opus-9")).contextWindow).toBe(5);
  });

  it("lists models with them, and says of which day they are", async () => {
    const text = JSON.stringify({ ...FACTS, date: CATALOG_DATE });
    const catalogUrl = await serve((_, response) => response.end(text));
    const settings = { catalogUrl, catalogHash: `sha256-${computeHash(text)}` };
    const io = textIo({ env });
    const noServer: typeof fetch = async () => {
      throw new TypeError("fetch failed");
    };
    expect(await runModels([], { refresh: true }, io, { settings, fetch: noServer })).toBe(
      EXIT.done,
    );
    expect(io.out()).toMatch(/anthropic\/claude-opus-9 +2M/);
    expect(io.err()).toContain(`Facts of 2 models, of ${CATALOG_DATE}, are stored.`);
    expect(io.err()).toContain(`as known on ${CATALOG_DATE}.`);
  });

  it.each<[RefreshParts["settings"], string]>([
    [{}, 'Set "catalogUrl"'],
    [{ catalogUrl: "https://facts.test/a" }, "There is no hash"],
    [{ catalogUrl: "https://facts.test/a", catalogHash: "abc" }, "64 digits"],
    [{ catalogUrl: "nonsense", catalogHash: "a".repeat(64) }, "is no address"],
    [{ catalogUrl: "http://facts.test/a", catalogHash: "a".repeat(64) }, "must be an https"],
    [{ catalogUrl: "file:///etc/passwd", catalogHash: "a".repeat(64) }, "must be an https"],
    [{ catalogUrl: "https://me:pw@facts.test/", catalogHash: "a".repeat(64) }, "must be an https"],
    [
      {
        catalogUrl: `https://facts.test/a#sha256=${"b".repeat(64)}`,
        catalogHash: "a".repeat(64),
      },
      "differ",
    ],
  ])("sends nothing where the settings do not say all of it: %j", async (settings, why) => {
    let asked = 0;
    const send = async (): Promise<Response> => {
      asked++;
      return new Response();
    };
    const failure = refresh(settings, { fetch: send });
    await expect(failure).rejects.toThrow(why);
    await expect(failure).rejects.toMatchObject({ exitCode: EXIT.usage });
    expect(asked).toBe(0);
  });

  describe("keeps what was there", () => {
    let before: unknown;
    beforeEach(async () => {
      await refreshFrom(JSON.stringify(FACTS));
      before = await readStored();
    });
    const expectFailure = async (attempt: Promise<unknown>, why: string): Promise<void> => {
      await expect(attempt).rejects.toThrow(ExitError);
      await expect(attempt).rejects.toThrow(why);
      await expect(attempt).rejects.toThrow("Those of before stay.");
      expect(await readStored()).toEqual(before);
      expect(knownModels(env).date).toBe(FACTS.date);
    };

    it.each<[string, unknown, string]>([
      ["no list of models", { date: "2031-05-06" }, "models is missing"],
      [
        "a negative price",
        { ...FACTS, models: [{ provider: "groq", id: "m", price: { input: -1 } }] },
        "models[0].price.input is -1",
      ],
      [
        "an address",
        { ...FACTS, models: [{ provider: "groq", id: "m", baseUrl: "https://evil.test" }] },
        "models[0].baseUrl is no key",
      ],
      [
        "a variable with a key",
        { ...FACTS, services: { groq: { keyEnv: ["AWS_SECRET_ACCESS_KEY"] } } },
        "services is no key",
      ],
      ["older facts", { ...FACTS, date: "2031-05-05" }, "older than those in use, of 2031-05-06"],
      ["facts of the future", { ...FACTS, date: "2031-05-09" }, "is in the future"],
    ])("where %s comes", async (_, json, why) => {
      await expectFailure(refreshFrom(JSON.stringify(json)), why);
    });

    it("where what comes has another hash", async () => {
      const other = JSON.stringify({ ...FACTS, models: [] });
      await expectFailure(
        refreshFrom(other, computeHash("x")),
        `SHA-256 ${computeHash(other)}, not`,
      );
    });

    it.each(["<html>", "", '{"date": "2031-05-06"', "\ufeff{}", "null"])(
      "where what comes is not as it should be: %j",
      async (text) => {
        await expectFailure(refreshFrom(text), "what came");
      },
    );

    it("where the answer has no end", async () => {
      let isClosed: () => void;
      const closed = new Promise<void>((resolve) => (isClosed = resolve));
      const catalogUrl = await serve((_, response) => {
        const piece = Buffer.alloc(1024 * 1024, 32);
        const write = (): void => {
          while (!response.destroyed && response.write(piece));
        };
        response.on("drain", write).on("close", () => isClosed());
        write();
      });
      const attempt = refresh({ catalogUrl, catalogHash: computeHash("x") });
      await expectFailure(attempt, `more than ${MAX_FACTS_BYTES} bytes`);
      await closed;
    });

    it.each(["before it begins", "in its middle"])("where the answer stops %s", async (when) => {
      const limit = new AbortController();
      const catalogUrl = await serve((_, response) => {
        if (when === "in its middle") response.write('{"date":');
        limit.abort();
      });
      const settings = { catalogUrl, catalogHash: computeHash("x") };
      await expectFailure(refresh(settings, { timeLimit: () => limit.signal }), "it took too long");
    });

    it("where it is sent to another host, which it does not ask", async () => {
      let asked = 0;
      const other = await serve((_, response) => {
        asked++;
        response.end(JSON.stringify(FACTS));
      });
      const catalogUrl = await serve((_, response) => {
        response.writeHead(302, { location: other }).end();
      });
      const settings = { catalogUrl, catalogHash: computeHash(JSON.stringify(FACTS)) };
      await expectFailure(refresh(settings), `it redirects to ${other}`);
      expect(asked).toBe(0);
    });

    it("where the server has none, or is not there", async () => {
      const catalogUrl = await serve((_, response) => {
        response.writeHead(404).end("not here");
      });
      await expectFailure(
        refresh({ catalogUrl, catalogHash: computeHash("x") }),
        "the answer is 404",
      );
      const gone = await serve((_, response) => response.end());
      const [server] = servers.splice(-1);
      await new Promise((resolve) => server?.close(resolve));
      await expectFailure(
        refresh({ catalogUrl: gone, catalogHash: computeHash("x") }),
        "ECONNREFUSED",
      );
    });
  });

  it("goes on with what is built in where the stored facts are damaged, and says so", async () => {
    const path = storedFactsPath(env);
    await mkdir(dirname(path), { recursive: true });
    for (const text of ["{", '{"date": "2031-05-06", "models": [{"baseUrl": "https://e.test"}]}']) {
      await writeFile(path, text);
      const { date, models, problem } = knownModels(env);
      expect([date, models]).toEqual([CATALOG_DATE, catalog()]);
      expect(problem).toContain("gyre models --refresh");
    }
    await writeFile(path, JSON.stringify({ ...FACTS, date: "2020-01-01" }));
    expect(knownModels(env)).toEqual({ date: CATALOG_DATE, models: catalog() });
  });
});
