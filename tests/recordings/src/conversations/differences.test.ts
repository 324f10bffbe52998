import { describe, expect, it } from "vitest";
import { measure } from "../responses/compare.ts";
import { ALLOWED, type Difference, differencesOf } from "./differences.ts";
import type { Case, Expected } from "../responses/manifest.ts";
import { readTold, type Told } from "./request-transcript.ts";

function said(...messages: object[]): Told {
  return readTold("openai-completions", { model: "mole-1", messages }, "/chat/completions");
}

/** A response of which only what is expected matters. */
function answerOf(expected: Partial<Expected>): Case {
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
function judged(told: Told, ours: Told, expected: Partial<Expected> = {}): string[] {
  const answer = answerOf(expected);
  const model = { id: "mole-1", name: "", api: "openai-completions", provider: "mole" };
  return differencesOf("", told, ours).map((difference: Difference) => {
    const situation = { ...difference, one: answer, told, said: ours, model, answers: [answer] };
    return ALLOWED.find(({ applies }) => applies(situation))?.name ?? "";
  });
}

describe("differencesOf", () => {
  it("names the smallest places", () => {
    expect(differencesOf("", { a: [1, { b: 2 }], c: 3 }, { a: [1, { b: 4 }, 5] })).toEqual([
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
    const parts = (...texts: string[]): Told =>
      said({ role: "user", content: texts.map((text) => ({ type: "text", text })) });
    expect(judged(parts("Dig.", "", "Deep."), parts("Dig.", "Deep."))).toEqual([
      "texts cut otherwise",
      "texts cut otherwise",
    ]);
    expect(judged(parts("Dig.", ""), parts("Dig"))).toEqual(["", ""]);
  });

  it("lets arguments differ only where ours are those of the response", () => {
    const called = (depth: number): Told =>
      said({
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
    const thought = (text: string, signature: string): Told =>
      said({ role: "assistant", content: "Yes.", reasoning_details: [{ text, signature }] });
    const reasoning = measure("I dig.");
    const expected = reasoning ? { reasoning } : {};
    const ours = thought("I dig.", "s1");
    expect(judged(thought("dig.", "s1"), ours, expected)).toEqual(["thinking as it was answered"]);
    expect(judged(thought("dig.", "s2"), ours, expected)).toEqual([""]);
    expect(judged(ours, thought("dig.", "s1"), expected)).toEqual([""]);
  });

  it("lets nothing else be left out", () => {
    const told = said({ role: "user", content: "Dig." }, { role: "assistant", content: "Yes." });
    expect(judged(told, said({ role: "user", content: "Dig." }))).toEqual([""]);
    expect(judged({ ...told, model: "mole-2" }, told)).toEqual([""]);
    expect(judged({ ...told, toolChoice: "required" }, told)).toEqual([""]);
  });
});
