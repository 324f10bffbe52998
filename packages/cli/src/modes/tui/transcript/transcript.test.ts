import type { AgentEvent, AgentMessage, AgentToolResult } from "@gyre/agent";
import type { AssistantMessage, AssistantMessageEvent, StopReason, ToolCall } from "@gyre/ai";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UserCommandMessage } from "@gyre/coding/internal/conversation/user-command";
import { OLD_OUTPUT } from "../../../testing/old-prompt.ts";
import { replay } from "./replay.ts";
import { type Row, textOfRow, widthOfRow } from "../terminal/row.ts";
import { COLORS, NO_COLORS } from "../terminal/theme.ts";
import { Transcript } from "./transcript.ts";

interface Stage {
  transcript: Transcript;
  clock: { ms: number };
  play: (...events: readonly AgentEvent[]) => void;
  text: (columns?: number) => string;
}

function stage(): Stage {
  const clock = { ms: 0 };
  const now = (): number => clock.ms;
  const transcript = new Transcript({ theme: NO_COLORS, cwd: "/p", now, changed: () => {} });
  return {
    transcript,
    clock,
    play: (...events) => events.forEach((event) => transcript.handle(event)),
    text: (columns = 80) => shown(transcript.rows(columns).rows),
  };
}

function shown(rows: readonly Row[]): string {
  return rows.map((each) => textOfRow(each).trimEnd()).join("\n");
}

function createMessage(
  content: AssistantMessage["content"] = [],
  more: Partial<AssistantMessage> = {},
): AssistantMessage {
  const from = { api: "scripted", provider: "scripted", model: "m" };
  const end = { usage: {}, stopReason: "stop" as const, timestamp: 0 };
  return { role: "assistant", content, ...from, ...end, ...more };
}

const asked = (content: string): AgentEvent => ({
  type: "message_start",
  message: { role: "user", content, timestamp: 0 },
});

const update = (assistantMessageEvent: AssistantMessageEvent): AgentEvent => ({
  type: "message_update",
  message: createMessage(),
  assistantMessageEvent,
});

function streamed(
  type: "text" | "thinking",
  contentIndex: number,
  ...deltas: string[]
): AgentEvent[] {
  const at = { contentIndex, partial: createMessage() };
  return [
    update({ type: `${type}_start`, ...at }),
    ...deltas.map((delta) => update({ type: `${type}_delta`, delta, ...at })),
    update({ type: `${type}_end`, content: deltas.join(""), ...at }),
  ];
}

const createCall = (id: string, name: string, args: Record<string, unknown> = {}): ToolCall => ({
  type: "toolCall",
  id,
  name,
  arguments: args,
});

/** A call that the model writes: without `isWhole`, as far as it got. */
function written(contentIndex: number, toolCall: ToolCall, isWhole = true): AgentEvent[] {
  const content: AssistantMessage["content"] = [];
  content[contentIndex] = toolCall;
  const at = { contentIndex, partial: createMessage(content) };
  return [
    update({ type: "toolcall_start", ...at }),
    update({ type: "toolcall_delta", delta: "{", ...at }),
    ...(isWhole ? [update({ type: "toolcall_end", toolCall, ...at })] : []),
  ];
}

const begin: AgentEvent = { type: "message_start", message: createMessage() };

const end = (
  content: AssistantMessage["content"] = [],
  more: Partial<AssistantMessage> = {},
): AgentEvent => ({
  type: "message_end",
  message: createMessage(content, more),
});

const started = (id: string, toolName: string, args: Record<string, unknown> = {}): AgentEvent => ({
  type: "tool_execution_start",
  toolCallId: id,
  toolName,
  args,
});

function result(text: string): AgentToolResult {
  return { content: [{ type: "text", text }] };
}

const createAnswer = (id: string, text: string): AgentEvent => ({
  type: "tool_execution_update",
  toolCallId: id,
  toolName: "x",
  args: {},
  partialResult: result(text),
});

const ended = (
  id: string,
  text: string,
  isError = false,
): Extract<AgentEvent, { type: "tool_execution_end" }> => ({
  type: "tool_execution_end",
  toolCallId: id,
  toolName: "x",
  result: result(text),
  outcome: isError ? "error" : "ok",
  isError,
  durationMs: 0,
});

const over: AgentEvent = {
  type: "agent_end",
  messages: [],
  stop: "done",
  turns: 1,
  usage: {},
  undelivered: [],
  pending: [],
};

