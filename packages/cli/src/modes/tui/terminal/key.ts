/** An event of the terminal. */
export type TerminalEvent =
  /** Typed characters; several where they arrived together. */
  | { type: "text"; text: string }
  /** Pasted text, with line ends as `\n` and without control sequences. */
  | { type: "paste"; text: string }
  | Key
  /** The place of the cursor, from 0: the answer to a request. */
  | { type: "position"; row: number; column: number };

/** A key without a character, or one with Ctrl or Alt. */
export interface Key {
  type: "key";
  name: KeyName;
  ctrl: boolean;
  alt: boolean;
  shift: boolean;
}

export type KeyName =
  | "enter"
  | "escape"
  | "tab"
  | "backspace"
  | "delete"
  | "insert"
  | "up"
  | "down"
  | "left"
  | "right"
  | "home"
  | "end"
  | "pageUp"
  | "pageDown"
  /** One character, small: `c` of Ctrl+C. */
  | (string & {});
