// The same recorded responses through providers of the AI SDK, with `fromAiSdk`, and through our own clients:
// texts, calls and usage must be the same. Then its chat reads the route of docs/programs. `npm run test:ai-sdk`, or with a folder that has
// `anthropic-messages` and `openai-responses` with `.sse` files in it. Needs the registry of npm and a build.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("../..", import.meta.url));
const recordings = process.argv[2];
/** The versions of the AI SDK's providers: specification 3, and 4, which asks for Node 22. */
const VERSIONS = [
  { "@ai-sdk/anthropic": "3.0.138", "@ai-sdk/openai": "3.0.139" },
  { "@ai-sdk/anthropic": "4.0.102", "@ai-sdk/openai": "4.0.114" },
];

/** The AI SDK whose chat reads the route of docs/programs/use-chat.ts. */
const CHAT = { ai: "7.0.169" };

/** @param {readonly ({ type: string } & Record<string, unknown>)[]} events */
const toSse = (events) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");

/** @type {({ type: string } & Record<string, unknown>)[]} */
const EVENTS = [
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: 10,
        cache_read_input_tokens: 4,
        cache_creation_input_tokens: 3,
        output_tokens: 1,
      },
    },
  },
  {
    type: "content_block_start",
    index: 0,
    content_block: { type: "thinking", thinking: "", signature: "" },
  },
  { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm" } },
  {
    type: "content_block_delta",
    index: 0,
    delta: { type: "signature_delta", signature: "c2VhbGVk" },
  },
  { type: "content_block_stop", index: 0 },
  { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "I look." } },
  { type: "content_block_stop", index: 1 },
  {
    type: "content_block_start",
    index: 2,
    content_block: { type: "tool_use", id: "toolu_1", name: "look", input: {} },
  },
  {
    type: "content_block_delta",
    index: 2,
    delta: { type: "input_json_delta", partial_json: '{"a":' },
  },
  {
    type: "content_block_delta",
    index: 2,
    delta: { type: "input_json_delta", partial_json: "1}" },
  },
  { type: "content_block_stop", index: 2 },
  {
    type: "message_delta",
    delta: { stop_reason: "tool_use", stop_sequence: null },
    usage: { output_tokens: 20 },
  },
  { type: "message_stop" },
];
const ANTHROPIC = toSse(EVENTS);
/** The same without its call. */
const TEXT = toSse(EVENTS.filter((event) => event["index"] !== 2)).replace("tool_use", "end_turn");

const { complete } = await import(pathToFileURL(join(root, "packages/ai/dist/index.js")).href);
const { fromAiSdk } = await import(
  pathToFileURL(join(root, "packages/ai/dist/ai-sdk/index.js")).href
);
const { createProviders } = await import(
  pathToFileURL(join(root, "packages/ai/dist/providers/index.js")).href
);
const { createInProcessClient } = await import(
  pathToFileURL(join(root, "packages/ai/dist/index.js")).href
);

/** @param {string} body */
const answerWith = (body) => async () =>
  new Response(body, { status: 200, headers: { "content-type": "text/event-stream" } });

const context = { messages: [{ role: "user", content: "Go", timestamp: 0 }] };

/**
 * What both must agree on.
 * @param {import("@gyre/ai").AssistantMessage} message
 */
function summarize({ content, stopReason, usage, failure }) {
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const calls = content.flatMap((block) =>
    block.type === "toolCall"
      ? [{ id: block.id, name: block.name, arguments: block.arguments }]
      : [],
  );
  const thoughts = content.flatMap((block) => (block.type === "thinking" ? [block.thinking] : []));
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = usage;
  return {
    text: texts.join(""),
    thinking: thoughts.join(""),
    calls,
    stopReason,
    failed: failure !== undefined,
    ...(failure === undefined && { usage: { input, output, cacheRead, cacheWrite } }),
  };
}

/** @param {string} folder @param {string} body */
async function ours(folder, body) {
  const api = folder;
  const provider = folder === "anthropic-messages" ? "anthropic" : "openai";
  const registry = createProviders({ fetch: answerWith(body), getApiKey: () => "key" });
  const model = { id: "recorded", name: "recorded", api, provider };
  return summarize(await complete(createInProcessClient(registry), model, context));
}

