// What `@gyre/ai` sends to Gemini and to Vertex AI beside conversations, and in them for files and tools of the
// service, against what Google's own SDK sends for the same; and the same answers through both. `npm run test:google-sdk`.
// Needs the registry of npm and a build; nothing that it sends leaves the process.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { runParts } from "../shared/parts.mjs";
import { inTemporaryFolder } from "../shared/temporary.mjs";
import { installForeign } from "./foreign.mjs";

const PACKAGES = { "@google/genai": "3.1.0" };
const OLDEST_NODE = 20;
const KEY = "test-key-0123456789";
const BASE = "https://service.example/v1beta";
const VECTOR = { values: [1, 2] };

const [{ collectBatch, submitBatch }, { fakeBatches }, { embedMany }, { generateImage }, client] =
  await Promise.all([
    import("../../packages/ai/dist/batch/index.js"),
    import("../../packages/ai/dist/batch/fake-batches.js"),
    import("../../packages/ai/dist/embeddings/index.js"),
    import("../../packages/ai/dist/images/index.js"),
    import("../../packages/ai/dist/node/client.js"),
  ]);

/**
 * @typedef {{ operation: string, body: unknown }} Sent
 * @typedef {import("../shared/parts.mjs").Part} Part
 * @typedef {import("../../packages/ai/dist/index.js").Model} Model
 * @typedef {(url: string, init: any) => Promise<Response>} Answer
 */

/** @type {Answer} */
let answer = () => Promise.reject(new Error("Nothing answers here."));
/** @type {Sent[]} */
let sent = [];

/**
 * In place of the network, for both.
 *
 * @param {unknown} url
 * @param {any} init
 * @returns {Promise<Response>}
 */
async function fetch(url, init) {
  const address = String(url);
  const body = init?.body ? JSON.parse(String(init.body)) : undefined;
  sent.push({ operation: /[^/]+$/.exec(new URL(address).pathname)?.[0] ?? "", body });
  return answer(address, init);
}
globalThis.fetch = fetch;

/**
 * What a function sends, where everything is answered with one object.
 *
 * @param {() => Promise<unknown>} send
 * @param {object} response
 * @returns {Promise<{ sent: Sent[], given: unknown }>}
 */
async function watch(send, response) {
  sent = [];
  answer = () => Promise.resolve(Response.json(response));
  const given = await send();
  return { sent, given };
}

/**
 * @param {unknown} ours
 * @param {unknown} theirs
 * @param {string} what
 * @returns {string[]}
 */
function compare(ours, theirs, what) {
  if (isDeepStrictEqual(ours, theirs)) return [];
  return [`${what}: ours ${JSON.stringify(ours)}, theirs ${JSON.stringify(theirs)}`];
}

/**
 * @param {string} provider
 * @param {string} id
 * @returns {Model}
 */
function modelAt(provider, id) {
  return { id, name: id, provider, api: "google-generative-ai", baseUrl: BASE, reasoning: false };
}

const config = { fetch, getApiKey: () => KEY };
const gyre = client.createModelClient({ fetch, env: { GEMINI_API_KEY: KEY } });

/**
 * The body of a request of a conversation.
 *
 * @param {object[]} content
 * @param {object} options
 * @returns {Promise<any>}
 */
async function askGyre(content, options = {}) {
  const { sent: requests } = await watch(
    async () => {
      const model = { ...modelAt("google", "gemini-2.5-flash"), input: ["text", "image", "pdf"] };
      const context = { messages: [{ role: "user", content, timestamp: 0 }] };
      return (
        await gyre.stream(/** @type {any} */ (model), /** @type {any} */ (context), options)
      ).result();
    },
    { error: { code: 400, status: "INVALID_ARGUMENT", message: "It is only looked at." } },
  );
  return requests[0]?.body;
}

