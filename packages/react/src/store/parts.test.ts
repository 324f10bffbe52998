import type { AgentMessage } from "@gyre/agent";
import type { AssistantMessage, ToolResultMessage } from "@gyre/ai";
import { toUIMessages } from "@gyre/server/streams";
import { describe, expect, it } from "vitest";
import { playRandomRun } from "../../../server/src/testing/random-runs.ts";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { PlayedAgent } from "../testing/played-agent.ts";
import { createAgentStore } from "./agent-store.ts";
import type { ViewMessage, ViewPart } from "./view-message.ts";

function show(messages: readonly AgentMessage[]): readonly ViewMessage[] {
  return createAgentStore(new PlayedAgent([...messages])).getSnapshot().messages;
}

function createAnswer(content: AssistantMessage["content"]): AssistantMessage {
  const model = { api: "played", provider: "played", model: "played", usage: {} };
  return { role: "assistant", content, ...model, stopReason: "stop", timestamp: 7 };
}

const firstParts = (...messages: AgentMessage[]): readonly ViewPart[] =>
  show(messages)[0]?.parts ?? [];

describe("parts", () => {
  it("of an answer: texts with what they are based on, thoughts, files, tools of the service", () => {
    const citations = [
      { url: "https://tea.example/", title: "Tea", text: "It is green.", page: 2 },
    ];
    const stored = { type: "stored", sha256: "ab", size: 3 } as const;
    const answer = createAnswer([
      { type: "thinking", thinking: "Hm." },
      { type: "text", text: "Green.", citations },
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "file", mediaType: "text/plain", name: "tea.txt", source: stored },
      { type: "serviceTool", id: "s1", name: "web_search", input: { q: "tea" }, output: ["a"] },
    ]);
    expect(firstParts(answer)).toEqual([
      { type: "reasoning", text: "Hm.", state: "done" },
      { type: "text", text: "Green.", state: "done" },
      { type: "source", ...citations[0] },
      {
        ...{ type: "file", mediaType: "image/png", url: "data:image/png;base64,AAAA" },
        source: { type: "base64", data: "AAAA" },
      },
      { type: "file", mediaType: "text/plain", name: "tea.txt", source: stored },
      { type: "serviceTool", id: "s1", name: "web_search", input: { q: "tea" }, output: ["a"] },
    ]);
  });

  it("of a prompt with a file, and of a message of a role of one's own", () => {
    const source = { type: "url", url: "https://tea.example/a.pdf" } as const;
    const file = { type: "file", mediaType: "application/pdf", source } as const;
    const content = [{ type: "text" as const, text: "Read it." }, file];
    expect(firstParts({ role: "user", content, timestamp: 0 })).toEqual([
      { type: "text", text: "Read it.", state: "done" },
      { ...file, url: source.url },
    ]);
    const own: unknown = { role: "note", content: "mine", timestamp: 3 };
    const messages = JSON.parse(JSON.stringify([own]));
    expect(show(messages)).toMatchObject([
      { role: "custom", state: "done", timestamp: 3, parts: [{ type: "custom", message: own }] },
    ]);
  });

  it("of calls: results by how they ended, and the places that they name", () => {
    const calls = ["ok", "denied", "timeout"].map((id) => ({
      ...{ type: "toolCall" as const, id, name: "look", arguments: { at: id } },
    }));
    const of = { role: "toolResult", toolName: "look", timestamp: 0 } as const;
    const source = { kind: "page", name: "https://tea.example/", mark: "m" };
    const results: ToolResultMessage[] = [
      {
        ...of,
        toolCallId: "ok",
        content: [{ type: "text", text: "Tea.", source }],
        isError: false,
      },
      {
        ...{ ...of, toolCallId: "denied", content: [{ type: "text", text: "No." }] },
        ...{ isError: true, outcome: "denied", reason: "a rule says so" },
      },
      {
        ...{ ...of, toolCallId: "timeout", content: [{ type: "text", text: "Too long." }] },
        ...{ isError: true, outcome: "timeout" },
      },
    ];
    const [ok, place, denied, timeout] = firstParts(createAnswer(calls), ...results);
    expect(ok).toMatchObject({ state: "output-available", input: { at: "ok" }, output: "Tea." });
    expect(place).toEqual({ type: "source", title: source.name, url: source.name });
    expect(denied).toMatchObject({ state: "output-denied", reason: "a rule says so" });
    expect(timeout).toMatchObject({
      ...{ state: "output-error", errorText: "Too long.", outcome: "timeout" },
    });
  });
});

const RUNS = countCases(60, 600);

it(
  "random runs: texts, states and outputs are those that useChat gets",
  { tags: "long" },
  async () => {
    const seed = pickSeed();
    console.log(`GYRE_SEED=${seed}`);
    for (let run = 0; run < RUNS; run++) {
      const { messages } = await playRandomRun(seed + run, async (segment) => {
        await segment.run.result();
      });
      const expected = toUIMessages(messages).flatMap(({ parts }) =>
        parts.flatMap((part): unknown[] => {
          if (part.type === "text" || part.type === "reasoning") {
            return "text" in part ? [[part.type, part.text]] : [];
          }
          if (!("toolCallId" in part)) return [];
          // They have ids of their own there.
          const id = part.providerExecuted ? "" : part.toolCallId;
          return [
            [id, part.providerExecuted ? "" : part.state, part.output ?? part.errorText ?? ""],
          ];
        }),
      );
      const shown = show(messages).flatMap(({ parts }) =>
        parts.flatMap((part): unknown[] => {
          if (part.type === "text" || part.type === "reasoning") return [[part.type, part.text]];
          if (part.type === "serviceTool") return [["", "", part.output]];
          if (part.type !== "tool") return [];
          const { id, state } = part;
          if (state === "output-available") return [[id, state, part.output ?? ""]];
          return [[id, state, state === "output-error" ? part.errorText : ""]];
        }),
      );
      expect(shown, `GYRE_SEED=${seed + run}`).toEqual(expected);
    }
  },
);
