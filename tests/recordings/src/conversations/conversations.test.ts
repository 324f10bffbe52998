import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { conversationReport, playConversations, unusedDifferences } from "./conversations.ts";
import type { Case, Recordings } from "../responses/manifest.ts";

const TOOL = {
  type: "function",
  function: {
    name: "dig",
    description: "Digs a hole.",
    parameters: { type: "object", properties: {} },
  },
};
const SYSTEM = { role: "system", content: "Be brief." };
const ASKED = { role: "user", content: "Dig a hole." };
const CALL = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "c1", type: "function", function: { name: "dig", arguments: '{"depth":3}' } }],
};
const RESULT = { role: "tool", tool_call_id: "c1", content: "3 feet deep." };
const ANSWER = { role: "assistant", content: "It is dug." };
const AGAIN = { role: "user", content: "Deeper." };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "conversations-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A conversation of a chat service: each request's messages, and the message that answers it. */
function recorded(
  ...exchanges: [interaction: number, messages: object[], answer: object][]
): Recordings {
  const cases = exchanges.map(([interaction, messages, answer]): Case => {
    const id = `mole-${interaction}`;
    const request = { model: "mole-1", stream: true, messages, tools: [TOOL] };
    const calls = (answer as Partial<typeof CALL>).tool_calls?.map((call) => ({
      index: 0,
      ...call,
    }));
    const choice = { index: 0, delta: { ...answer, tool_calls: calls }, finish_reason: "stop" };
    writeFileSync(join(folder, `${id}.json`), JSON.stringify(request));
    writeFileSync(
      join(folder, `${id}.sse`),
      `data: ${JSON.stringify({ choices: [choice] })}\n\ndata: [DONE]\n\n`,
    );
    return {
      id,
      api: "openai-chat",
      dir: "mole-chat",
      file: `${id}.sse`,
      request: `${id}.json`,
      framing: "sse",
      http_status: 200,
      content_type: "text/event-stream",
      headers: {},
      conversation: "a mole digs",
      source: { interaction, url: "https://mole.example/v1/chat/completions", path: "" },
      expected: { ok: true },
    };
  });
  return { folder, cases };
}

describe("playConversations", () => {
  it("drives the loop through calls and later prompts, and finds the same requests", async () => {
    const recordings = recorded(
      [0, [SYSTEM, ASKED], CALL],
      [1, [SYSTEM, ASKED, CALL, RESULT], ANSWER],
      [2, [SYSTEM, ASKED, CALL, RESULT, ANSWER, AGAIN], ANSWER],
    );
    const results = await playConversations(recordings, "");
    expect(results).toEqual([{ name: "a mole digs", problems: [], used: [], requests: 3 }]);
  });

  it("begins with the history of a first request, and goes on after its results", async () => {
    const recordings = recorded([4, [SYSTEM, ASKED, CALL, RESULT], ANSWER]);
    const [result] = await playConversations(recordings, "");
    expect(result).toMatchObject({ problems: [], used: [], requests: 1 });
  });

  it("goes on with a new agent where requests are missing", async () => {
    const recordings = recorded(
      [0, [SYSTEM, ASKED], CALL],
      [2, [SYSTEM, ASKED, CALL, RESULT, ANSWER, AGAIN], ANSWER],
    );
    const [result] = await playConversations(recordings, "");
    expect(result).toMatchObject({ problems: [], used: ["gap in the recording"], requests: 2 });
  });

  it("reports each place at which a request says something else", async () => {
    const other = [
      SYSTEM,
      ASKED,
      { ...CALL, content: "So be it." },
      { ...RESULT, tool_call_id: "c2" },
    ];
    const recordings = recorded([0, [SYSTEM, ASKED], CALL], [1, other, ANSWER]);
    const [result] = await playConversations(recordings, "");
    expect(result?.problems).toEqual([
      'request 1: turns.1.texts.0: recorded {"text":"So be it."}, ours nothing',
      'request 1: turns.2.results.0.id: recorded "c2", ours "c1"',
    ]);
  });

  it("reports when the loop stops before the recording does", async () => {
    const recordings = recorded([0, [SYSTEM, ASKED], ANSWER], [1, [ASKED, CALL, RESULT], ANSWER]);
    const [result] = await playConversations(recordings, "");
    expect(result?.problems).toContain("1 requests were made of the 2 recorded");
  });

  it("reports when a response that was well fails", async () => {
    const recordings = recorded([0, [SYSTEM, ASKED], CALL]);
    writeFileSync(join(folder, "mole-0.sse"), 'data: {"error":{"message":"No."}}\n\n');
    const [result] = await playConversations(recordings, "");
    expect(result?.problems).toEqual([expect.stringContaining("No.")]);
  });

  it("leaves out what no loop begins with, and says so", async () => {
    const [result] = await playConversations(recorded([0, [ASKED, ANSWER], ANSWER]), "");
    expect(result).toMatchObject({ problems: [], used: ["start without words"], requests: 0 });
  });

  it("reports when it can read nothing in a request", async () => {
    const [result] = await playConversations(recorded([0, [], ANSWER]), "");
    expect(result?.problems).toEqual([expect.stringContaining("Nothing could be read")]);
  });

  it("plays only what is asked for", async () => {
    const recordings = recorded([0, [ASKED], ANSWER]);
    expect(await playConversations(recordings, "a badger")).toEqual([]);
    expect(await playConversations(recordings, "mole-0")).toHaveLength(1);
  });
});

describe("conversationReport", () => {
  const results = [
    { name: "one", problems: [], used: ["gap in the recording"], requests: 2 },
    { name: "two", problems: [], used: ["gap in the recording"], requests: 3 },
  ];

  it("counts conversations, requests and what was allowed", () => {
    const [first, ...rest] = conversationReport(results);
    expect(first).toBe("2 conversations, 5 requests compared, differences allowed:");
    expect(rest).toEqual([expect.stringMatching(/^ +2 gap in the recording: /)]);
  });

  it("names what nothing needed", () => {
    const unused = unusedDifferences(results);
    expect(unused).toContain("start without words");
    expect(unused).not.toContain("gap in the recording");
  });
});
