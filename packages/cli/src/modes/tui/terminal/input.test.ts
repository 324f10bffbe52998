import fc from "fast-check";
import { expect, test } from "vitest";
import { ESCAPE_MS, InputDecoder, PASTE_MS, SEQUENCE_MS } from "./input.ts";
import type { DecodedEvent, Key } from "./key.ts";

/** A decoder with the timer in the test's hands. */
function decoder() {
  const events: DecodedEvent[] = [];
  const timers: { ms: number; run: () => void }[] = [];
  const input = new InputDecoder({
    emit: (event) => events.push(event),
    clock: {
      after(ms, run) {
        const timer = { ms, run };
        timers.push(timer);
        return () => void timers.splice(timers.indexOf(timer), 1);
      },
    },
  });
  const fire = (): number => {
    const timer = timers.shift();
    timer?.run();
    return timer?.ms ?? 0;
  };
  return { input, events, fire, timers };
}

/** The events of pieces, the timer fired at the end. */
function decodeEvents(...pieces: (string | Buffer)[]): DecodedEvent[] {
  const { input, events, fire } = decoder();
  for (const piece of pieces) input.feed(piece);
  fire();
  return events;
}

function key(name: string): Key {
  const parts = name.split("+");
  return {
    type: "key",
    name: parts.at(-1) || "+",
    ctrl: parts.includes("ctrl"),
    alt: parts.includes("alt"),
    shift: parts.includes("shift"),
  };
}

const text = (text: string): DecodedEvent => ({ type: "text", text });
const paste = (text: string): DecodedEvent => ({ type: "paste", text });

test.each([
  ["\r", "enter"],
  ["\n", "ctrl+j"],
  ["\t", "tab"],
  ["\x7f", "backspace"],
  ["\x08", "backspace"],
  ["\x03", "ctrl+c"],
  ["\x1a", "ctrl+z"],
  ["\x1f", "ctrl+_"],
  ["\0", "ctrl+ "],
  ["\x1b\r", "alt+enter"],
  ["\x1b\x7f", "alt+backspace"],
  ["\x1bb", "alt+b"],
  ["\x1bB", "alt+shift+b"],
  ["\x1b\x01", "ctrl+alt+a"],
  ["\x1bé", "alt+é"],
  ["\x1b😀", "alt+😀"],
])("a character with or without Alt, %j, is %s", (sent, name) => {
  expect(decodeEvents(sent)).toEqual([key(name)]);
});

test.each([
  ["\x1b[A", "up"],
  ["\x1bOP", "f1"],
  ["\x1bOR", "f3"],
  ["\x1b[15~", "f5"],
  ["\x1b[24;5~", "ctrl+f12"],
  ["\x1b[1;2Q", "shift+f2"],
  ["\x1b[1;5A", "ctrl+up"],
  ["\x1b[1;3B", "alt+down"],
  ["\x1b[1;6C", "ctrl+shift+right"],
  ["\x1bOD", "left"],
  ["\x1bOH", "home"],
  ["\x1b[F", "end"],
  ["\x1bO5C", "ctrl+right"],
  ["\x1bOM", "enter"],
  ["\x1b[3~", "delete"],
  ["\x1b[3;5~", "ctrl+delete"],
  ["\x1b[5~", "pageUp"],
  ["\x1b[6;2~", "shift+pageDown"],
  ["\x1b[1~", "home"],
  ["\x1b[Z", "shift+tab"],
  ["\x1b[1;5Z", "ctrl+shift+tab"],
  // rxvt
  ["\x1b[7~", "home"],
  ["\x1b[8~", "end"],
  ["\x1b[a", "shift+up"],
  ["\x1bOb", "ctrl+down"],
  ["\x1b[3$", "shift+delete"],
  ["\x1b[3^", "ctrl+delete"],
  ["\x1b[7@", "ctrl+shift+home"],
  // Alt by an ESC before it.
  ["\x1b\x1b[A", "alt+up"],
  ["\x1b\x1bOA", "alt+up"],
  // The kitty protocol.
  ["\x1b[13;2u", "shift+enter"],
  ["\x1b[27u", "escape"],
  ["\x1b[99;5u", "ctrl+c"],
  ["\x1b[99:67;6u", "ctrl+shift+c"],
  ["\x1b[127;5u", "ctrl+backspace"],
  ["\x1b[9;2u", "shift+tab"],
  ["\x1b[1;1:1A", "up"],
  ["\x1b[1;5:2D", "ctrl+left"],
  ["\x1b[57414;3u", "alt+enter"],
  ["\x1b[57419u", "up"],
  // Caps lock is no modifier of ours.
  ["\x1b[99;69u", "ctrl+c"],
  // modifyOtherKeys
  ["\x1b[27;2;13~", "shift+enter"],
  ["\x1b[27;5;99~", "ctrl+c"],
  ["\x1b[27;6;67~", "ctrl+shift+c"],
])("the sequence %j is %s", (sent, name) => {
  expect(decodeEvents(sent)).toEqual([key(name)]);
});

