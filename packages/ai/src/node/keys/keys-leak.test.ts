import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AgentLoopConfig,
  jsonLines,
  logging,
  type OpenTelemetryApi,
  runAgentLoop,
  type TelemetryContext,
  type TelemetrySpan,
  tracing,
} from "@gyre/agent";
import { complete, type Message, type Model } from "@gyre/ai";
import {
  fail,
  manualClock,
  type ScriptedResponse,
  scriptedModel,
  scriptedModelInfo,
} from "@gyre/ai/testing";
import { recordToFile } from "@gyre/ai/node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKeyStore, type KeyStore } from "./keys.ts";

/** They look like nothing, so that only who knows them can hide them. */
const KEY = "plain.Words~of/Acme+2";
const HEADER_KEY = "other.Words~of/Acme+3";
const MODEL_KEY = "third.Words~of/Acme+4";
const KEYS = [KEY, HEADER_KEY, MODEL_KEY];

const messages: Message[] = [{ role: "user", content: "Go", timestamp: 0 }];
const model: Model = { ...scriptedModelInfo, headers: { "x-api-key": MODEL_KEY } };
const options = {
  apiKey: KEY,
  headers: { authorization: `Bearer ${HEADER_KEY}` },
  metadata: { note: KEY },
};

const listForms = (key: string): string[] => [
  key,
  encodeURIComponent(key),
  Buffer.from(key).toString("base64"),
];

function expectNoKeyIn(text: string): void {
  for (const form of KEYS.flatMap(listForms)) expect(text).not.toContain(form);
}

/** Services have been seen to write back what they were sent. */
const repeated = (recorded: readonly string[]): string => `Denied: ${recorded.join(" or ")}.`;

/** All the ways in which an error with this text may come. */
const failures = (words: string): [string, ScriptedResponse][] => [
  ["an error of the service", fail(words, { kind: "auth" })],
  ["a stream that fails", { parts: ["Hello"], breaks: new Error(words) }],
  ["a client that throws", { throws: new Error(words) }],
  ["a client that rejects", { rejects: new Error(words) }],
];

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "keys-"));
});
afterEach(() => rm(folder, { recursive: true }));

describe("no key is in a cassette", () => {
  async function recorded(step: ScriptedResponse): Promise<string> {
    const path = join(folder, "run.jsonl");
    const client = recordToFile(scriptedModel([step]), path);
    const asked = complete(client, model, { messages }, options);
    await asked.catch((error: unknown) => expect(String(error)).toContain("Denied"));
    return readFile(path, "utf8");
  }

  it("of a good response", async () => {
    const text = await recorded({ parts: ["All is well."] });
    expect(text).toContain("All is well.");
    expectNoKeyIn(text);
  });

  it.each(failures(repeated(KEYS.flatMap(listForms))))("of %s that repeats it", async (_, step) => {
    const text = await recorded(step);
    expect(text).toContain("Denied: [redacted] or [redacted]");
    expectNoKeyIn(text);
  });
});

/** A run whose model and key come as given; returns the lines of its log. */
async function captureLog(
  step: ScriptedResponse,
  config: Partial<AgentLoopConfig> = options,
): Promise<string> {
  let text = "";
  const clock = manualClock();
  await runAgentLoop(
    messages,
    { messages: [] },
    {
      model,
      protocol: scriptedModel([step]),
      middleware: [
        logging(
          jsonLines((line) => (text += line)),
          { clock },
        ),
      ],
      clock,
      ...config,
    },
    () => {},
  );
  return text;
}

describe("no key is in a log", () => {
  it("of a good run", async () => {
    const text = await captureLog({ parts: ["All is well."] });
    expect(text).toContain("run_end");
    expectNoKeyIn(text);
  });

  it.each(failures(repeated(KEYS.flatMap(listForms))))("of %s that repeats it", async (_, step) => {
    const text = await captureLog(step);
    expect(text).toContain("Denied");
    expectNoKeyIn(text);
  });

  it.each(failures(repeated(listForms(KEY))))("of %s, with getApiKey", async (_, step) => {
    const text = await captureLog(step, { getApiKey: () => KEY });
    expect(text).toContain("Denied");
    expectNoKeyIn(text);
  });
});

describe("no key is in a span", () => {
  /** Everything that a tracer records. */
  async function captureSpans(step: ScriptedResponse, captureContent: boolean): Promise<string> {
    const recorded: unknown[] = [];
    const root: TelemetryContext = { getValue: () => undefined };
    const span: TelemetrySpan = {
      setAttributes: (attributes) => recorded.push(attributes),
      setStatus: (status) => recorded.push(status),
      end: () => {},
    };
    const api: OpenTelemetryApi = {
      SpanKind: { INTERNAL: 0, CLIENT: 2 },
      SpanStatusCode: { ERROR: 2 },
      trace: {
        getTracer: () => ({
          startSpan(name, start) {
            recorded.push(name, start);
            return span;
          },
        }),
        setSpan: (context) => context,
      },
      context: { active: () => root, with: (_, call) => call() },
    };
    await runAgentLoop(
      messages,
      { messages: [] },
      {
        model,
        protocol: scriptedModel([step]),
        middleware: [tracing(api, { captureContent })],
        ...options,
      },
      () => {},
    );
    return JSON.stringify(recorded);
  }

  it.each<[string, ScriptedResponse]>([
    ["a good run", { parts: ["All is well."] }],
    ...failures(repeated(KEYS.flatMap(listForms))),
  ])("of %s", async (_, step) => {
    for (const captureContent of [false, true]) {
      const text = await captureSpans(step, captureContent);
      expect(text).toContain("invoke_agent");
      expectNoKeyIn(text);
    }
  });
});

describe("a key that a store cannot use", () => {
  const need = { id: "acme", name: "Acme", keyEnv: ["ACME_API_KEY"] };
  const storeWith = (env: Record<string, string>): KeyStore =>
    createKeyStore({ env, file: join(folder, "keys.json") });

  it("fails the run as a matter of keys, and is in no line of the log", async () => {
    const text = await captureLog(
      { parts: ["never"] },
      { getApiKey: () => storeWith({ ACME_API_KEY: `${KEY} ` }).get(need) },
    );
    expect(text).toContain('"kind":"auth"');
    expect(text).toContain("ACME_API_KEY contains a space");
    expectNoKeyIn(text);
  });

  it("is not shown when its command complains with it", async () => {
    const store = storeWith({});
    const source = "console.log(process.argv[1]); console.error(process.argv[1]); process.exit(1)";
    await store.setCommand("acme", [process.execPath, "-e", source, KEY]);
    const text = await captureLog({ parts: ["never"] }, { getApiKey: () => store.get(need) });
    expect(text).toContain("failed with code 1: [redacted]");
    expectNoKeyIn(text);
  });
});