const SERVICE_TOOLS = [
  [{ serviceTools: [{ type: "webSearch" }] }, { googleSearch: {} }],
  [{ serviceTools: [{ type: "webFetch" }] }, { urlContext: {} }],
  [{ serviceTools: [{ type: "codeExecution" }] }, { codeExecution: {} }],
  [
    { serviceTools: [{ type: "fileSearch", stores: ["fileSearchStores/a"], maxResults: 3 }] },
    { fileSearch: { fileSearchStoreNames: ["fileSearchStores/a"], topK: 3 } },
  ],
  [{ providerOptions: { google: { serviceTools: [{ type: "googleMaps" }] } } }, { googleMaps: {} }],
  [
    { providerOptions: { google: { serviceTools: [{ type: "computer", excluded: ["search"] }] } } },
    {
      computerUse: {
        environment: "ENVIRONMENT_BROWSER",
        excludedPredefinedFunctions: ["search"],
      },
    },
  ],
];

/** @type {[object, object][]} */
const FILES = [
  [
    { mediaType: "image/png", source: { type: "base64", data: "aGk=" } },
    { inlineData: { mimeType: "image/png", data: "aGk=" } },
  ],
  [
    { mediaType: "application/pdf", source: { type: "url", url: "https://a.example/b.pdf" } },
    { fileData: { mimeType: "application/pdf", fileUri: "https://a.example/b.pdf" } },
  ],
];

