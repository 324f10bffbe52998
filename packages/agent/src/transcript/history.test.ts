import type { AssistantMessage, Message, ToolResultMessage } from "@gyre/ai";
import { describe, expect, it } from "vitest";
import { listCalls, isIncomplete, History, isLlmMessage, withResult } from "./history.ts";
import { user } from "../testing/play.ts";
import type { AgentMessage } from "../contract/types.ts";

function assistant(text: string, more: Partial<AssistantMessage> = {}): AssistantMessage {
  return {
    role: "assistant",
    content: text === "" ? [] : [{ type: "text", text }],
    api: "a",
    provider: "p",
    model: "m",
    usage: {},
    stopReason: "stop",
    timestamp: 0,
    ...more,
  };
}

function calls(...ids: string[]): AssistantMessage {
  return assistant("", {
    stopReason: "toolUse",
    content: ids.map((id) => ({ type: "toolCall", id, name: "x", arguments: {} })),
  });
}

function resultFor(toolCallId: string): ToolResultMessage {
  return {
    role: "toolResult",
    toolCallId,
    toolName: "x",
    content: [],
    isError: false,
    timestamp: 0,
  };
}

const note = { role: "note", content: "for people" } as unknown as AgentMessage;
const brief = (messages: readonly AgentMessage[]): string[] =>
  messages.map((m) => (m.role === "toolResult" ? m.toolCallId : m.role));

describe("what is sent", () => {
  it("R26: a message without content is left out, whatever its role", () => {
    const nothing = { role: "user", timestamp: 0 } as unknown as AgentMessage;
    const history = new History([user(""), user("A"), nothing]);
    history.append(user(""));
    expect(history.outgoing()).toEqual({ messages: [user("A")], problems: [] });
    expect(history.messages).toHaveLength(4);
  });

  it("is the messages in order, without custom roles", () => {
    const history = new History([user("A"), note, assistant("B")]);
    history.append(note);
    history.append(user("C"));
    expect(history.outgoing()).toEqual({
      messages: [user("A"), assistant("B"), user("C")],
      problems: [],
    });
    expect(history.messages).toHaveLength(5);
  });

  it("R26: leaves out assistant messages without content", () => {
    const history = new History([user("A"), assistant(""), assistant("", { stopReason: "error" })]);
    history.append(assistant("", { content: [{ type: "text", text: "" }], stopReason: "aborted" }));
    expect(history.outgoing()).toEqual({ messages: [user("A")], problems: [] });
  });

  it.each(["error", "aborted", "redirected"] as const)(
    "R26: holds back a message that ended %s until a user message follows it",
    (stopReason) => {
      const half = assistant("Half", { stopReason });
      const history = new History([user("A"), half]);
      expect(history.outgoing().messages).toEqual([user("A")]);
      history.append(user("B"));
      expect(history.outgoing().messages).toEqual([user("A"), half, user("B")]);
    },
  );

  it("R26: leaves it out for good where a later response took its place", () => {
    const history = new History([user("A"), assistant("Half", { stopReason: "error" })]);
    history.append(assistant("Whole"));
    history.append(user("B"));
    expect(history.outgoing().messages).toEqual([user("A"), assistant("Whole"), user("B")]);
  });

  it("R26: of several that broke off one after the other sends the last: each started over", () => {
    const [one, two] = ["Hel", "Hello wo"].map((text) => assistant(text, { stopReason: "error" }));
    if (!one || !two) throw new Error("There are two.");
    const history = new History([user("A"), one, two, user("B")]);
    expect(history.outgoing().messages).toEqual([user("A"), two, user("B")]);
  });

  it("R26: sends an incomplete message with calls at once: they have results", () => {
    const cut: AssistantMessage = { ...calls("1"), stopReason: "error" };
    const history = new History([user("A"), cut, resultFor("1")]);
    expect(history.outgoing()).toEqual({
      messages: [user("A"), cut, resultFor("1")],
      problems: [],
    });
  });

  it("says what is wrong with it", () => {
    const history = new History([user("A"), calls("1", "2"), resultFor("2"), user("B")]);
    expect(history.outgoing().problems.map(({ fault }) => fault)).toEqual(["call-without-result"]);
  });

  it("of a converted list follows the same rules", () => {
    const history = new History([user("A")]);
    const converted: Message[] = [user("X"), assistant(""), user("Y")];
    expect(history.outgoingFrom(converted).messages).toEqual([user("X"), user("Y")]);
    expect(history.outgoingFrom([...converted, assistant("Z")]).messages).toHaveLength(3);
    expect(history.outgoingFrom([user("Other")]).messages).toEqual([user("Other")]);
    expect(history.outgoingFrom([calls("1")]).problems).toHaveLength(1);
  });
});

