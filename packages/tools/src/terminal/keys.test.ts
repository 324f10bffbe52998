import { describe, expect, it } from "vitest";
import { encodeKeys, isInterruption, typedText } from "./keys.ts";

describe("keys", () => {
  it.each([
    ["ls<enter>", "ls\r"],
    ["a\nb\r\nc", "a\rb\rc"],
    ["<ctrl+c><CTRL+D>", "\x03\x04"],
    ["<ctrl+[><ctrl+\\>", "\x1b\x1c"],
    ["<up><down><left><right>", "\x1b[A\x1b[B\x1b[D\x1b[C"],
    ["<esc>:wq<enter>", "\x1b:wq\r"],
    ["<tab><shift+tab><backspace><delete><pageup>", "\t\x1b[Z\x7f\x1b[3~\x1b[5~"],
    ["<alt+b><alt+B><alt+enter><alt++>", "\x1bb\x1bB\x1b\r\x1b+"],
    ["a<lt>enter>", "a<enter>"],
    // What is no key is text.
    [
      "<div>1 < 2 > 1</div> <ctrl+up> <ctrl+1> <shift+a> <>",
      "<div>1 < 2 > 1</div> <ctrl+up> <ctrl+1> <shift+a> <>",
    ],
  ])("%j are sent as %j", (input, sent) => {
    expect(encodeKeys(input)).toBe(sent);
  });

  it("are others for a program that has asked for that", () => {
    expect(encodeKeys("<up><home><delete>", { isApplication: true })).toBe("\x1bOA\x1bOH\x1b[3~");
  });

  it("that only interrupt are known as such", () => {
    expect(["<ctrl+c>", "<ctrl+c><ctrl+d>", " <Ctrl+\\>\n"].map(isInterruption)).toEqual([
      true,
      true,
      true,
    ]);
    expect(["", "y<ctrl+c>", "<ctrl+r>", "<enter>"].map(isInterruption)).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });

  it("are left out of the text that is typed, but for Enter", () => {
    expect(typedText("rm<space>-rf no<tab><enter><up><lt>b <div>")).toBe("rm -rf no\n<b <div>");
  });
});