describe("a run", () => {
  it("is shown in the order in which it happens, with an empty row between blocks", () => {
    const { play, text, clock } = stage();
    const call = createCall("c1", "look", { at: "it" });
    play(asked("Hello"), begin, ...streamed("thinking", 0, "Hm."));
    clock.ms = 9_000;
    play(...streamed("text", 1, "I will ", "look."), ...written(2, call));
    play(end([{ type: "text", text: "I will look." }, call], { stopReason: "toolUse" }));
    play(started("c1", "look", { at: "it" }), ended("c1", "nothing"));
    play(begin, ...streamed("text", 0, "Nothing."), end(), over);
    expect(text()).toMatchInlineSnapshot(`
      "› Hello

      ┊ Hm.

      I will look.

      ● look at: it
        nothing

      Nothing."
    `);
  });

  it("shows an answer as it comes", () => {
    const { play, text } = stage();
    const [first, second] = streamed("text", 0, "Hello world");
    play(begin, ...(first && second ? [first, second] : []));
    expect(text()).toBe("Hello world");
  });

  it("shows a message that came all at once", () => {
    const { play, text } = stage();
    play(begin, end([{ type: "text", text: "Hello." }, createCall("c", "ls")]));
    play(started("c", "ls"), ended("c", "a"));
    expect(text()).toBe("Hello.\n\n● ls .\n  a");
  });

  it("keeps calls that run at once in their places", () => {
    const { play, text } = stage();
    const calls = [createCall("a", "one"), createCall("b", "two")];
    play(begin, ...calls.flatMap((call, index) => written(index, call)), end(calls));
    play(
      started("a", "one"),
      started("b", "two"),
      createAnswer("a", "1\n2\n3"),
      createAnswer("b", "4\n5\n6"),
    );
    expect(text()).toBe("○ one\n  2\n  3\n\n○ two\n  5\n  6");
    play(ended("b", "done"));
    expect(text()).toBe("○ one\n  1\n  2\n  3\n\n● two\n  done");
  });

  it("knows a call again whose id was changed", () => {
    const { play, text } = stage();
    play(begin, ...written(0, createCall("", "look")), end([createCall("new", "look")]));
    play(started("new", "look"), ended("new", "x"));
    expect(text()).toBe("● look\n  x");
  });

  it("marks a call that was cut off while it was written", () => {
    const { play, text } = stage();
    const whole = createCall("a", "one");
    play(begin, ...written(0, whole), ...written(1, createCall("b", "two"), false));
    play(end([whole], { stopReason: "aborted" }), started("a", "one"));
    play({ ...ended("a", "Aborted: the user stopped the run.", true), outcome: "aborted" });
    expect(text()).toBe("⊘ one  interrupted\n\n⊘ two  interrupted\n\ninterrupted");
  });

  it("leaves nothing open when it is over", () => {
    const { play, text, transcript } = stage();
    play({ type: "agent_start" }, started("a", "one"), over);
    expect(text()).toBe("⊘ one  interrupted");
    expect(transcript.activity).toBe("");
  });
});

