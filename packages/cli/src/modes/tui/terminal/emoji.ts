/** An emoji of three that are joined, a flag of two signs, and one with a skin tone: two columns each where they are whole. */
const PROBE = "\u{1F468}\u200D\u{1F469}\u200D\u{1F467}\u{1F1E9}\u{1F1EA}\u{1F44D}\u{1F3FD}";
const PROBE_COLUMNS = 6;
const ASK_MODE = "\x1b[?2027$p";
const ASK_COLUMN = "\x1b[?6n";

/**
 * Asks whether the terminal takes what a reader sees as one character for one: by the mode that some have for it, and by
 * drawing some and asking for the column, before and after. All of it is erased in the same write, and nothing is
 * wrapped, so that it is never seen.
 */
export const ASK_EMOJI = `\x1b[?2026h\x1b7\x1b[?7l${ASK_MODE}${ASK_COLUMN}${PROBE}${ASK_COLUMN}\x1b8\x1b[?7h\x1b[K\x1b[?2026l`;

/** The mode in which a terminal takes what a reader sees as one character for one. */
export const CLUSTER_MODE = { on: "\x1b[?2027h", off: "\x1b[?2027l" };

/** How a terminal draws an emoji of several parts: as one, as one once its mode is set, or as its parts. */
export type EmojiDrawing = "whole" | "in the mode" | "parts";

/** Reads the answers, one by one, until they say it. */
export function createEmojiReader(): (answer: string) => EmojiDrawing | undefined {
  let before: number | undefined;
  return (answer) => {
    const [, state] = /^\[\?2027;(\d)\$y$/.exec(answer) ?? [];
    if (state === "1" || state === "3") return "whole";
    if (state === "2") return "in the mode";
    const [, column] = /^\[\?\d+;(\d+)(?:;\d+)?R$/.exec(answer) ?? [];
    if (column === undefined) return undefined;
    if (before !== undefined) return Number(column) - before === PROBE_COLUMNS ? "whole" : "parts";
    before = Number(column);
    return undefined;
  };
}
