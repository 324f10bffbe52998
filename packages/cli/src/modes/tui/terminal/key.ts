/** What a terminal has told us. */
export type TerminalEvent =
  /** Characters that were typed; several where they came together. */
  | { type: "text"; text: string }
  /** What was pasted, line ends as `\n`, with nothing that a terminal would obey. */
  | { type: "paste"; text: string }
  | Key
  /** Where the cursor is, from 0: the answer to a question of ours. */
  | { type: "position"; row: number; column: number };

/** A key that is no character, or one that was pressed with Ctrl or Alt. */
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
