import type { UserMessage } from "@gyre/ai";
import { counted } from "../../../text/tool-text.ts";
import { type Row, row } from "../terminal/row.ts";
import type { Theme } from "../terminal/theme.ts";
import type { Block } from "../ui/block.ts";
import { createUserBlock } from "./message-blocks.ts";
import { userText } from "@gyre/coding/internal/conversation/prompt-text";
import { EXPAND_KEY } from "./tool-view.ts";

export interface CommandPromptOptions {
  theme: Theme;
  expandKey?: string | undefined;
  isExpanded: boolean;
}

/** A prompt that a command made: the command as it was typed, and when it is expanded what was sent. */
export class CommandPrompt implements Block {
  readonly #typed: Block;
  readonly #sent: Block;
  readonly #hint: Row;
  #isExpanded: boolean;
  #made: { columns: number; rows: readonly Row[] } | undefined;

  constructor(typed: string, content: UserMessage["content"], options: CommandPromptOptions) {
    const { expandKey = EXPAND_KEY, isExpanded, theme } = options;
    const lines = userText(content).trimEnd().split("\n").length;
    this.#typed = createUserBlock(theme, typed);
    this.#sent = createUserBlock(theme, content);
    this.#hint = row(`  sends ${counted(lines, "line")} (${expandKey} shows them)`, theme.dim);
    this.#isExpanded = isExpanded;
  }

  expand(isExpanded: boolean): void {
    this.#isExpanded = isExpanded;
    this.#made = undefined;
  }

  rows(columns: number): readonly Row[] {
    if (this.#made?.columns !== columns) {
      const below = this.#isExpanded ? this.#sent.rows(columns) : [this.#hint];
      this.#made = { columns, rows: [...this.#typed.rows(columns), ...below] };
    }
    return this.#made.rows;
  }
}
