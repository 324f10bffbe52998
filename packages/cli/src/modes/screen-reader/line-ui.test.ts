import { describe, expect, it } from "vitest";
import { LineDriver } from "../../testing/line-driver.ts";
import { row } from "../tui/terminal/row.ts";
import type { Choice } from "../tui/ui/ui.ts";
import { LineTerminal } from "./line-terminal.ts";
import { LineUi } from "./line-ui.ts";

interface World {
  driver: LineDriver;
  ui: LineUi;
  terminal: LineTerminal;
  lines: string[];
}

function world(): World {
  const driver = new LineDriver();
  const lines: string[] = [];
  const terminal = new LineTerminal(driver, { line: (text) => lines.push(text), end: () => {} });
  const ui = new LineUi(terminal);
  return { driver, ui, terminal, lines };
}

function fruits(count: number): Choice<number>[] {
  return Array.from({ length: count }, (_, value) => ({ value, label: `fruit ${value}` }));
}

describe("a choice", () => {
  it("is asked as a numbered list", async () => {
    const { driver, ui } = world();
    const choice = ui.choose({
      title: "Which?",
      about: [row("Think twice.")],
      choices: [
        { value: "a", label: "Apple", detail: "red · now" },
        { value: "b", label: "Pear" },
      ],
    });
    await driver.until("Number: ");
    driver.type("2");
    expect(await choice).toBe("b");
    expect(driver.seen).toBe(`Which?
Think twice.
1. Apple, red, now
2. Pear
Write a number, or a part of the text. An empty line leaves.
Number: 2
`);
  });

  it("letters that several have narrow it down", async () => {
    const { driver, ui } = world();
    const choice = ui.choose({ title: "Which?", choices: fruits(30), filter: true });
    await driver.until("10 more.");
    await driver.until("Number: ");
    driver.type("uit 2");
    await driver.until("2. fruit 12\n");
    await driver.until("Number: ");
    driver.type("2");
    expect(await choice).toBe(12);
  });

  it("what is not there is asked for again, and an empty line leaves", async () => {
    const { driver, ui } = world();
    const choice = ui.choose({ title: "Which?", choices: fruits(2) });
    await driver.until("Number: ");
    driver.type("9");
    await driver.until('Nothing here is "9".');
    await driver.until("Number: ");
    driver.type("");
    expect(await choice).toBeUndefined();
  });

  it("one is asked at a time", async () => {
    const { driver, ui } = world();
    const first = ui.choose({ title: "First?", choices: fruits(1) });
    const second = ui.choose({ title: "Second?", choices: fruits(1) });
    await driver.until("Number: ");
    expect(driver.seen).not.toContain("Second?");
    driver.type("1");
    expect(await first).toBe(0);
    await driver.until("Number: ");
    driver.type("1");
    expect(await second).toBe(0);
  });
});

describe("lines", () => {
  it("one that ends in a backslash goes on in the next", async () => {
    const { driver, lines, terminal } = world();
    driver.type("one \\");
    driver.type("two");
    driver.type("three");
    const read = terminal.question((ask) => ask("More: "));
    await driver.until("More: ");
    driver.type("four");
    expect(await read).toBe("four");
    expect(lines).toEqual(["one \ntwo", "three"]);
  });

  it("are read without what arrow keys send", async () => {
    const { driver, lines, terminal } = world();
    driver.type("\x1b[Ahello");
    const read = terminal.question((ask) => ask("More: "));
    await driver.until("More: ");
    driver.type("");
    await read;
    expect(lines).toEqual(["hello"]);
  });

  it("what is written while a prompt stands begins a new line", () => {
    const { driver, terminal } = world();
    terminal.prompt("You: ");
    terminal.line("News.");
    expect(driver.seen).toBe("You: \nNews.\n");
  });

  it("the end of them leaves what is asked", async () => {
    const { driver, ui } = world();
    const choice = ui.choose({ title: "Which?", choices: fruits(2) });
    await driver.until("Number: ");
    driver.input.end();
    expect(await choice).toBeUndefined();
  });
});