test.each([
  ["\x1b[97u", "a"],
  ["\x1b[97;2u", "A"],
  ["\x1b[49:33;2u", "!"],
  ["\x1b[0;;229u", ""],
  ["\x1b[97;;228u", "ä"],
  ["\x1b[57400u", "1"],
  ["\x1bOk", "+"],
])("a key that writes something, %j, is its text", (sent, written) => {
  expect(decodeEvents(sent)).toEqual(written === "" ? [] : [text(written)]);
});

test.each([
  ["a key that is released", "\x1b[99;5:3u"],
  ["an arrow that is released", "\x1b[1;1:3A"],
  ["a key of the desktop", "\x1b[99;9u"],
  ["a function key beyond the last", "\x1b[25~"],
  ["a function key of the Linux console", "\x1b[[A"],
  ["a lock key", "\x1b[57358u"],
  ["a mouse", "\x1b[<0;10;20M\x1b[<0;10;20m"],
  ["an old mouse", "\x1b[M ab"],
  ["the answer to a question about modes", "\x1b[?2026;2$y"],
  ["the answer to a question about colors", "\x1b]11;rgb:0000/0000/0000\x07"],
  ["one that ends otherwise", "\x1b]11;rgb:0000/0000/0000\x1b\\"],
  ["a terminal's name", "\x1bP>|xterm(390)\x1b\\"],
  ["an unknown sequence", "\x1b[>0;276;0c"],
  ["what is too long", `\x1b[${"1;".repeat(1000)}$z`],
  ["controls of the second half", "\x85\x9b"],
])("of %s nothing is seen, and what follows is", (_, sent) => {
  expect(decodeEvents(`${sent}x`)).toEqual([text("x")]);
});

test("an ESC that nothing follows in time is Escape", () => {
  const { input, events, fire } = decoder();
  input.feed("\x1b");
  expect(events).toEqual([]);
  expect(fire()).toBe(ESCAPE_MS);
  expect(events).toEqual([key("escape")]);
});

test("two of them are two Escapes", () => {
  expect(decodeEvents("\x1b\x1b")).toEqual([key("escape"), key("escape")]);
  expect(decodeEvents("\x1b\x1bx")).toEqual([key("escape"), key("alt+x")]);
});

test("what follows in time stops the timer", () => {
  const { input, events, timers } = decoder();
  input.feed("\x1b");
  input.feed("[A");
  expect(events).toEqual([key("up")]);
  expect(timers).toEqual([]);
});

test("a sequence that stops is its first character with Alt, or nothing", () => {
  const { input, events, fire } = decoder();
  input.feed("\x1b[");
  expect(fire()).toBe(SEQUENCE_MS);
  input.feed("\x1b]");
  fire();
  input.feed("\x1b[1;");
  fire();
  input.feed("x");
  expect(events).toEqual([key("alt+["), key("alt+]"), text("x")]);
});

test("a string without an end does not take what is typed later with it", () => {
  const { input, events, fire } = decoder();
  input.feed("\x1b]0;abc");
  fire();
  input.feed("x");
  expect(events).toEqual([text("x")]);
  expect(decodeEvents("\x1b]0;abc\x03")).toEqual([key("ctrl+c")]);
});

test("characters may be cut anywhere", () => {
  const bytes = Buffer.from("é漢😀");
  const pieces = Array.from(bytes, (byte) => Buffer.from([byte]));
  expect(merged(decodeEvents(...pieces))).toEqual([text("é漢😀")]);
});

test("text has nothing in it that turns the direction of writing", () => {
  expect(decodeEvents("a\u202eb")).toEqual([text("ab")]);
});

test("what is pasted is one event, with line ends, and without what a terminal obeys", () => {
  const sent = "\x1b[200~a\r\nb\rc\td\x1b[31me\x03\x1b[201~x";
  expect(decodeEvents(sent)).toEqual([paste("a\nb\nc    de"), text("x")]);
});

