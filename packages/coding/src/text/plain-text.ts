const SPACES_FOR_A_TAB = "    ";

const ESCAPE_SEQUENCES = new RegExp(
  [
    // Strings for the terminal (titles, links), up to their end or the end of the line.
    "(?:\\x1b[\\]PX^_]|[\\x9d\\x90\\x98\\x9e\\x9f])[^\\x07\\x1b\\x9c\\n]*(?:\\x07|\\x1b\\\\|\\x9c)?",
    // Cursor, colors and modes.
    "(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*[@-~]?",
    // What is left: character sets and single commands.
    "\\x1b[ -/]*[0-~]?",
  ].join("|"),
  "g",
);
/** Controls, and the marks that turn the direction of writing and so can hide what a text says. */
const CONTROLS = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * The text without anything that a terminal would obey. Lines stay, a carriage return
 * begins a new one, a tab becomes spaces.
 */
export function plainText(text: string): string {
  return text
    .replace(ESCAPE_SEQUENCES, "")
    .replace(/\r\n?/g, "\n")
    .replaceAll("\t", SPACES_FOR_A_TAB)
    .replace(CONTROLS, (control) => (control === "\n" ? control : ""));
}
