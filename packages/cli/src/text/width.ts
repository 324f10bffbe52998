import { eastAsianWidth } from "get-east-asian-width";

const ASCII = /^[\x20-\x7e]*$/;
const EMOJI = /\p{Emoji_Presentation}|\p{Emoji}\ufe0f|\p{Regional_Indicator}{2}/u;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;
/** Where terminals agree: Latin and its neighbors, and what East Asia writes. */
const SURE =
  /^[\u0020-\u024f\u0370-\u052f\u2010-\u2027\u2500-\u259f\u3001-\u30ff\u3400-\u9fff\uac00-\ud7a3]$/;

let segmenter: Intl.Segmenter | undefined;

/** What a reader takes for single characters. What finds them is made when it is needed: that takes some milliseconds. */
export function segmentText(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** What a reader takes for one character, with the columns that it takes. */
export interface Cluster {
  readonly text: string;
  readonly width: 0 | 1 | 2;
}

/** The characters of a text without escape sequences, as a reader counts them. */
export function splitClusters(text: string): Cluster[] {
  if (ASCII.test(text)) return Array.from(text, (letter) => ({ text: letter, width: 1 }));
  return Array.from(segmentText(text), ({ segment }) => ({
    text: segment,
    width: clusterWidth(segment),
  }));
}

/** The first characters that fit into `columns`. */
export function takeClusters(clusters: readonly Cluster[], columns: number): string[] {
  let left = columns;
  const end = clusters.findIndex(({ width }) => (left -= width) < 0);
  return clusters.slice(0, end < 0 ? undefined : end).map(({ text }) => text);
}

/** Columns that a text without escape sequences takes. */
export function measureWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmentText(text)) width += clusterWidth(segment);
  return width;
}

/** Whether all terminals agree on how wide it is. */
export function isSureWidth(cluster: string): boolean {
  return SURE.test(cluster);
}

function clusterWidth(cluster: string): 0 | 1 | 2 {
  if (cluster.length === 1 && cluster >= " " && cluster <= "~") return 1;
  if (EMOJI.test(cluster)) return 2;
  if (INVISIBLE.test(cluster)) return 0;
  return eastAsianWidth(cluster.codePointAt(0) ?? 0) === 2 ? 2 : 1;
}
