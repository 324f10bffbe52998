import type { TerminalEvent } from "../terminal/key.ts";
import type { CursorShape } from "../terminal/tty.ts";
import type { Selection } from "./editor-rows.ts";
import type { TextBuffer } from "./text-buffer.ts";

/**
 * What an event did: `pass`: nothing, it is for the editor. `edited`: text was inserted, which may have completions.
 * `moved`: all else.
 */
export type ModeAnswer = "pass" | "edited" | "moved";

/** Opens a mode for a text. `walkHistory` shows an earlier or a later prompt in its place. */
export type OpenKeyMode = (buffer: TextBuffer, walkHistory: (step: -1 | 1) => void) => KeyMode;

/** Gets the events before the editor, as an editor with modes does. */
export interface KeyMode {
  /** What the footer shows, with the keys of an incomplete command. */
  readonly label: string;
  readonly cursor: CursorShape;
  /** Whether Esc ends something here, and reaches others only when it is pressed again. */
  readonly takesEscape: boolean;
  readonly selection: Selection | undefined;
  take(event: TerminalEvent): ModeAnswer;
  /** The editor has handled an event that was passed to it. */
  settle(): void;
  /** The text was sent, and is empty now. */
  reset(): void;
}
