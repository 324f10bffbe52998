import type { IUnicodeVersionProvider } from "@xterm/headless";
import { measureWidth } from "../text/width.ts";

const SEGMENTER = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const DELETE = 0x7f;
/** States below are single code points, those from here on are numbers of longer clusters. */
const FIRST_CLUSTER = 0x110000;

/**
 * Widths as the program counts them, and as terminals of today do: what a reader takes for
 * one character is one, and an emoji takes two columns. The terminal asks for each code
 * point and hands back the answer for the one before; that has the cluster so far.
 */
export function clusterWidths(): IUnicodeVersionProvider {
  const clusters: string[] = [];
  const numbers = new Map<string, number>();
  const findText = (state: number): string =>
    state < FIRST_CLUSTER ? String.fromCodePoint(state) : (clusters[state - FIRST_CLUSTER] ?? "");
  const findState = (cluster: string): number => {
    const known = numbers.get(cluster);
    if (known !== undefined) return known;
    const number = FIRST_CLUSTER + clusters.length;
    clusters.push(cluster);
    numbers.set(cluster, number);
    return number;
  };
  return {
    version: "clusters",
    wcwidth: (codePoint) => measureColumns(String.fromCodePoint(codePoint)),
    charProperties(codePoint, preceding) {
      if (codePoint < DELETE) return property(codePoint, 1, false);
      const own = String.fromCodePoint(codePoint);
      const before = preceding >> 3;
      const joined = before === 0 ? own : findText(before) + own;
      if (before === 0 || !isOneCluster(joined))
        return property(codePoint, measureColumns(own), false);
      return property(findState(joined), measureColumns(joined), true);
    },
  };
}

/** How xterm packs it: the state, the width in two bits, and whether it joins what is before. */
function property(state: number, width: number, joins: boolean): number {
  return (state << 3) | (width << 1) | (joins ? 1 : 0);
}

function measureColumns(cluster: string): 0 | 1 | 2 {
  const width = measureWidth(cluster);
  return width === 0 || width === 1 ? width : 2;
}

function isOneCluster(text: string): boolean {
  let count = 0;
  for (const _ of SEGMENTER.segment(text)) if (++count > 1) return false;
  return true;
}
