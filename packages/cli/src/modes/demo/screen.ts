import type { AgentEvent } from "@gyre/agent";
import type { Environment } from "../../core/io.ts";
import { openTerminal, type Output, type Terminal } from "../../core/terminal.ts";
import type { Row } from "../tui/terminal/row.ts";
import { Screen } from "../tui/terminal/screen.ts";
import { COLORS, NO_COLORS, type Theme } from "../tui/terminal/theme.ts";
import { createNoticeBlock } from "../tui/transcript/message-blocks.ts";
import { Transcript } from "../tui/transcript/transcript.ts";

const DEFAULT_ROWS = 24;

/**
 * Shows the demo with the transcript of the terminal program. A live terminal is redrawn with
 * each event; anything else gets the rows of a turn when the turn has ended.
 */
export class DemoScreen {
  readonly theme: Theme;
  readonly #terminal: Terminal;
  readonly #transcript: Transcript;
  readonly #screen: Screen | undefined;
  /** Rows that were written where nothing is redrawn. */
  #written = 0;

  constructor(output: Output, env: Environment, cwd: string) {
    const terminal = openTerminal(output, env);
    this.#terminal = terminal;
    this.theme = terminal.hasColors ? COLORS : NO_COLORS;
    this.#transcript = new Transcript({
      theme: this.theme,
      cwd,
      now: () => performance.now(),
      changed: () => {},
    });
    const size = { columns: terminal.columns, rows: output.rows || DEFAULT_ROWS };
    this.#screen = terminal.live ? new Screen((text) => terminal.write(text), size) : undefined;
  }

  handle(event: AgentEvent): void {
    this.#transcript.handle(event);
    if (this.#screen) this.#draw(this.#screen);
    else if (event.type === "turn_end" || event.type === "agent_end") this.#append();
  }

  /** Adds a paragraph of the demo's own. */
  say(text: string, style = ""): void {
    this.#transcript.add(createNoticeBlock(text, style));
    if (this.#screen) this.#draw(this.#screen);
    else this.#append();
  }

  /** Leaves the cursor below all that was shown. */
  end(): void {
    this.#screen?.finish();
    this.#terminal.write("\n");
  }

  #draw(screen: Screen): void {
    screen.draw(this.#transcript.rows(this.#terminal.columns));
    this.#transcript.release(screen.top);
  }

  #append(): void {
    const { base, rows } = this.#transcript.rows(this.#terminal.columns);
    for (const row of rows.slice(this.#written - base)) {
      this.#terminal.write(`${paintRow(row)}\n`);
    }
    this.#written = base + rows.length;
    this.#transcript.release(this.#written);
  }
}

/** A row for a pipe or a file: no cursor movement, and colors only where they are asked for. */
function paintRow(row: Row): string {
  return row
    .map(({ text, style }) => (style === "" ? text : `\x1b[${style}m${text}\x1b[m`))
    .join("")
    .trimEnd();
}
