/** The invisible characters that hold an emoji of several parts together: the joiner, and the tags of a flag. */
const HOLDS = /[\u200D\u{E0020}-\u{E007F}]/u;
const EACH_HOLD = new RegExp(HOLDS, "gu");
/** Those that Unicode recommends, so that one picture is drawn for them. TypeScript does not know the flag as a literal. */
const RECOMMENDED = String.raw`^(?:\p{RGI_Emoji_ZWJ_Sequence}|\p{RGI_Emoji_Tag_Sequence})$`;

/** Made when they are needed: that takes some milliseconds. */
let recommended: RegExp | undefined;
let segmenter: Intl.Segmenter | undefined;

/** Leaves joiners and tags where they make one emoji of several; any other would be invisible, and is left out. */
export function keepWholeEmoji(text: string): string {
  if (!HOLDS.test(text)) return text;
  recommended ??= new RegExp(RECOMMENDED, "v");
  let kept = "";
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  for (const { segment } of segmenter.segment(text)) {
    kept += recommended.test(segment) ? segment : segment.replace(EACH_HOLD, "");
  }
  // What is left out can bring characters together that belong to one another.
  return kept.length === text.length ? kept : keepWholeEmoji(kept);
}
