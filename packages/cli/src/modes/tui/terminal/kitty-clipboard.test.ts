import { manualClock } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { InputDecoder } from "./input.ts";
import { readTerminalClipboard, type TerminalClipboardParts } from "./kitty-clipboard.ts";

const PNG = Buffer.concat([
  Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
  Buffer.from(Array.from({ length: 20_000 }, (_, index) => index % 251)),
]);
const CHUNK_BYTES = 4_096;
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const osc = (fields: string, data = ""): string =>
  `\x1b]5522;type=read:${fields}${data === "" ? "" : `;${data}`}\x1b\\`;

/** A terminal with kitty's clipboard protocol: what it answers, and what else it gets. */
class FakeTerminal {
  readonly asked: string[] = [];
  readonly events: unknown[] = [];
  readonly clock = manualClock();
  readonly #askers = new Set<(answer: string) => void>();
  readonly #decoder: InputDecoder;
  /** Bytes that arrive at once. */
  pieceBytes = 1_000;

  readonly #answer: (question: string) => string;

  constructor(answer: (question: string) => string) {
    this.#answer = answer;
    this.#decoder = new InputDecoder({
      clock: this.clock,
      emit: (event) => {
        if (event.type !== "answer") this.events.push(event);
        else for (const take of [...this.#askers]) take(event.text);
      },
    });
  }

  parts(env: Record<string, string> = { TERM: "xterm-kitty" }): TerminalClipboardParts {
    return {
      env,
      clock: this.clock,
      ask: (question, onAnswer) => {
        const end = this.#decoder.expectAnswers();
        this.#askers.add(onAnswer);
        this.asked.push(question);
        queueMicrotask(() => this.feed(this.#answer(question)));
        return () => {
          this.#askers.delete(onAnswer);
          end();
        };
      },
    };
  }

  feed(bytes: string): void {
    for (let at = 0; at < bytes.length; at += this.pieceBytes) {
      this.#decoder.feed(bytes.slice(at, at + this.pieceBytes));
    }
  }
}

/** The answers of a terminal whose clipboard has this. */
function clipboardWith(content: Record<string, Buffer>): (question: string) => string {
  return (question) => {
    if (question.includes("$p")) return "\x1b[?5522;2$y\x1b[?62;22c";
    const [, encoded = ""] = /\]5522;type=read;([\w+/=]*)/.exec(question) ?? [];
    const type = Buffer.from(encoded, "base64").toString();
    const data = type === "." ? Buffer.from(Object.keys(content).join(" ")) : content[type];
    if (!data) return osc("status=ENOSYS");
    const chunks: string[] = [];
    for (let at = 0; at < data.length; at += CHUNK_BYTES) {
      const chunk = data.subarray(at, at + CHUNK_BYTES).toString("base64");
      chunks.push(osc(`status=DATA:mime=${base64(type)}`, chunk));
    }
    return [osc("status=OK"), ...chunks, osc("status=DONE")].join("");
  };
}

describe("a terminal with kitty's clipboard protocol", () => {
  it.each([1, 7, 4_099, 1_000_000])("gives the picture, in pieces of %d bytes", async (size) => {
    const terminal = new FakeTerminal(
      clipboardWith({ "text/plain": Buffer.from("no"), "image/png": PNG }),
    );
    terminal.pieceBytes = size;
    const content = await readTerminalClipboard(terminal.parts());
    expect(content).toEqual({ type: "picture", mimeType: "image/png", bytes: PNG });
    expect(terminal.events).toEqual([]);
    const read = `\x1b]5522;type=read;${base64("image/png")}\x1b\\`;
    expect(terminal.asked).toEqual([`\x1b]5522;type=read;${base64(".")}\x1b\\`, read]);
  });

  it("gives text where there is no picture", async () => {
    const terminal = new FakeTerminal(clipboardWith({ "text/plain": Buffer.from("Grüße\n") }));
    expect(await readTerminalClipboard(terminal.parts())).toEqual({
      type: "text",
      text: "Grüße\n",
    });
  });

  it("is asked whether it has the protocol where its name does not say so", async () => {
    const terminal = new FakeTerminal(clipboardWith({ "text/plain": Buffer.from("a") }));
    const content = await readTerminalClipboard(terminal.parts({ TERM: "foot" }));
    expect(content).toEqual({ type: "text", text: "a" });
    expect(terminal.asked[0]).toBe("\x1b[?5522$p\x1b[c");
  });

  it.each([
    ["EPERM", "The terminal does not allow programs to read the clipboard."],
    ["EIO", "The terminal cannot read the clipboard (EIO)."],
  ])("that refuses says why (%s)", async (status, why) => {
    const terminal = new FakeTerminal(() => osc(`status=${status}`));
    expect(await readTerminalClipboard(terminal.parts())).toEqual({ type: "nothing", why });
  });

  it("a picture that is too large is read to its end and not kept", async () => {
    const large = Buffer.concat([PNG, Buffer.alloc(6 * 1024 * 1024)]);
    const terminal = new FakeTerminal(clipboardWith({ "image/png": large }));
    terminal.pieceBytes = 100_000;
    expect(await readTerminalClipboard(terminal.parts())).toMatchObject({ type: "nothing" });
    terminal.feed("x");
    expect(terminal.events).toEqual([{ type: "text", text: "x" }]);
  });

  it("keys that are pressed meanwhile are keys", async () => {
    const answers = clipboardWith({ "text/plain": Buffer.from("a") });
    const terminal = new FakeTerminal((question) => `b${answers(question)}\x1b[A`);
    await readTerminalClipboard(terminal.parts());
    expect(terminal.events).toMatchObject([
      { type: "text", text: "b" },
      { name: "up" },
      { type: "text", text: "b" },
      { name: "up" },
    ]);
  });
});

describe("another terminal", () => {
  it.each(["\x1b[?5522;0$y\x1b[?62c", "\x1b[?62c", "\x1b[?5522;4$y"])(
    "is not asked for the clipboard: it answers %j",
    async (answer) => {
      const terminal = new FakeTerminal(() => answer);
      expect(await readTerminalClipboard(terminal.parts({ TERM: "xterm" }))).toBeUndefined();
      expect(terminal.asked).toHaveLength(1);
    },
  );

  it("that answers nothing at all is waited for a second", async () => {
    const terminal = new FakeTerminal(() => "");
    const reading = readTerminalClipboard(terminal.parts({ TERM: "dumb" }));
    await terminal.clock.advance(1_000);
    expect(await reading).toBeUndefined();
  });

  it("kitty that never answers is waited for half a minute", async () => {
    const terminal = new FakeTerminal(() => osc("status=OK"));
    const reading = readTerminalClipboard(terminal.parts());
    await terminal.clock.advance(30_000);
    expect(await reading).toEqual({
      type: "nothing",
      why: "The terminal did not answer what is on the clipboard.",
    });
  });
});