describe("errors", () => {
  const ends = (stopReason: StopReason, more: Partial<AssistantMessage> = {}): string => {
    const { play, text } = stage();
    play(begin, end([], { stopReason, ...more }));
    return text();
  };

  it("has one row for each kind", () => {
    expect(ends("error", { errorMessage: "No such model." })).toBe("✗ No such model.");
    expect(ends("aborted")).toBe("interrupted");
    expect(ends("length")).toBe("! The answer is cut short: the model may write no more at once.");
  });

  it("shows that a service is asked again, or another", () => {
    const { play, text } = stage();
    const errorMessage = "It is overloaded. Try again.";
    play({ type: "retry", attempt: 1, delayMs: 4_000, kind: "overloaded", errorMessage });
    const to = { provider: "b", id: "m" };
    play({ type: "fallback", from: { provider: "a", id: "m" }, to, kind: "quota", errorMessage });
    expect(text()).toBe(
      "overloaded (attempt 1)\n\nAsking b/m instead: It is overloaded. Try again.",
    );
  });

  it("R22: shows that an answer broke off, and that it is asked for again", () => {
    const { play, text } = stage();
    const message = createMessage([], { stopReason: "error", errorMessage: "It broke off." });
    play(begin, ...streamed("text", 0, "Half"), { type: "message_end", message });
    play({ type: "turn_end", message, toolResults: [] }, { type: "turn_start" });
    expect(text()).toBe("Half\n\n✗ It broke off.\n\nThe answer broke off: asking again.");
    play({ type: "message_end", message }, { type: "agent_start" }, { type: "turn_start" });
    expect(text().match(/asking again/g)).toHaveLength(1);
  });

  it("has one row for all attempts that failed", () => {
    const { play, text } = stage();
    const errorMessage = "It is overloaded. Try again.";
    const retry = { type: "retry", maxAttempts: 10, delayMs: 1_900, errorMessage } as const;
    play({ ...retry, attempt: 1, kind: "overloaded" });
    expect(text()).toBe("overloaded (attempt 1 of 10)");
    play({ ...retry, attempt: 2, kind: "overloaded" });
    expect(text()).toBe("overloaded (attempt 2 of 10)");
    play({ ...retry, attempt: 3, kind: "odd" });
    expect(text()).toBe("It is overloaded (attempt 3 of 10)");
  });

  it("shows a limit and a compaction", () => {
    const { play, text } = stage();
    play({ type: "limit", limit: "maxTurns", value: 50 });
    const compaction = { from: 0, to: 2 };
    play({ type: "compaction", before: 152_000, after: 61_000, reason: "grown", compaction });
    expect(text()).toBe(
      "! The limit of 50 turns is reached.\n\ncontext made smaller: 152,000 → 61,000 tokens",
    );
  });
});

describe("what is done right now", () => {
  it("is shown in a word", () => {
    const { play, transcript, clock } = stage();
    clock.ms = 5;
    play({ type: "agent_start" });
    expect(transcript.activity).toBe("thinking");
    play(begin, ...streamed("text", 0, "x"));
    expect([transcript.activity, transcript.isStreaming]).toEqual(["writing", true]);
    play(end(), started("a", "shell", { command: "npm test" }));
    expect([transcript.activity, transcript.isStreaming]).toEqual(["running npm test", false]);
    play(started("b", "read", { path: "a.ts" }));
    expect(transcript.activity).toBe("running 2 calls");
    play(ended("a", ""));
    expect(transcript.activity).toBe("running read a.ts");
    play(ended("b", ""));
    expect(transcript.activity).toBe("thinking");
  });

  it("is the user's while a call waits for an answer, and that time is not the call's", () => {
    const { play, transcript, clock, text } = stage();
    play(started("a", "shell", { command: "make" }));
    const answered = transcript.asks("a");
    expect(transcript.activity).toBe("waiting for your answer");
    clock.ms = 60_000;
    answered();
    expect(transcript.activity).toBe("running make");
    play({ ...ended("a", "made"), durationMs: 63_000 });
    expect(text()).toContain("3.0 s");
  });

  it("R22: counts down to the next attempt", () => {
    const { play, transcript, clock } = stage();
    const retry = { type: "retry", attempt: 2, delayMs: 12_000, kind: "overloaded" } as const;
    play({ ...retry, maxAttempts: 10, errorMessage: "x" });
    expect(transcript.countdown).toBe("overloaded, trying again in 12 s (3 of 10)");
    clock.ms = 9_500;
    expect(transcript.countdown).toBe("overloaded, trying again in 3 s (3 of 10)");
    clock.ms = 12_000;
    expect(transcript.countdown).toBe("overloaded, trying again (3 of 10)");
    play({ ...retry, errorMessage: "x" });
    expect(transcript.countdown).toBe("overloaded, trying again in 12 s");
    play(begin);
    expect(transcript.countdown).toBeUndefined();
  });

  it("says what the model is silent about, and counts on", () => {
    const { play, transcript, clock } = stage();
    clock.ms = 100_000;
    play({ type: "waiting", phase: "call", toolName: "write", silentMs: 60_000 });
    clock.ms = 130_000;
    expect(transcript.activity).toBe("the model is preparing a call of write, 1 min 30 s");
    play({ type: "turn_start" });
    expect(transcript.activity).toBe("thinking");
  });
});