describe("a history", () => {
  it("does not touch the list that it was made of", () => {
    const list = [user("A")];
    const history = new History(list);
    history.append(user("B"));
    history.insertResult(resultFor("none"));
    expect(list).toEqual([user("A")]);
  });

  it("knows the ids of all calls, in a short list and in a long one", () => {
    for (const before of [0, 100]) {
      const list = [
        ...Array.from({ length: before }, (_, i) => user(`${i}`)),
        calls("1"),
        resultFor("1"),
      ];
      const history = new History(list);
      history.append(calls("2"));
      expect(["1", "2", "3"].map((id) => history.hasCallId(id))).toEqual([true, true, false]);
    }
  });

  it("two runs over one long list do not mix", () => {
    const list = Array.from({ length: 100 }, (_, i) => user(`${i}`));
    const one = new History(list);
    const two = new History(list);
    one.append(calls("1"));
    one.append(resultFor("1"));
    two.append(user("own"));
    expect(two.hasCallId("1")).toBe(false);
    expect(one.outgoing().messages).toHaveLength(102);
    expect(two.outgoing()).toEqual({ messages: [...list, user("own")], problems: [] });
    expect(new History(list).outgoing().messages).toEqual(list);
  });

  it("a long list that was changed in the meantime is read again", () => {
    const list: AgentMessage[] = Array.from({ length: 100 }, (_, i) => user(`${i}`));
    expect(new History(list).outgoing().messages).toHaveLength(100);
    list.splice(50, 10);
    list.push(user("new"));
    expect(new History(list).outgoing().messages).toEqual(list);
  });

  it("a long list with something held back, and with something missing", () => {
    const long = Array.from({ length: 100 }, (_, i) => user(`${i}`));
    const half = assistant("Half", { stopReason: "error" });
    const held = new History([...long, half]);
    expect(held.outgoing().messages).toHaveLength(100);
    held.append(user("B"));
    expect(held.outgoing().messages.slice(-2)).toEqual([half, user("B")]);
    const missing = new History([...long, calls("1")]);
    expect(missing.unanswered()).toEqual([{ message: calls("1"), calls: listCalls(calls("1")) }]);
    missing.insertResult(resultFor("1"));
    expect(missing.outgoing().problems).toEqual([]);
  });
});

describe("R19: calls without results", () => {
  it("R19: are found anywhere, message by message, in order", () => {
    const history = new History([
      user("A"),
      calls("1", "2", "3"),
      resultFor("2"),
      user("B"),
      calls("4"),
      resultFor("4"),
      user("C"),
      calls("5"),
    ]);
    expect(history.unanswered().map(({ calls }) => calls.map(({ id }) => id))).toEqual([
      ["1", "3"],
      ["5"],
    ]);
  });

  it("R19: none is found where all are answered", () => {
    expect(new History([user("A"), calls("1"), resultFor("1")]).unanswered()).toEqual([]);
    expect(new History([]).unanswered()).toEqual([]);
  });

  it("R19: custom messages among results do not hide them", () => {
    const history = new History([calls("1", "2"), resultFor("1"), note, resultFor("2")]);
    expect(history.unanswered()).toEqual([]);
  });

  it("R19: results go to their places, in call order, and what is sent follows", () => {
    const history = new History([
      user("A"),
      calls("1", "2", "3"),
      resultFor("2"),
      user("B"),
      calls("4"),
    ]);
    for (const id of ["4", "3", "1"]) history.insertResult(resultFor(id));
    expect(brief(history.messages)).toEqual([
      "user",
      "assistant",
      "1",
      "2",
      "3",
      "user",
      "assistant",
      "4",
    ]);
    expect(history.outgoing().problems).toEqual([]);
    expect(brief(history.outgoing().messages)).toEqual(brief(history.messages));
    history.append(user("C"));
    expect(history.outgoing().messages).toHaveLength(9);
  });

  it.each([0, 1, 2])(
    "R19: a custom message at %i among the results does not disturb their order",
    (at) => {
      const messages: AgentMessage[] = [
        calls("1", "2", "3"),
        resultFor("1"),
        resultFor("3"),
        user("B"),
      ];
      messages.splice(at + 1, 0, note);
      const placed = withResult(messages, resultFor("2"));
      expect(brief(placed.filter(isLlmMessage))).toEqual(["assistant", "1", "2", "3", "user"]);
    },
  );

  it("R19: withResult appends where that is the place, and makes a new list otherwise", () => {
    const end: AgentMessage[] = [calls("1")];
    expect(withResult(end, resultFor("1"))).toBe(end);
    const middle: AgentMessage[] = [calls("1"), user("B")];
    const placed = withResult(middle, resultFor("1"));
    expect(placed).not.toBe(middle);
    expect(brief(placed)).toEqual(["assistant", "1", "user"]);
    expect(brief(middle)).toEqual(["assistant", "user"]);
    expect(brief(withResult([user("A")], resultFor("none")))).toEqual(["user", "none"]);
  });

  it("R8: results given in any order end up in call order", () => {
    const orders = [
      ["1", "2", "3"],
      ["3", "1", "2"],
      ["2", "3", "1"],
      ["3", "2", "1"],
    ];
    for (const order of orders) {
      let messages: AgentMessage[] = [calls("1", "2", "3")];
      for (const id of order) messages = withResult(messages, resultFor(id));
      expect(brief(messages)).toEqual(["assistant", "1", "2", "3"]);
    }
  });
});

it("what is incomplete", () => {
  const reasons = ["stop", "length", "toolUse", "pause", "error", "aborted", "redirected"] as const;
  expect(reasons.filter((stopReason) => isIncomplete(assistant("", { stopReason })))).toEqual([
    "error",
    "aborted",
    "redirected",
  ]);
});
