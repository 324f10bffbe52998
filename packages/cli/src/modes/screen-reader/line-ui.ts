import type { BrowsedSession } from "../../slash-commands/command-context.ts";
import type { Choice, OpenRequest } from "@gyre/coding/internal/conversation/command";
import { choosablePrompts } from "@gyre/coding/internal/file-history/prompts";
import { oneLine, shownText } from "@gyre/coding/internal/text/shown-text";
import { grouped } from "../../text/tool-text.ts";
import type { Block } from "../tui/ui/block.ts";
import { NO_COLORS, type Theme } from "../tui/terminal/theme.ts";
import type { PanelQuestion, Ui } from "../tui/ui/ui.ts";
import type { LineTerminal, ReadLine } from "./line-terminal.ts";
import { blockText, rowsText, LAYOUT_COLUMNS, labelInWords, markdownInWords } from "./format.ts";

/** Choices that are listed at once; letters find the others. */
const MAX_LISTED_CHOICES = 20;
/** Prompts of a branch that one can go back to, the newest. */
const MAX_PROMPTS = 200;

/** Shows and asks where there are lines and nothing else. */
export class LineUi implements Ui {
  readonly columns: number = LAYOUT_COLUMNS;
  readonly theme: Theme = NO_COLORS;
  readonly #terminal: LineTerminal;

  constructor(terminal: LineTerminal) {
    this.#terminal = terminal;
  }

  say(markdown: string): void {
    this.#terminal.line(markdownInWords(shownText(markdown)));
  }

  warn(text: string): void {
    this.#terminal.line(`Warning: ${shownText(text)}`);
  }

  show(block: Block): void {
    const text = blockText(block);
    if (text !== "") this.#terminal.line(text);
  }

  choose<T>(question: PanelQuestion<T>): Promise<T | undefined> {
    return this.#terminal.question((read) => this.#choose(question, read));
  }

  /** Asks for a prompt of this branch to go back to. */
  async chooseEntry(session: BrowsedSession): Promise<OpenRequest | undefined> {
    const choices = await choosablePrompts(session, MAX_PROMPTS);
    return this.choose({ title: "Go back to which prompt? The newest is the first.", choices });
  }

  async #choose<T>(question: PanelQuestion<T>, read: ReadLine): Promise<T | undefined> {
    const { about = [], choices, title } = question;
    this.#terminal.line(oneLine(title));
    if (about.length > 0) this.#terminal.line(rowsText(about));
    let shown = choices;
    for (;;) {
      this.#list(shown);
      const typed = (await read("Number: "))?.trim();
      if (typed === undefined || typed === "") return undefined;
      const found = matching(typed, shown, choices);
      const [only, ...others] = found;
      if (only && others.length === 0) return only.value;
      if (only) shown = found;
      else this.#terminal.line(`Nothing here is "${shownText(typed)}".`);
    }
  }

  #list<T>(choices: readonly Choice<T>[]): void {
    for (const [index, { label, detail }] of choices.slice(0, MAX_LISTED_CHOICES).entries()) {
      const more =
        detail === undefined || detail === "" ? "" : `, ${labelInWords(oneLine(detail))}`;
      this.#terminal.line(`${index + 1}. ${labelInWords(oneLine(label))}${more}`);
    }
    const hidden = choices.length - MAX_LISTED_CHOICES;
    if (hidden > 0) this.#terminal.line(`${grouped(hidden)} more.`);
    this.#terminal.line("Write a number, or a part of the text. An empty line leaves.");
  }
}

/** One by its number, by its key or its whole label; else those that hold all the words. */
function matching<T>(
  typed: string,
  shown: readonly Choice<T>[],
  all: readonly Choice<T>[],
): readonly Choice<T>[] {
  const number = /^\d+$/.test(typed) ? Number(typed) : 0;
  const named =
    shown.slice(0, MAX_LISTED_CHOICES)[number - 1] ??
    all.find(({ key, label }) => [key, label].includes(typed.toLowerCase()) || label === typed);
  if (named) return [named];
  const words = typed.toLowerCase().split(/\s+/);
  return all.filter(({ label, detail = "", search = "" }) => {
    const text = `${label} ${detail} ${search}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