const ok = await inTemporaryFolder(async (folder) => {
  await installForeign(folder, OLDEST_NODE, PACKAGES);
  const entry = join(folder, "node_modules/@google/genai/dist/node/index.mjs");
  /** @type {any} */
  const { GoogleGenAI } = await import(pathToFileURL(entry).href);
  const httpOptions = { baseUrl: new URL(BASE).origin };
  const gemini = new GoogleGenAI({ apiKey: KEY, httpOptions });
  const vertex = new GoogleGenAI({ vertexai: true, apiKey: KEY, httpOptions });

  /**
   * @param {any} sdk
   * @param {string} id
   * @param {readonly string[]} texts
   * @param {object} response
   * @param {object} [more]
   */
  const embed = async (sdk, id, texts, response, more = {}) => {
    const provider = sdk === vertex ? "google-vertex" : "google";
    const options = { purpose: /** @type {const} */ ("query"), dimensions: 2 };
    const ours = await watch(
      () => embedMany(config, modelAt(provider, id), texts, options),
      response,
    );
    const wish = { taskType: "RETRIEVAL_QUERY", outputDimensionality: 2, ...more };
    const theirs = await watch(
      () => sdk.models.embedContent({ model: id, contents: texts, config: wish }),
      response,
    );
    const vectors = /** @type {any} */ (theirs.given).embeddings.map(
      (/** @type {any} */ one) => one.values,
    );
    const { embeddings } = /** @type {{ embeddings: number[][] }} */ (ours.given);
    return {
      problems: [
        ...compare(withoutRoles(ours.sent), withoutRoles(theirs.sent), "requests"),
        ...compare(embeddings, vectors, "vectors"),
      ],
    };
  };
  /** @type {Part[]} */
  const parts = [
    {
      name: "vectors of Gemini",
      check: () =>
        embed(gemini, "gemini-embedding-001", ["a", "b"], { embeddings: [VECTOR, VECTOR] }),
    },
    {
      name: "vectors of Vertex AI",
      check: () =>
        embed(
          vertex,
          "text-embedding-005",
          ["a", "b"],
          { predictions: [{ embeddings: VECTOR }, { embeddings: VECTOR }] },
          { autoTruncate: false },
        ),
    },
    {
      name: "vectors of newer models on Vertex AI",
      check: () =>
        embed(vertex, "gemini-embedding-2", ["a"], { embedding: VECTOR }, { autoTruncate: false }),
    },
    {
      name: "images",
      async check() {
        const inlineData = { mimeType: "image/png", data: "aGk=" };
        const response = {
          candidates: [{ content: { parts: [{ inlineData }] }, finishReason: "STOP" }],
        };
        const id = "gemini-3.1-flash-image";
        const ours = await watch(
          () =>
            generateImage(config, modelAt("google", id), "A", { aspectRatio: "1:1", size: "2K" }),
          response,
        );
        const wish = {
          responseModalities: ["TEXT", "IMAGE"],
          imageConfig: { aspectRatio: "1:1", imageSize: "2K" },
        };
        const theirs = await watch(
          () => gemini.models.generateContent({ model: id, contents: "A", config: wish }),
          response,
        );
        return { problems: compare(ours.sent, theirs.sent, "requests") };
      },
    },
    {
      name: "a batch",
      async check() {
        const outcomes = /** @type {const} */ ([
          { type: "text", text: "A bird." },
          { type: "expired" },
        ]);
        const id = "gemini-2.5-flash";
        const context = { messages: [{ role: /** @type {const} */ ("user"), content: "Hi" }] };
        const requests = ["a", "b"].map((key) => ({ id: key, context, options: { maxTokens: 9 } }));
        sent = [];
        answer = /** @type {any} */ (fakeBatches("google", { outcomes }).fetch);
        const { id: name } = await submitBatch(config, modelAt("google", id), requests);
        const results = [];
        for await (const { id: key, message } of collectBatch(
          config,
          modelAt("google", id),
          name,
        )) {
          const [block] = message.content;
          results.push([key, block?.type === "text" ? block.text : undefined]);
        }
        const ours = sent;
        sent = [];
        answer = /** @type {any} */ (fakeBatches("google", { outcomes }).fetch);
        const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
        const src = ["a", "b"].map((key) => ({
          ...{ contents, config: { maxOutputTokens: 9 }, metadata: { key } },
        }));
        const job = await gemini.batches.create({ model: id, src, config: { displayName: "x" } });
        const { dest, state } = await gemini.batches.get({ name: job.name });
        const read = dest.inlinedResponses.map((/** @type {any} */ one) => [
          one.metadata.key,
          one.response?.candidates[0].content.parts[0].text,
        ]);
        return {
          problems: [
            ...compare(withoutName(ours), withoutName(sent), "requests"),
            ...compare(results, read, "results"),
            ...compare(state, "JOB_STATE_SUCCEEDED", "state"),
          ],
        };
      },
    },
    {
      name: "tools of the service",
      async check() {
        const problems = [];
        for (const [options, tool] of SERVICE_TOOLS) {
          const ours = await askGyre([{ type: "text", text: "Hi" }], options);
          const theirs = await watch(
            () =>
              gemini.models.generateContent({
                ...{ model: "gemini-2.5-flash", contents: "Hi", config: { tools: [tool] } },
              }),
            { candidates: [] },
          );
          const body = /** @type {any} */ (theirs.sent[0]?.body);
          problems.push(...compare(ours?.tools, body.tools, JSON.stringify(tool)));
        }
        return { problems, figures: [`${SERVICE_TOOLS.length} tools`] };
      },
    },
    {
      name: "files",
      async check() {
        const problems = [];
        for (const [file, part] of FILES) {
          const ours = await askGyre([{ type: "file", ...file }]);
          const theirs = await watch(
            () => gemini.models.generateContent({ model: "gemini-2.5-flash", contents: [part] }),
            { candidates: [] },
          );
          const body = /** @type {any} */ (theirs.sent[0]?.body);
          problems.push(...compare(ours?.contents, body.contents, JSON.stringify(part)));
        }
        return { problems, figures: [`${FILES.length} files`] };
      },
    },
  ];
  return runParts(parts, (line) => console.log(line));
});
process.exitCode = ok ? 0 : 1;

/**
 * The SDK names who a text to embed is of, which the reference leaves out.
 *
 * @param {Sent[]} requests
 * @returns {unknown}
 */
function withoutRoles(requests) {
  return JSON.parse(JSON.stringify(requests, (key, value) => (key === "role" ? undefined : value)));
}

/**
 * The name that a batch is shown by is a random one here.
 *
 * @param {Sent[]} requests
 * @returns {unknown}
 */
function withoutName(requests) {
  return JSON.parse(
    JSON.stringify(requests, (key, value) => (key === "displayName" ? undefined : value)),
  );
}
