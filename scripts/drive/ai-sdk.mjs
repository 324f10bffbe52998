// The same recorded responses through providers of the AI SDK, with `fromAiSdk`, and through our own clients:
// texts, calls and usage must be the same. `npm run test:ai-sdk`, or with a folder that has
// `anthropic-messages` and `openai-responses` with `.sse` files in it. Needs the registry of npm and a build.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const recordings = process.argv[2];
/** The versions of the AI SDK's providers: specification 3, and 4, which asks for Node 22. */
const VERSIONS = [
  { "@ai-sdk/anthropic": "3.0.138", "@ai-sdk/openai": "3.0.139" },
  { "@ai-sdk/anthropic": "4.0.102", "@ai-sdk/openai": "4.0.114" },
];

/** @param {readonly ({ type: string } & Record<string, unknown>)[]} events */
const toSse = (events) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");

const ANTHROPIC = toSse([
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
]);

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

let differing = 0;
for (const versions of VERSIONS) {
  const folder = mkdtempSync(join(tmpdir(), "gyre-ai-sdk-"));
  try {
    writeFileSync(
      join(folder, "package.json"),
      JSON.stringify({ private: true, dependencies: versions }),
    );
    execFileSync("npm", ["install", "--force", "--silent", "--ignore-scripts"], { cwd: folder });
    const load = createRequire(join(folder, "package.json"));
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
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
// A recording may hold what the AI SDK reads otherwise: those are shown, and looked at.
process.exitCode = differing > 0 && recordings === undefined ? 1 : 0;
