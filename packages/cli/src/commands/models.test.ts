import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { catalog } from "@gyre/ai/models";
import { KeyFileError } from "@gyre/ai/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXIT, ExitError } from "../core/exit-codes.ts";
import type { Io } from "../core/io.ts";
import { type ListedModel, type ModelsParts, runModels } from "./models.ts";
import type { Values } from "../core/options.ts";
import { textIo } from "../testing/command-io.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-models-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** No server answers. */
const noServer: typeof fetch = async () => {
  throw new TypeError("fetch failed");
};

function readUrl(input: Parameters<typeof fetch>[0]): string {
  return input instanceof Request ? input.url : input.toString();
}

interface Ran {
  code: number;
  out: string;
  err: string;
}

async function models(
  args: readonly string[],
  values: Values,
  env: Io["env"],
  parts: ModelsParts = {},
): Promise<Ran> {
  const io = textIo({ env: { XDG_CONFIG_HOME: folder, ...env } });
  const code = await runModels(args, values, io, { settings: {}, fetch: noServer, ...parts });
  return { code, out: io.out(), err: io.err() };
}

async function asJson(...args: Parameters<typeof models>): Promise<ListedModel[]> {
  const { out } = await models(args[0], { ...args[1], json: true }, args[2], args[3]);
  return JSON.parse(out);
}

const ANTHROPIC = { ANTHROPIC_API_KEY: "k" };

