import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AssistantMessage,
  complete,
  createInProcessClient,
  hashFile,
  isRecord,
  type Message,
  type Model,
  type ProtocolClient,
  toRecord,
  withStoredFiles,
} from "@gyre/ai";
import { Agent, isLlmMessage } from "@gyre/agent";
import { createProviders } from "@gyre/ai/providers";
import { createTransportPair, ModelService, WireServer } from "@gyre/protocol";
import {
  createFileRoutes,
  createStreamRoutes,
  listenHttp,
  type PortListener,
} from "@gyre/protocol/node";
import { createProxyClient } from "@gyre/protocol/proxy";
import { SessionService } from "@gyre/server";
import { RemoteAgent } from "@gyre/server/client";
import { createJournal, createSession, openSession } from "@gyre/sessions";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countCases } from "../../../../tests/support/cases.ts";

// Citations, results of a service's tools and files on their whole way: a service answers, the answer
// travels over the wire into a session file, is read from there, and goes over the wire once more, to
// the service that made it and to others. The bodies of the services are made from their documentation.

const RUNS = countCases(12, 100, "GYRE_RUNS");
const TOKEN = "token-0123456789-0123456789";
/** Above what a message has itself. */
const PDF = Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(300_000, "leaves of tea ")]);

const AT = { baseUrl: "https://service.example/v1", reasoning: false };
const CLAUDE: Model = {
  ...{ id: "claude-sonnet-4-5", name: "Claude", api: "anthropic-messages", provider: "anthropic" },
  ...AT,
};
const GPT: Model = {
  ...{ id: "gpt-4.1", name: "GPT", api: "openai-responses", provider: "openai" },
  ...AT,
};
const GEMINI: Model = {
  ...{ id: "gemini-2.5-flash", name: "Gemini", api: "google-generative-ai", provider: "google" },
  ...AT,
};

/** What one answer has, whichever service it is of. */
interface Part {
  kind: "search" | "code" | "cited";
  /** No text of the part is in another one. */
  words: string;
  url: string;
  /** Only the service that wrote it can read it. */
  sealed: string;
}

const words = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 12 })
  .map((text) => text.trim())
  .filter((text) => text !== "");
const part: fc.Arbitrary<Omit<Part, "sealed">> = fc.record({
  kind: fc.constantFrom<Part["kind"][]>("search", "code", "cited"),
  words,
  url: fc.webUrl({ withQueryParameters: true }),
});
const parts: fc.Arbitrary<Part[]> = fc.array(part, { minLength: 1, maxLength: 6 }).map((list) =>
  list.map((one, n) => ({
    ...one,
    words: `#${n} ${one.words}`,
    url: `${one.url}#${n}`,
    sealed: `SEALED${n}+/=`,
  })),
);

/** A service: its answer with these parts, and where its request repeats that. */
interface Author {
  model: Model;
  answer(list: readonly Part[]): { body: object[]; replayed: unknown };
  findReplayed(body: Record<string, unknown>): unknown;
}

const claude: Author = {
  model: CLAUDE,
  answer(list) {
    const content = list.flatMap(({ kind, sealed, url, words: phrase }, n): object[] => {
      const id = `srvtoolu_${n}`;
      switch (kind) {
        case "search":
          return [
            { type: "server_tool_use", id, name: "web_search", input: { query: phrase } },
            {
              type: "web_search_tool_result",
              tool_use_id: id,
              content: [
                { type: "web_search_result", url, title: phrase, encrypted_content: sealed },
              ],
            },
          ];
        case "code":
          return [
            { type: "server_tool_use", id, name: "code_execution", input: { code: phrase } },
            {
              type: "code_execution_tool_result",
              tool_use_id: id,
              content: {
                ...{ type: "code_execution_result", stdout: url, stderr: "", return_code: 0 },
                content: [],
              },
            },
          ];
        case "cited": {
          const place = { type: "web_search_result_location", encrypted_index: sealed };
          const citations = [{ ...place, url, title: phrase, cited_text: phrase }];
          return [{ type: "text", text: phrase, citations }];
        }
      }
    });
    return {
      replayed: content,
      body: [
        { type: "message_start", message: { id: "msg_1", content: [] } },
        ...content.flatMap((content_block, index) => [
          { type: "content_block_start", index, content_block },
          { type: "content_block_stop", index },
        ]),
        { type: "message_delta", delta: { stop_reason: "end_turn" } },
        { type: "message_stop" },
      ],
    };
  },
  findReplayed: ({ messages }) => toRecord(Array.isArray(messages) && messages[1])["content"],
};

