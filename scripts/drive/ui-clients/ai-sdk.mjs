// The AI SDK's own reader and its chat, the part of `useChat` without React.
import { Agent, defineTool } from "../../../packages/agent/dist/index.js";
import { call, fail, say, scriptedModel } from "../../../packages/ai/dist/testing/index.js";
import {
  createChatRoute,
  fromUIMessages,
  toUIMessageStreamResponse,
} from "../../../packages/server/dist/streams/index.js";
import { playRandomRun } from "../../../packages/server/dist/testing/random-runs.js";
import {
  answerQuestions,
  showTranscript,
  withoutErrors,
} from "../../../packages/server/dist/testing/shown-run.js";
import { showUIMessage } from "../../../packages/server/dist/testing/shown-ui.js";
import { compare, load, playAll } from "./shared.mjs";

/**
 * @typedef {import("./shared.mjs").Plan} Plan
 * @typedef {import("./shared.mjs").Findings} Findings
 */

const API = "http://page.example/api/chat";

/** @param {Plan} plan @returns {Promise<Findings>} */
export async function checkAiSdk(plan) {
  const { DefaultChatTransport, readUIMessageStream } = await load(plan, "ai");
  return playAll(plan, async (seed) => {
    /** @type {any} */
    let message;
    const { messages } = await playRandomRun(
      seed,
      async ({ run, history, isContinued, decisions }) => {
        if (message) message.parts = answerQuestions(message.parts, decisions);
        const transport = new DefaultChatTransport({
          api: API,
          fetch: async () =>
            toUIMessageStreamResponse(run, { history, isContinued, continues: message }),
        });
        const stream = await transport.sendMessages({
          chatId: "c",
          trigger: "submit-message",
          messages: [],
        });
        /** @type {unknown[]} */
        const errors = [];
        const onError = (/** @type {unknown} */ error) => errors.push(error);
        for await (const next of readUIMessageStream({ stream, message, onError })) message = next;
        const wrong = errors.filter((error) => !/^(?:Error: )?\w+: /.test(String(error)));
        if (wrong.length > 0) throw new Error(`The stream failed: ${wrong.map(String).join(", ")}`);
      },
    );
    const sent = JSON.parse(JSON.stringify(message ? [message] : []));
    const [, ...transcript] = withoutErrors(messages);
    return [
      ...compare("the page", showUIMessage(message), showTranscript(messages)),
      ...compare("the transcript", withoutErrors(fromUIMessages(sent).messages), transcript),
    ];
  });
}

/** @param {Plan} plan @returns {Promise<Findings>} */
export async function checkChat(plan) {
  const ai = await load(plan, "ai");
  /** @type {number[]} */
  const paid = [];
  const refund = defineTool({
    name: "refund",
    description: "Refunds.",
    parameters: { type: "object", properties: { euros: { type: "number" } } },
    needsApproval: true,
    execute: ({ euros = 0 }) => {
      paid.push(euros);
      return { euros };
    },
  });
  const script = scriptedModel([
    [say("I ask."), call("refund", { euros: 5 }, "c1"), call("refund", { euros: 7 }, "c2")],
    "One of them.",
    [say("It "), fail("https://up.example has no key", { kind: "auth" })],
  ]);
  const route = createChatRoute(
    () => new Agent({ model: script.model, protocol: script, tools: [refund] }),
    { secret: "a secret made by chance" },
  );
  class State {
    /** @type {any[]} */
    messages = [];
    status = "ready";
    error = undefined;
    /** @param {any} message */
    pushMessage = (message) => void (this.messages = [...this.messages, message]);
    popMessage = () => void (this.messages = this.messages.slice(0, -1));
    /** @param {number} at @param {any} message */
    replaceMessage = (at, message) => void (this.messages = this.messages.with(at, message));
    /** @param {unknown} value */
    snapshot = (value) => structuredClone(value);
  }
  /** @type {new (options: object) => any} */
  const Chat = class extends ai.AbstractChat {};
  const transport = new ai.DefaultChatTransport({
    api: API,
    fetch: (/** @type {string} */ url, /** @type {RequestInit} */ init) =>
      route(new Request(url, init)),
  });
  /** @type {() => void} */
  let finished = () => {};
  const chat = new Chat({
    id: "tea",
    state: new State(),
    transport,
    onFinish: () => finished(),
    sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  await chat.sendMessage({ text: "Both, please." });
  const asked = chat.lastMessage.parts.filter(
    (/** @type {any} */ part) => part.state === "approval-requested",
  );
  const answered = new Promise((resolve) => (finished = () => resolve(undefined)));
  await chat.addToolApprovalResponse({ id: asked[0]?.approval.id, approved: true });
  await chat.addToolApprovalResponse({ id: asked[1]?.approval.id, approved: false, reason: "no" });
  await answered;
  const shown = showUIMessage(chat.lastMessage).map(({ text, calls }) => [
    text,
    ...calls.map(({ state }) => state),
  ]);
  await chat.sendMessage({ text: "And now?" });
  return {
    problems: [
      ...compare("paid", paid, [5]),
      ...compare("shown", shown, [["I ask.", "ok", "denied"], ["One of them."]]),
      ...compare(
        "the error",
        [chat.status, chat.error?.message],
        ["error", "auth: The model service does not accept the credential of this server."],
      ),
    ],
    figures: ["approved, denied, and an error shown"],
  };
}
