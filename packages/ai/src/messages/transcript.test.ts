import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AssistantContent, AssistantMessage, Message } from "./messages.ts";
import { hasContent, TranscriptValidator, validateTranscript } from "./transcript.ts";

const user = (content = "Go"): Message => ({ role: "user", content, timestamp: 0 });

const says = (...content: AssistantContent[]): AssistantMessage => ({
  role: "assistant",
  content,
  api: "a",
  provider: "p",
  model: "m",
  usage: {},
  stopReason: "stop",
  timestamp: 0,
});

const calls = (...ids: string[]): AssistantMessage =>
  says(...ids.map((id) => ({ type: "toolCall", id, name: "t", arguments: {} }) as const));

const result = (toolCallId: string): Message => ({
  role: "toolResult",
  toolCallId,
  toolName: "t",
  content: [],
  isError: false,
  timestamp: 0,
});

const faults = (...messages: Message[]): [number, string][] =>
  validateTranscript(messages).map(({ index, fault }) => [index, fault]);

describe("hasContent", () => {
  it("empty text is nothing; anything else is something", () => {
    expect(hasContent(user(""))).toBe(false);
    expect(hasContent(says())).toBe(false);
    expect(hasContent(says({ type: "text", text: "" }, { type: "text", text: "" }))).toBe(false);
    expect(hasContent(user("x"))).toBe(true);
    expect(hasContent(says({ type: "text", text: "" }, { type: "text", text: "x" }))).toBe(true);
    expect(hasContent(says({ type: "thinking", thinking: "" }))).toBe(true);
    expect(hasContent(calls("c"))).toBe(true);
  });
});

describe("validateTranscript", () => {
  it("finds nothing wrong with a conversation in order", () => {
    expect(faults()).toEqual([]);
    expect(
      faults(user(), calls("a", "b"), result("b"), result("a"), calls("c"), result("c"), user()),
    ).toEqual([]);
  });

  it("a call without a result, at the end and before another message", () => {
    expect(faults(user(), calls("a", "b"), result("a"))).toEqual([[1, "call-without-result"]]);
    expect(faults(user(), calls("a", "b"), user())).toEqual([
      [1, "call-without-result"],
      [1, "call-without-result"],
    ]);
  });

  it("a result without a call", () => {
    expect(faults(user(), result("a"))).toEqual([[1, "result-without-call"]]);
  });

  it("a second result, and one that comes too late", () => {
    expect(faults(user(), calls("a"), result("a"), result("a"))).toEqual([
      [3, "result-out-of-place"],
    ]);
    expect(faults(user(), calls("a"), user(), result("a"))).toEqual([
      [1, "call-without-result"],
      [3, "result-out-of-place"],
    ]);
  });

  it("an id used twice, in one message and in two", () => {
    expect(faults(user(), calls("a", "a"), result("a"))).toEqual([[1, "doubled-id"]]);
    expect(faults(user(), calls("a"), result("a"), calls("a"), result("a"))).toEqual([
      [3, "doubled-id"],
    ]);
  });

  it("empty content of user and assistant; a result may be empty", () => {
    expect(faults(user(""), says(), calls("a"), result("a"))).toEqual([
      [0, "empty-content"],
      [1, "empty-content"],
    ]);
  });

  it("names the reason with the value at fault", () => {
    expect(validateTranscript([user(), calls("a"), user(""), result("x")])).toEqual([
      {
        index: 1,
        fault: "call-without-result",
        reason: 'The call "a" of tool "t" has no result.',
      },
      { index: 2, fault: "empty-content", reason: "The user message has no content." },
      {
        index: 3,
        fault: "result-without-call",
        reason: 'No call has the id "x" of this result.',
      },
    ]);
  });
});

describe("TranscriptValidator", () => {
  const ids = fc.constantFrom("a", "b", "c");
  const messages: fc.Arbitrary<Message[]> = fc.array(
    fc.oneof(
      fc.constantFrom(user(), user(""), says({ type: "text", text: "x" })),
      fc.array(ids, { maxLength: 3 }).map((list) => calls(...list)),
      ids.map(result),
    ),
    { maxLength: 12 },
  );

  it("says after each message what validateTranscript says of all up to it", () => {
    fc.assert(
      fc.property(messages, (list) => {
        const validator = new TranscriptValidator();
        for (const [index, message] of list.entries()) {
          validator.append(message);
          expect(validator.finish()).toEqual(validateTranscript(list.slice(0, index + 1)));
          expect(validator.finish()).toEqual(validator.finish());
        }
      }),
    );
  });

  it("a fork goes on with the index and the ids, and leaves the first as it was", () => {
    const first = new TranscriptValidator();
    for (const message of [user(), calls("old"), result("old")]) first.append(message);
    const fork = first.fork().fork();
    for (const message of [calls("old"), result("old"), calls("older", "new")])
      fork.append(message);
    expect(fork.finish().map(({ index, fault }) => [index, fault])).toEqual([
      [3, "doubled-id"],
      [5, "call-without-result"],
      [5, "call-without-result"],
    ]);
    expect(first.hasId("new")).toBe(false);
    expect(first.finish()).toEqual([]);
  });

  it("a fork does not see what the first takes in later", () => {
    const first = new TranscriptValidator();
    first.append(user());
    const fork = first.fork();
    for (const message of [calls("x"), result("x")]) first.append(message);
    for (const message of [calls("x"), result("x")]) fork.append(message);
    expect(fork.finish()).toEqual([]);
    expect(["x", "y"].map((id) => fork.fork().hasId(id))).toEqual([true, false]);
  });
});