const gpt: Author = {
  model: GPT,
  answer(list) {
    const output = list.map(({ kind, sealed, url, words: phrase }, n) => {
      switch (kind) {
        case "search": {
          const action = { type: "search", query: phrase, sources: [{ type: "url", url }] };
          return { type: "web_search_call", id: `ws_${n}`, status: "completed", action, sealed };
        }
        case "code":
          return {
            ...{ type: "code_interpreter_call", id: `ci_${n}`, status: "completed" },
            ...{ code: phrase, container_id: sealed, outputs: [{ type: "logs", logs: url }] },
          };
        case "cited": {
          const place = { start_index: 0, end_index: phrase.length };
          const annotations = [{ type: "url_citation", url, title: phrase, ...place }];
          const content = [{ type: "output_text", text: phrase, annotations }];
          const facts = { role: "assistant", id: `msg_${n}`, status: "completed" };
          return { type: "message", ...facts, content };
        }
      }
    });
    return {
      replayed: output,
      body: [
        { type: "response.created", response: { id: "resp_1" } },
        ...output.map((item, output_index) => ({
          ...{ type: "response.output_item.done", output_index, item },
        })),
        { type: "response.completed", response: { status: "completed", output } },
      ],
    };
  },
  findReplayed: ({ input }) => (Array.isArray(input) ? input.slice(1, -1) : []),
};

const gemini: Author = {
  model: GEMINI,
  answer(list) {
    const ran = list.filter(({ kind }) => kind === "code");
    const cited = list.filter(({ kind }) => kind !== "code");
    const made = ran.flatMap(({ url, words: phrase }) => [
      { executableCode: { language: "PYTHON", code: phrase } },
      { codeExecutionResult: { outcome: "OUTCOME_OK", output: url } },
    ]);
    const text = ["So:", ...cited.map(({ words: phrase }) => phrase)].join("\n");
    const all = [...made, { text }];
    const groundingMetadata = {
      webSearchQueries: cited.map(({ words: phrase }) => phrase),
      groundingChunks: cited.map(({ url, words: phrase }) => ({
        web: { uri: url, title: phrase },
      })),
      groundingSupports: cited.map(({ words: phrase }, n) => ({
        ...{ segment: { text: phrase }, groundingChunkIndices: [n] },
      })),
    };
    const end = { finishReason: "STOP", ...(cited.length > 0 && { groundingMetadata }) };
    return {
      replayed: all,
      body: [{ candidates: [{ content: { parts: all } }] }, { candidates: [end] }],
    };
  },
  findReplayed: ({ contents }) => toRecord(Array.isArray(contents) && contents[1])["parts"],
};

const AUTHORS: readonly Author[] = [claude, gpt, gemini];
const MODELS: readonly Model[] = AUTHORS.map(({ model }) => model);

let folder: string;
let server: PortListener;
let source: ModelService;
/** What the services answer next, and what they were sent last. */
let answer = "";
let sent: Record<string, unknown> = {};

const services: ProtocolClient = createInProcessClient(
  createProviders({
    getApiKey: () => "test-key-0123456789",
    fetch: (_, init) => {
      sent = toRecord(JSON.parse(String(init?.body)));
      const headers = { "content-type": "text/event-stream" };
      return Promise.resolve(new Response(answer, { headers }));
    },
  }),
);
let wire: ProtocolClient;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gyre-parts-"));
  source = new ModelService({ client: services, models: () => MODELS });
  const routes = createStreamRoutes(source);
  server = await listenHttp({ token: TOKEN, routes, serve: () => {} });
  wire = createProxyClient({ url: server.url, token: TOKEN });
});
afterAll(async () => {
  await server.close();
  await source.close();
  await rm(folder, { recursive: true, force: true });
});

const prompt = (content: string): Message => ({ role: "user", content, timestamp: 0 });

/** What came back over the wire, and is the same without one. */
async function hear(author: Author, list: readonly Part[]): Promise<AssistantMessage> {
  answer = author
    .answer(list)
    .body.map((one) => `data: ${JSON.stringify(one)}\n\n`)
    .join("");
  const context = { messages: [prompt("Go")] };
  const far = await complete(wire, author.model, context);
  const near = await complete(services, author.model, context);
  expect({ ...far, timestamp: 0 }).toEqual({ ...near, timestamp: 0 });
  expect(far.errorMessage).toBeUndefined();
  return far;
}

let files = 0;

/** Writes messages into a session file, and reads them from it again. */
async function store(messages: readonly Message[]): Promise<Message[]> {
  const path = join(folder, `${files++}.jsonl`);
  const session = await createSession(path, { cwd: folder });
  for (const message of messages) await session.append({ type: "message", message });
  await session.close();
  const again = await openSession(path);
  const read = (await again.context()).messages;
  await again.close();
  expect(read).toEqual(messages);
  return read.filter(isLlmMessage);
}

