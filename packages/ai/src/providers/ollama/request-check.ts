import { createModel, type FormatFixture } from "../testing/format-fixture.ts";
import { toFields, type Fields, toList, type Problems, requestCheck } from "../testing/problems.ts";

// "Generate a chat message" and "Tool calling" in Ollama's API documentation.

const KEYS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "tools",
  "format",
  "options",
  "stream",
  "keep_alive",
  "think",
  "logprobs",
  "top_logprobs",
  "truncate",
  "shift",
]);
const MESSAGE_KEYS: ReadonlySet<string> = new Set([
  "role",
  "content",
  "thinking",
  "images",
  "tool_calls",
  "tool_name",
  "tool_call_id",
]);
const ROLES = ["system", "user", "assistant", "tool"];
const LEVELS = [undefined, true, false, "low", "medium", "high", "max"];

/** A request to Ollama's chat API. */
const check = requestCheck((problems, body) => {
  problems.onlyKeys(body, KEYS, "body");
  problems.text(body["model"], "model");
  problems.mustBeIn(body["think"], LEVELS, "think");
  let asked: Fields[] = [];
  for (const [index, message] of problems.filled(body["messages"], "messages").entries()) {
    const at = `messages[${index}]`;
    const fields = problems.fields(message, at);
    checkMessage(problems, fields, at);
    if (fields["role"] === "tool") {
      const call = asked.find(({ id }) => id === fields["tool_call_id"]);
      problems.must(call !== undefined, at, "answers no call");
      const name = toFields(call?.["function"])["name"];
      problems.must(!call || name === fields["tool_name"], at, "names another tool");
      asked = asked.filter((one) => one !== call);
      continue;
    }
    problems.must(asked.length === 0, at, "comes before all calls are answered");
    asked = toList(fields["tool_calls"]).map(toFields);
  }
  problems.must(asked.length === 0, "messages", "ends with calls that have no results");
  for (const [index, tool] of toList(body["tools"]).map(toFields).entries()) {
    const at = `tools[${index}]`;
    problems.mustBeIn(tool["type"], ["function"], at);
    const { name, parameters } = problems.fields(tool["function"], at);
    problems.must(problems.text(name, at) !== "", at, "needs a name");
    problems.objectSchema(parameters, at);
  }
});

function checkMessage(problems: Problems, message: Fields, at: string): void {
  const { content, images, role, tool_calls: calls } = message;
  problems.onlyKeys(message, MESSAGE_KEYS, at);
  problems.mustBeIn(role, ROLES, at);
  const text = problems.text(content, at);
  if (images !== undefined) {
    for (const image of problems.filled(images, `${at}.images`)) problems.base64(image, at);
  }
  if (role !== "assistant") {
    problems.must(calls === undefined, at, "only the assistant calls");
    problems.must(text !== "" || images !== undefined, at, "says nothing");
    return;
  }
  problems.must(text !== "" || calls !== undefined || !!message["thinking"], at, "says nothing");
  if (calls === undefined) return;
  for (const call of problems.filled(calls, `${at}.tool_calls`).map(toFields)) {
    const { arguments: given, name } = problems.fields(call["function"], at);
    problems.must(problems.text(name, at) !== "", at, "a call needs a name");
    problems.fields(given, `${at} arguments`);
  }
}

/** What the tests of all formats know of this one. */
export const fixture: FormatFixture = {
  check,
  models: [createModel("ollama", "ollama", "qwen3")],
  respond: (n) => ({
    body: [
      { message: { thinking: `Thought #${n}#` } },
      { message: { content: `Said #${n}#` } },
      { message: { tool_calls: [{ function: { name: "read_file", arguments: {} } }] } },
      { done: true, done_reason: "stop" },
    ].map((line) => `${JSON.stringify(line)}\n`),
  }),
};
