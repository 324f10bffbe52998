// The client of AG-UI, which checks the order of events and builds messages of them.
import { Agent, defineTool } from "../../../packages/agent/dist/index.js";
import { call, say, scriptedModel } from "../../../packages/ai/dist/testing/index.js";
import { createAgUiRoute, toAgUiResponse } from "../../../packages/server/dist/streams/index.js";
import { playRandomRun } from "../../../packages/server/dist/testing/random-runs.js";
import { showTranscript } from "../../../packages/server/dist/testing/shown-run.js";
import { compare, load, playAll } from "./shared.mjs";

/**
 * @typedef {import("./shared.mjs").Plan} Plan
 * @typedef {import("./shared.mjs").Findings} Findings
 */

const URL = "http://page.example/agent";

/** @param {Plan} plan @returns {Promise<Findings>} */
export async function checkAgUi(plan) {
  const { HttpAgent } = await load(plan, "@ag-ui/client");
  return playAll(plan, async (seed) => {
    /** @type {string[]} */
    const problems = [];
    /** @type {Map<string, string>} */
    const outcomes = new Map();
    /** @type {import("../../../packages/server/dist/testing/random-runs.js").RandomSegment | undefined} */
    let segment;
    let runs = 0;
    const agent = new HttpAgent({
      url: URL,
      threadId: "t",
      fetch: async () => {
        if (!segment) throw new Error("There is no run.");
        const { run, history } = segment;
        return toAgUiResponse(run, { threadId: "t", runId: `r${runs}`, history });
      },
    });
    const { messages } = await playRandomRun(seed, async (next) => {
      segment = next;
      runs++;
      /** @type {any[]} */
      const events = [];
      /** @type {unknown[]} */
      const failures = [];
      // The client wants an answer to each; what is decided is in the run already.
      const resume = agent.pendingInterrupts.map((/** @type {any} */ { id }) => ({
        interruptId: id,
        status: "resolved",
      }));
      await agent.runAgent(
        { runId: `r${runs}`, ...(resume.length > 0 && { resume }) },
        {
          onEvent: (/** @type {any} */ { event }) => void events.push(event),
          onRunFailed: (/** @type {any} */ { error }) => void failures.push(error),
        },
      );
      for (const { type, name, value } of events) {
        if (type === "CUSTOM" && name === "gyre.outcome")
          outcomes.set(value.toolCallId, value.outcome);
      }
      const end = await next.run.result();
      const last = events.at(-1) ?? {};
      const got =
        last.type === "RUN_ERROR" ? [last.type, last.code] : [last.type, last.outcome?.type];
      const expected =
        end.stop === "error"
          ? ["RUN_ERROR", end.finalMessage?.failure?.kind]
          : [
              "RUN_FINISHED",
              end.stop === "aborted"
                ? "cancelled"
                : end.pending.length > 0
                  ? "interrupt"
                  : "success",
            ];
      problems.push(...compare("the end", got, expected));
      const ids = (last.outcome?.interrupts ?? []).map((/** @type {any} */ one) => one.toolCallId);
      if (end.stop !== "error" && end.stop !== "aborted") {
        problems.push(
          ...compare(
            "the questions",
            ids,
            end.pending.map(({ toolCall }) => toolCall.id),
          ),
        );
      }
      if (end.stop !== "error" && failures.length > 0) {
        problems.push(`the client failed: ${failures.map(String).join(", ")}`);
      }
    });
    const steps = showTranscript(messages);
    const shown = showMessages(agent.messages, outcomes);
    problems.push(
      ...compare("the text", shown.text, steps.map(({ text }) => text).join("")),
      ...compare("the thoughts", shown.thinking, steps.map(({ thinking }) => thinking).join("")),
      ...compare(
        "the calls",
        shown.calls,
        steps.flatMap(({ calls }) =>
          calls.map(({ id, name, input, state }) => ({ id, name, input, state })),
        ),
      ),
      ...compare("the results", shown.results, listResults(messages)),
    );
    return problems;
  });
}

/** @param {readonly any[]} messages */
function listResults(messages) {
  const results = messages.flatMap(({ role, toolCallId, content }) => {
    if (role !== "toolResult") return [];
    return [[toolCallId, content.map((/** @type {any} */ one) => one.text).join("\n")]];
  });
  return Object.fromEntries(results);
}

/**
 * @param {readonly any[]} messages
 * @param {ReadonlyMap<string, string>} outcomes
 */
function showMessages(messages, outcomes) {
  let [text, thinking] = ["", ""];
  const calls = [];
  /** @type {[string, string][]} */
  const results = [];
  for (const { role, content, toolCalls = [], toolCallId } of messages) {
    if (role === "assistant") text += content ?? "";
    if (role === "reasoning") thinking += content ?? "";
    if (role === "tool") results.push([toolCallId, content]);
    for (const { id, function: asked } of toolCalls) {
      const outcome = outcomes.get(id);
      const state =
        outcome === undefined
          ? "open"
          : outcome === "ok" || outcome === "denied"
            ? outcome
            : "error";
      calls.push({ id, name: asked.name, input: parse(asked.arguments), state });
    }
  }
  return { text, thinking, calls, results: Object.fromEntries(results) };
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @param {Plan} plan @returns {Promise<Findings>} */
export async function checkAgUiRoute(plan) {
  const { HttpAgent } = await load(plan, "@ag-ui/client");
  /** @type {number[]} */
  const paid = [];
  const refund = defineTool({
    name: "refund",
    description: "Refunds.",
    parameters: { type: "object", properties: { euros: { type: "number" } } },
    needsApproval: true,
    execute: ({ euros = 0 }) => {
      paid.push(euros);
      return "paid";
    },
  });
  const script = scriptedModel([
    [say("I ask."), call("refund", { euros: 5 }, "c1"), call("refund", { euros: 7 }, "c2")],
    "One of them.",
  ]);
  const route = createAgUiRoute(
    () => new Agent({ model: script.model, protocol: script, tools: [refund] }),
    { secret: "a secret made by chance" },
  );
  const agent = new HttpAgent({
    url: URL,
    threadId: "t",
    initialMessages: [{ id: "1", role: "user", content: "Both, please." }],
    fetch: (/** @type {string} */ url, /** @type {RequestInit} */ init) =>
      route(new Request(url, init)),
  });
  /** @type {any} */
  let last;
  const subscriber = { onEvent: (/** @type {any} */ { event }) => void (last = event) };
  await agent.runAgent({}, subscriber);
  const [first, second] = last.outcome?.interrupts ?? [];
  await agent.runAgent(
    {
      resume: [
        { interruptId: first?.id, status: "resolved", payload: { approved: true } },
        { interruptId: second?.id, status: "cancelled" },
      ],
    },
    subscriber,
  );
  return {
    problems: [
      ...compare("paid", paid, [5]),
      ...compare("the end", last.outcome?.type, "success"),
      ...compare("the answer", agent.messages.at(-1)?.content, "One of them."),
    ],
    figures: ["an interrupt resolved, and one not"],
  };
}
