import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Played } from "./responses/ask.ts";
import { findBoundaries, endsResponse } from "./responses/bodies.ts";
import { measure } from "./responses/compare.ts";
import {
  baseline,
  type Carry,
  check,
  inProcess,
  spread,
  selectSubjects,
} from "./derived/derive.ts";
import {
  readBody,
  type Case,
  type Expected,
  loadRecordings,
  type Recordings,
} from "./responses/manifest.ts";
import { playAll } from "./responses/play-all.ts";

/** A folder with recordings of our own making, in the form of those that are kept elsewhere. */
let folder: string;
let recordings: Recordings;

const CHAT = [
  { id: "c1", model: "m", choices: [{ index: 0, delta: { role: "assistant", content: "Hel" } }] },
  { id: "c1", model: "m", choices: [{ index: 0, delta: { content: "lo" } }] },
  {
    id: "c1",
    model: "m",
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [{ index: 0, id: "t1", function: { name: "f", arguments: '{"a":1}' } }],
        },
        finish_reason: "tool_calls",
      },
    ],
  },
];
const EXPECTED: Expected = {
  ok: true,
  text: measure("Hello") ?? { chars: 0, utf8_bytes: 0, sha256: "" },
  tool_calls: [{ id: "t1", name: "f", arguments: { a: 1 } }],
  stop_reason: "tool_calls",
  chunks: 3,
  choices: 1,
  response_id: "c1",
  model: "m",
  third_unified_finish: "tool-calls",
};

function chatCase(id: string, file: string, expected: Expected): Case {
  return {
    id,
    api: "openai-chat",
    dir: "compat-chat",
    file,
    request: null,
    framing: "sse",
    http_status: 200,
    content_type: "text/event-stream",
    headers: {},
    conversation: null,
    source: { interaction: 0, path: "" },
    expected,
  };
}

const error = { error: { message: "You have no credit left.", code: "insufficient_quota" } };

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gyre-recorded-"));
  const sse = (events: readonly object[], end = ""): string =>
    events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + end;
  writeFileSync(join(folder, "whole.sse"), sse(CHAT, "data: [DONE]\n\n"));
  writeFileSync(join(folder, "cut.sse"), sse(CHAT.slice(0, 2)));
  writeFileSync(
    join(folder, "payloads.jsonl"),
    CHAT.map((event) => JSON.stringify(event)).join("\n"),
  );
  writeFileSync(join(folder, "error.json"), JSON.stringify(error));
  const { text } = EXPECTED;
  const cases: Case[] = [
    chatCase("whole", "whole.sse", EXPECTED),
    chatCase("wrong-text", "whole.sse", { ...EXPECTED, text: { ...measured(), chars: 4 } }),
    chatCase("wrong-call", "whole.sse", {
      ...EXPECTED,
      tool_calls: [{ id: "t1", name: "f", arguments: { a: 2 } }],
    }),
    chatCase("lost-call", "whole.sse", { ...EXPECTED, tool_calls: [] }),
    chatCase("cut", "cut.sse", { ok: false, partial: { ...(text && { text }) } }),
    chatCase("cut-taken-for-whole", "cut.sse", { ok: true, stop_reason: "stop" }),
    chatCase("whole-taken-for-cut", "whole.sse", { ok: false }),
    {
      ...chatCase("payloads", "payloads.jsonl", EXPECTED),
      framing: "payload-lines",
      note: 'wrap each line as "data: <line>\\n\\n" and end with "data: [DONE]\\n\\n"',
    },
    {
      ...chatCase("http", "error.json", {
        ok: false,
        http_status: 429,
        error_class: "quota_exhausted",
        message: "You have no credit left.",
      }),
      api: "http-error",
      framing: "json",
      http_status: 429,
    },
    chatCase("unknown-field", "whole.sse", { ...EXPECTED, moods: 3 } as Expected),
  ];
  writeFileSync(join(folder, "manifest.json"), JSON.stringify({ cases }));
  recordings = loadRecordings(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

function first<T>(list: readonly T[]): T {
  const [one] = list;
  if (one === undefined) throw new Error("There is none.");
  return one;
}

function measured(): NonNullable<Expected["text"]> {
  return measure("Hello") ?? { chars: 0, utf8_bytes: 0, sha256: "" };
}

describe("playing recordings", () => {
  it("passes what is as expected, and says of everything else how it differs", async () => {
    const results = await playAll(recordings);
    const failed = results.filter(({ problems }) => problems.length > 0);
    expect(failed.map(({ name, problems }) => [name, problems[0]?.split(":")[0]])).toEqual([
      ["wrong-text", "text"],
      ["wrong-call", "tool_calls"],
      ["lost-call", "tool_calls"],
      ["cut-taken-for-whole", "failed"],
      ["whole-taken-for-cut", "ended well, and should not have"],
      ["unknown-field", "moods"],
    ]);
  });

  it("says where there is no manifest", () => {
    expect(() => loadRecordings(join(folder, "nowhere"))).toThrow("manifest.json");
  });
});

describe("derived cases", () => {
  it("finds the ends of events and of the response", () => {
    const one = first(recordings.cases);
    const ends = findBoundaries(one, readBody(recordings, one));
    expect(ends.map(({ payload }) => endsResponse(one, payload))).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });

  const subject = (): ReturnType<typeof selectSubjects>[number] => {
    return first(selectSubjects({ ...recordings, cases: recordings.cases.slice(0, 1) }));
  };

  it("are as many as asked for, of every kind, and all pass", async () => {
    const one = subject();
    spread([one], 2_000, 7);
    expect(one.changes).toHaveLength(2_000);
    expect(new Set(one.changes.map(({ kind }) => kind)).size).toBe(6);
    const base = await baseline(one);
    for (const change of one.changes.filter((_, nth) => nth % 10 === 0 || nth < 30)) {
      expect(await check(one, change, base, inProcess)).toBeUndefined();
    }
  });

  /** As if the client had made something else of it. */
  const spoiled =
    (spoil: (played: Played) => void): Carry =>
    (one, pieces, run) =>
      inProcess(one, pieces, async (...args) => {
        const played = structuredClone(await run(...args));
        spoil(played);
        return played;
      });

  const SPOILT: readonly [string, (played: Played) => void, string][] = [
    ["cut", ({ events }) => void events.pop(), "the events are not the same"],
    [
      "truncate",
      ({ message }) => void Object.assign(message, { stopReason: "stop" }),
      "ended with stop",
    ],
    [
      "truncate",
      ({ message }) => void message.content.splice(0, 9, { type: "text", text: "x" }),
      "block 0",
    ],
    [
      "error",
      ({ message }) => void Object.assign(message, { failure: { kind: "incomplete" } }),
      "not overloaded",
    ],
    ["unknown", ({ message }) => void message.content.pop(), "changed the message"],
  ];

  it.each(SPOILT)("fail where a client gets %s wrong", async (kind, spoil, words) => {
    const one = subject();
    spread([one], 500, 7);
    const change = first(one.changes.filter((each) => each.kind === kind));
    const wrong = await check(one, change, await baseline(one), spoiled(spoil));
    expect(wrong).toContain(words);
  });
});
