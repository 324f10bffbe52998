// OpenAI's own client, against the chat completions that an agent answers as.
import { Agent, defineTool } from "../../../packages/agent/dist/index.js";
import { call, fail, say, scriptedModel } from "../../../packages/ai/dist/testing/index.js";
import { createOpenAIRoute, toOpenAIChat } from "../../../packages/server/dist/streams/index.js";
import { playRandomRun } from "../../../packages/server/dist/testing/random-runs.js";
import { showTranscript } from "../../../packages/server/dist/testing/shown-run.js";
import { compare, load, playAll } from "./shared.mjs";

/**
 * @typedef {import("./shared.mjs").Plan} Plan
 * @typedef {import("./shared.mjs").Findings} Findings
 */

/**
 * @param {any} OpenAI
 * @param {(request: Request) => Promise<Response>} route
 */
function connect(OpenAI, route) {
  return new OpenAI({
    apiKey: "none",
    baseURL: "http://page.example/v1",
    maxRetries: 0,
    fetch: (/** @type {string} */ url, /** @type {RequestInit} */ init) =>
      route(new Request(url, init)),
  });
}

/** @param {Plan} plan @returns {Promise<Findings>} */
export async function checkOpenAI(plan) {
  const { default: OpenAI } = await load(plan, "openai");
  return playAll(plan, async (seed) => {
    const stream = seed % 4 !== 0;
    /** @type {string[]} */
    const problems = [];
    await playRandomRun(seed, async ({ run }) => {
      const client = connect(OpenAI, () => toOpenAIChat(run, { stream, clientTools: ["ask"] }));
      let [text, thinking, finish, error] = ["", "", "", ""];
      /** @type {any[]} */
      const calls = [];
      const messages = [{ role: "user", content: "Go" }];
      try {
        if (stream) {
          const chunks = await client.chat.completions.create({ model: "m", messages, stream });
          for await (const { choices } of chunks) {
            const [{ delta, finish_reason }] = choices;
            text += delta.content ?? "";
            thinking += delta.reasoning_content ?? "";
            calls.push(...(delta.tool_calls ?? []));
            finish = finish_reason ?? finish;
          }
        } else {
          const { choices } = await client.chat.completions.create({ model: "m", messages });
          const [{ message, finish_reason }] = choices;
          text = message.content ?? "";
          thinking = message.reasoning_content ?? "";
          calls.push(...(message.tool_calls ?? []));
          finish = finish_reason;
        }
      } catch (thrown) {
        error = /** @type {any} */ (thrown).code ?? String(thrown);
      }
      const end = await run.result();
      const shown = showTranscript(end.messages);
      const texts = shown.map((step) => step.text).filter((one) => one !== "");
      const failed =
        end.stop === "error"
          ? (end.finalMessage?.failure?.kind ?? "unknown")
          : end.stop === "aborted"
            ? "aborted"
            : "";
      problems.push(...compare("the error", error, failed));
      // A completion in one piece has nothing but its error.
      if (stream || failed === "") {
        problems.push(
          ...compare("the text", text, texts.join("\n\n")),
          ...compare("the thoughts", thinking, shown.map((step) => step.thinking).join("")),
        );
      }
      if (failed !== "") return;
      const pending = end.pending.map(({ toolCall }) => [
        toolCall.id,
        toolCall.name,
        toolCall.arguments,
      ]);
      const got = calls.map(({ id, function: { name, arguments: args } }) => [
        id,
        name,
        JSON.parse(args),
      ]);
      problems.push(...compare("the calls of the client", got, pending));
      if (pending.length > 0) problems.push(...compare("the reason", finish, "tool_calls"));
    });
    return problems;
  });
}

/** @param {Plan} plan @returns {Promise<Findings>} */
export async function checkOpenAIRoute(plan) {
  const { default: OpenAI } = await load(plan, "openai");
  const here = defineTool({
    name: "price",
    description: "Gives a price.",
    parameters: { type: "object", properties: {} },
    execute: () => "3 euros",
  });
  const script = scriptedModel([
    [say("I look."), call("price", {}, "here"), call("color", { of: "page" }, "there")],
    "It is red, and costs 3 euros.",
    fail("https://up.example is down", { kind: "overloaded", retryable: false }),
  ]);
  const client = connect(
    OpenAI,
    createOpenAIRoute(
      () =>
        new Agent({
          model: script.model,
          protocol: script,
          tools: [here],
          retry: { maxRetries: 0 },
        }),
    ),
  );
  const tools = [
    {
      type: "function",
      function: { name: "color", description: "Of the page.", parameters: { type: "object" } },
    },
  ];
  /** @type {any[]} */
  const messages = [{ role: "user", content: "Which color, and how much?" }];
  const first = await client.chat.completions.create({ model: "tea", messages, tools });
  const { message, finish_reason } = first.choices[0];
  messages.push(message, { role: "tool", tool_call_id: "there", content: "red" });
  const second = await client.chat.completions.create({ model: "tea", messages, tools });
  const third = await client.chat.completions
    .create({ model: "tea", messages: [{ role: "user", content: "Again" }] })
    .catch((/** @type {any} */ error) => [error.status, error.code, error.message]);
  return {
    problems: [
      ...compare(
        "the calls",
        message.tool_calls.map((/** @type {any} */ one) => one.id),
        ["there"],
      ),
      ...compare("the reason", finish_reason, "tool_calls"),
      ...compare("the answer", second.choices[0].message.content, "It is red, and costs 3 euros."),
      ...compare("the error", third.slice(0, 2), [502, "overloaded"]),
      ...(String(third).includes("up.example") ? ["the error names the service"] : []),
    ],
    figures: ["a tool of the client, one that runs here, an error"],
  };
}
