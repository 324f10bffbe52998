import { nextRead, PARTS_A_READ } from "../src/library/raw.ts";
import type { Answer, Part, Plain, Tool } from "./peer.ts";

/** Parts in the reads that a socket would give. */
export async function* streamParts(parts: Iterable<Part>): Answer {
  let read: Part[] = [];
  for (const part of parts) {
    if (read.push(part) < PARTS_A_READ) continue;
    await nextRead();
    yield read;
    read = [];
  }
  await nextRead();
  yield read;
}

export const DELTA = "word ";

export function* textParts(count: number, delta: string = DELTA): Generator<Part> {
  for (let i = 0; i < count; i++) yield { type: "text", delta };
}

/** A call whose arguments come in pieces of `size` characters. */
export function* callParts(
  id: string,
  name: string,
  json: string,
  size: number = json.length,
): Generator<Part> {
  yield { type: "call", id, name };
  for (let i = 0; i < json.length; i += size) {
    yield { type: "arguments", delta: json.slice(i, i + size) };
  }
}

/** Takes what `formatArguments` made; reports to `received` how much of it there was. */
export function writeTool(received: (chars: number) => void): Tool {
  return {
    name: "write",
    description: "Writes a file",
    parameters: { path: "string", content: "string" },
    run: ({ content }) => {
      received(String(content).length);
      return Promise.resolve("ok");
    },
  };
}

export const addTool: Tool = {
  name: "add",
  description: "Adds two numbers",
  parameters: { a: "number", b: "number" },
  run: ({ a, b }) => Promise.resolve(String(Number(a) + Number(b))),
};

/** A model that calls `add` `turns` times, then answers; each turn begins with some words. */
export function adding(turns: number, words = 0): (nth: number) => Answer {
  return (nth) => streamParts(addingParts(nth, turns, words));
}

function* addingParts(nth: number, turns: number, words: number): Generator<Part> {
  // No two turns say the same: a library may drop what was said before.
  const delta = String(nth).padEnd(DELTA.length);
  yield* textParts(nth < turns ? words : Math.max(words, 1), delta);
  if (nth < turns) yield* callParts(`c${nth}`, "add", `{"a":${nth},"b":1}`);
}

/** A conversation of `count` messages: prompts, calls of `add`, their results, and answers. */
export function longHistory(count: number): Plain[] {
  const messages: Plain[] = [];
  for (let i = 0; messages.length < count; i++) {
    const input = { a: i, b: 1 };
    messages.push(
      { role: "user", text: `question ${i}` },
      { role: "assistant", text: "", calls: [{ id: `h${i}`, name: "add", input }] },
      { role: "tool", text: String(i + 1), answers: `h${i}`, name: "add" },
      { role: "assistant", text: "done" },
    );
  }
  return messages.slice(0, count - (count % 4));
}