test("a paste of a megabyte in small pieces comes as one", () => {
  const line = "0123456789abcde\r";
  const pieces = Array.from({ length: 65_536 }, () => line);
  const [event] = decodeEvents("\x1b[200~", ...pieces, "\x1b[20", "1~");
  expect(event?.type === "paste" && event.text.length).toBe(1_048_576);
});

test("a paste whose end was lost is over after a silence", () => {
  const { input, events, fire } = decoder();
  input.feed("\x1b[200~abc\x1b[20");
  expect(fire()).toBe(PASTE_MS);
  input.feed("\x1b[201~d");
  expect(events).toEqual([paste("abc"), text("d")]);
});

test("Ctrl-C alone ends a paste whose end was lost, and is a key", () => {
  const { input, events, timers } = decoder();
  input.feed("\x1b[200~abc");
  input.feed("\x03");
  expect(events).toEqual([paste("abc"), key("ctrl+c")]);
  expect(timers).toEqual([]);
});

test("what was pasted when the terminal goes away is not lost", () => {
  const { input, events } = decoder();
  input.feed("\x1b[200~abc\x1b[20");
  input.end();
  expect(events).toEqual([paste("abc")]);
});

test("a report of the cursor is a position once for each time it was asked for", () => {
  const { input, events } = decoder();
  input.feed("\x1b[1;2R");
  input.expectPosition();
  input.feed("\x1b[12;40R");
  input.feed("\x1b[1;2R");
  expect(events).toEqual([{ type: "position", row: 11, column: 39 }]);
});

/** Texts that came one after the other are one text. */
function merged(events: readonly DecodedEvent[]): DecodedEvent[] {
  const out: DecodedEvent[] = [];
  for (const event of events) {
    const last = out.at(-1);
    if (event.type === "text" && last?.type === "text") {
      out[out.length - 1] = text(last.text + event.text);
    } else out.push(event);
  }
  return out;
}

const pieces = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom("\x1b", "[", "O", "]", "1;5", "u", "~", "$", "A", "M", ":"),
  },
  fc.constantFrom(
    "\x1b[200~",
    "\x1b[201~",
    "\x1b[",
    "\x1b]0;",
    "\x07",
    "\x1b\\",
    "\r",
    "é",
    "漢😀",
  ),
  fc.string({ maxLength: 4 }),
  fc.string({ unit: "binary", maxLength: 3 }),
);

test("any bytes, cut anywhere, give the same events", () => {
  const bytes = fc.oneof(
    fc.array(pieces, { maxLength: 30 }).map((all) => Buffer.from(all.join(""))),
    fc.uint8Array({ maxLength: 60 }).map((all) => Buffer.from(all)),
  );
  fc.assert(
    fc.property(bytes, fc.array(fc.nat(60)), (bytes, cuts) => {
      const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length];
      places.sort((a, b) => a - b);
      const cutUp = places.slice(1).map((end, index) => bytes.subarray(places[index], end));
      expect(merged(ended(cutUp))).toEqual(merged(ended([bytes])));
    }),
    { numRuns: 500 },
  );
});

function ended(pieces: readonly Buffer[]): DecodedEvent[] {
  const { input, events } = decoder();
  for (const piece of pieces) input.feed(piece);
  input.end();
  return events;
}

test("answers are events while they are waited for, and skipped before and after", () => {
  const { input, events } = decoder();
  const answers = "\x1b[?62;4c\x1b]11;rgb:0000/0000/0000\x07\x1b]5522;a=b;YQ==\x1b\\";
  input.feed(`${answers}x`);
  const end = input.expectAnswers();
  for (const character of answers) input.feed(character);
  input.feed("\x1b]never ended\x1b[A");
  end();
  end();
  input.feed(`${answers}y`);
  expect(events).toEqual([
    { type: "text", text: "x" },
    { type: "answer", text: "[?62;4c" },
    { type: "answer", text: "]11;rgb:0000/0000/0000" },
    { type: "answer", text: "]5522;a=b;YQ==" },
    key("up"),
    { type: "text", text: "y" },
  ]);
});

test("an answer without an end is not kept", () => {
  const { input, events } = decoder();
  input.expectAnswers();
  input.feed("\x1b]52;");
  for (let index = 0; index < 100; index += 1) input.feed("a".repeat(1_000));
  input.feed("\x07b");
  expect(events).toEqual([{ type: "text", text: "b" }]);
});

test("the terminal says when it gets and loses the focus", () => {
  expect(decodeEvents("a\x1b[O\x1b[Ib")).toEqual([
    text("a"),
    { type: "focus", isFocused: false },
    { type: "focus", isFocused: true },
    text("b"),
  ]);
});
