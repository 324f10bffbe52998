import type { Block } from "../ui/block.ts";
import type { Format } from "../markdown/formatters.ts";
import { MarkdownBlock } from "../markdown/markdown.ts";
import type { LiveBlock } from "./message-blocks.ts";
import type { FindLinks } from "../terminal/hyperlinks.ts";
import type { Row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";

export interface AnswerOptions {
  theme: Theme;
  format?: Format | undefined;
  /** Finds links in a text as it is shown. Default: nothing is a link. */
  links?: FindLinks | undefined;
  /** Called when rows have changed without new text. */
  changed: () => void;
}

/** A text of the model as Markdown. It keeps its source, so that all of it can be laid out again. */
export class AnswerBlock implements LiveBlock {
  readonly #options: AnswerOptions;
  #markdown: MarkdownBlock;
  #text = "";
  #isOver = false;
  #isDivided = false;

  constructor(options: AnswerOptions) {
    this.#options = options;
    this.#markdown = this.#empty();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  feed(delta: string): void {
    this.#text += delta;
    this.#markdown.feed(delta);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#markdown.end();
  }

  rows(columns: number): readonly Row[] {
    return this.#markdown.rows(columns);
  }

  freeze(count: number): Block {
    this.#isDivided = true;
    return this.#markdown.freeze(count);
  }

  restart(): void {
    if (!this.#isDivided) return;
    this.#isDivided = false;
    this.#markdown = this.#empty();
    this.#markdown.feed(this.#text);
    if (this.#isOver) this.#markdown.end();
  }

  #empty(): MarkdownBlock {
    const { theme, format, changed, links } = this.#options;
    return new MarkdownBlock({ theme, changed, links, ...(format && { format }) });
  }
}
