import { describe, expect, it } from "vitest";
import { measure } from "../responses/compare.ts";
import { ALLOWED, type Difference, findDifferences } from "./differences.ts";
import type { Case, Expected } from "../responses/manifest.ts";
import { readRequest, type ModelRequest } from "./request-transcript.ts";

function request(...messages: object[]): ModelRequest {
  return readRequest("openai-completions", { model: "mole-1", messages }, "/chat/completions");
}

/** A response of which only what is expected matters. */
function makeAnswer(expected: Partial<Expected>): Case {
  return {
    id: "mole",
    api: "openai-chat",
    dir: "mole-chat",
    file: "",
    request: null,
    framing: "sse",
    http_status: 200,
    content_type: "",
    headers: {},
    conversation: null,
    source: { interaction: 0, path: "" },
    expected: { ok: true, ...expected },
  };
}

/** What is allowed of the differences between two requests, by name; "" is what is not. */
function judged(
  recorded: ModelRequest,
  ours: ModelRequest,
  expected: Partial<Expected> = {},
): string[] {
  const answer = makeAnswer(expected);
  const model = { id: "mole-1", name: "", api: "openai-completions", provider: "mole" };
  return findDifferences("", recorded, ours).map((difference: Difference) => {
    const situation = {
      ...difference,
      one: answer,
      request: recorded,
      ourRequest: ours,
      model,
      answers: [answer],
    };
    return ALLOWED.find(({ applies }) => applies(situation))?.name ?? "";
  });
}

describe("differencesOf", () => {
  it("names the smallest places", () => {
    expect(findDifferences("", { a: [1, { b: 2 }], c: 3 }, { a: [1, { b: 4 }, 5] })).toEqual([
      { path: "a.1.b", recorded: 2, ours: 4 },
      { path: "a.2", recorded: undefined, ours: 5 },
      { path: "c", recorded: 3, ours: undefined },
    ]);
  });
});

describe("ALLOWED", () => {
  it("has a name of its own and a reason for each", () => {
    expect(new Set(ALLOWED.map(({ name }) => name)).size).toBe(ALLOWED.length);
    for (const { why } of ALLOWED) expect(why).toMatch(/^[^\n]+$/);
  });

  it("lets texts be cut otherwise, not changed", () => {
    const parts = (...texts: string[]): ModelRequest =>
      request({ role: "user", content: texts.map((text) => ({ type: "text", text })) });
    expect(judged(parts("Dig.", "", "Deep."), parts("Dig.", "Deep."))).toEqual([
      "texts cut otherwise",
      "texts cut otherwise",
    ]);
    expect(judged(parts("Dig.", ""), parts("Dig"))).toEqual(["", ""]);
  });

  it("lets arguments differ only where ours are those of the response", () => {
    const called = (depth: number): ModelRequest =>
      request({
        role: "assistant",
        tool_calls: [{ id: "c1", function: { name: "dig", arguments: JSON.stringify({ depth }) } }],
      });
    const tool_calls = [{ id: "c1", name: "dig", arguments: { depth: 3 } }];
    expect(judged(called(1), called(3), { tool_calls })).toEqual([
      "arguments as they were answered",
    ]);
    expect(judged(called(3), called(1), { tool_calls })).toEqual([""]);
  });

  it("lets words of thinking differ from the recorded ones, never what is sealed", () => {
    const thought = (text: string, signature: string): ModelRequest =>
      request({ role: "assistant", content: "Yes.", reasoning_details: [{ text, signature }] });
    const reasoning = measure("I dig.");
    const expected = reasoning ? { reasoning } : {};
    const ours = thought("I dig.", "s1");
    expect(judged(thought("dig.", "s1"), ours, expected)).toEqual(["thinking as it was answered"]);
    expect(judged(thought("dig.", "s2"), ours, expected)).toEqual([""]);
    expect(judged(ours, thought("dig.", "s1"), expected)).toEqual([""]);
  });

  it("lets nothing else be left out", () => {
    const recorded = request(
      { role: "user", content: "Dig." },
      { role: "assistant", content: "Yes." },
    );
    expect(judged(recorded, request({ role: "user", content: "Dig." }))).toEqual([""]);
    expect(judged({ ...recorded, model: "mole-2" }, recorded)).toEqual([""]);
    expect(judged({ ...recorded, toolChoice: "required" }, recorded)).toEqual([""]);
  });
});
