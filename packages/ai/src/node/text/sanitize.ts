import { keepWholeEmoji } from "./whole-emoji.ts";

export interface SanitizeOptions {
  /** False for what has to stay on one line: a line break is shown as "␊". Default true. */
  keepNewlines?: boolean;
  /**
   * True where a person decides by what is shown: nothing is left out, all that could not
   * be seen is made visible. Default false: formatting is left out without a trace.
   */
  exact?: boolean;
  /**
   * True for a terminal that draws an emoji of several parts, such as a family, as one: the joiners and tags within it
   * stay. Default false. Without effect where `exact` is true.
   */
  wholeEmoji?: boolean;
}

/*
 * Sequences for terminals, with ESC or as one character (C1). A string of one ends at what
 * no string can hold, so that each character is looked at a bounded number of times, and
 * one without an end hides nothing of what follows.
 */
const CSI = String.raw`(?:\x1B\[|\x9B)[0-?]*[ -/]*[@-~]`;
const STRING = String.raw`(?:\x1B[\]PX^_]|[\x9D\x90\x98\x9E\x9F])[^\x07\n\r\x18\x1A\x1B\x80-\x9F]*(?:\x07|\x1B\\|\x9C)`;

/** Orders of writing, joiners, fillers, tags: seen by programs and models, not by people. */
const INVISIBLE = String.raw`(?![\uFE0E\uFE0F])\p{Default_Ignorable_Code_Point}|[\uFFF9-\uFFFB]`;

const CONTROL = String.raw`\r\n|[\x00-\x08\n-\x1F\x7F-\x9F\u2028\u2029]`;
const LONE_SURROGATE = String.raw`\p{Surrogate}`;

const UNSAFE = [INVISIBLE, CONTROL, LONE_SURROGATE].join("|");
const EACH = new RegExp(UNSAFE, "gu");
const SEQUENCES_AND_EACH = new RegExp(`(${CSI})|(${STRING})|${UNSAFE}`, "gu");
/** The same but for what may hold an emoji together. */
const ALL_BUT_EMOJI = new RegExp(
  String.raw`(${CSI})|(${STRING})|(?![\u200D\u{E0020}-\u{E007F}])(?:${UNSAFE})`,
  "gu",
);

/** The picture of control character 0; those of the others follow it. */
const FIRST_PICTURE = 0x2400;
const LAST_C0 = 0x1f;
const DELETE = 0x7f;
const LAST_C1 = 0x9f;
const HEX = 16;
const HEX_DIGITS = 4;

/**
 * A text as it may be shown: without sequences that a terminal obeys, without control
 * characters but tab and line break, and without characters that reorder or hide. What
 * had a payload leaves a "␛". Linear; a second time changes nothing.
 */
export function sanitize(text: string, options: SanitizeOptions = {}): string {
  const { keepNewlines = true, exact = false, wholeEmoji = false } = options;
  if (exact) return text.replace(EACH, (found) => shown(found, keepNewlines, true));
  const pattern = wholeEmoji ? ALL_BUT_EMOJI : SEQUENCES_AND_EACH;
  const clean = text.replace(pattern, (found, csi?: string, string?: string) => {
    if (csi !== undefined) return "";
    if (string !== undefined) return "␛";
    return shown(found, keepNewlines, false);
  });
  return wholeEmoji ? keepWholeEmoji(clean) : clean;
}

function shown(found: string, keepNewlines: boolean, exact: boolean): string {
  if (found === "\n" || found === "\u2028" || found === "\u2029") return keepNewlines ? "\n" : "␊";
  if (found === "\r\n") return exact ? `␍${keepNewlines ? "\n" : "␊"}` : keepNewlines ? "\n" : "␊";
  const code = found.codePointAt(0) ?? 0;
  if (code <= LAST_C0) return String.fromCodePoint(FIRST_PICTURE + code);
  if (code === DELETE) return "␡";
  if (code <= LAST_C1 || /\p{Surrogate}/u.test(found)) return exact ? formatCode(code) : "\uFFFD";
  return exact ? formatCode(code) : "";
}

function formatCode(code: number): string {
  return `<U+${code.toString(HEX).toUpperCase().padStart(HEX_DIGITS, "0")}>`;
}