describe("a command of the user's own", () => {
  const RAN: UserCommandMessage = {
    role: "userCommand",
    command: "npm test",
    output: "",
    exitCode: 0,
    aside: false,
    durationMs: 0,
    timestamp: 0,
  };

  it.each([
    [false, "! npm test"],
    [true, "! npm test  (not sent to the model)"],
  ])("looks like what was typed, and no call of the model; aside: %s", (aside, shown) => {
    const { text, transcript } = stage();
    transcript.startUserCommand({ command: "npm test", aside });
    expect(text()).toBe(`○ ${shown}`);
    expect(transcript.activity).toBe("running npm test");
    transcript.endUserCommand({ ...RAN, aside });
    expect(text()).toBe(shown);
  });

  it("shows what it prints, and how it ended", () => {
    const { text, transcript } = stage();
    transcript.startUserCommand(RAN);
    transcript.updateUserCommand("one");
    expect(text()).toBe("○ ! npm test\n  one");
    transcript.endUserCommand({ ...RAN, output: "one\ntwo", exitCode: 1 });
    expect(text()).toBe("✗ ! npm test  exit code 1\n  one\n  two");
  });

  it("is shown again when its session is", () => {
    const { text, transcript } = stage();
    replay([{ ...RAN, output: "1 failed", exitCode: 1 }, USER], transcript);
    expect(text()).toBe("✗ ! npm test  exit code 1\n  1 failed\n\n› Why?");
  });

  it("is not shown twice when the prompt that it goes with is sent", () => {
    const { play, text, transcript } = stage();
    transcript.startUserCommand(RAN);
    transcript.endUserCommand(RAN);
    play({ type: "message_start", message: RAN }, { type: "message_end", message: RAN });
    expect(text()).toBe("! npm test");
  });

  it("of an early version is named below its prompt, without its output", () => {
    const { play, text } = stage();
    play(asked(`Why?\n\n${OLD_OUTPUT}`));
    expect(text()).toBe("› Why?\n  with the output of `npm test`");
  });
});

const USER = { role: "user", content: "Why?", timestamp: 0 } as const;

describe("Ctrl+O", () => {
  it("shows results and thoughts whole, and in short again", () => {
    const { play, text, transcript } = stage();
    play(begin, ...streamed("thinking", 0, "Let me see."), end());
    play(started("a", "x"), ended("a", Array.from({ length: 9 }, (_, at) => `${at}`).join("\n")));
    const short = text();
    transcript.expand();
    expect(text().split("\n")).toHaveLength(12);
    expect(text()).toContain("┊ Let me see.");
    transcript.expand();
    expect(text()).toBe(short);
  });

  it("cuts what is left of a result whose beginning has left the screen, and shows it again", () => {
    const { play, text, transcript } = stage();
    play(started("a", "x"), ended("a", Array.from({ length: 30 }, (_, at) => `${at}`).join("\n")));
    play(asked("next"));
    transcript.expand();
    expect(text().split("\n")).toHaveLength(33);
    transcript.release(21);
    const whole = text();
    expect(whole).toBe(
      `${Array.from({ length: 10 }, (_, at) => `  ${at + 20}`).join("\n")}\n\n› next`,
    );
    transcript.expand();
    expect(text()).toBe("  … 10 more lines (Ctrl+O)\n\n› next");
    transcript.expand();
    expect(text()).toBe(whole);
  });

  it("cuts what is left of a thought", () => {
    const { play, text, transcript } = stage();
    transcript.expand();
    play(begin, ...streamed("thinking", 0, "one\ntwo\nthree"), end());
    expect(text()).toBe("┊ one\n┊ two\n┊ three");
    transcript.release(1);
    expect(text()).toBe("┊ two\n┊ three");
    transcript.expand();
    expect(text()).toBe("┊ thought");
    transcript.expand();
    expect(text()).toBe("┊ two\n┊ three");
  });

  it("shows nothing twice of a thought whose beginning left the screen as it came", () => {
    const { play, text, transcript } = stage();
    transcript.expand();
    const [opened, one, two, closed] = streamed("thinking", 0, "one\ntwo\n", "three\nfour");
    for (const event of [begin, opened, one, two]) if (event) play(event);
    expect(text()).toBe("┊ one\n┊ two\n┊ three\n┊ four");
    transcript.release(2);
    if (closed) play(closed, end());
    expect(text()).toBe("┊ three\n┊ four");
    transcript.expand();
    transcript.expand();
    expect(text()).toBe("┊ three\n┊ four");
  });

  it("shows what was cut in short for another width, too", () => {
    const { play, text, transcript } = stage();
    play(started("a", "x"), ended("a", Array.from({ length: 30 }, (_, at) => `${at}`).join("\n")));
    const short = text();
    transcript.expand();
    text();
    transcript.release(21);
    transcript.expand();
    transcript.relayout();
    expect(text()).toBe(short);
  });
});

