import { expect, it } from "vitest";
import { formatArguments } from "../src/library/raw.ts";
import type { Answer, Part } from "./peer.ts";
import {
  adding,
  addTool,
  streamParts,
  callParts,
  DELTA,
  longHistory,
  textParts,
  writeTool,
} from "./works.ts";

async function collectReads(answer: Answer): Promise<(readonly Part[])[]> {
  const reads = [];
  for await (const read of answer) reads.push(read);
  return reads;
}

const collectParts = async (answer: Answer): Promise<Part[]> => (await collectReads(answer)).flat();

it.each([0, 1, 31, 32, 33, 100])("an answer of %d parts has all of them, in order", async (n) => {
  const parts = Array.from({ length: n }, (_, i): Part => ({ type: "text", delta: `${i}` }));
  expect(await collectParts(streamParts(parts))).toEqual(parts);
});

it("parts come in reads of 32", async () => {
  const reads = await collectReads(streamParts(textParts(70)));
  expect(reads.map((read) => read.length)).toEqual([32, 32, 6]);
});

it("the event loop has its turn before each read", async () => {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const reads = await collectReads(streamParts(textParts(320)));
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(reads.length - 1);
});

it("parts are made when they are read, so that an endless answer costs nothing", async () => {
  let made = 0;
  const endless = function* (): Generator<Part> {
    for (;;) yield { type: "text", delta: `${made++}` };
  };
  for await (const read of streamParts(endless())) {
    expect(read).toHaveLength(32);
    break;
  }
  expect(made).toBe(32);
});

it("a call has its name first and then its arguments, in pieces that make the whole", () => {
  const json = '{"path":"a.ts"}';
  const [call, ...pieces] = callParts("c7", "write", json, 4);
  expect(call).toEqual({ type: "call", id: "c7", name: "write" });
  const deltas = pieces.map((part) => (part.type === "arguments" ? part.delta : ""));
  expect(deltas).toEqual(['{"pa', 'th":', '"a.t', 's"}']);
});

it("arguments come in one piece if nothing else is said", () => {
  expect([...callParts("c", "add", "{}")]).toEqual([
    { type: "call", id: "c", name: "add" },
    { type: "arguments", delta: "{}" },
  ]);
});

it("a model that adds calls the tool in each turn but the last", async () => {
  const model = adding(2);
  const turns = [
    await collectParts(model(0)),
    await collectParts(model(1)),
    await collectParts(model(2)),
  ];
  expect(turns).toEqual([
    [...callParts("c0", "add", '{"a":0,"b":1}')],
    [...callParts("c1", "add", '{"a":1,"b":1}')],
    [{ type: "text", delta: "2    " }],
  ]);
});

it("a model that adds begins each turn with as many words as asked, no two turns alike", async () => {
  const model = adding(1, 3);
  const [first, last] = [await collectParts(model(0)), await collectParts(model(1))];
  expect(first.slice(0, 3)).toEqual([...textParts(3, "0    ")]);
  expect(first.slice(3)).toEqual([...callParts("c0", "add", '{"a":0,"b":1}')]);
  expect(last).toEqual([...textParts(3, "1    ")]);
});

it("a word takes as many characters in a thousandth turn as in the first", async () => {
  for (const turn of [0, 10, 1_000]) {
    for (const part of await collectParts(adding(0, 2)(turn))) {
      expect(part.type === "text" && part.delta.length).toBe(DELTA.length);
    }
  }
});

it("the tool adds", async () => {
  expect(await addTool.run({ a: 40, b: 2 })).toBe("42");
});

it.each([10, 1_000, 100_000])("arguments of %d bytes are about as long, and JSON", (bytes) => {
  const json = formatArguments(bytes);
  expect(json.length).toBeGreaterThanOrEqual(bytes);
  expect(json.length).toBeLessThan(bytes + 100);
  expect(JSON.parse(json)).toEqual({ path: "src/a.ts", content: expect.any(String) });
});

it("the tool that writes reports how much it was given", async () => {
  let got = 0;
  const tool = writeTool((chars) => (got += chars));
  expect(await tool.run({ path: "a", content: "four" })).toBe("ok");
  expect(got).toBe(4);
});

it.each([
  [0, 0],
  [3, 0],
  [4, 4],
  [39, 36],
  [40, 40],
])("a history of %d messages has %d: whole exchanges only", (count, length) => {
  expect(longHistory(count)).toHaveLength(length);
});

it("each call in a history is answered once, right after it, and no id comes twice", () => {
  const messages = longHistory(40);
  const ids = messages.flatMap(({ calls = [] }, at) =>
    calls.map(({ id, name }) => {
      expect(messages[at + 1]).toMatchObject({ role: "tool", answers: id, name });
      return id;
    }),
  );
  expect(ids).toHaveLength(10);
  expect(new Set(ids).size).toBe(10);
  expect(messages.flatMap(({ answers }) => answers ?? [])).toEqual(ids);
});

it("the results in a history are those that the tool would give", async () => {
  const messages = longHistory(8);
  for (const [at, { calls = [] }] of messages.entries()) {
    for (const { input } of calls) expect(messages[at + 1]?.text).toBe(await addTool.run(input));
  }
});

it("a history begins with a question and ends with an answer", () => {
  const messages = longHistory(12);
  expect(messages[0]?.role).toBe("user");
  expect(messages.at(-1)).toEqual({ role: "assistant", text: "done" });
});