describe("gyre models", () => {
  it("lists the models of the services that have a key, with what is known of them", async () => {
    const { code, err, out } = await models([], {}, ANTHROPIC);
    expect(code).toBe(EXIT.done);
    expect(out).toMatch(/^Anthropic \(key: ANTHROPIC_API_KEY\)\n/);
    expect(out).toMatch(
      /^ {2}anthropic\/claude-sonnet-4-5 +200k {2}\$3 \/ \$15 +images, thinking$/m,
    );
    expect(out).not.toMatch(/^ {2}openai\//m);
    expect(err).toMatch(/US dollars.*\d+ more, of services without a key/);
  });

  it("lists the others behind them with --all", async () => {
    const { out } = await models([], { all: true }, { XAI_API_KEY: "k" });
    const titles = out.match(/^\S.*$/gm) ?? [];
    expect(titles[0]).toBe("xAI (key: XAI_API_KEY)");
    expect(titles[1]).toBe("Anthropic (no key)");
    expect(out.match(/^ {2}\S/gm)).toHaveLength(catalog().length);
  });

  it("prints JSON, a model a line", async () => {
    const { out } = await models([], { json: true }, ANTHROPIC);
    const list: ListedModel[] = JSON.parse(out);
    expect(out.trimEnd().split("\n")).toHaveLength(list.length + 2);
    expect(list.find(({ id }) => id === "claude-sonnet-4-5")).toEqual({
      model: "anthropic/claude-sonnet-4-5",
      service: "anthropic",
      id: "claude-sonnet-4-5",
      name: "Claude Sonnet 4.5",
      usable: true,
      contextWindow: 200_000,
      maxTokens: 64_000,
      images: true,
      thinking: true,
      price: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75, webSearch: 0.01 },
    });
    const all = await asJson([], { all: true }, ANTHROPIC);
    expect(all).toHaveLength(catalog().length);
    expect(new Set(all.filter(({ usable }) => usable).map(({ service }) => service))).toEqual(
      new Set(["anthropic"]),
    );
  });

  it("filters by the parts of a name", async () => {
    const list = await asJson(["Sonnet", "4.5"], {}, ANTHROPIC);
    expect(list.map(({ id }) => id)).toEqual(["claude-sonnet-4-5-20250929", "claude-sonnet-4-5"]);
  });

  it.each([
    [["no-such-model"], 'No model fits "no-such-model"'],
    [
      ["grok"],
      'Only models of services without a key fit "grok". See them with: gyre models --all grok',
    ],
  ])("says so where nothing fits %j", async (args, why) => {
    const { code, err, out } = await models(args, {}, ANTHROPIC);
    expect([code, out]).toEqual([EXIT.failed, ""]);
    expect(err).toContain(why);
  });

  it("says what to do where nothing is usable", async () => {
    const { code, err, out } = await models([], {}, {});
    expect([code, out]).toEqual([EXIT.failed, ""]);
    expect(err).toContain("gyre login anthropic");
    expect(await asJson([], {}, {})).toEqual([]);
  });

  it("asks local servers for what they have, and trusts no name of theirs", async () => {
    const asked: string[] = [];
    const fetch: typeof globalThis.fetch = async (input) => {
      asked.push(readUrl(input));
      if (!readUrl(input).endsWith("/api/tags")) throw new TypeError("fetch failed");
      return Response.json({ models: [{ name: "qwen3:8b" }, { name: "evil\x1b[2J\nname" }] });
    };
    const { code, err, out } = await models([], {}, {}, { fetch });
    expect(code).toBe(EXIT.done);
    expect(out.split("\n")).toEqual([
      "Ollama (needs no key)",
      "  ollama/qwen3:8b   -  -",
      "  ollama/evil name  -  -",
      "",
    ]);
    expect(err).not.toContain("gyre:");
    expect(asked.map((url) => new URL(url).port).sort()).toEqual(["11434", "1234", "8000", "8080"]);
  });

  it.each([
    ["box", "http://box:11434/api/tags"],
    ["0.0.0.0:99", "http://127.0.0.1:99/api/tags"],
    ["https://box.example/", "https://box.example/api/tags"],
  ])("asks Ollama where OLLAMA_HOST is %s, and says if it does not answer", async (host, url) => {
    const asked: string[] = [];
    const fetch: typeof globalThis.fetch = async (input) => {
      asked.push(readUrl(input));
      throw new TypeError("fetch failed");
    };
    const { err } = await models([], {}, { ...ANTHROPIC, OLLAMA_HOST: host }, { fetch });
    expect(asked).toContain(url);
    expect(err).toMatch(/^gyre: The models of ollama could not be read/);
    expect(err.match(/^gyre:/gm)).toHaveLength(1);
  });

  it("waits no longer than its time for a server that is silent", async () => {
    const limit = new AbortController();
    const fetch: typeof globalThis.fetch = (_input, init) =>
      new Promise((_settle, reject) => {
        init?.signal?.addEventListener("abort", () => reject(new Error("aborted")));
        limit.abort();
      });
    const env = { ...ANTHROPIC, VLLM_BASE_URL: "http://box:1/v1" };
    const { code, err } = await models([], {}, env, { fetch, timeLimit: () => limit.signal });
    expect(code).toBe(EXIT.done);
    expect(err).toContain("gyre: vLLM did not answer at http://box:1/v1.");
  });

  it("lists the user's own, and what is wrong with them", async () => {
    const own = {
      services: { office: { name: "The office", api: "openai-completions", keyEnv: ["OFFICE"] } },
      models: [{ provider: "office", id: "house-7b" }],
    };
    const settings = { models: own };
    const { out } = await models([], {}, { OFFICE: "k" }, { settings });
    expect(out).toMatch(/^The office \(key: OFFICE\)\n {2}office\/house-7b +-/);
    const bad = { models: { models: [{ id: "house-7b" }] } };
    const error = await models([], {}, {}, { settings: bad }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ExitError);
    expect(String(error)).toContain("models[0].provider is missing");
  });

  it("goes on where the key file cannot be used, and says so", async () => {
    const keys = {
      list: async () => {
        throw new KeyFileError("keys.json", "is broken");
      },
      get: async () => undefined,
    };
    const { code, err } = await models([], {}, ANTHROPIC, { keys });
    expect(code).toBe(EXIT.done);
    expect(err).toContain("gyre: The key file keys.json is broken.");
  });
});