describe("another width", () => {
  it("lays an answer out from its beginning, though a part of it had left the screen", () => {
    const { play, text, transcript } = stage();
    const words = "one two three four five six seven eight";
    play(begin, ...streamed("text", 0, words), end());
    expect(text(12).split("\n")).toHaveLength(4);
    transcript.release(2);
    expect(transcript.rows(12).rows).toHaveLength(2);
    transcript.relayout();
    expect(transcript.rows(80).base).toBe(0);
    expect(text(80)).toBe(words);
  });
});

describe("a session that is resumed", () => {
  const call = createCall("c", "look");
  const messages: readonly AgentMessage[] = [
    { role: "user", content: "Hello", timestamp: 0 },
    createMessage([{ type: "thinking", thinking: "Hm." }, call], { stopReason: "toolUse" }),
    {
      role: "toolResult",
      toolCallId: "c",
      toolName: "look",
      content: [{ type: "text", text: "seen" }],
      isError: false,
      timestamp: 0,
    },
    createMessage([{ type: "text", text: "Done." }]),
  ];
  const showMessage = (given: readonly AgentMessage[], maxMessages?: number): string => {
    const { transcript, text } = stage();
    replay(given, transcript, maxMessages);
    return text();
  };

  it("looks as it did when it was left", () => {
    expect(showMessage(messages)).toBe("› Hello\n\n┊ Hm.\n\n● look\n  seen\n\nDone.");
  });

  it("shows its end, counts what was before, and looks at nothing of that", () => {
    const long = new Proxy(
      [...Array.from({ length: 301 }, () => messages).flat(), ...messages.slice(-1)],
      {
        get(target, key) {
          if (typeof key === "string" && Number(key) < 1_204) throw new Error("looked at");
          return Reflect.get(target, key) as unknown;
        },
      },
    );
    expect(showMessage(long, 1)).toBe("… 1,204 earlier messages\n\nDone.");
  });

  it("leaves out a result whose call is not shown, and ends a call that has none", () => {
    expect(showMessage(messages, 2)).toBe("… 2 earlier messages\n\nDone.");
    expect(showMessage(messages.slice(0, 2))).toContain("⊘ look  interrupted");
  });
});

describe("whatever comes", () => {
  const piece = fc.oneof(
    fc.constantFrom("\x1b[2J", "\x1b]0;t\x07", "漢字", "# x\n", "```ts\n", "\n", "| a | b |\n"),
    fc.string({ maxLength: 30 }),
  );
  const id = fc.constantFrom("a", "b", "c");
  const index = fc.nat(2);
  const event: fc.Arbitrary<readonly AgentEvent[]> = fc.oneof(
    piece.map((text) => [asked(text)]),
    fc.constant([begin]),
    fc.tuple(index, piece).map(([at, text]) => streamed("text", at, text, text)),
    fc.tuple(index, piece).map(([at, text]) => streamed("text", at, text).slice(0, 2)),
    fc.tuple(index, piece).map(([at, text]) => streamed("thinking", at, text).slice(0, 2)),
    fc.tuple(index, id, piece).map(([at, name, text]) => written(at, createCall(name, text))),
    fc.tuple(id, piece).map(([name, text]) => [end([createCall(name, text)])]),
    fc.tuple(id, piece).map(([name, text]) => [started(name, "shell", { command: text })]),
    fc.tuple(id, piece).map(([name, text]) => [createAnswer(name, text)]),
    fc.tuple(id, piece, fc.boolean()).map(([name, text, isError]) => [ended(name, text, isError)]),
    piece.map((errorMessage) => [end([], { stopReason: "error", errorMessage })]),
    fc.constant([over]),
  );

  it("no row is too wide or obeyed, and what leaves the screen changes nothing else", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(event, fc.nat(4), fc.boolean()), { maxLength: 30 }),
        fc.integer({ min: 8, max: 100 }),
        (steps, columns) => {
          const now = (): number => 0;
          const options = { theme: COLORS, cwd: "/p", now, changed: () => {} };
          const transcript = new Transcript(options);
          for (const [events, count, isToggled] of steps) {
            for (const each of events) transcript.handle(each);
            if (isToggled) transcript.expand();
            const before = transcript.rows(columns);
            for (const row of before.rows) {
              expect(widthOfRow(row)).toBeLessThanOrEqual(columns);
              expect(textOfRow(row)).not.toMatch(/\p{Cc}/u);
            }
            const gone = Math.min(count, before.rows.length);
            transcript.release(before.base + gone);
            const after = transcript.rows(columns);
            expect(after.base).toBe(before.base + gone);
            expect(shown(after.rows)).toBe(shown(before.rows.slice(gone)));
          }
          transcript.relayout();
          for (const row of transcript.rows(columns + 3).rows) {
            expect(widthOfRow(row)).toBeLessThanOrEqual(columns + 3);
          }
        },
      ),
    );
  });
});

