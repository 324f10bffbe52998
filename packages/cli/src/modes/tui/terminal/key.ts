/** An event of the terminal. */
export type TerminalEvent =
  /** Typed characters; several where they arrived together. */
  | { type: "text"; text: string }
  /** Pasted text, with line ends as `\n` and without control sequences. */
  | { type: "paste"; text: string }
  | Key
  /** The place of the cursor, from 0: the answer to a request. */
  | { type: "position"; row: number; column: number };

/** An event, or what a terminal says of itself. */
export type DecodedEvent =
  | TerminalEvent
  /** An answer that is waited for: a sequence without its ESC and its end, `[?62c` or `]11;rgb:0/0/0`. */
  | { type: "answer"; text: string }
  /** It got the focus, or lost it. */
  | { type: "focus"; isFocused: boolean };

/** A key without a character, or one with Ctrl or Alt. */
export interface Key {
  type: "key";
  /** A name such as `enter`, `pageUp` or `backspace`, or one small character: `c` of Ctrl+C. */
  name: string;
  ctrl: boolean;
  alt: boolean;
  shift: boolean;
}

/** `ctrl+alt+shift+name`, with the modifiers that were held. */
export function formatKey({ name, ctrl, alt, shift }: Key): string {
  return [ctrl && "ctrl+", alt && "alt+", shift && "shift+", name].filter(Boolean).join("");
}
