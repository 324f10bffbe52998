const COMBINING = /^[\p{M}\p{Cf}\u1160-\u11ff]$/u;
/** Signs that East Asia writes, and pictures: two columns in terminals. */
const WIDE = new RegExp(
  [
    String.raw`^[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97c]`,
    String.raw`^[\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]`,
    String.raw`^[\u{16fe0}-\u{18cff}\u{1b000}-\u{1b2fb}\u{20000}-\u{3fffd}]`,
    String.raw`^\p{Emoji_Presentation}`,
  ].join("|"),
  "u",
);
const FIRST_OF_OTHERS = 0x300;

/** The columns of a terminal that a character takes; 0: it belongs to the one before it. */
export function charWidth(char: string): 0 | 1 | 2 {
  if ((char.codePointAt(0) ?? 0) < FIRST_OF_OTHERS) return 1;
  if (COMBINING.test(char)) return 0;
  return WIDE.test(char) ? 2 : 1;
}