describe("reads and searches", () => {
  const looked = (id: string, name: string, args: Record<string, unknown>): AgentEvent[] => [
    started(id, name, args),
    { ...ended(id, "x"), toolName: name },
  ];

  it("are counted in one row, with the files and patterns", () => {
    const { play, text } = stage();
    play(...looked("1", "grep", { pattern: "TODO" }));
    expect(text()).toBe("● grep TODO\n  x");
    play(...looked("2", "read", { path: "/p/src/a.ts" }), ...looked("3", "read", { path: "b.ts" }));
    expect(text()).toBe("● searched 1 pattern, read 2 files  TODO, src/a.ts, b.ts");
  });

  it("count a file once, however many parts of it were read", () => {
    const { play, text } = stage();
    play(...looked("1", "read", { path: "a.ts", offset: 1, limit: 9 }));
    play(...looked("2", "read", { path: "a.ts", offset: 10 }));
    expect(text()).toBe("● read 1 file  a.ts");
  });

  it("say what is under way until all of them are done", () => {
    const { play, text } = stage();
    play(...looked("1", "read", { path: "a.ts" }), started("2", "read", { path: "b.ts" }));
    expect(text()).toBe("○ reading 2 files  a.ts, b.ts");
    play({ ...ended("2", "x"), toolName: "read" });
    expect(text()).toBe("● read 2 files  a.ts, b.ts");
  });

  it("show those that fail by themselves", () => {
    const { play, text } = stage();
    play(...looked("1", "read", { path: "a.ts" }), ...looked("2", "read", { path: "b.ts" }));
    play(started("3", "read", { path: "c.ts" }), {
      ...ended("3", "There is no c.ts.", true),
      toolName: "read",
    });
    expect(text()).toBe("● read 2 files  a.ts, b.ts\n\n✗ read c.ts\n  There is no c.ts.");
  });

  it("show those by themselves that give less than the model asked for", () => {
    const { play, text } = stage();
    const part = { firstLine: 1, shownLines: 2, totalLines: 9 };
    const read = (id: string, args: Record<string, unknown>): void =>
      play(started(id, "read", args), {
        ...ended(id, "x"),
        toolName: "read",
        result: { content: [{ type: "text", text: "x" }], details: part },
      });
    read("1", { path: "a.ts", limit: 2 });
    read("2", { path: "b.ts", limit: 2 });
    read("3", { path: "c.ts" });
    expect(text()).toBe("● read 2 files  a.ts, b.ts\n\n● read c.ts\n  lines 1-2 of 9");
  });

  it("are apart where something else is between them", () => {
    const { play, text } = stage();
    play(...looked("1", "read", { path: "a.ts" }));
    play(begin, ...streamed("text", 0, "Aha."), end());
    play(...looked("2", "read", { path: "b.ts" }));
    expect(text()).toBe("● read a.ts\n  x\n\nAha.\n\n● read b.ts\n  x");
  });

  it("are shown one by one by Ctrl+O, and together again", () => {
    const { play, text, transcript } = stage();
    play(...looked("1", "read", { path: "a.ts" }), ...looked("2", "read", { path: "b.ts" }));
    transcript.expand();
    expect(text()).toBe("● read a.ts\n  x\n\n● read b.ts\n  x");
    play(...looked("3", "read", { path: "c.ts" }));
    expect(text()).toContain("\n\n● read c.ts\n  x");
    transcript.expand();
    expect(text()).toBe("● read 3 files  a.ts, b.ts, c.ts");
  });

  it("begin a new row where the row of the others has left the screen", () => {
    const { play, text, transcript } = stage();
    play(...looked("1", "read", { path: "a.ts" }), started("2", "read", { path: "b.ts" }));
    text();
    transcript.release(1);
    play(...looked("3", "read", { path: "c.ts" }));
    expect(text()).toBe("\n● read c.ts\n  x");
    play({ ...ended("2", "x"), toolName: "read" });
    expect(text()).toBe("● read 2 files  a.ts, b.ts\n\n● read c.ts\n  x");
  });

  it("cut what is left of them when their beginning has left the screen, and show it again", () => {
    const { play, text, transcript } = stage();
    transcript.expand();
    play(...looked("1", "read", { path: "a.ts" }), ...looked("2", "read", { path: "b.ts" }));
    text();
    transcript.release(2);
    transcript.expand();
    expect(text()).toBe("  … 3 more lines (Ctrl+O)");
    transcript.expand();
    expect(text()).toBe("\n● read b.ts\n  x");
    transcript.expand();
    transcript.relayout();
    expect(text()).toBe("● read 2 files  a.ts, b.ts");
  });

  it("let nothing through that a terminal obeys", () => {
    const { play, text } = stage();
    play(...looked("1", "read", { path: "a\x1b]0;x\x07.ts" }));
    play(...looked("2", "grep", { pattern: "\x1b[2Jb\u202e\x9b31m" }));
    expect(text()).toBe("● read 1 file, searched 1 pattern  a.ts, b");
  });
});