/** @param {string} folder @param {string} body @param {NodeJS.Require} load */
async function theirs(folder, body, load) {
  const fetch = answerWith(body);
  const languageModel =
    folder === "anthropic-messages"
      ? load("@ai-sdk/anthropic").createAnthropic({ apiKey: "key", fetch })("recorded")
      : load("@ai-sdk/openai").createOpenAI({ apiKey: "key", fetch }).responses("recorded");
  const { model, protocol } = fromAiSdk(languageModel);
  return summarize(await complete(protocol, model, context));
}

/** @returns {{ folder: string, name: string, body: string }[]} */
function listCases() {
  const own = [{ folder: "anthropic-messages", name: "built in", body: ANTHROPIC }];
  if (recordings === undefined) return own;
  const found = ["anthropic-messages", "openai-responses"].flatMap((folder) => {
    const place = join(recordings, folder);
    if (!existsSync(place)) return [];
    return readdirSync(place)
      .filter((name) => name.endsWith(".sse"))
      .map((name) => ({ folder, name, body: readFileSync(join(place, name), "utf8") }));
  });
  return [...own, ...found];
}

/**
 * What the transport of `useChat` makes of an answer of the route.
 *
 * @param {NodeJS.Require} load
 * @returns {Promise<unknown>} the parts of the message that a page shows
 */
async function readChat(load) {
  const { DefaultChatTransport, readUIMessageStream } = await import(
    pathToFileURL(load.resolve("ai")).href
  );
  const built = await rolldown({
    input: join(root, "docs/programs/use-chat.ts"),
    external: [/^@gyre\//],
  });
  const place = join(root, ".tmp", `use-chat-${process.pid}.mjs`);
  const { fetch } = globalThis;
  process.env["ANTHROPIC_API_KEY"] = "key";
  Object.assign(globalThis, { fetch: answerWith(TEXT) });
  try {
    await built.write({ file: place });
    const { POST } = await import(pathToFileURL(place).href);
    const transport = new DefaultChatTransport({
      api: "http://page.test/api/chat",
      fetch: (/** @type {string} */ url, /** @type {RequestInit} */ init) =>
        POST(new Request(url, init)),
    });
    const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "Look." }] }];
    const stream = await transport.sendMessages({
      chatId: "c",
      trigger: "submit-message",
      messages,
    });
    let parts;
    for await (const message of readUIMessageStream({ stream })) ({ parts } = message);
    return parts;
  } finally {
    globalThis.fetch = fetch;
    rmSync(place, { force: true });
    await built.close();
  }
}

/**
 * Packages in a folder of their own, for as long as they are used.
 *
 * @template T
 * @param {Record<string, string>} dependencies
 * @param {(load: NodeJS.Require) => Promise<T>} use
 */
async function withPackages(dependencies, use) {
  const folder = mkdtempSync(join(tmpdir(), "gyre-ai-sdk-"));
  try {
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies }));
    execFileSync("npm", ["install", "--force", "--silent", "--ignore-scripts"], { cwd: folder });
    return await use(createRequire(join(folder, "package.json")));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

let differing = 0;
for (const versions of VERSIONS) {
  await withPackages(versions, async (load) => {
    let same = 0;
    const cases = listCases();
    for (const { folder: api, name, body } of cases) {
      const [mine, other] = await Promise.all([ours(api, body), theirs(api, body, load)]);
      if (JSON.stringify(mine) === JSON.stringify(other)) {
        same++;
        continue;
      }
      differing++;
      console.log(
        `${api}/${name} differs\n  ours:   ${JSON.stringify(mine)}\n  theirs: ${JSON.stringify(other)}`,
      );
    }
    console.log(`${JSON.stringify(versions)}: ${same} of ${cases.length} the same`);
  });
}
const shown = JSON.stringify(await withPackages(CHAT, readChat));
const isShown = shown.includes('{"type":"text","text":"I look.","state":"done"}');
console.log(
  `${JSON.stringify(CHAT)}: ${isShown ? "shows" : "DOES NOT SHOW"} the text of the route`,
);
if (!isShown) console.log(shown);
// A recording may hold what the AI SDK reads otherwise: those are shown, and looked at.
process.exitCode = !isShown || (differing > 0 && recordings === undefined) ? 1 : 0;
