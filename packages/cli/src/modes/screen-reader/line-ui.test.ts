import { describe, expect, it } from "vitest";
import { LineDriver } from "../../testing/line-driver.ts";
import { row } from "../tui/terminal/row.ts";
import type { Choice } from "../tui/ui/ui.ts";
import { LineTerminal } from "./line-terminal.ts";
import { LineUi } from "./line-ui.ts";

interface World {
  talk: LineDriver;
  ui: LineUi;
  terminal: LineTerminal;
  lines: string[];
}

function world(): World {
  const talk = new LineDriver();
  const lines: string[] = [];
  const terminal = new LineTerminal(talk, { line: (text) => lines.push(text), end: () => {} });
  const ui = new LineUi(terminal);
  return { talk, ui, terminal, lines };
}

function fruits(count: number): Choice<number>[] {
  return Array.from({ length: count }, (_, value) => ({ value, label: `fruit ${value}` }));
}

describe("a choice", () => {
  it("is asked as a numbered list", async () => {
    const { talk, ui } = world();
    const choice = ui.choose({
      title: "Which?",
      about: [row("Think twice.")],
      choices: [
        { value: "a", label: "Apple", detail: "red · now" },
        { value: "b", label: "Pear" },
      ],
    });
    await talk.until("Number: ");
    talk.type("2");
    expect(await choice).toBe("b");
    expect(talk.seen).toBe(`Which?
Think twice.
1. Apple, red, now
2. Pear
Write a number, or a part of the text. An empty line leaves.
Number: 2
`);
  });

  it("letters that several have narrow it down", async () => {
    const { talk, ui } = world();
    const choice = ui.choose({ title: "Which?", choices: fruits(30), filter: true });
    await talk.until("10 more.");
    await talk.until("Number: ");
    talk.type("uit 2");
    await talk.until("2. fruit 12\n");
    await talk.until("Number: ");
    talk.type("2");
    expect(await choice).toBe(12);
  });

  it("what is not there is asked for again, and an empty line leaves", async () => {
    const { talk, ui } = world();
    const choice = ui.choose({ title: "Which?", choices: fruits(2) });
    await talk.until("Number: ");
    talk.type("9");
    await talk.until('Nothing here is "9".');
    await talk.until("Number: ");
    talk.type("");
    expect(await choice).toBeUndefined();
  });

  it("one is asked at a time", async () => {
    const { talk, ui } = world();
    const first = ui.choose({ title: "First?", choices: fruits(1) });
    const second = ui.choose({ title: "Second?", choices: fruits(1) });
    await talk.until("Number: ");
    expect(talk.seen).not.toContain("Second?");
    talk.type("1");
    expect(await first).toBe(0);
    await talk.until("Number: ");
    talk.type("1");
    expect(await second).toBe(0);
  });
});

describe("lines", () => {
  it("one that ends in a backslash goes on in the next", async () => {
    const { talk, lines, terminal } = world();
    talk.type("one \\");
    talk.type("two");
    talk.type("three");
    const read = terminal.question((ask) => ask("More: "));
    await talk.until("More: ");
    talk.type("four");
    expect(await read).toBe("four");
    expect(lines).toEqual(["one \ntwo", "three"]);
  });

  it("are read without what arrow keys send", async () => {
    const { talk, lines, terminal } = world();
    talk.type("\x1b[Ahello");
    const read = terminal.question((ask) => ask("More: "));
    await talk.until("More: ");
    talk.type("");
    await read;
    expect(lines).toEqual(["hello"]);
  });

  it("what is written while a prompt stands begins a new line", () => {
    const { talk, terminal } = world();
    terminal.prompt("You: ");
    terminal.line("News.");
    expect(talk.seen).toBe("You: \nNews.\n");
  });

  it("the end of them leaves what is asked", async () => {
    const { talk, ui } = world();
    const choice = ui.choose({ title: "Which?", choices: fruits(2) });
    await talk.until("Number: ");
    talk.input.end();
    expect(await choice).toBeUndefined();
  });
});