describe("the end of a prompt", () => {
  it("says how long it took, without the time that answers took", () => {
    const { clock, text, transcript } = stage();
    clock.ms = 1_000;
    const first = transcript.asks("1");
    const second = transcript.asks("2");
    clock.ms = 61_000;
    first();
    clock.ms = 101_000;
    second();
    clock.ms = 103_000;
    expect(transcript.answerMs).toBe(100_000);
    transcript.showEnd({ durationMs: 103_000, cost: 0.0123 });
    expect(text()).toBe("── 3 s · $0.0123 ──");
    transcript.resetCounts();
    expect(transcript.answerMs).toBe(0);
  });

  it("counts the files that were edited, each once", () => {
    const { play, text, transcript } = stage();
    const edit = (id: string, path: string): void => {
      const diff = `--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-a\n+b\n`;
      play(started(id, "edit", { path }), {
        ...ended(id, "Edited."),
        toolName: "edit",
        result: { content: [{ type: "text", text: "Edited." }], details: { path, diff } },
      });
    };
    edit("1", "a.ts");
    edit("2", "b.ts");
    edit("3", "a.ts");
    transcript.showEnd({ durationMs: 0 });
    expect(text()).toMatch(/\n── 0 s · 2 files edited ──$/);
    transcript.resetCounts();
    transcript.showEnd({ durationMs: 0 });
    expect(text()).toMatch(/\n── 0 s ──$/);
  });
});

describe("what a service ran and cited", () => {
  const content: AssistantMessage["content"] = [
    { type: "serviceTool", id: "s1", name: "web_search", input: { query: "tea" } },
    {
      ...{ type: "serviceTool", id: "s1", name: "web_search" },
      output: [{ type: "web_search_result", url: "https://t.example/", title: "Tea" }],
    },
    { type: "text", text: "Old.", citations: [{ url: "https://t.example/", title: "Tea" }] },
  ];

  it("is shown with its results and numbered sources, streamed or whole", () => {
    const whole = stage();
    whole.play({ type: "message_end", message: createMessage(content) });
    expect(whole.text()).toContain('● web_search "tea"');
    expect(whole.text()).toContain("1 result");
    expect(whole.text()).toContain("Old. [1]");
    expect(whole.text()).toContain("[1] Tea: https://t.example/");
    const streaming = stage();
    const message = createMessage(content);
    const [asked1, found] = content;
    if (asked1?.type !== "serviceTool" || found?.type !== "serviceTool") throw new Error("no tool");
    const at = { partial: message };
    streaming.play(
      update({ type: "service_tool", contentIndex: 0, content: asked1, ...at }),
      update({ type: "service_tool", contentIndex: 1, content: found, ...at }),
      update({ type: "text_start", contentIndex: 2, ...at }),
      update({ type: "text_delta", contentIndex: 2, delta: "Old.", ...at }),
      update({ type: "text_end", contentIndex: 2, content: "Old.", ...at }),
      { type: "message_end", message },
    );
    expect(streaming.text()).toBe(whole.text());
  });
});