describe("citations and results of a service's tools", () => {
  it.each(AUTHORS)(
    "go back as they were, after wire, file and wire: $model.api",
    async (author) => {
      await fc.assert(
        fc.asyncProperty(parts, async (list) => {
          const messages = await store([prompt("Go"), await hear(author, list), prompt("On")]);
          await complete(wire, author.model, { messages });
          expect(JSON.stringify(author.findReplayed(sent))).toBe(
            JSON.stringify(author.answer(list).replayed),
          );
        }),
        { numRuns: RUNS },
      );
    },
  );

  it.each(AUTHORS)("are text with sources to every other service: $model.api", async (author) => {
    await fc.assert(
      fc.asyncProperty(parts, async (list) => {
        const messages = await store([prompt("Go"), await hear(author, list), prompt("On")]);
        for (const other of MODELS.filter((model) => model !== author.model)) {
          await complete(wire, other, { messages });
          const texts = listTexts(sent).join("\n");
          for (const { sealed, url, words: phrase } of list) {
            expect(texts).toContain(phrase);
            expect(texts).toContain(url);
            expect(JSON.stringify(sent)).not.toContain(sealed);
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("go with files in one transcript", async () => {
    const list: Part[] = [{ kind: "search", words: "tea", url: "https://t.example/", sealed: "S" }];
    const picture: Message = {
      ...prompt(""),
      role: "user",
      content: [
        {
          ...{ type: "file", mediaType: "image/png", name: "cup.png" },
          source: { type: "base64", data: Buffer.from("not really one").toString("base64") },
        },
      ],
    };
    const messages = await store([picture, await hear(claude, list), prompt("On")]);
    for (const model of MODELS) {
      const { errorMessage } = await complete(wire, model, { messages });
      expect(errorMessage ?? "").not.toContain("cup.png");
      const data = Buffer.from("not really one").toString("base64");
      expect(JSON.stringify(sent), model.id).toContain(data);
    }
  });

  it.each(AUTHORS)(
    "cross all with a file that is stored by its hash: $model.api",
    async (author) => {
      const list: Part[] = [
        { kind: "search", words: "#0 tea", url: "https://t.example/#0", sealed: "SEALED0+/=" },
        { kind: "code", words: "#1 print", url: "https://t.example/#1", sealed: "SEALED1+/=" },
        { kind: "cited", words: "#2 leaf", url: "https://t.example/#2", sealed: "SEALED2+/=" },
      ];
      const { body, replayed } = author.answer(list);
      answer = body.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("");

      // A client sends the file over the wire; the session of the server is a file.
      const path = join(folder, `hosted-${files++}.jsonl`);
      const session = await createSession(path, { cwd: folder });
      const { files: beside } = session;
      if (!beside) throw new Error("A session file has no store beside it.");
      const agent = new Agent({
        protocol: withStoredFiles(services, beside),
        model: author.model,
        sink: createJournal(session),
      });
      const hosted = new SessionService({
        create: async () => ({ id: "s1", agent, files: beside, close: async () => agent.abort() }),
        open: async () => undefined,
        list: async () => [],
      });
      const frames = new WireServer([hosted]);
      const http = await listenHttp({
        token: TOKEN,
        routes: createFileRoutes(hosted),
        serve: () => {},
      });
      const remote = await RemoteAgent.create({
        connect: async () => {
          const [near, far] = createTransportPair();
          frames.serve(far);
          return near;
        },
      });
      let seen: readonly unknown[];
      try {
        const data = PDF.toString("base64");
        const attached = { type: "file", mediaType: "application/pdf", name: "tea.pdf" } as const;
        await remote.prompt("Go", {
          attachments: [{ ...attached, source: { type: "base64", data } }],
        });
        expect(JSON.stringify(sent)).toContain(data);

        // Clients get a reference, and the contents from the server, the same to the byte.
        const sha256 = await hashFile(PDF);
        const source = { type: "stored", sha256, size: PDF.length } as const;
        seen = remote.state.messages;
        expect(seen).toMatchObject([
          { role: "user", content: [{ type: "text" }, { ...attached, source }] },
          { role: "assistant", stopReason: "stop" },
        ]);
        const read = Buffer.from(await remote.readFile(source));
        expect(read.equals(PDF)).toBe(true);
        const got = await fetch(`${http.url}/api/sessions/s1/files/${sha256}`, {
          headers: { authorization: `Bearer ${TOKEN}` },
        });
        expect(Buffer.from(await got.arrayBuffer()).equals(PDF)).toBe(true);

        // The session file has the reference, and the folder beside it the contents, once.
        expect(await readFile(path, "utf8")).not.toContain(data.slice(0, 100));
        expect(await readdir(`${path}.files`)).toEqual([sha256]);
      } finally {
        await remote.close();
        await frames.close();
        await http.close();
        await session.close();
      }

      // What is read from the session file is what the client saw, and goes to every service.
      const again = await openSession(path);
      const stored = (await again.context(undefined, { files: "stored" })).messages;
      const { messages } = await again.context();
      await again.close();
      expect(stored).toEqual(seen);
      const asked = [...messages.filter(isLlmMessage), prompt("On")];
      for (const model of MODELS) {
        await complete(wire, model, { messages: asked });
        expect(JSON.stringify(sent), model.id).toContain(PDF.toString("base64"));
        if (model === author.model) {
          expect(JSON.stringify(author.findReplayed(sent))).toBe(JSON.stringify(replayed));
          continue;
        }
        const texts = listTexts(sent).join("\n");
        for (const { sealed, url, words: phrase } of list) {
          expect(texts).toContain(phrase);
          expect(texts).toContain(url);
          expect(JSON.stringify(sent)).not.toContain(sealed);
        }
      }
    },
  );
});

/** All strings of a body that have the name `text`. */
function listTexts(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(listTexts);
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === "text" && typeof inner === "string" ? [inner] : listTexts(inner),
  );
}
